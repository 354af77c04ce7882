"""cumlogsumexp: logarithms of the sums of the exponentials of all elements up to each.

    m = cummax(x)                             k = the integer next to m
    s[i] = exp(k[i - 1] - k[i]) s[i - 1] + exp(x[i] - k[i])
    k + log(s)

The sums are a recurrence whose factors are one where k stays and at most 1 / e where it grows, so that
their errors don't add up, as those of exp(m[i - 1] - m[i]) do where x grows slowly. The results don't
depend on k, which is a constant to derivatives: those are recurrences of the same factors. Short axes
and complex numbers are combined by a tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.control_flow.prefix_tree import prefixes_by_tree
from lamina.control_flow.recurrence import recurrence
from lamina.core import NOT_LINEAR, Primitive, ShapedArray
from lamina.core.array_class import Array
from lamina.core.trace import get_aval
from lamina.interpreters.staging import trace_to_jaxpr

_LEAST = 16  # elements of an axis that are not combined by a tree


# ---- user function -----------------------------------------------------------------------------
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithm of the sum of the exponentials of the elements up to each along an axis,
    without overflow.

    operand  an array of floats or complex numbers; of the latter the angle is from -pi to pi.
    axis     counted from the end where negative.
    reverse  takes the elements from each on to the end instead.

    Raises ValueError where there is no such axis; TypeError for integers and booleans.

    >>> print(lax.cumlogsumexp(jnp.array([1000.0, 1000.0, 1000.0])))
    [1000.      1000.6932  1001.09863]
    """
    from lamina import lax
    from lamina.lax.checks import INEXACT, canonical_axis, check_accepted

    aval = get_aval(operand)
    check_accepted("cumlogsumexp", INEXACT, aval)
    axis = canonical_axis("cumlogsumexp", axis, aval.ndim)
    if isinstance(operand, np.ndarray):  # of one element, it would come back as it is
        operand = lax.convert_element_type(operand, aval.dtype)
    if aval.dtype.kind != "c":
        return cumlogsumexp_p.bind(operand, axis=axis, reverse=bool(reverse))
    out = lax.associative_scan(_log_add_exp, operand, reverse=bool(reverse), axis=axis)
    return _with_least_angle(out)


def _with_least_angle(x: Any) -> Any:
    from lamina import lax

    angle = lax.imag(x)
    turn = lax.full_like(angle, 2 * np.pi)
    turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(angle, lax.mul(turns, turn)))


def _log_add_exp(x: Any, y: Any) -> Any:
    from lamina import lax

    greatest = lax.max(x, y)
    gap = lax.sub(lax.min(x, y), greatest)
    total = lax.add(greatest, lax.log1p(lax.exp(gap)))
    return lax.select(lax.ne(gap, gap), lax.add(x, y), total)  # equal infinities have no gap; NaN stays


# ---- sums of exponentials ----------------------------------------------------------------------
def _of_sums(x: Any, axis: int, reverse: bool) -> Any:
    """The function on f32 or f64."""
    from lamina import lax

    greatest = lax.cummax(x, axis, reverse)
    sums = recurrence(*_factors_and_terms(x, greatest, axis, reverse), axis, reverse)
    out = lax.add(_whole(greatest), lax.log(sums))
    # Of one element, of one among small ones and of infinities it is exactly the greatest.
    least = lax.full_like(out, 2 * np.finfo(x.dtype).eps)
    return lax.select(lax.gt(lax.sub(out, greatest), least), out, greatest)


def _factors_and_terms(x: Any, greatest: Any, axis: int, reverse: bool) -> tuple[Any, Any]:
    from lamina import lax

    greatest = lax.stop_gradient(greatest)
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    before = lax.pad(greatest, lax.full((), 0, x.dtype), config)
    reference = _whole(greatest)
    return _exp_of_gap(_whole(before), reference), _exp_of_gap(x, reference)


def _whole(x: Any) -> Any:
    from lamina import lax

    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _exp_of_gap(x: Any, y: Any) -> Any:
    """exp(x - y), of equal infinities 1."""
    from lamina import lax

    gap = lax.sub(x, y)
    return lax.exp(lax.select(lax.ne(gap, gap), lax.full_like(gap, 0), gap))


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    return x


def _lowering(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    (aval,) = ctx.avals_in
    wide = np.dtype(np.float64 if aval.dtype == np.float64 else np.float32)

    def whole(x: Any) -> list[Any]:
        from lamina import lax

        if not aval.size:
            return [x]
        given = lax.convert_element_type(x, wide)
        if aval.shape[axis] >= _LEAST:
            out = _of_sums(given, axis, reverse)
        else:
            given = lax.rev(given, (axis,)) if reverse else given
            (out,) = prefixes_by_tree(lambda a, b: [_log_add_exp(a[0], b[0])], [given], axis)
            out = lax.rev(out, (axis,)) if reverse else out
        return [lax.convert_element_type(out, aval.dtype)]

    closed = trace_to_jaxpr(whole, [aval])
    return ctx.lower_jaxpr(closed.jaxpr, closed.consts, [x])[0]


def _jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
    """The mean of the tangents up to each, by the weights of their exponentials."""
    from lamina import lax

    (x,), (t,) = primals, tangents
    out = cumlogsumexp_p.bind(x, axis=axis, reverse=reverse)
    wide = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    given, t = (lax.convert_element_type(v, wide) for v in (x, t))
    greatest = lax.cummax(lax.stop_gradient(given), axis, reverse)
    factors, terms = _factors_and_terms(given, greatest, axis, reverse)
    sums = recurrence(factors, terms, axis, reverse)
    mean = lax.div(recurrence(factors, lax.mul(terms, t), axis, reverse), sums)
    return out, lax.convert_element_type(mean, x.dtype)


def _batching(args: Any, dims: Any, *, axis: int, reverse: bool) -> tuple[Any, int]:
    (d,) = dims
    return cumlogsumexp_p.bind(args[0], axis=axis + (axis >= d), reverse=reverse), d


cumlogsumexp_p = Primitive(
    "cumlogsumexp",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
)
