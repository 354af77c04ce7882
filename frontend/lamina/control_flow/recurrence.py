"""recurrence: h[i] = a[i] h[i - 1] + b[i] along an axis, whose first is b[0].

It is linear in the terms b. Its tangent is a recurrence of the same factors, and so is its transpose,
from the other end on: derivatives of every order are a few of them. It has two forms (`two_forms.py`):
a tree, and a reduction over windows that the CPU has a kernel for (`passes/kernels/cpu/scan/recurrence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from lamina.control_flow.prefix_tree import prefixes_by_tree
from lamina.control_flow.reduction import reduce_window
from lamina.control_flow.two_forms import bind_forms
from lamina.core import Primitive, ShapedArray
from lamina.core.jaxpr import Jaxpr, JaxprEqn, Var
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import get_aval
from lamina.interpreters.batching import batched_size
from lamina.interpreters.staging import trace_to_jaxpr

RECURRENT = frozenset(map(np.dtype, (bfloat16, *"f2 f4 f8 c8 c16".split())))
"""The element types that there are kernels for."""
_LEAST = 16  # elements worth a kernel of their own


def recurrence(factors: Any, terms: Any, axis: int, reverse: bool = False) -> Any:
    """h[i] = factors[i] h[i - 1] + terms[i] along an axis, from the end on if reverse. The first
    factor is not used."""
    return recurrence_p.bind(factors, terms, axis=axis, reverse=reverse)


def running_products(factors: Any, axis: int, reverse: bool) -> Any:
    """The products of the factors up to each: a scan, which complex numbers have no kernel for."""
    from lamina import lax

    if get_aval(factors).dtype.kind != "c":
        return lax.cumprod(factors, axis, reverse)
    n, config = factors.shape[axis], [(0, 0, 0)] * factors.ndim
    config[axis] = (n - 1, 0, 0) if reverse else (0, n - 1, 0)
    first = lax.index_in_dim(factors, n - 1 if reverse else 0, axis)
    terms = lax.pad(first, np.zeros((), factors.dtype)[()], config)
    return recurrence(factors, terms, axis, reverse)


def order_of_recurrence(jaxpr: Jaxpr) -> tuple[int, int] | None:
    """Which of a combining function's two values is the factor and which the term, if it makes
    (a0 a1, a1 b0 + b1) of (a0, b0) and (a1, b1)."""
    if len(jaxpr.eqns) != 3 or len(jaxpr.invars) != 4:
        return None
    made = {eqn.outvars[0]: eqn for eqn in jaxpr.eqns}
    for factor, term in ((0, 1), (1, 0)):
        a0, b0, a1, b1 = (jaxpr.invars[i] for i in (factor, term, 2 + factor, 2 + term))
        total = _operands(made, jaxpr.outvars[term], "add")
        if not _is_product(made, jaxpr.outvars[factor], a0, a1) or b1 not in total:
            continue
        (other,) = [v for v in total if v is not b1] or [b1]
        if _is_product(made, other, a1, b0):
            return factor, term
    return None


def _operands(made: dict[Any, JaxprEqn], value: Any, name: str) -> list[Any]:
    eqn = made.get(value) if isinstance(value, Var) else None
    return list(eqn.invars) if eqn is not None and eqn.primitive.name == name else []


def _is_product(made: dict[Any, JaxprEqn], value: Any, x: Var, y: Var) -> bool:
    operands = _operands(made, value, "mul")
    return operands in ([x, y], [y, x])


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    assert a.shape == b.shape and a.dtype == b.dtype in RECURRENT, (a, b)
    return b.update(weak_type=False)


def _lowering(ctx: Any, *args: Any, axis: int, reverse: bool) -> Any:
    avals = ctx.avals_in
    plain = trace_to_jaxpr(lambda a, b: [_by_tree(a, b, axis, reverse)], avals)
    if not avals[0].size or avals[0].shape[axis] < _LEAST:
        return ctx.lower_jaxpr(plain.jaxpr, plain.consts, args)[0]
    in_blocks = trace_to_jaxpr(lambda a, b: [_by_windows(a, b, axis, reverse)], avals)
    both = trace_to_jaxpr(lambda a, b: bind_forms(plain, in_blocks, [a, b]), avals)
    return ctx.lower_jaxpr(both.jaxpr, both.consts, args)[0]


def _combined(left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, Any]:
    from lamina import lax

    (a0, b0), (a1, b1) = left, right
    return lax.mul(a0, a1), lax.add(lax.mul(a1, b0), b1)


def _by_tree(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    from lamina import lax

    given = [lax.rev(x, (axis,)) for x in (a, b)] if reverse else [a, b]
    out = prefixes_by_tree(lambda x, y: list(_combined(x, y)), given, axis)[1]
    return lax.rev(out, (axis,)) if reverse else out


def _by_windows(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """Of each element the combination of all of the axis that comes before."""
    shape, dtype = get_aval(b).shape, get_aval(b).dtype
    n, window = shape[axis], [1] * len(shape)
    padding = [(0, 0)] * len(shape)
    window[axis], padding[axis] = n, (0, n - 1) if reverse else (n - 1, 0)
    inits = np.ones((), dtype)[()], np.zeros((), dtype)[()]
    return reduce_window((a, b), inits, _combined, window, [1] * len(shape), padding)[1]


def _moved(x: Any, axis: int, by: int) -> Any:
    """x a place further along an axis, with zeros for what is before it."""
    from lamina import lax

    config = [(0, 0, 0)] * len(x.shape)
    config[axis] = (by, -by, 0)
    return lax.pad(x, np.zeros((), x.dtype)[()], config)


def _jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    from lamina import lax

    (a, b), (da, db) = primals, tangents
    out = recurrence(a, b, axis, reverse)
    if type(da) is not Zero:
        before = _moved(out, axis, -1 if reverse else 1)
        by_factors = lax.mul(da, before)
        db = by_factors if type(db) is Zero else lax.add(db, by_factors)
    if type(db) is Zero:
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, recurrence(a, db, axis, reverse)


def _transpose(ct: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    assert is_undefined_primal(b) and not is_undefined_primal(a), "it is linear in the terms alone"
    if type(ct) is Zero:
        return [None, Zero(b.aval)]
    return [None, recurrence(_moved(a, axis, 1 if reverse else -1), ct, axis, not reverse)]


def _batching(args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
    from lamina.lax.batching_rules import at_front

    size = batched_size(args, dims)
    a, b = (at_front(x, d, size) for x, d in zip(args, dims, strict=True))
    return recurrence(a, b, axis + 1, reverse), 0


recurrence_p = Primitive(
    "recurrence",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
)
