"""Numbers about a machine are in passes/framework/machine.py, passes/kernels/gpu/machine.py, backends/machine, and
nowhere else.

A number in passes/ and backends/ whose name says that it is a limit is there for another reason, which the comment
beside it begins with:

- `code`: how much code there may be, or how long to compile;
- `memory`: how much may be on a stack, or kept for a large result;
- `range`: what a type can hold;
- `rounding`: it decides in which order sums are added, so that it must be the same on all machines;
- `search`: how far to look before giving up;
- `shape`: what the form of an algorithm takes, in rows, lanes, registers of the instruction set, or tasks for any
  number of cores.

One whose name speaks of time, of caches or of what a processor fetches has no such reason.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_LIMITS = frozenset(
    "CHEAP COSTLY ENOUGH FAR FARTHEST FEW LARGE LARGEST LEAST LONG LONGEST MANY MAX MIN MOST MUCH NEAR SHORT SMALL "
    "TINY WORTH BYTES".split()
)
_OF_MACHINES = frozenset(
    "AHEAD CACHE CACHED CYCLES FLOPS GFLOPS LATENCY LINE MICROSECONDS NANOSECONDS NS PAGE PAGES PREFETCH PS".split()
)
_REASON = re.compile(r"# (code|memory|range|rounding|search|shape)\b")
_FORMULAS = _ROOT / "passes" / "math" / "formulas"  # coefficients, and where they hold


def _is_number(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool) and value != 0
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(_is_number, elements))
    return False


def _numbers(source: str) -> Iterator[tuple[str, int]]:
    """Names of a module's and its classes' numbers, with their lines."""
    tree = ast.parse(source)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if _is_number(node.value):
            names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            yield from ((name.id, node.lineno) for name in names)


def _faults(source: str) -> Iterator[str]:
    lines = source.splitlines()
    for name, number in _numbers(source):
        words = set(name.upper().split("_"))
        if words & _OF_MACHINES:
            yield f"{number}: {name} is about a machine: make it a field of Machine"
        elif words & _LIMITS and not _REASON.search(lines[number - 1]):
            yield f"{number}: {name}: say why it is no matter of the machine (see test/repo/test_numbers.py)"


def _sources() -> Iterator[Path]:
    for folder in ("passes", "backends"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            parts = path.relative_to(_ROOT).parts
            about_machines = parts[:2] == ("backends", "machine") or parts[-1] == "machine.py"
            if not about_machines and _FORMULAS not in path.parents:
                yield path


def test_numbers_about_machines_are_in_machine():
    faults = [f"{path.relative_to(_ROOT)}:{fault}" for path in _sources() for fault in _faults(path.read_text())]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize(
    "source",
    [
        "_MOST_ROWS = 16\n",
        "_MOST_ROWS, _LEAST = 16, 2  # rows of a block\n",
        "_LINE = 64  # shape: bytes of a cache's\n",
        "class A:\n    least_bytes: int = 1 << 17\n",
        "_COPY_NS = 0.5 * 3\n",
    ],
)
def test_what_is_no_reason_is_found(source):
    assert list(_faults(source))


@pytest.mark.parametrize("source", ["_MOST_ROWS = 16  # shape: registers\n", "_ROUNDS = 3\n", "_MOST = 0\n"])
def test_other_numbers_are_not(source):
    assert not list(_faults(source))
