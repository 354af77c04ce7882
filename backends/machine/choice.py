"""Which machine a compilation goes by: the one that LAMINA_MACHINE names, or else this one, with the rates that
`lamina-calibrate` measured, or else those of the known processor that is most like it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lamina.backends.machine.facts import read_facts
from lamina.passes.framework.machine import Machine
from lamina.runtime.store import default_store

VARIABLE = "LAMINA_MACHINE"
_DATA = Path(__file__).parent / "data"
_KIND = "machine"  # of entries of the store


@functools.cache
def known_machines() -> tuple[str, ...]:
    """The names of the machines that are described in `data`."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.json")))


def named(text: str) -> Machine:
    """The known machine of a name, "reference" being the one that passes take where a module says nothing. What
    follows the name changes some of it: "znver5,l2_bytes=65536,task_ns=1000".

    Raises ValueError for another name, which lists those that are known, and for what no machine has.
    """
    name, *changes = text.split(",")
    if name != "reference" and name not in known_machines():
        raise ValueError(f"no machine is called {name!r}; known are reference, {', '.join(known_machines())}")
    fields = {} if name == "reference" else dict(_description(name)["machine"])
    for change in changes:
        field, _, value = change.partition("=")
        if not value.isdigit():
            raise ValueError(f"{change!r} changes no machine: expected the name of a number, '=' and the number")
        fields[field] = int(value)
    return Machine.described(fields)


def machine_here(cpu: str, features: Collection[str]) -> Machine:
    """The machine of this process, whose processor LLVM calls `cpu` and which has these features.

    Raises ValueError where LAMINA_MACHINE names none.
    """
    given = os.environ.get(VARIABLE)
    if given:
        try:
            return named(given)
        except ValueError as error:
            raise ValueError(f"environment variable {VARIABLE}: {error}") from None
    known = _description(nearest(cpu, features))["machine"]
    return Machine.described({**known, **read_facts(), **measured_rates(cpu)})


def machine_for(cpu: str, features: Collection[str]) -> Machine:
    """A machine with such a processor, which need not be this one's."""
    return named(nearest(cpu, features))


def nearest(cpu: str, features: Collection[str]) -> str:
    """The known machine whose processor LLVM calls so, or that shares most features with it: of as many, one of the
    same maker, then one that has fewest others, and of its kind the newest."""

    def likeness(name: str) -> tuple[bool, int, bool, int]:
        described = _description(name)
        shared = sum(feature in features for feature in described["features"])
        same_maker = bool(described["maker"]) and cpu.startswith(described["maker"])
        return name == cpu, shared, same_maker, -len(described["features"])

    return max((name for name in reversed(known_machines()) if not _description(name).get("pretended")), key=likeness)


def measured_rates(cpu: str) -> dict[str, Any]:
    """The rates that `keep_rates` kept for this processor; none where it did not, or another version did."""
    store = default_store()
    found = store.get(_KIND, _key(cpu)) if store is not None else None
    try:
        rates: dict[str, Any] = dict(json.loads(found)) if found else {}
        Machine.described(rates)
    except (ValueError, TypeError):
        return {}
    return rates


def keep_rates(cpu: str, rates: dict[str, Any]) -> bool:
    """Keep measured rates for later processes. False where there is no store, or it did not take them."""
    store = default_store()
    return store is not None and store.put(_KIND, _key(cpu), json.dumps(rates).encode())


def _key(cpu: str) -> str:
    """Of the entry for a processor. What OpenBLAS takes it for is part of it, as its environment may say."""
    library = "".join(c for c in os.environ.get("OPENBLAS_CORETYPE", "") if c.isalnum())
    return f"{cpu.replace(' ', '-') or 'unknown'}-{library or 'auto'}"


@functools.cache
def _description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text())
    return found
