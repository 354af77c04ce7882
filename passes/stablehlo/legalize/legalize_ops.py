"""Write ops that upstream's lowering to linalg gets wrong, or does not know, as ops that it lowers as StableHLO says.

Each rule is a file in `rules/`:

    rule                 ops                                  what is wrong                         written as
    erf                  chlo.erf of f64                      three divisions                       two polynomials
    booleans             add, multiply, maximum, minimum      true + true is false                  or, and
    finiteness           is_finite of f8 and narrower         compares with an infinity it lacks    the same in f32
    precision            reduce_precision without mantissa    NaN stays                             infinity for NaN
    indices              gather, dynamic_slice, ... by ui64   2^63 is negative                      minimum
    unsigned-operands    dot_general, convolution             widens as if there were a sign        convert
    contractions         dot_general, convolution             rounds small floats in each step      sums in f32
    reductions           reduce, reduce_window                rounds small floats in each step      sums in f32
    barriers             optimization_barrier                 is not lowered                        its operands
    normalization        batch_norm_training, ...             is not lowered                        element-wise ops
    einsum               einsum                               is not seen as a product              dot_general

One walk applies all rules, or those that `only` names, to the ops that are there, inner ones first. Ops for which no
rule is, and those that a rule makes, are left alone.

example: test/passes/stablehlo/legalize/legalize_ops.mlir
"""

from __future__ import annotations

import functools

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.legalize.rules import (
    booleans,
    contractions,
    einsum,
    erf,
    finiteness,
    indices,
    normalization,
    precision,
    reductions,
    unsigned_operands,
)
from lamina.passes.stablehlo.legalize.rules.rule import Rule

_RULES = {
    "erf": erf.RULE,
    "booleans": booleans.RULE,
    "finiteness": finiteness.RULE,
    "precision": precision.RULE,
    "indices": indices.RULE,
    "unsigned-operands": unsigned_operands.RULE,  # before sums of these are looked at
    "contractions": contractions.RULE,
    "reductions": reductions.RULE,
    "barriers": reductions.BARRIERS,
    "normalization": normalization.RULE,
    "einsum": einsum.RULE,
}


class LegalizeOps(Pass):
    """See the module's docstring."""

    only: str = ""

    def run(self, module: ir.Module) -> None:
        rules = _by_op(self.only)
        for op in find_ops(module, *rules):
            for name, rule in rules[op.name]:
                if not rule.applies(op):
                    continue
                with ir.InsertionPoint(op), op.location:
                    values = rule.rewrite(op)
                self.count(name)
                if values is not None:
                    replace(op, values)
                    break


@functools.cache
def _by_op(only: str) -> dict[str, list[tuple[str, Rule]]]:
    chosen = only.split(",") if only else list(_RULES)
    if unknown := [name for name in chosen if name not in _RULES]:
        raise ValueError(f"stablehlo-legalize-ops knows no rule {unknown[0]!r}; there are {', '.join(_RULES)}")
    by_op: dict[str, list[tuple[str, Rule]]] = {}
    for name in chosen:
        for op in _RULES[name].ops:
            by_op.setdefault(op, []).append((name, _RULES[name]))
    return by_op
