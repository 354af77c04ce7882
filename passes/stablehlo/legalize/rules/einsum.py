"""Write `einsum` as a product: what libraries do, in every element type.

    einsum %a, %b, "abz,bc->ca"    ->    transpose (dot_general (reduce %a over z), %b)

Labels of both operands are batch dimensions where the result has them, and contracted otherwise. One
that only one operand has, and the result has not, is summed over first; one that an operand has twice
becomes its diagonal. Refuses results with a label twice, or with one that no operand has.

example: test/passes/stablehlo/legalize/rules/einsum.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.stablehlo.legalize.rules.rule import Rule

Labels = list[str]


def _expanded(op: ir.Operation) -> ir.Value:
    config = ir.StringAttr(op.attributes["einsum_config"]).value
    terms, _, wanted = config.replace(" ", "").partition("->")
    values = list(op.operands)
    labels = [_labels(t, len(x.type.shape)) for t, x in zip(terms.split(","), values, strict=True)]
    result = _labels(wanted, len(op.results[0].type.shape))
    if len(set(result)) < len(result) or not {*result} <= {*labels[0], *labels[1]}:
        raise CompileError.at(
            op, f'"{config}" asks for a label twice, or for one that no operand has',
            "give each label of the result once",
        )  # fmt: skip
    for position, other in ((0, 1), (1, 0)):
        keep = {*labels[other], *result}
        values[position], labels[position] = _reduced(values[position], labels[position], keep)
    a, b = labels
    batch = [v for v in a if v in b and v in result]
    summed = [v for v in a if v in b and v not in result]
    product = hlo.dot_general(
        values[0], values[1],
        [a.index(v) for v in batch], [b.index(v) for v in batch],
        [a.index(v) for v in summed], [b.index(v) for v in summed],
        dtype_of(op.results[0].type),
    )  # fmt: skip
    made = [*batch, *(v for v in a if v not in b), *(v for v in b if v not in a)]
    return product if made == result else hlo.transpose(product, [made.index(v) for v in result])


def _labels(term: str, rank: int) -> Labels:
    """One label for each dimension; those of "..." are counted from the last."""
    before, dots, after = term.partition("...")
    middle = rank - len(before) - len(after) if dots else 0
    return [*before, *(f"...{i}" for i in reversed(range(middle))), *after]


def _reduced(x: ir.Value, labels: Labels, keep: set[str]) -> tuple[ir.Value, Labels]:
    """x with each label once, and none that is not kept."""
    shape, dtype = list(x.type.shape), dtype_of(x.type)
    gone = [i for i, v in enumerate(labels) if v not in keep]
    for i, label in enumerate(labels):
        first = labels.index(label)
        if first != i:
            same = hlo.compare(
                hlo.iota(shape, np.int32, first), hlo.iota(shape, np.int32, i), "EQ"
            )
            x = hlo.select(same, x, hlo.full(0, shape, dtype))
            gone.append(i)
    if gone:
        zero = hlo.full(0, [], dtype)
        (x,) = hlo.reduce([x], [zero], sorted({*gone}), lambda p, q: [hlo.add(p, q)])
    return x, [v for i, v in enumerate(labels) if i not in gone]


RULE = Rule(("stablehlo.einsum",), lambda op: True, lambda op: [_expanded(op)])
