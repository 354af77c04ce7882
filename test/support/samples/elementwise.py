"""Sample applications of primitives: element-wise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.special

from lamina import lax
from support.samples.sample import b1, bf16, c64, f16, f32, i8, i32, row, u8


def _integer_power(lib, x, y):
    """lamina's primitive; JAX has a function of arrays for it."""
    return lib.integer_power(x, y) if hasattr(lib, "integer_power") else jax.numpy.power(x, y)


def _since_0_12(name, otherwise):
    """A function that jax.lax has since 0.12; before, `otherwise` stands for it."""
    return lambda lib, *xs: (getattr(lib, name, None) or otherwise)(*xs)


_LOG2 = _since_0_12("log2", jax.numpy.log2)
_ONE_MINUS_SQUARE = _since_0_12("one_minus_square", lambda x: (1 + x) * (1 - x))
_POLYNOMIAL = _since_0_12("polynomial", lambda x, coeffs: sum(c * x**k for k, c in enumerate(coeffs)))


def _betainc_grad(lib, position, a, b, x):
    """lamina's primitive; JAX has none, so the difference quotient in its stead."""
    if hasattr(lib, "betainc_grad_a_p"):
        return getattr(lib, f"betainc_grad_{position}_p").bind(a, b, x)
    step = np.float32(2**-6)
    da, db = (step, 0 * step) if position == "a" else (0 * step, step)
    return (lib.betainc(a + da, b + db, x) - lib.betainc(a - da, b - db, x)) / (2 * step)


# fmt: off

# ---- elementwise: one operand -------------------------------------------------------------------
_UNARY: dict[str, tuple[Callable[..., Any], float, float]] = {"neg": (np.negative, -2, 2),
    "exp": (np.exp, -2, 2), "exp2": (np.exp2, -2, 2), "expm1": (np.expm1, -2, 2),
    "log": (np.log, 0.1, 4), "log1p": (np.log1p, -0.5, 4), "sin": (np.sin, -4, 4),
    "cos": (np.cos, -4, 4), "tan": (np.tan, -1, 1), "asin": (np.arcsin, -0.9, 0.9),
    "acos": (np.arccos, -0.9, 0.9), "atan": (np.arctan, -2, 2), "sinh": (np.sinh, -2, 2),
    "cosh": (np.cosh, -2, 2), "tanh": (np.tanh, -2, 2), "asinh": (np.arcsinh, -2, 2),
    "acosh": (np.arccosh, 1.1, 4), "atanh": (np.arctanh, -0.9, 0.9),
    "logistic": (scipy.special.expit, -4, 4), "sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4), "cbrt": (np.cbrt, 0.1, 4),
    "square": (np.square, -2, 2)}
_REAL_ONLY: dict[str, tuple[Callable[..., Any], float, float]] = {"erf": (scipy.special.erf, -2, 2),
    "erfc": (scipy.special.erfc, -2, 2), "erf_inv": (scipy.special.erfinv, -0.9, 0.9),
    "lgamma": (scipy.special.gammaln, 0.5, 4)}
_STEPS: dict[str, Callable[..., Any]] = {"sign": np.sign, "floor": np.floor, "ceil": np.ceil,
    "is_finite": np.isfinite}
_SPECIAL = f32(values=[0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 3e38])
for _name, (_ref, _low, _high) in (_UNARY | _REAL_ONLY).items():
    row(_name, f32(3, 4, low=_low, high=_high), numpy=_ref, rtol=2e-5)
    row(_name, f32(low=_low, high=_high), numpy=_ref, rtol=2e-5)
    row(_name, f32(0, 3, low=_low, high=_high), numpy=_ref, value_only=True)
    row(_name, bf16(5, low=_low, high=_high), value_only=True)
    row(_name, f16(5, low=_low, high=_high), value_only=True)
    row(_name, _SPECIAL, note="special values", value_only=True)
    if _name in _UNARY and _name not in ("cbrt", "square", "neg", "asin", "acos", "atan", "asinh",
        "acosh", "atanh", "logistic"):
        row(_name, c64(3, low=0.2, high=1.5), rtol=1e-4)
for _name in ("neg", "square", "logistic"):
    row(_name, c64(3, low=0.2, high=1.5), rtol=1e-4)
for _name, _ref in _STEPS.items():
    row(_name, f32(3, 4), numpy=_ref)
    row(_name, f32(), numpy=_ref)
    row(_name, bf16(5), value_only=True)
    row(_name, _SPECIAL, note="special values", numpy=_ref, value_only=True)
for _spec in (f32(3, 4, low=0.1, high=4), f32(low=0.1, high=4), bf16(5, low=0.1, high=4), _SPECIAL,
    c64(3, low=0.2, high=1.5)):
    row("log2", _spec, call=_LOG2, value_only=_spec is _SPECIAL or _spec.dtype == "bfloat16",
        numpy=None if _spec.dtype == "bfloat16" else np.log2, rtol=1e-4)
for _spec in (f32(3, 4, low=-2, high=2), f32(values=[0.0, 1e-30, 1 - 2**-24, -1.0]), i32(5), c64(3)):
    row("one_minus_square", _spec, call=_ONE_MINUS_SQUARE, rtol=1e-5)
row("polynomial", f32(3, 4), f32(), f32(3, 4), f32(3, 1), rtol=1e-5, note="sizes of 1",
    call=lambda lib, x, *cs: _POLYNOMIAL(lib, x, cs))
row("polynomial", f32(), f32(), f32(), rtol=1e-5, call=lambda lib, x, *cs: _POLYNOMIAL(lib, x, cs))
row("polynomial", f32(3, 4), rtol=1e-5, note="numbers",
    call=lambda lib, x: _POLYNOMIAL(lib, x, (1.0, -2.0, 0.5, 3.0)))
row("polynomial", i32(5, low=-4, high=4), i32(5), i32(5),
    call=lambda lib, x, *cs: _POLYNOMIAL(lib, x, cs))
row("digamma", f32(3, low=0.5, high=4), numpy=scipy.special.digamma, rtol=2e-5)
row("polygamma", f32(3, low=0.5, high=4), numpy=lambda x: scipy.special.polygamma(2, x),
    call=lambda lib, x: lib.polygamma(lib.full_like(x, 2), x), rtol=1e-4)
_POSITIVE = f32(3, low=0.5, high=4)
row("zeta", f32(3, low=1.2, high=6), _POSITIVE, value_only=True, numpy=scipy.special.zeta,
    rtol=2e-5)
row("zeta", _POSITIVE, numpy=lambda q: scipy.special.zeta(2.5, q), rtol=1e-4,
    jax_jvp=False, call=lambda lib, q: lib.zeta(lib.full_like(q, 2.5), q))
row("igamma", _POSITIVE, _POSITIVE, numpy=scipy.special.gammainc, rtol=1e-4)
row("igammac", _POSITIVE, _POSITIVE, numpy=scipy.special.gammaincc, rtol=1e-4)
row("igamma_grad_a", _POSITIVE, _POSITIVE, value_only=True, vmap=True, rtol=1e-4)
row("random_gamma_grad", _POSITIVE, _POSITIVE, value_only=True, vmap=True, rtol=1e-4)
row("regularized_incomplete_beta", _POSITIVE, _POSITIVE, f32(3, low=0.1, high=0.9),
    function="betainc", numpy=scipy.special.betainc, rtol=1e-4, jax_jvp=False)
for _position in ("a", "b"):
    row(f"betainc_grad_{_position}", _POSITIVE, _POSITIVE, f32(3, low=0.1, high=0.9),
        value_only=True, vmap=True, rtol=1e-2,
        call=lambda lib, *xs, at=_position: _betainc_grad(lib, at, *xs))
    row(f"betainc_grad_{_position}", f32(3, low=0.1, high=0.9), rtol=1e-2, jax_jvp=False,
        call=lambda lib, x, at=_position: _betainc_grad(
            lib, at, lib.full_like(x, 1.3), lib.full_like(x, 0.8), x))
row("igamma_grad_a", _POSITIVE, rtol=1e-4, jax_jvp=False,
    call=lambda lib, x: lib.igamma_grad_a(lib.full_like(x, 1.5), x))
row("bessel_i0e", f32(5, low=-20, high=20), numpy=scipy.special.i0e, rtol=2e-5)
row("bessel_i1e", f32(5, low=-20, high=20), numpy=scipy.special.i1e, rtol=2e-5)
row("sign", i32(5), numpy=np.sign)
row("sign", u8(5), numpy=np.sign)
row("neg", i8(5, values=[-128, 127, 0, 1, -1]), numpy=np.negative)
row("neg", u8(5), numpy=np.negative)
row("abs", f32(3, 4), numpy=np.abs)
row("abs", i32(3, values=[-2**31, 5, -7]), numpy=np.abs)
row("abs", c64(4), numpy=np.abs)
row("abs", _SPECIAL, numpy=np.abs, smooth=False, widen=False)
row("round", f32(values=[0.5, 1.5, -0.5, -2.5, 2.4, 2.6, np.nan, np.inf]))
row("round", f32(values=[0.5, 1.5, -0.5, -2.5, 2.4, 2.6, np.nan, np.inf]),
    call=lambda lib, x: lib.round(x, lib.RoundingMethod.TO_NEAREST_EVEN), numpy=np.round,
    note="even")
row("round", f16(5), widen=False)
for _y in (0, 1, 2, 3, -1, -3, 7):
    row("integer_pow", f32(3, 4, low=0.5, high=2), note=f"y={_y}",
        numpy=lambda x, y=_y: np.power(x, np.float32(y)), rtol=2e-5, y=_y)
row("integer_pow", i32(5), numpy=lambda x: x**3, y=3)
for _spec in (i32, i8):
    row("integer_power", _spec(5), _spec(5, low=0, high=20), numpy=np.power, call=_integer_power)
row("integer_pow", c64(5), rtol=1e-4, y=3)

# ---- elementwise: two operands ------------------------------------------------------------------
_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "max": np.maximum, "min": np.minimum, "atan2": np.arctan2}
for _name, _ref in _BINARY.items():
    _away = f32(3, 4, low=0.5, high=2)
    row(_name, f32(3, 4), _away, numpy=_ref, rtol=2e-5)
    row(_name, f32(), f32(low=0.5), numpy=_ref, rtol=2e-5)
    row(_name, f32(3, 4), f32(low=0.5), numpy=_ref, note="scalar operand", rtol=2e-5)
    row(_name, f32(), _away, numpy=_ref, note="scalar operand first", rtol=2e-5)
    row(_name, f32(0, 3), f32(0, 3), numpy=_ref, value_only=True)
    row(_name, bf16(5), bf16(5, low=0.5), value_only=True)
    row(_name, f16(5), f16(5, low=0.5), value_only=True)
    row(_name, _SPECIAL, f32(7, low=0.5), value_only=True)
    if _name != "atan2":
        row(_name, c64(3), c64(3, low=0.5), rtol=1e-4, smooth=_name not in ("max", "min"))
    if _name not in ("atan2", "div"):
        row(_name, i32(3, 4), i32(3, 4), numpy=_ref, value_only=True)
        row(_name, u8(3, 4), u8(3, 4), numpy=_ref, value_only=True)
        row(_name, i8(3, 4), i8(3, 4), numpy=_ref, value_only=True)
row("add", f32(3), call=lambda lib, x: lib.add(x, x), numpy=lambda x: x + x,
    note="one operand twice")
row("mul", f32(3), call=lambda lib, x: lib.mul(x, x), numpy=lambda x: x * x,
    note="one operand twice")
row("max", b1(5), b1(5), numpy=np.maximum)
row("max", f32(values=[1, np.nan, 3]), f32(values=[2, 1, np.nan]), numpy=np.maximum, smooth=False,
    widen=False)
row("max", f32(values=[1.0, 2.0, 3.0]), f32(values=[1.0, 5.0, 3.0]), smooth=False, note="ties")
_SIGNS = (i32(values=[7, -7, 7, -7, 7, -2**31, -2**31, 0]), i32(values=[2, 2, -2, -2, 0, -1, 0, 5]))
for _name in ("div", "rem"):
    row(_name, *_SIGNS, note="signs, zero, overflow")
    row(_name, u8(4), u8(values=[3, 0, 7, 255]), value_only=True)
row("rem", f32(3, 4), f32(3, 4, low=0.7), numpy=np.fmod, rtol=2e-5)
row("rem", f32(3, 4), f32(low=0.7), numpy=np.fmod, rtol=2e-5)
row("rem", f32(values=[1, -1, np.inf, 1, 0]), f32(values=[0, np.inf, 1, np.nan, 3]), smooth=False,
    widen=False, numpy=np.fmod)
row("pow", f32(3, 4, low=0.5), f32(3, 4), numpy=np.power, rtol=2e-5)
row("pow", f32(3, 4, low=0.5), f32(), numpy=np.power, rtol=2e-5)
row("pow", f32(low=0.5), f32(3, 4), numpy=np.power, rtol=2e-5)
row("pow", f32(4), i32(values=[0, 1, 2, -3]), rtol=2e-5, note="integer exponent")
row("pow", f32(values=[0, 0, 0, -2, 2]), f32(values=[0, 2, -1, 3, np.nan]), numpy=np.power,
    smooth=False, widen=False, note="special values")
row("pow", c64(3, low=0.3), c64(3), rtol=1e-3)
row("pow", bf16(3, low=0.3), bf16(3), smooth=False, widen=False)
row("nextafter", f32(values=[0, 1, -1, np.inf]), f32(values=[1, 2, 2, 0]), numpy=np.nextafter)
row("add_any", f32(3, 4), f32(3, 4),
    call=lambda lib, x, y: lax.add_any(x, y) if lib is lax else lib.add(x, y), numpy=np.add)
row("complex", f32(3, 4), f32(3, 4), numpy=lambda x, y: x + 1j * y)
row("real", c64(3, 4), numpy=np.real)
row("imag", c64(3, 4), numpy=np.imag)
row("conj", c64(3, 4), numpy=np.conj)
row("conj", f32(3, 4), numpy=lambda x: x.astype(np.complex64), widen=False)
