"""atom and red: threads that meet at a place come one after the other, in an order drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.ptx.decode import DTYPES, Decoder, Do, Modifiers, size_of
from support.ptx.machine import Group, Wave
from support.ptx.memory import Space
from support.ptx.moves import ORDERS, SCOPES, expanded, parts, space_of
from support.ptx.syntax import Instruction

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda old, a: old + a,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, a: a,
    "cas": lambda old, a, b: np.where(old == a, b, old),
    "inc": lambda old, a: np.where(old >= a, np.zeros_like(old), old + np.ones_like(old)),
    "dec": lambda old, a: np.where((old == 0) | (old > a), a, old - np.ones_like(old)),
}


def _atomic(d: Decoder, one: Instruction) -> Do:
    result = one.parts[0] == "atom"
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    modifiers.one(ORDERS)
    modifiers.one(SCOPES)
    modifiers.has("noftz")
    space = space_of(modifiers)
    name = modifiers.one(tuple(_FUNCTIONS))
    while modifiers.has("L2::cache_hint"):
        pass
    count = int(modifiers.one(("v2", "v4", "v8"), "v1")[1:])
    modifiers.end()
    if not name:
        modifiers.unknown()
    operands = list(one.operands)
    writes = d.writes(operands.pop(0), type_, one) if result else []
    _, address = d.address(operands.pop(0), one)
    taken = operands[: 2 if name == "cas" else 1]
    reads = [d.reads(o, type_, one) for o in taken]
    size, dtype, function = size_of(type_), DTYPES[type_], _FUNCTIONS[name]
    d.code.unit = min(d.code.unit, size)

    def do(m: Wave, g: Group) -> None:
        at = address(m)[g.index]
        lanes = m.random.permutation(g.index.size)
        given = [[pairs(read(m), m.lanes)[g.index] for read in operand] for operand in reads]
        for n in range(count):
            old = np.zeros((g.index.size, size // dtype.itemsize), dtype)
            step = at + np.uint64(n * size)
            for of, place, which in parts(m, space, step, g.index, size, one):
                order_of = lanes[np.isin(lanes, which)] if which.size < lanes.size else lanes
                spot = np.zeros(g.index.size, np.int64)
                spot[which] = place
                m.watch_atomic(of, spot[order_of], size, g.index[order_of], one)
                operands_of = [operand[n] for operand in given]
                changed = _one_by_one(of, spot, order_of, size, dtype, function, operands_of, old, one)
                if changed.any():
                    m.wake()
                if of.name == "global":  # these may wait for other blocks
                    vain = np.zeros(m.lanes, bool)
                    vain[g.index[which[~changed[which]]]] = True
                    m.naps |= vain
            if result:
                writes[n](m, g, expanded(m, g, old.view(f"u{size}")[:, 0]).view(dtype))

    return do


def pairs(values: np.ndarray, lanes: int) -> np.ndarray:
    """A row a lane: packed types have two values each."""
    return values.reshape(lanes, -1)


def _one_by_one(
    of: Space, spot: np.ndarray, lanes: np.ndarray, size: int, dtype: Any, function: Callable[..., Any],
    given: list[np.ndarray], old: np.ndarray, what: object,
) -> np.ndarray:  # fmt: skip
    """Rounds in which each place is touched once; which threads changed something."""
    changed = np.zeros(spot.size, bool)
    order = lanes[np.argsort(spot[lanes], kind="stable")]
    places = spot[order]
    first = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    length = np.diff(np.concatenate([first, [places.size]]))
    rank = np.arange(places.size) - np.repeat(first, length)
    for turn in range(int(length.max(initial=0))):
        mine = order[rank == turn]
        before = of.read(spot[mine], size, what).view(dtype).reshape(mine.size, -1)
        old[mine] = before
        after = np.ascontiguousarray(np.asarray(function(before, *(g[mine] for g in given)), dtype))
        words = after.view(f"u{size}")[:, 0]
        other = words != np.ascontiguousarray(before).view(f"u{size}")[:, 0]
        changed[mine] = other
        if other.any():
            of.write(spot[mine[other]], size, words[other], what)
    return changed


OPS = {"atom": _atomic, "red": _atomic}
