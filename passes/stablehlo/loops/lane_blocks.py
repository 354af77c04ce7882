"""A loop over blocks of a batch's lanes, whose steps depend on each other in nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import LANES
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir


def by_blocks(
    size: int, block: int, types: Sequence[ir.Type], compute: Callable[[ir.Value], Sequence[ir.Value]]
) -> list[ir.Value]:
    """Arrays of these types, whose first dimension is `size` lanes. `compute` is given the number of a block's
    first lane and gives that block of each. Where blocks don't divide the lanes, the last one does some of the
    one before it again: `block_of` takes it so."""
    steps = -(-size // block)
    zero = hlo.constant(np.int32(0))
    one, by, limit = (hlo.constant(np.int32(n)) for n in (1, block, steps))
    outs = [
        hlo.broadcast_in_dim(hlo.constant(np.zeros((), dtype_of(t))), list(t.shape), ()) for t in types
    ]

    def cond(step: ir.Value, *_: ir.Value) -> ir.Value:
        return hlo.compare(step, limit, "LT")

    def body(step: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        first = step if block == 1 else hlo.multiply(step, by)
        updated = []
        for whole, part in zip(carried, compute(first), strict=True):
            starts = [first, *[zero] * (len(whole.type.shape) - 1)]
            updated.append(hlo.dynamic_update_slice(whole, part, starts))
        return [hlo.add(step, one), *updated]

    results = hlo.while_([zero, *outs], cond, body)
    loop = results[0].owner.operation
    loop.attributes[LANES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), steps)
    return results[1:]


def block_of(value: ir.Value, first: ir.Value, block: int) -> ir.Value:
    """So many lanes of an array from the first one on."""
    shape = [block, *list(value.type.shape)[1:]]
    zeros = [hlo.constant(np.int32(0))] * (len(shape) - 1) if len(shape) > 1 else []
    return hlo.dynamic_slice(value, [first, *zeros], shape)
