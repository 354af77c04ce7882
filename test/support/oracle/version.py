"""Which version of JAX judges, and the tests that compare what only 0.12 has.

needs_jax_0_12.txt names them, one a line, as pytest does: `path::function`, or `path::function[id]`
for one of its parameters. Under an older JAX they are left out; the summary of a run counts them.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

LISTED = Path(__file__).with_name("needs_jax_0_12.txt")
VERSION = tuple(map(int, importlib.metadata.version("jax").split(".")[:2]))


def left_out() -> list[str]:
    """The names of tests that this JAX is too old for."""
    if VERSION >= (0, 12):
        return []
    lines = LISTED.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def summary() -> str:
    """The line at the end of a run: nothing where no test is left out."""
    names = left_out()
    version = importlib.metadata.version("jax")
    said = f"the oracle is JAX {version}: {len(names)} tests that need 0.12 are left out"
    return f"{said} (test/{LISTED.name})" if names else ""


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects them. Raises UsageError for a name that no test of a collected file has."""
    names = left_out()
    if not names:
        return
    out = [item for item in items if _name(item) in names or _name(item, True) in names]
    found = {_name(i) for i in out} | {_name(i, True) for i in out}
    whole = not any("::" in str(a) for a in config.args) and not config.option.keyword
    files = {_name(item).partition("::")[0] for item in items}
    stale = [n for n in names if n not in found and n.partition("::")[0] in files]
    if whole and stale:
        raise pytest.UsageError(f"{LISTED.name} names tests that are not there: {stale}")
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in set(out)]


def _name(item: pytest.Item, with_id: bool = False) -> str:
    path = item.path.relative_to(LISTED.parent).as_posix()
    test = item.nodeid.partition("::")[2]
    return f"{path}::{test if with_id else test.partition('[')[0]}"
