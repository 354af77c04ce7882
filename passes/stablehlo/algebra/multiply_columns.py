"""Multiply long rows of complex numbers as columns that lie side by side, and then what these leave.

    p = product over i < 4096 of x[i]   becomes   c[j] = product over i < 16 of x[256 * i + j]
                                                  p = product over j < 256 of c[j]

LLVM makes no vectors of pairs that are carried along, but of pairs that lie side by side. Factors are
regrouped, as in any reduction. Leaves alone what an op of the same kernel makes, rows that are short and
lengths without such a divisor.

example: test/passes/stablehlo/algebra/multiply_columns.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import ints, reducer_of

_COLUMNS = range(1024, 15, -16)  # whole vectors; all of them are in the first cache
_LEAST_ROWS = 16  # rounding


class MultiplyColumns(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.reduce"):
            columns = _columns(op)
            if columns is not None:
                _multiply(op, columns)
                self.count("products")


def _columns(op: ir.Operation) -> int | None:
    """How many columns the last dimension is to be seen as, if any."""
    x = op.operands[0]
    if len(op.results) != 1 or not isinstance(x.owner, ir.Block) or not x.type.has_static_shape:
        return None
    if not isinstance(x.type.element_type, ir.ComplexType) or reducer_of(op) != "stablehlo.multiply":
        return None
    if x.type.rank - 1 not in ints(op, "dimensions"):
        return None
    length = x.type.shape[-1]
    return next((n for n in _COLUMNS if length % n == 0 and length >= _LEAST_ROWS * n), None)


def _multiply(op: ir.Operation, columns: int) -> None:
    *outer, last = sorted(ints(op, "dimensions"))

    def product(of: ir.Value, init: ir.Value, dimensions: list[int]) -> ir.Value:
        return hlo.reduce([of], [init], dimensions, lambda a, b: [hlo.multiply(a, b)])[0]

    with ir.InsertionPoint(op), op.location:
        x, init = op.operands
        *others, length = ir.RankedTensorType(x.type).shape
        rows = hlo.reshape(x, [*others, length // columns, columns])
        partial = product(rows, hlo.full(1, (), dtype_of(x.type)), [*outer, last])
        result = product(partial, init, [len(others) - len(outer)])
    op.results[0].replace_all_uses_with(result)
    op.erase()
