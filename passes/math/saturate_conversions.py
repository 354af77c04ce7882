"""Define float to integer conversions everywhere: NaN gives 0, what is out of range the limit.

LLVM's conversions are undefined there. A number in range is converted as before; the other lanes
convert a zero and then choose their limit, so that vector code stays straight.

example: test/passes/math/saturate_conversions.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.math.terms import Term


class SaturateConversions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "arith.fptosi", "arith.fptoui"):
            with ir.InsertionPoint(op), op.location:
                _saturate(op)


def _saturate(op: ir.Operation) -> None:
    x = Term.of(op.operands[0])
    if x.lane.width < 32:  # the limits may be beyond its range
        x = x.resized(32)
    of = op.results[0].type
    width = ir.IntegerType(of.element_type if x.lane.shape is not None else of).width
    if op.name == "arith.fptosi":
        lowest, highest = -(1 << (width - 1)), (1 << (width - 1)) - 1
        in_range = x.magnitude() < 2.0 ** (width - 1)
    else:
        lowest, highest = 0, (1 << width) - 1
        in_range = (x > -1.0) & (x < 2.0**width)
    # An integer that holds the limits of narrower ones keeps the conversion a vector instruction.
    narrow = width < 32 and x.lane.width == 32
    through = x.lane.int if narrow else of
    name = "arith.fptosi" if narrow else op.name
    inside = in_range.select(x, 0.0)
    value = ir.Operation.create(name, [through], [inside.value]).result
    if narrow:
        value = ir.Operation.create("arith.trunci", [of], [value]).result
    low, high, zero = (_constant(number, of, width) for number in (lowest, highest, 0))
    limit = _select((x < 0.0).value, low, zero)
    limit = _select((x > 0.0).value, high, limit)
    op.results[0].replace_all_uses_with(_select(in_range.value, value, limit))
    op.erase()


def _constant(number: int, of: ir.Type, width: int) -> ir.Value:
    half = 1 << (width - 1)
    wrapped = (number + half) % (2 * half) - half
    element = of.element_type if isinstance(of, ir.VectorType) else of
    attribute: ir.Attribute = ir.IntegerAttr.get(element, wrapped)
    if isinstance(of, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(of, attribute)
    return ir.Operation.create("arith.constant", [of], attributes={"value": attribute}).result


def _select(condition: ir.Value, chosen: ir.Value, otherwise: ir.Value) -> ir.Value:
    return ir.Operation.create("arith.select", [chosen.type], [condition, chosen, otherwise]).result
