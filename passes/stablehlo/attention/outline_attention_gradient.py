"""Make one kernel of the gradient of attention, so that no matrix of scores need be in memory.

    %s = dot_general %q, %k
    %p = softmax %s
    %dv = dot_general %p, %g                          %dq, %dk, %dv = call @fused_attention_gradient_0(
    %dp = dot_general %g, %v                   ->         %q, %k, %v, %g)
    %ds = what softmax's derivative makes of %dp
    %dq = dot_general %ds, %k
    %dk = dot_general %ds, %q

The kernel holds the same ops and computes the scores anew, for a few queries at a time. What they are
is not looked at: any element-wise ops, sums and maxima over keys do, with an exponential among them,
so that scales, masks, biases, dropout and each way to write softmax are taken. If attention's own
result is made before the gradient with respect to it, its ops stay, and nobody else needs them.

Only where all that is made of scores is used up by products: a gradient with respect to a bias is
made of scores, too. Only for f32, exactly, and for floats of 16 bits, whose scores are f32 in the
kernel, and rounded where the program has them multiplied by rows; for widths of at most `max-width`,
no fewer queries and keys than `least`, and no fewer scores than `least-scores`: a matrix that stays in
cache costs less than to compute it anew, and the kernel takes long to compile. With `tensor-cores` for
two products of scores whose types those multiply instead (`score_types.py`), which stay what they are.

example: test/passes/stablehlo/attention/outline_attention_gradient.mlir
"""

from __future__ import annotations

from collections import deque

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND, REASON
from lamina.dialects.types import dtype_of, element_name
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import (
    computes_elements,
    defining,
    in_order,
    ints,
    is_unused,
    made_by,
    size_of,
)
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels, blocks_of
from lamina.passes.stablehlo.attention.score_factors import take_factors_out
from lamina.passes.stablehlo.attention.score_region import ScoreRegion, arguments_of, positions_in
from lamina.passes.stablehlo.attention.score_types import suits_tensor_cores
from lamina.passes.stablehlo.attention.wide_copies import NARROW, WideCopies
from lamina.passes.stablehlo.legalize.note_tf32 import asks_for_tf32

GRADIENT = "attention_gradient"

_DOT, _EXPONENTIAL = "stablehlo.dot_general", "stablehlo.exponential"
_NEEDED = {_DOT, _EXPONENTIAL, "stablehlo.reduce"}
"""Ops without which there is no softmax's derivative."""
_NEAR = 32  # search: values made of a product by element-wise ops, nearest first
_MOST_SIDES = 64  # code: ops that would be done again for each score, in each sweep
_TYPES = ("f32", *NARROW)


class OutlineAttentionGradient(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.exponential",))

    max_width: int = 256  # rounding
    least: int = 16  # rounding
    least_scores: int = 0  # rounding
    tensor_cores: bool = False

    def run(self, module: ir.Module) -> None:
        kernels = Kernels(module)
        for block in blocks_of(module):
            if not _NEEDED <= {inner.operation.name for inner in block.operations}:
                continue
            tried: set[ir.Operation] = set()
            while (found := self._next(block, tried)) is not None:
                _outline(found, kernels, wide=not self.tensor_cores)
        self.count("kernels", len(kernels))

    def _next(self, block: ir.Block, tried: set[ir.Operation]) -> ScoreRegion | None:
        """A region to outline that begins with none of the products tried before."""
        positions: dict[ir.Operation, int] = {}
        for op in [view.operation for view in block.operations]:
            if op.name == _DOT and op not in tried:
                tried.add(op)
                if self._may_begin(op) and _reaches_exponential(op.results[0]):
                    positions = positions or positions_in(block)
                    found = ScoreRegion.of(op, positions)
                    if found is not None and self._is_wanted(found):
                        return found
        return None

    def _may_begin(self, product: ir.Operation) -> bool:
        """Whether a product's types will do for scores."""
        types = [product.results[0].type, *(v.type for v in product.operands)]
        are_right = all(t.has_static_shape and element_name(t) in _TYPES for t in types)
        least = max(self.least_scores, 1)
        return are_right and len(types[0].shape) >= 2 and size_of(types[0]) >= least

    def _is_wanted(self, region: ScoreRegion) -> bool:
        names = {op.name for op in region.ops}
        if not _NEEDED <= names | {_DOT} or len(region.products) < 2:
            return False
        if len(region.sides) > _MOST_SIDES:
            return False
        if self.tensor_cores:
            widest = max(operand.width for operand in region.operands())
            return suits_tensor_cores(region) and len(region.products) == 2 and widest <= self.max_width
        products = [*(p.op for p in region.products), *(s.op for s in region.sinks)]
        if any(map(asks_for_tf32, products)):
            return False
        made = [v for op in (*region.ops, *products) for v in op.results]
        numbers = [v for v in made if isinstance(v.type.element_type, ir.FloatType)]
        numbers += [operand.value for operand in region.operands()]
        if any(str(v.type.element_type) not in _TYPES for v in numbers):
            return False
        for operand in region.operands():
            if operand.width > self.max_width:
                return False
        return min(region.extents[region.keys], region.extents[region.rows[-1]]) >= self.least


def _reaches_exponential(value: ir.Value) -> bool:
    """Whether an exponential is taken of a value, a few ops later: of scores one is, and to read a
    region for each product of a program would take long."""
    seen: set[ir.Value] = set()
    work = deque([value])
    while work and len(seen) < _NEAR:
        value = work.popleft()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner.operation
            if user.name == _EXPONENTIAL:
                return True
            if user.name == "stablehlo.transpose" or computes_elements(user):
                work.append(user.results[0])
    return False


def _outline(region: ScoreRegion, kernels: Kernels, *, wide: bool) -> None:
    """`wide`: scores are f32 in the kernel."""
    arguments = arguments_of(region)
    results = [sink.result for sink in region.sinks]
    first = region.sinks[0].op
    types = [v.type for v in results]
    with kernels.insertion_point(), first.location:
        function, block = hlo.function("", [v.type for v in arguments], types, "private")
    keys = region.extents[region.keys]
    function.attributes[KIND] = ir.StringAttr.get(GRADIENT)
    function.attributes[REASON] = ir.StringAttr.get(
        f"gradient of attention over {keys} keys: scores are computed anew and stay out of memory"
    )
    with ir.InsertionPoint(block) as end, first.location:
        copies = WideCopies(dict(zip(arguments, block.arguments, strict=True)), end)
        products = {product.op for product in region.products}
        ends = {defining(v) for s in region.sinks for v in (s.op.results[0], s.result)}
        inside = {*region.ops, *region.sides, *products, *ends}
        before = [op for op in region.sides if op.block != first.block]  # constants
        ordered = in_order(op for op in inside if op is not None and op.block == first.block)
        for op in [*before, *ordered]:
            if op in products and wide:
                copies.product(op)
            elif op in ends or op in products:
                copies.same(op)
            elif not _divides_by_row(op, region):
                (copies.other if wide else copies.same)(op)
            else:
                _multiply_by_inverse(op, copies)
        hlo.return_([copies.known[v] for v in results])
    if wide:
        take_factors_out(block)
    callee = kernels.add(function, GRADIENT)
    with ir.InsertionPoint(first), first.location:
        for old, new in zip(results, hlo.call(callee, arguments, types), strict=True):
            old.replace_all_uses_with(new)
    for op in reversed(ordered):
        if is_unused(op):
            op.erase()


def _divides_by_row(op: ir.Operation, region: ScoreRegion) -> bool:
    if op.name != "stablehlo.divide":
        return False
    spread = made_by(op.operands[1], "stablehlo.broadcast_in_dim")
    return spread is not None and spread in region.ops


def _multiply_by_inverse(op: ir.Operation, copies: WideCopies) -> None:
    """One division for each row, not for each score."""
    spread = copies.known[op.operands[1]].owner.operation
    row = spread.operands[0]
    inverse = hlo.divide(hlo.full(1, list(row.type.shape), dtype_of(row.type)), row)
    by = hlo.broadcast_in_dim(
        inverse, list(spread.results[0].type.shape), ints(spread, "broadcast_dimensions")
    )
    copies.stands_for(op.results[0], hlo.multiply(copies.known[op.operands[0]], by))
