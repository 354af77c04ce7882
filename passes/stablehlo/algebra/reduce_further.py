"""Reduce what another reduction of the same array has left, not the array again.

    r = sum of x along rows                        r = sum of x along rows
    t = sum of x over all                  ->      t = sum of r

Of several that reduce some of the same dimensions in the same way, the one that leaves least goes on.
Terms of sums and products are regrouped, as any reduction may; sums and products of floats of up to 16 bits, which
are rounded in memory but not on the way, are left alone, and so is what begins with something else than nothing.

example: test/passes/stablehlo/algebra/reduce_further.mlir
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import in_order, ints, reducer_of, size_of, splat_of

_ROUNDED = ("stablehlo.add", "stablehlo.multiply")
_EXACT = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or")

Key = tuple[ir.Value, str, ir.Block]


class ReduceFurther(Pass):
    """The pass `stablehlo-reduce-further`."""

    only_with = frozenset(("stablehlo.reduce",))

    def run(self, module: ir.Module) -> None:
        alike: dict[Key, list[ir.Operation]] = defaultdict(list)
        for op in find_ops(module, "stablehlo.reduce"):
            reducer = reducer_in_steps(op)
            if reducer is not None:
                alike[op.operands[0], reducer, op.block].append(op)
        for ops in alike.values():
            if len(ops) > 1:
                self.count("reductions", _go_on(in_order(ops)))


def reducer_in_steps(op: ir.Operation) -> str | None:
    """What a reduction does that may be done in two steps; None if it may not."""
    if len(op.results) != 1 or not op.operands[0].type.has_static_shape:
        return None
    dtype = dtype_of(op.results[0].type)
    if dtype_of(op.operands[0].type) != dtype or not size_of(op.operands[0].type):
        return None
    reducer, init = reducer_of(op), splat_of(op.operands[1])
    if reducer is None or init is None:
        return None
    is_exact = dtype.kind in "biu" or dtype in (np.float32, np.float64)
    if reducer not in _EXACT and not (is_exact and reducer in _ROUNDED):
        return None
    return reducer if init == _nothing(reducer, dtype) else None


def _nothing(reducer: str, dtype: np.dtype) -> object:
    """What a reduction can begin with any number of times."""
    if reducer in ("stablehlo.add", "stablehlo.or"):
        return 0
    if reducer == "stablehlo.multiply":
        return 1
    if reducer == "stablehlo.and":
        return ~np.zeros((), dtype)
    is_largest = reducer == "stablehlo.maximum"
    if dtype == np.bool_:
        return not is_largest
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_largest else np.iinfo(dtype).max
    return -np.inf if is_largest else np.inf


def _go_on(ops: list[ir.Operation]) -> int:
    """Let reductions of one array read what others have left; how many do."""
    given = ops[0].operands[0]
    known = [(op, frozenset(ints(op, "dimensions")), size_of(op.results[0].type)) for op in ops]
    found = 0
    for op, wanted, _ in known:
        before = [one for one in known if one[1] < wanted]
        if not before:
            continue
        other, done, _ = min(before, key=lambda one: one[2])
        if op.is_before_in_block(other):
            # All that it reads is there by now.
            other.operands[1] = op.operands[1]
            other.move_before(op)
        left = [d for d in range(len(given.type.shape)) if d not in done]
        op.operands[0] = other.results[0]
        op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([left.index(d) for d in sorted(wanted - done)])
        found += 1
    return found
