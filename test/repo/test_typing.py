"""What type checkers say of programs that use lamina: test/typing, and every public name."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.core.array_class import Array
from lamina.numpy.updating import IndexUpdateHelper, IndexUpdateRef

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "test/typing/programs.py"
MISTAKES = ROOT / "test/typing/mistakes.py"
MODULES = (
    "lamina", "lamina.lax", "lamina.lax.linalg", "lamina.nn", "lamina.numpy", "lamina.numpy.linalg",
    "lamina.random", "lamina.scipy", "lamina.scipy.linalg", "lamina.scipy.signal",
    "lamina.scipy.special", "lamina.scipy.stats",
)  # fmt: skip


def _package(folder: Path) -> None:
    """lamina as its wheel has it, as links."""
    package = folder / "lamina"
    package.mkdir()
    for part in (ROOT / "frontend/lamina").iterdir():
        (package / part.name).symlink_to(part)
    for part in ("dialects", "passes", "backends", "runtime", "tools"):
        (package / part).symlink_to(ROOT / part)


def _public_names() -> str:
    """A program that mentions every public name."""
    lines = [f"import {module}" for module in MODULES]
    for module in MODULES:
        package = importlib.import_module(module)
        for name in dir(package):
            inner = inspect.ismodule(getattr(package, name))  # also what others have imported
            if not name.startswith("_") and name != "annotations" and not inner:
                lines.append(f"{module}.{name}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, set[str]]]:
    """The codes of mypy's errors by file and line. One run: most of it is reading lamina."""
    folder = tmp_path_factory.mktemp("typing")
    _package(folder)
    names = folder / "names.py"
    names.write_text(_public_names())
    command = [
        sys.executable, "-m", "mypy", "--config-file=", "--no-implicit-reexport", "--show-error-codes",
        "--hide-error-context", "--python-version=3.11", "--check-untyped-defs",
        f"--cache-dir={folder / 'cache'}", str(PROGRAMS), str(MISTAKES), str(names),
    ]  # fmt: skip
    env = {**os.environ, "MYPYPATH": str(folder)}
    run = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=600)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, dict[int, set[str]]] = {p.name: {} for p in (PROGRAMS, MISTAKES, names)}
    for path, line, code in re.findall(r"^(\S+?):(\d+): error: .*\[([a-z-]+)\]$", run.stdout, re.M):
        if Path(path).name in found:
            found[Path(path).name].setdefault(int(line), set()).add(code)
    assert found[MISTAKES.name], run.stdout
    return found


def test_right_programs_are_accepted_with_the_types_that_they_assert(errors):
    assert errors[PROGRAMS.name] == {}


def test_right_programs_run():
    subprocess.run([sys.executable, str(PROGRAMS)], check=True, timeout=600)


def test_mistakes_are_refused_where_they_are(errors):
    wanted = {
        number: re.findall(r"# error: ([a-z-]+)$", line)
        for number, line in enumerate(MISTAKES.read_text().splitlines(), 1)
    }
    found = errors[MISTAKES.name]
    assert {n for n, codes in wanted.items() if codes} == set(found)
    assert {n: found[n] for n, codes in wanted.items() if codes and not {*codes} <= found[n]} == {}


def test_every_public_name_is_known_to_checkers(errors):
    assert errors["names.py"] == {}


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "frontend/lamina/py.typed").exists()


# Of the classes, and "flat", which raises; "mul" is "multiply".
_UNTYPED = frozenset(("array", "index", "flat", "mul"))
_STUB = ast.parse((ROOT / "frontend/lamina/core/array_class.pyi").read_text())


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Array", Array), ("_IndexUpdateHelper", IndexUpdateHelper), ("_IndexUpdateRef", IndexUpdateRef)],
)
def test_the_stub_has_the_members_that_arrays_have(name, kind):
    (stub,) = (x for x in _STUB.body if isinstance(x, ast.ClassDef) and x.name == name)
    declared = {x.name: x for x in stub.body if isinstance(x, ast.FunctionDef)}
    there = {m for m in dir(kind) if not m.startswith("_") and m not in _UNTYPED}
    assert there == {m for m in declared if not m.startswith("__")}
    for member, function in declared.items():
        real = getattr(kind, member, None)
        if member.startswith("__") or not inspect.isfunction(real):
            continue
        parameters = inspect.signature(real).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):  # a face of what subclasses have
            continue
        positional, keywords = function.args.posonlyargs + function.args.args, function.args.kwonlyargs
        assert [a.arg for a in positional[1:] + keywords] == [
            p.name for p in list(parameters)[1:] if p.kind is not p.VAR_POSITIONAL
        ], member
