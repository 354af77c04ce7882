"""Differentiation rules of primitives, as libraries register them (JAX's names)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.core.primitive import LINEAR, NOT_DIFFERENTIABLE, Primitive
from lamina.core.rule_tables import RuleTable
from lamina.core.tangents import UndefinedPrimal as UndefinedPrimal
from lamina.core.tangents import Zero as Zero
from lamina.core.tangents import is_undefined_primal as is_undefined_primal
from lamina.core.trace import get_aval
from lamina.interpreters.jvp import GradTracer as JVPTracer
from lamina.interpreters.jvp import JVPTrace as JVPTrace
from lamina.interpreters.jvp import jvp_jaxpr as jvp_jaxpr
from lamina.interpreters.tangents import add_tangents as add_tangents
from lamina.interpreters.tangents import instantiate_zero as instantiate_zeros
from lamina.interpreters.tangents import zeros_like_aval as zeros_like_aval
from lamina.interpreters.transpose import backward_pass as backward_pass
from lamina.lax import add_any as add_jaxvals
from lamina.lax import add_any_p as add_jaxvals_p

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents",
    "backward_pass", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp_jaxpr",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

Rule = Callable[..., Any]



def _linear(primitive: Primitive) -> Rule:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    return jvp


def _without_tangents(primitive: Primitive) -> Rule:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if primitive.multiple_results:
            return out, [Zero(get_aval(x).to_tangent_aval()) for x in out]
        return out, Zero(get_aval(out).to_tangent_aval())

    return jvp


primitive_jvps = RuleTable(
    "jvp", in_words={LINEAR: _linear, NOT_DIFFERENTIABLE: _without_tangents}
)
"""rule(primals, tangents, **params) -> (out, out tangent); tangents may be Zero."""
primitive_transposes = RuleTable("transpose")
"""rule(cotangent, *operands, **params) -> a cotangent, None or Zero for each operand."""


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transpose rule of a primitive.

    primitive  the primitive.

    Raises NotImplementedError where it has none.

    >>> callable(lamina.interpreters.ad.get_primitive_transpose(lax.neg_p))
    True
    """
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented"
        ) from None


def _sum_of_parts(primitive: Primitive, rules: tuple[Rule | None, ...], with_ans: bool) -> Rule:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        ans = primitive.bind(*primals, **params)
        first = (ans, *primals) if with_ans else tuple(primals)
        total: Any = Zero(get_aval(ans).to_tangent_aval())
        for rule, t in zip(rules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, *first, **params))
        return ans, total

    return jvp


def defjvp(primitive: Primitive, *jvprules: Rule | None) -> None:
    """Sets a primitive's derivative as a rule per operand.

    primitive  the primitive.
    jvprules   for each operand rule(tangent, *primals, **params), which gives its part of the
               result's tangent, or None where the result does not depend on it. The parts are added.

    >>> doubled_p = lamina.extend.core.Primitive("doubled")
    >>> _ = doubled_p.def_impl(lambda x: x * 2)
    >>> lamina.interpreters.ad.defjvp(doubled_p, lambda t, x: t * 2)
    >>> float(lamina.jvp(doubled_p.bind, (3.0,), (1.0,))[1])
    2.0
    """
    primitive_jvps[primitive] = _sum_of_parts(primitive, jvprules, False)


def defjvp2(primitive: Primitive, *jvprules: Rule | None) -> None:
    """As defjvp, for rules that also read the result.

    primitive  the primitive.
    jvprules   for each operand rule(tangent, result, *primals, **params), or None.

    >>> exponential_p = lamina.extend.core.Primitive("exponential")
    >>> _ = exponential_p.def_impl(jnp.exp)
    >>> lamina.interpreters.ad.defjvp2(exponential_p, lambda t, result, x: t * result)
    >>> float(lamina.jvp(exponential_p.bind, (0.0,), (2.0,))[1])
    2.0
    """
    primitive_jvps[primitive] = _sum_of_parts(primitive, jvprules, True)


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Says that a primitive is linear in all operands together, so that it is its own tangent map.

    primitive       the primitive.
    transpose_rule  transpose_rule(cotangent, **params) gives a list of a cotangent for each operand.

    >>> tripled_p = lamina.extend.core.Primitive("tripled")
    >>> _ = tripled_p.def_impl(lambda x: x * 3)
    >>> lamina.interpreters.ad.deflinear(tripled_p, lambda ct: [ct * 3])
    >>> float(lamina.jvp(tripled_p.bind, (1.0,), (1.0,))[1])
    3.0
    """
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """As deflinear, for a rule that reads the operands.

    primitive       the primitive.
    transpose_rule  transpose_rule(cotangent, *operands, **params) gives a list of a cotangent for each
                    operand; operands are UndefinedPrimal, which tell their types.

    >>> quadrupled_p = lamina.extend.core.Primitive("quadrupled")
    >>> _ = quadrupled_p.def_impl(lambda x: x * 4)
    >>> lamina.interpreters.ad.deflinear2(quadrupled_p, lambda ct, x: [ct * 4])
    >>> float(lamina.jvp(quadrupled_p.bind, (1.0,), (1.0,))[1])
    4.0
    """

    def transpose(ct: Any, *operands: Any, **params: Any) -> Any:
        if type(ct) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(ct, *operands, **params)

    primitive_jvps[primitive] = _linear(primitive)
    primitive_transposes[primitive] = transpose


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Says that a primitive is linear in each of two operands.

    primitive  the primitive.
    lhs_rule   lhs_rule(cotangent, x, y, **params) gives the cotangent of x; x is UndefinedPrimal.
    rhs_rule   the same of y.

    >>> product_p = lamina.extend.core.Primitive("product")
    >>> _ = product_p.def_impl(lambda x, y: x * y)
    >>> lamina.interpreters.ad.defbilinear(product_p, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)
    >>> float(lamina.jvp(product_p.bind, (2.0, 3.0), (1.0, 1.0))[1])
    5.0
    """
    defjvp(
        primitive,
        lambda g, x, y, **params: primitive.bind(g, y, **params),
        lambda g, x, y, **params: primitive.bind(x, g, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return [Zero(x.aval) if type(ct) is Zero else lhs_rule(ct, x, y, **params), None]
        return [None, Zero(y.aval) if type(ct) is Zero else rhs_rule(ct, x, y, **params)]

    primitive_transposes[primitive] = transpose
