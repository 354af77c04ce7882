"""When a group of `stablehlo-fuse` holds a concatenation or a pad: what it computes is then done for
each part alone (`stablehlo-compute-parts`), so its ops must come in parts, and parts be few. A part may be put together
from parts itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import has_one_use, ints
from lamina.passes.stablehlo.fusion.fuse_graph import ON_OUTER, OUTER, Group, Place, Places
from lamina.passes.stablehlo.fusion.fuse_ops import Seen
from lamina.passes.stablehlo.piecewise.boundaries import Cuts, has_columns, joined, moved, parts

MOST_PARTS = 9  # code: what two dimensions have that are rolled both ways
_MOST_OPS = 200  # code: in all parts together
_LEAST_ELEMENTS = 64  # code: fewer are no work: each part costs a loop


class Start(NamedTuple):
    """Where in an array that is put together a part begins."""

    at: tuple[int, ...]


def note_parts(op: Seen, group: Group, places: Places, block: Sequence[Seen]) -> None:
    """Take account of an op of a block that joins a group, where it needs that."""
    if op.cuts:
        group.cuts = joined(group.cuts, _cuts_at(op, places) or {})
    group.cuts_to_come = joined(group.cuts_to_come, _cuts_read(op, block))
    group.comes_in_parts = group.comes_in_parts and op.comes_in_parts


def can_merge(first: Group, second: Group) -> bool:
    """Whether groups can be one as far as their parts go."""
    if not first.cuts and not second.cuts:
        return True
    members = len(first.members) + len(second.members)
    return (
        first.comes_in_parts and second.comes_in_parts and _few(first, second.cuts, members)
    )


def refusal_by_parts(op: Seen, group: Group, places: Places) -> str | None:
    """Why a group may not hold an op because of parts; None if it may."""
    if op.cuts is None:
        if group.cuts and not op.comes_in_parts:
            return "not computed part by part"
        return None
    cuts = _cuts_at(op, places)
    if group.kind != "loop" or cuts is None or (list(places) == [ON_OUTER] and group.shape != op.shape):
        return "put together from parts, and read at other indices"
    if prod(op.shape or ()) <= _LEAST_ELEMENTS:
        return "a few elements put together"
    if not group.comes_in_parts:
        return "what follows is not computed part by part"
    if not _few(group, cuts, len(group.members) + 1):
        return "put together from too many parts"
    return None


def refusal_before_parts(
    op: Seen, group: Group, places: Places, block: Sequence[Seen]
) -> str | None:
    """Why a group may not hold an op of a block, since what it reads would have to be put together in
    memory; None if it may. Of a long sum of pads each kernel adds what it can hold to the sum before it."""
    if not group.cuts_to_come or group.kind != "loop" or list(places) != [ON_OUTER]:
        return None
    cuts = _cuts_read(op, block)
    if not cuts or _few(group, joined(group.cuts_to_come, cuts), len(group.members) + 2):
        return None
    return "reads what is put together from too many parts"


def _cuts_read(op: Seen, block: Sequence[Seen]) -> Cuts:
    """The boundaries of what only this element-wise op reads."""
    found: Cuts = {}
    for value in op.operands if op.elementwise else ():
        if value.maker is not None and (cuts := block[value.maker].cuts) and has_one_use(value.value):
            found = joined(found, cuts)
    return found


def _cuts_at(op: Seen, places: Places) -> Cuts | None:
    """The boundaries of what an op puts together, in what a group does; None if the op is not needed at one place,
    itself a part of what is put together there."""
    if len(places) != 1 or op.cuts is None:
        return None
    (place,) = places
    if place.domain != OUTER:
        return None
    cuts: Cuts | None = op.cuts
    for start in place.path:
        if cuts is None or not isinstance(start, Start):
            return None
        cuts = moved(cuts, start.at)
    return cuts


def start_of_part(op: Seen, number: int) -> object:
    """Where an operand of what is put together begins in the result; None for a pad's value."""
    if op.name == "stablehlo.pad":
        low, gaps = ints(op.op, "edge_padding_low"), ints(op.op, "interior_padding")
        at = (op.name, *low, *gaps) if any(gaps) else Start(tuple(low))
        return at if number == 0 else None
    dim = ir.IntegerAttr(op.op.attributes["dimension"]).value
    rank = len(op.shape or ())
    if dim == rank - 1 and op.operands[number].shape[dim] == 1 and has_columns(op.op):
        return (op.name, dim, "column")  # is at the same place in all
    start = sum(operand.shape[dim] for operand in op.operands[:number])
    return Start(tuple(start if d == dim else 0 for d in range(rank)))


def is_cut_out_in_place(op: Seen, place: Place) -> bool:
    """Whether an op at a place cuts a part out of an array that goes to the same place in what is put
    together."""
    if op.name != "stablehlo.slice" or place.domain != OUTER or set(ints(op.op, "strides")) - {1}:
        return False
    starts = [start.at for start in place.path if isinstance(start, Start)]
    return len(starts) == len(place.path) and ints(op.op, "start_indices") == list(
        map(sum, zip(*starts, strict=True))
    )


def _few(group: Group, cuts: Cuts, members: int) -> bool:
    count = parts(joined(group.cuts, cuts))
    return count <= MOST_PARTS and members * count <= _MOST_OPS
