"""Where in a group's iteration `stablehlo-fuse` needs what an op reads."""

from __future__ import annotations

from lamina.passes.stablehlo.fusion.fuse_graph import ON_INNER, SCALAR, Place
from lamina.passes.stablehlo.fusion.fuse_ops import Seen, SeenValue
from lamina.passes.stablehlo.fusion.fuse_parts import start_of_part
from lamina.passes.stablehlo.fusion.fuse_prologues import place_of_factor

ONCE = Place(SCALAR)
_SCATTERED = "scattered"  # where a scatter needs its indices, or updates: one after the other


def place_of_operand(
    op: Seen, number: int, value: SeenValue, place: Place, prologues: bool
) -> Place | None:
    """Where an op at a place needs one of its operands, if it is not element-wise; None where it needs it
    in memory. `prologues`: whether products may make their factors."""
    if op.mapped:
        if not value.shape:
            return ONCE
        return Place(place.domain, (*place.path, op.map_key))
    if op.cuts is not None:
        start = start_of_part(op, number)
        return None if start is None else Place(place.domain, (*place.path, start))
    if op.name == "stablehlo.reduce" and number < len(op.operands) // 2:
        return ON_INNER
    if op.name == "stablehlo.scatter" and number >= len(op.results):
        return Place(place.domain, (_SCATTERED, number))
    if op.name in ("stablehlo.dot_general", "stablehlo.convolution"):
        return place_of_factor(op, number) if prologues else None
    return place if op.picks and number == 1 else None
