"""How the operands and the result of an attention lie around its scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import DotNumbers, ints
from lamina.passes.stablehlo.attention.reading import Attention


class AttentionShape:
    """The dimensions of scores, by number, and then one for widths: of q and k, or of v."""

    def __init__(self, attention: Attention, order: Sequence[int] | None) -> None:
        """`order`: of the result's dimensions, if they are transposed."""
        product = DotNumbers.of(attention.product)
        values = DotNumbers.of(attention.values)
        scores = list(attention.scores.type.shape)
        rank = self.rank = len(scores)
        self.keys_dim = attention.keys_dim
        self.batch = tuple(range(len(product.lhs_batch)))
        self.rows = tuple(d for d in range(rank) if d not in self.batch and d != self.keys_dim)
        self.queries, self.keys = math.prod(scores[d] for d in self.rows), scores[self.keys_dim]
        self.extents = scores

        # Each operand's dimension -> that of the scores, or `rank`.
        lhs, rhs = (v.type for v in attention.product.operands)
        free = iter(range(len(self.batch), rank))
        of_product: list[dict[int, int]] = []
        for type_, batch, contracting in (
            (lhs, product.lhs_batch, product.lhs_contracting),
            (rhs, product.rhs_batch, product.rhs_contracting),
        ):
            dims = dict(zip(batch, self.batch)) | {contracting[0]: rank}
            dims |= {d: next(free) for d in range(len(type_.shape)) if d not in dims}
            of_product.append(dims)
        self.of_q = of_product[attention.queries_operand]
        self.of_k = of_product[1 - attention.queries_operand]
        p = attention.probabilities_operand
        p_batch, v_batch = values.lhs_batch, values.rhs_batch
        v_contracting = values.rhs_contracting
        if p == 1:
            p_batch, v_batch, v_contracting = v_batch, p_batch, values.lhs_contracting
        v = attention.values.operands[1 - p].type
        self.of_v = dict(zip(v_batch, p_batch)) | {v_contracting[0]: self.keys_dim}
        (width,) = (d for d in range(len(v.shape)) if d not in self.of_v)
        self.of_v[width] = rank
        self.width = attention.product.operands[0].type.shape[product.lhs_contracting[0]]
        self.value_width = v.shape[width]
        # The result's dimensions: batch, then those of lhs, then those of rhs.
        queries = [d for d in range(rank) if d not in p_batch and d != self.keys_dim]
        self.result = [*p_batch, *((*queries, rank) if p == 0 else (rank, *queries))]
        if order is not None:
            self.result = [self.result[d] for d in order]


def attention_of(last: ir.Operation) -> tuple[Attention, Sequence[int] | None]:
    """What the last op of an outlined kernel ends, and the order of the result's dimensions if that
    is a transpose."""
    values, order = last, None
    if values.name == "stablehlo.transpose":
        order = ints(values, "permutation")
        values = values.operands[0].owner.operation
    attention = Attention.of(values)
    assert attention is not None, "only kernels that were outlined for this are asked about"
    return attention, order
