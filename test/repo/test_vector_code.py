"""docs/vector-code.md names programs of test/backends/loops, each of which asks for vectors."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / "test" / "backends" / "loops"
_SCALAR = {"sort", "top_k"}
"""What the runtime does, in C++."""


def _programs() -> dict[str, set[str]]:
    """The names in each file that are printed."""
    return {
        file.name.partition(".")[0]: set(
            re.findall(r"^@print_loops\(.*\)\ndef (\w+)\(", file.read_text(), re.MULTILINE)
        )
        for file in _FOLDER.glob("*.filecheck.py")
    }


def _rows() -> list[tuple[list[str], list[str]]]:
    text = (_ROOT / "docs" / "vector-code.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    return [(row[1].split(", "), row[2].split(", ")) for row in rows]


def test_what_the_table_names_is_there():
    programs = _programs()
    for files, names in _rows():
        there = {name for file in files for name in programs[file]}
        assert set(names) <= there, (set(names) - there, files)
    assert {file for files, _ in _rows() for file in files} == set(programs)


def test_every_program_asks_for_vectors():
    for file in _FOLDER.glob("*.filecheck.py"):
        text = file.read_text()
        for checks, name in re.findall(
            r"# CHECK-LABEL: TEST: \w+\n((?:#.*\n)+)@print_loops\(.*\)\ndef (\w+)\(", text
        ):
            asked = re.search(r"# CHECK: (((full|some) vectors|tiles):|.*<\{\{\[0-9\]\+\}\} x )", checks)
            assert asked or name in _SCALAR, f"{file.name}: {name} passes with scalar code"
            assert f"# CHECK-LABEL: TEST: {name}\n" in text
