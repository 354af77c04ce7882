"""Exponentials and logarithms, elementwise: exp exp2 expm1 log log2 log1p."""

from __future__ import annotations

import enum
import math
from typing import Any

from lamina import lax
from lamina.core import Primitive, dtypes
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import INEXACT, scalar_like
from lamina.lax.elementwise_rules import builder, elementwise, function_of_one
from lamina.records import Record


# ---- user functions ----------------------------------------------------------------------------
class AccuracyMode(enum.Enum):
    """How exact a function must be. Ours are always as exact as docs/differences.md says."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Record):
    """The error that a function may have; what it says beyond what functions do has no effect."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"Tolerances must be non-negative, got {self}")


Accuracy = Tolerance | AccuracyMode | None


def exp(x: Any, *, accuracy: Accuracy = None) -> Array:
    """e ** x, elementwise.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.exp(jnp.array([0.25, 0.5])).round(3))
    [1.284 1.649]
    """
    return exp_p.bind(x)


def exp2(x: Any, *, accuracy: Accuracy = None) -> Array:
    """2 ** x, elementwise.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.exp2(jnp.array([0.25, 0.5])).round(3))
    [1.189 1.414]
    """
    return exp2_p.bind(x)


def expm1(x: Any, *, accuracy: Accuracy = None) -> Array:
    """e ** x - 1, accurate near zero.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.expm1(jnp.array([0.25, 0.5])).round(3))
    [0.284 0.649]
    """
    return expm1_p.bind(x)


def log(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm, elementwise; -inf at 0, NaN below.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.log(jnp.array([0.25, 0.5])).round(3))
    [-1.386 -0.693]
    """
    return log_p.bind(x)


def log2(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The logarithm to base 2, elementwise; -inf at 0, NaN below.

    x         an array of floats or complex numbers.
    accuracy  how near the result must be; None: as near as it comes.

    Raises TypeError for other dtypes.

    >>> print(lax.log2(jnp.array([0.0, 1.0, 8.0])))
    [-inf   0.   3.]
    """
    return log2_p.bind(x)


def log1p(x: Any, *, accuracy: Accuracy = None) -> Array:
    """log(1 + x), accurate near zero.

    x         an array of floats, of any shape.
    accuracy  how near the result must be; None: as near as it comes.

    >>> print(lamina.lax.log1p(jnp.array([0.25, 0.5])).round(3))
    [0.223 0.405]
    """
    return log1p_p.bind(x)


# ---- primitives --------------------------------------------------------------------------------
def _exp2_lowering(ctx: Any, x: Any) -> Any:
    aval = ctx.avals_in[0]
    if dtypes.is_complex(aval.dtype):
        scale = hlo.full(math.log(2), aval.shape, aval.dtype)
        return hlo.exponential(hlo.multiply(x, scale))
    # exp(x log 2) would lose digits as |x| grows: 66 ULP at the end of the range.
    return hlo.power(hlo.full(2, aval.shape, aval.dtype), x)


exp_p: Primitive = function_of_one("exp", builder("exponential"), lambda ans, x: ans)
exp2_p: Primitive = function_of_one(
    "exp2", _exp2_lowering, lambda ans, x: lax.mul(scalar_like(x, math.log(2)), ans)
)
expm1_p: Primitive = function_of_one(
    "expm1", builder("exponential_minus_one"), lambda ans, x: lax.add(ans, scalar_like(x, 1))
)
log_p: Primitive = elementwise(
    "log", builder("log"), INEXACT, derivatives=[lambda g, ans, x: lax.div(g, x)],
)  # fmt: skip


def _log2_lowering(ctx: Any, x: Any) -> Any:
    aval = ctx.avals_in[0]
    natural = hlo.log(x)
    if not dtypes.is_complex(aval.dtype):
        return hlo.multiply(natural, hlo.full(1 / math.log(2), aval.shape, aval.dtype))
    scale = hlo.full(1 / math.log(2), aval.shape, dtypes.real_dtype(aval.dtype))
    return hlo.complex(*(hlo.multiply(f(natural), scale) for f in (hlo.real, hlo.imag)))


log2_p: Primitive = elementwise(
    "log2", _log2_lowering, INEXACT,
    derivatives=[lambda g, ans, x: lax.div(g, lax.mul(x, scalar_like(x, math.log(2))))],
)  # fmt: skip
log1p_p: Primitive = elementwise(
    "log1p", builder("log_plus_one"), INEXACT,
    derivatives=[lambda g, ans, x: lax.div(g, lax.add(x, scalar_like(x, 1)))],
)  # fmt: skip
