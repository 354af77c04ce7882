"""Make one kernel of softmax(score(q k^T)) v, so that no matrix of scores need be in memory.

    %s = dot_general %q, %k
    %t = multiply %s, %scale (or a mask, a bias: any element-wise ops)    %o = call @fused_attention_0(
    %p = softmax %t: maximum, subtract, exponential, sum, divide    ->        %q, %k, %v)
    %o = dot_general %p, %v

The kernel holds the same ops, and its kind is `attention`: a target that has a kernel for it does all
in one pass over k and v, with a maximum and a sum that are corrected as they go; any other may
compile it as it is. A transpose of the result is part of it. What masks are made of (iotas,
comparisons) goes in, arrays become arguments.

Only where nobody else uses scores or probabilities: a gradient does. Only for operands of 16 bits or of
f32 and widths of at most `max-width`.
With `whole`, the kernel's scores are of f32; widths are multiples of that, and so are numbers of queries
below 32, keys are as many or more, and rows of v lie together in memory. With `least-scores`, fewer of f32 are left
to products and a softmax.

example: test/passes/stablehlo/attention/outline_attention.mlir
"""

from __future__ import annotations

from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND, REASON
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import DotNumbers, defining, in_order
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels, blocks_of
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape
from lamina.passes.stablehlo.attention.wide_copies import NARROW, WideCopies

ATTENTION = "attention"
_TYPES = (*NARROW, "f32")
_MANY_QUERIES = 32  # rounding


class OutlineAttention(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.exponential",))

    max_width: int = 256  # rounding
    whole: int = 1
    least_scores: int = 0  # code

    def run(self, module: ir.Module) -> None:
        kernels = Kernels(module)
        for block in blocks_of(module):
            for op in [inner.operation for inner in block.operations]:
                found = Attention.of(op)
                if found is not None and self._is_wanted(found, block):
                    _outline(found, kernels, wide=self.whole > 1)
        self.count("kernels", len(kernels))

    def _is_wanted(self, found: Attention, block: ir.Block) -> bool:
        ops = (found.product, *found.ops)
        if any(op.block != block for op in ops):
            return False
        q, k = found.product.operands
        v = found.values.operands[1 - found.probabilities_operand]
        types = {str(value.type.element_type) for value in (q, k, v)}
        if self.whole > 1:
            made = {str(v.type.element_type) for v in (found.scores, found.values.results[0])}
            if not made <= {"f32", *types}:
                return False
        if len(types) > 1 or not types <= set(_TYPES):
            return False
        if not all(value.type.has_static_shape and 0 not in value.type.shape for value in (q, k, v)):
            return False
        (width,) = DotNumbers.of(found.product).lhs_contracting
        numbers = DotNumbers.of(found.values)
        rank = len(v.type.shape)
        free = numbers.rhs_free(rank) if found.probabilities_operand == 0 else numbers.lhs_free(rank)
        widths = (q.type.shape[width], v.type.shape[free[0]])
        if max(widths) > self.max_width or (types == {"f32"} and self._is_small(found)):
            return False
        return self.whole == 1 or self._is_whole(found, widths, free[0] == rank - 1)

    def _is_small(self, found: Attention) -> bool:
        """Whether scores stay in a cache anyway: products of f32 and a softmax compile in a third of the time."""
        return prod(found.scores.type.shape) < self.least_scores

    def _is_whole(self, found: Attention, widths: tuple[int, int], rows_together: bool) -> bool:
        queries = found.scores.type.shape[AttentionShape(found, None).rows[-1]]
        keys = found.scores.type.shape[found.keys_dim]
        return (
            rows_together
            and not any(width % self.whole for width in widths)
            and keys >= self.whole
            and (queries >= _MANY_QUERIES or queries % self.whole == 0)
        )


def _outline(found: Attention, kernels: Kernels, *, wide: bool) -> None:
    values = _last(found.values)
    inside = {found.product, found.values, values, *found.ops}
    order = in_order(inside)
    outside = dict.fromkeys(
        operand for op in order for operand in op.operands if defining(operand) not in inside
    )
    constants = [v for v in outside if _is_scalar_constant(v)]
    arguments = [v for v in outside if v not in constants]
    with kernels.insertion_point(), values.location:
        function, block = hlo.function(
            "", [v.type for v in arguments], [values.results[0].type], "private"
        )
    keys = found.scores.type.shape[found.keys_dim]
    function.attributes[KIND] = ir.StringAttr.get(ATTENTION)
    function.attributes[REASON] = ir.StringAttr.get(
        f"attention over {keys} keys: scores and probabilities stay out of memory"
    )
    with ir.InsertionPoint(block) as end, values.location:
        copies = WideCopies(dict(zip(arguments, block.arguments, strict=True)), end)
        for op in [*(v.owner.operation for v in constants), *order]:
            if not wide or op in (found.values, values):
                copies.same(op)
            elif op == found.product:
                copies.product(op)
            else:
                copies.other(op)
        hlo.return_([copies.known[values.results[0]]])
    callee = kernels.add(function, ATTENTION)
    with ir.InsertionPoint(values), values.location:
        (result,) = hlo.call(callee, arguments, [values.results[0].type])
    values.results[0].replace_all_uses_with(result)
    for op in reversed([*(v.owner.operation for v in constants), *order]):
        if all(next(iter(r.uses), None) is None for r in op.results):
            op.erase()


def _last(values: ir.Operation) -> ir.Operation:
    """The op that the kernel ends with: a transpose of the values, if that is all that they are for."""
    uses = [use.owner.operation for use in values.results[0].uses]
    if len(uses) == 1 and uses[0].name == "stablehlo.transpose" and uses[0].block == values.block:
        return uses[0]
    return values


def _is_scalar_constant(value: ir.Value) -> bool:
    op = defining(value)
    return op is not None and op.name == "stablehlo.constant" and not value.type.shape
