"""Why a group of `stablehlo-fuse` does not compute an op that it needs, but reads it from memory."""

from __future__ import annotations

from typing import NamedTuple

from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.fusion.fuse_both_ways import refusal_both_ways
from lamina.passes.stablehlo.fusion.fuse_graph import ON_OUTER, Group, Places
from lamina.passes.stablehlo.fusion.fuse_ops import Seen
from lamina.passes.stablehlo.fusion.fuse_parts import refusal_by_parts

_MAX_REPEATED = 3  # code: cheap ops in a row that may be computed again for each broadcast element
_MAX_EPILOGUE = 16  # code: ops that may follow a reduction or a contraction in its group


class Limits(NamedTuple):
    """How many ops a group has at most; `chain` if the one to join reads no array of an argument, `plain`
    if all are plain, `scalars` if all are of scalars."""

    ops: int
    chain: int
    plain: int
    scalars: int


def refusal(op: Seen, group: Group, places: Places, reads: bool, most: int) -> str | None:
    """Why a group may not compute an op that it needs, of which it may have so many; None if it may.
    `reads`: it reads the op's result from memory, too."""
    if reads:
        return "read as a whole, too"
    if len(group.members) + len(places) > most:
        return f"the group has its {most} ops"
    by_parts = refusal_by_parts(op, group, places)
    if by_parts or op.cuts is not None:
        return by_parts
    if (both_ways := refusal_both_ways(op, group, places)) is not None:
        return both_ways
    if op.name == "stablehlo.reduce":
        return _of_reduction(op, group, places)
    if op.name in ("stablehlo.dot_general", "stablehlo.convolution"):
        return _of_contraction(op, group, places)
    if not op.joins_loops:
        return "a kernel of its own"
    if group.kind == "update" and op not in group.scattered:
        return "not what a scatter computes one by one"
    if op.cheap:
        for need in places.values():
            if need.repeated > _MAX_REPEATED:
                return "too much to do again for each element of a broadcast"
    elif op.shape:
        if len(places) > 1:
            return f"needed at {len(places)} places, and costly"
        if next(iter(places.values())).repeated:
            return "costly, and a broadcast would repeat it"
    return None


def _of_reduction(op: Seen, group: Group, places: Places) -> str | None:
    if op.shape is None:
        return "a reduction of several arrays"
    if list(places) != [ON_OUTER] or group.shape != op.shape:
        return "a reduction whose result is read at other indices"
    if group.kind == "input" and group.inner == fuse_ops.reduction_domain(op.op):
        return None
    if group.kind != "loop":
        return "a reduction over something else"
    return None if len(group.members) <= _MAX_EPILOGUE else "too much follows the reduction"


def _of_contraction(op: Seen, group: Group, places: Places) -> str | None:
    if op.library:
        return "a library call"
    if group.kind != "loop" or group.shape != op.shape:
        return "a contraction"
    if list(places) != [ON_OUTER]:
        return "a contraction whose result is read at other indices"
    return None if len(group.members) <= _MAX_EPILOGUE else "too much follows the contraction"


def reads_argument(op: Seen) -> bool:
    """Whether an op reads an array that the program is given."""
    return any(value.maker is None and value.shape for value in op.operands)
