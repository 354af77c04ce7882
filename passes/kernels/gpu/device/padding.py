"""Buffers that are a padded copy of another: read instead of it, with a test of the position.

    fill %p with %c; copy %x into %p[1, 1] [14, 14] [1, 1]; a window of %p  ->  a window of %x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import index, load
from lamina.passes.kernels.gpu.device.threads import below, zero_of
from lamina.passes.linalg.schedule.padding import Padding


def place_in_source(
    padding: Padding, places: Sequence[ir.Value]
) -> tuple[list[ir.Value], ir.Value | None]:
    """A position in the source for one in the padded buffer, valid in any case, and whether it
    is that of an element."""
    found, inside = [], None
    shape = ir.MemRefType(padding.source.type).shape
    for at, start, step, extent in zip(places, padding.starts, padding.steps, shape, strict=True):
        if start:
            at = arith.SubIOp(at, index(start)).result
        test = below(at, (extent - 1) * step + 1)
        if step > 1:
            rest = arith.RemUIOp(at, index(step)).result
            whole = arith.CmpIOp(arith.CmpIPredicate.eq, rest, index(0)).result
            test = arith.AndIOp(test, whole).result
            at = arith.DivUIOp(at, index(step)).result
        inside = test if inside is None else arith.AndIOp(inside, test).result
        found.append(at)
    if inside is None:
        return found, None
    return [arith.SelectOp(inside, at, index(0)).result for at in found], inside


def load_padded(
    padding: Padding, buffer: ir.Value, places: Sequence[ir.Value],
    replaced: Mapping[ir.Value, ir.Value], as_it_is: bool,
) -> ir.Value:  # fmt: skip
    """The element at a position of the padded buffer; `buffer` is the source. `as_it_is`: before
    it is converted, and zero where there is none."""
    at, inside = place_in_source(padding, places)
    value = load(buffer, at)
    if padding.conversion is not None and not as_it_is:
        op = padding.conversion.clone().operation
        op.operands[0] = value
        value = op.results[0]
    if inside is None:
        return value
    outside = zero_of(value.type) if as_it_is else replaced.get(padding.value, padding.value)
    return arith.SelectOp(inside, value, outside).result
