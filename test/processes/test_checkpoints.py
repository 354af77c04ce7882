"""What some processes saved, others restore; a process that dies while they save damages nothing."""

import json
from pathlib import Path

from processes.ranks import check_ranks, run_ranks


def test_saved_by_two_and_restored_by_others(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    assert check_ranks(2, "checkpoints.py", "save", folder, devices=2).count("saved") == 2
    files = [
        file
        for array in json.loads((tmp_path / "state/index.json").read_text())["arrays"]
        for _, file in array["parts"]
    ]
    # Two rows, two by two blocks, one each of the three that all have: each once, by both processes.
    assert len(files) == len(set(files)) == 9
    assert {name.split(".")[2] for name in files} == {"0", "1"}
    assert check_ranks(0, "checkpoints.py", "load", folder, devices=8) == "restored 1\n"
    done = run_ranks(2, "checkpoints.py", "resave", folder, devices=2)
    assert done.returncode != 0
    assert "saved" not in done.stdout
    assert check_ranks(4, "checkpoints.py", "load", folder).count("restored 1") == 4


def test_processes_that_differ_are_told(tmp_path: Path) -> None:
    done = run_ranks(2, "checkpoints.py", "differ", str(tmp_path / "state"), devices=2)
    assert done.returncode != 0
    assert "save: process 1 saves in" in done.stderr
