"""Sample applications of every primitive in lamina.lax: one table, used by all generic tests.

A row names the primitive, applies it as `function(lax, *arrays)` (so that lamina.lax and jax.lax
can both run it) and describes the arrays. Give rows for what could differ: ranks (0 too), empty
arrays, dtypes, parameters. `numpy` is an independent reference; without one JAX is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.special
from sample import ROWS as ROWS
from sample import arrays_of, b1, bf16, c64, f16, f32, i8, i16, i32, row, u8, u32

from lamina import lax
from lamina.lax.random_keys import random_unwrap, random_wrap


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
row("igamma_grad_a", _POSITIVE, _POSITIVE, value_only=True, rtol=1e-4)
row("random_gamma_grad", _POSITIVE, _POSITIVE, value_only=True, rtol=1e-4)
row("regularized_incomplete_beta", _POSITIVE, _POSITIVE, f32(3, low=0.1, high=0.9),
    function="betainc", numpy=scipy.special.betainc, rtol=1e-4, jax_jvp=False)
for _position in ("a", "b"):
    row(f"betainc_grad_{_position}", _POSITIVE, _POSITIVE, f32(3, low=0.1, high=0.9),
        value_only=True, rtol=1e-2,
        call=lambda lib, *xs, at=_position: _betainc_grad(lib, at, *xs))
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

# ---- comparisons, bits --------------------------------------------------------------------------
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal}
_NANS = (f32(values=[1, np.nan, 3, 0, np.inf]), f32(values=[1, 1, np.nan, -0.0, np.inf]))
for _name, _ref in _COMPARE.items():
    row(_name, f32(3, 4), f32(3, 4), numpy=_ref)
    row(_name, f32(3, 4), f32(), numpy=_ref)
    row(_name, *_NANS, numpy=_ref, note="nan", value_only=True)
    row(_name, i8(9, low=-2, high=2), i8(9, low=-2, high=2), numpy=_ref, value_only=True)
    row(_name, u8(values=[0, 200, 255]), u8(values=[1, 100, 255]), numpy=_ref, value_only=True)
    row(_name, b1(9), b1(9), numpy=_ref, value_only=True)
    row(_name, bf16(5), bf16(5), value_only=True)
row("eq", c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]), numpy=np.equal)
row("ne", c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]), numpy=np.not_equal)
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    for _specs in ((i32(3, 4), i32(3, 4)), (u8(5), u8(5)), (b1(7), b1(7)), (i32(5), i32())):
        row(_name, *_specs, function="bitwise_" + _name, numpy=_ref)
for _spec in (i32(5), u8(5), b1(5), i8()):
    row("not", _spec, function="bitwise_not", numpy=np.bitwise_not)
_AMOUNTS = [0, 1, 5, 31, 32, 40, -1]
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    row(_name, i32(values=[1, -1, -8, 7, -1, 3, -5]), i32(values=_AMOUNTS), value_only=True)
    row(_name, u8(values=[1, 255, 128, 7]), u8(values=[1, 7, 8, 200]), value_only=True)
    row(_name, i32(3, 4), i32(low=0, high=31))
for _spec in (i32(5), u8(5), i8(values=[-128, 0, 1, 127]), u32(3)):
    row("population_count", _spec)
    row("clz", _spec)

# ---- choice and types ---------------------------------------------------------------------------
row("select_n", b1(3, 4), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row("select_n", b1(), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row("select_n", i32(6, low=0, high=3), f32(6), f32(6), f32(6),
    numpy=lambda w, *xs: np.choose(w, xs))
row("select_n", i32(6, low=0, high=5), *[i8(6)] * 5, numpy=lambda w, *xs: np.choose(w, xs))
row("select_n", i32(low=0, high=1), f32(6), note="one case")
row("select_n", b1(5), c64(5), c64(5), function="select", numpy=np.where)
row("clamp", f32(values=-1.0), f32(3, 4), f32(values=1.0), jax_jvp=False,
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", f32(5, low=-1, high=-0.5), f32(5), f32(5, low=0.5, high=1),
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", i32(values=-10), i32(9), i32(values=10), numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row("clamp", f32(values=[2.0, 0.0]), f32(values=[1.5, np.nan]), f32(values=[1.0, 1.0]),
    smooth=False, widen=False, note="low above high, nan")


def _to(dtype: str, function: str = "convert_element_type") -> Callable[..., Any]:
    return lambda lib, x: getattr(lib, function)(x, np.dtype(dtype))


_FLOATS = f32(values=[0.0, -1.7, 1.7, 300.0, -300.0, 3e9, np.nan, np.inf, -np.inf])
for _spec, _names in (
    (_FLOATS, "int8 uint8 int32 uint32 bool float16 bfloat16 complex64"),
    (i32(values=[-1, 0, 300, -2**31]), "int8 uint8 float32 bool bfloat16 complex64"),
    (u8(values=[0, 255, 128]), "int8 int32 float32 bool bfloat16"),
    (b1(4), "int8 uint8 float32 bfloat16 complex64"),
    (bf16(4), "int8 int32 float32 bool complex64"),
):
    for _name in _names.split():
        row("convert_element_type", _spec, call=_to(_name), note=f"to {_name}", value_only=True)
for _name in ("float16", "bfloat16", "complex64"):
    row("convert_element_type", f32(3), call=_to(_name), note=f"to {_name}", widen=False,
        smooth=False)
row("convert_element_type", c64(3), call=_to("float32"), widen=False, smooth=False)
for _spec, _name in ((f32(3, 4), "int32"), (f32(3), "uint8"), (u8(3, 4), "float32"),
                     (i16(3), "bfloat16"), (i16(3, 2), "uint32"), (f32(), "uint32")):
    row("bitcast_convert_type", _spec, call=_to(_name, "bitcast_convert_type"), note=f"to {_name}")
row("reduce_precision", f32(3, 4), smooth=False, exponent_bits=5, mantissa_bits=4)

# ---- shape --------------------------------------------------------------------------------------
row("broadcast_in_dim", f32(2, 4), shape=(2, 3, 4), broadcast_dimensions=(0, 2))
row("broadcast_in_dim", f32(2, 1), shape=(2, 3), broadcast_dimensions=(0, 1))
row("broadcast_in_dim", f32(), shape=(2, 3), broadcast_dimensions=())
row("broadcast_in_dim", f32(3), shape=(0, 3), broadcast_dimensions=(1,))
row("broadcast_in_dim", b1(3), shape=(2, 3), broadcast_dimensions=(1,))
row("reshape", f32(3, 4), numpy=lambda x: x.reshape(4, 3), new_sizes=(4, 3))
row("reshape", f32(1, 1), numpy=lambda x: x.reshape(()), new_sizes=())
row("reshape", f32(3, 0), numpy=lambda x: x.reshape(0, 5), new_sizes=(0, 5))
row("reshape", f32(3, 4), numpy=lambda x: x.T.reshape(12), note="dimensions", new_sizes=(12,),
    dimensions=(1, 0))
row("transpose", f32(2, 3, 4), numpy=lambda x: x.transpose(2, 0, 1), permutation=(2, 0, 1))
row("transpose", i8(2, 3), numpy=np.transpose, permutation=(1, 0))
row("squeeze", f32(1, 3, 1), numpy=np.squeeze, dimensions=(0, 2))
row("squeeze", f32(3, 1), numpy=np.squeeze, dimensions=(-1,))
row("broadcast_in_dim", f32(3), function="expand_dims", numpy=lambda x: x[None, :, None],
    dimensions=(0, -1))
row("rev", f32(2, 3, 4), numpy=lambda x: x[::-1, :, ::-1], dimensions=(0, 2))
row("concatenate", f32(2, 3), f32(1, 3), f32(0, 3), call=lambda lib, *xs: lib.concatenate(xs, 0),
    numpy=lambda *xs: np.concatenate(xs))
row("concatenate", b1(2, 3), b1(2, 2), call=lambda lib, *xs: lib.concatenate(xs, 1),
    numpy=lambda *xs: np.concatenate(xs, 1))
row("split", f32(2, 5), call=lambda lib, x: tuple(lib.split(x, (2, 0, 3), 1)),
    numpy=lambda x: tuple(np.split(x, (2, 2), 1)))
row("pad", f32(2, 3), f32(), padding_config=((1, 2, 0), (0, 0, 1)))
row("pad", f32(3, 3), f32(), padding_config=((-1, 0, 0), (1, -1, 2)))
row("pad", f32(0), f32(), padding_config=((2, 1, 3),))
row("pad", i32(3), i32(values=7), padding_config=((1, 1, 0),))
row("copy", f32(3, 4), call=lambda lib, x: lax.copy(x) if lib is lax else x, numpy=lambda x: x)
row("iota", call=lambda lib: lib.iota(np.int32, 5), numpy=lambda: np.arange(5, dtype=np.int32))
row("iota", call=lambda lib: lib.broadcasted_iota(np.float32, (2, 3), 1))
row("iota", call=lambda lib: lib.iota(np.uint8, 0), note="empty")
row("stop_gradient", f32(3), numpy=lambda x: x, smooth=False)
row("dce_sink", f32(3), call=lambda lib, x: (lib.dce_sink(lib.sin(x)), lib.cos(x))[1])
row("optimization_barrier", f32(3), i32(2), call=lambda lib, x, y: lib.optimization_barrier((x, y)))

# ---- slices -------------------------------------------------------------------------------------
row("slice", f32(3, 4), numpy=lambda x: x[1:3], start_indices=(1, 0), limit_indices=(3, 4))
row("slice", f32(3, 6), numpy=lambda x: x[::2, 1:6:3], start_indices=(0, 1), limit_indices=(3, 6),
    strides=(2, 3))
row("slice", f32(3), numpy=lambda x: x[2:2], start_indices=(2,), limit_indices=(2,))
row("slice", f32(2, 5), function="slice_in_dim", numpy=lambda x: x[:, -3:-1], start_index=-3,
    limit_index=-1, axis=1)
row("slice", f32(2, 5), function="index_in_dim", numpy=lambda x: x[:, -1], index=-1, axis=1,
    keepdims=False)
_AT = i32(low=-4, high=6)
row("dynamic_slice", f32(4, 5), _AT, _AT,
    call=lambda lib, x, i, j: lib.dynamic_slice(x, (i, j), (2, 3)))
row("dynamic_slice", i8(3, 5), _AT, call=lambda lib, x, i: lib.dynamic_slice_in_dim(x, i, 2, 1))
row("dynamic_slice", f32(5, 2), u8(low=0, high=5),
    call=lambda lib, x, i: lib.dynamic_index_in_dim(x, i, 0, False))
row("dynamic_slice", f32(4, 5), i32(2, low=-1, high=3),
    call=lambda lib, x, i: lib.dynamic_slice(x, i, (2, 2)))
row("dynamic_update_slice", f32(4, 5), f32(2, 3), _AT, _AT,
    call=lambda lib, x, u, i, j: lib.dynamic_update_slice(x, u, (i, j)))
row("dynamic_update_slice", i32(2, 5), i32(2), _AT,
    call=lambda lib, x, u, i: lib.dynamic_update_index_in_dim(x, u, i, 1))

# ---- reductions ---------------------------------------------------------------------------------
for _name, _ref in {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max,
    "reduce_min": np.min}.items():
    row(_name, f32(2, 3, 4), numpy=lambda x, f=_ref: f(x, (0, 2)), rtol=2e-5, axes=(0, 2))
    row(_name, f32(2, 3), numpy=lambda x, f=_ref: f(x, 1), rtol=2e-5, axes=(1,))
    row(_name, f32(2, 3), numpy=lambda x: x, axes=())
    row(_name, f32(0, 3), smooth=False, axes=(0,), value_only=True)
    row(_name, i8(9), note="i8", axes=(0,), value_only=True)
    row(_name, u8(9), note="u8", axes=(0,), value_only=True)
    row(_name, bf16(9), smooth=False, rtol=5e-2, axes=(0,), value_only=True)
    row(_name, f16(9), smooth=False, rtol=1e-2, axes=(0,), value_only=True)
    row(_name, f32(values=[1, np.nan, 3]), widen=False, smooth=False, note="nan", axes=(0,))
for _name in ("reduce_sum", "reduce_prod"):
    row(_name, c64(4, 2), rtol=1e-4, axes=(0,))
row("reduce_prod", f32(values=[[0, 0, 1], [2, 0, 3], [3, 1, 2]]), note="zeros", axes=(0,))
row("reduce_max", f32(values=[1, 3, 3, 2]), smooth=False, note="ties", axes=(0,))
row("reduce_max", b1(4), axes=(0,))
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    for _spec in (b1(3, 4), i32(3, 4), u8(3, 4)):
        row("reduce_" + _name, _spec, numpy=lambda x, f=_ref: f.reduce(x, 1),
            axes=(1,))
for _name, _ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for _spec in (f32(3, 7), i32(3, 7, low=-3, high=3), u8(3, 7, low=0, high=4), b1(3, 7),
        f32(values=[[1, np.nan, np.nan, 2], [np.inf, 1, np.inf, 0], [-np.inf, -np.inf, 1, 1]])):
        row(_name, _spec, numpy=lambda x, f=_ref: f(x, 1).astype(np.int32), axis=1,
            index_dtype=np.int32)
    row(_name, bf16(9), axis=0, index_dtype=np.int32, value_only=True)
for _name in ("cumsum", "cumprod", "cummax", "cummin"):
    for _n in (1, 2, 3, 8, 13):
        row(_name, f32(_n, 2), rtol=1e-4, axis=0)
    row(_name, f32(2, 7), rtol=1e-4, axis=1, reverse=True)
    row(_name, f32(2, 100, 3, low=0.8, high=1.2), rtol=1e-4, axis=1, value_only=True)
    row(_name, i32(2100, low=-3, high=3), axis=0, reverse=True, value_only=True)
    row(_name, f32(0, 2), axis=0)
    row(_name, i8(9), axis=0, value_only=True)
    row(_name, bf16(9), smooth=False, rtol=5e-2, axis=0, value_only=True)

# ---- products -----------------------------------------------------------------------------------


def _dot(contracting: Any, batch: Any = ((), ()), **params: Any) -> Callable[..., Any]:
    return lambda lib, x, y: lib.dot_general(x, y, (contracting, batch), **params)


row("dot_general", f32(3, 4), f32(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(4), f32(4), call=_dot(((0,), (0,))), numpy=np.dot, rtol=1e-4)
row("dot_general", f32(3), f32(4), call=_dot(((), ())), numpy=np.multiply.outer)
row("dot_general", f32(2, 3, 4), f32(2, 4, 5), call=_dot(((2,), (1,)), ((0,), (0,))),
    numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(2, 3, 4), f32(5, 4, 3, 2), call=_dot(((0, 2), (3, 1)), ((1,), (2,))),
    rtol=1e-4)
row("dot_general", f32(3, 0), f32(0, 5), call=_dot(((1,), (0,))), numpy=np.matmul)
row("dot_general", i32(3, 4), i32(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul)
row("dot_general", i8(3, 4), i8(4, 5), call=_dot(((1,), (0,)), preferred_element_type=np.int32),
    numpy=lambda x, y: x.astype(np.int32) @ y.astype(np.int32))
row("dot_general", bf16(3, 4), bf16(4, 5),
    call=_dot(((1,), (0,)), preferred_element_type=np.float32), widen=False, smooth=False,
    rtol=1e-2)
row("dot_general", f32(3, 4), f32(4, 5), call=_dot(((1,), (0,)), precision="highest"),
    numpy=np.matmul, rtol=1e-4)
row("dot_general", c64(3, 4), c64(4, 5), call=_dot(((1,), (0,))), numpy=np.matmul, rtol=1e-4)
row("dot_general", f16(3, 4), f16(4, 5), call=_dot(((1,), (0,))), widen=False, smooth=False,
    rtol=2e-2)
row("dot_general", f32(2, 3, 4), f32(2, 4, 5), function="batch_matmul", numpy=np.matmul, rtol=1e-4)
row("dot_general", f32(3, 4), f32(4), function="dot", numpy=np.dot, rtol=1e-4)

# ---- convolutions -------------------------------------------------------------------------------
_NHWC = ("NHWC", "HWIO", "NHWC")
for _note, _lhs, _rhs, _params in (
    ("plain", (2, 3, 6, 5), (4, 3, 3, 2), dict(window_strides=(1, 1), padding="VALID")),
    ("strided", (2, 3, 6, 5), (4, 3, 3, 3), dict(window_strides=(2, 3), padding="SAME")),
    ("same lower", (1, 2, 5), (3, 2, 2), dict(window_strides=(1,), padding="SAME_LOWER")),
    ("nhwc", (2, 6, 5, 3), (3, 2, 3, 4),
     dict(window_strides=(1, 2), padding=((1, 0), (2, -1)), dimension_numbers=_NHWC)),
    ("dilated", (2, 2, 6), (3, 2, 3),
     dict(window_strides=(2,), padding=((2, 1),), lhs_dilation=(3,), rhs_dilation=(2,))),
    ("feature groups", (2, 4, 5), (6, 2, 3),
     dict(window_strides=(2,), padding="SAME", feature_group_count=2)),
    ("depthwise", (2, 3, 5), (3, 1, 3),
     dict(window_strides=(1,), padding="SAME", feature_group_count=3)),
    ("batch groups", (4, 3, 5), (6, 3, 3),
     dict(window_strides=(1,), padding="VALID", batch_group_count=2)),
    ("no space", (2, 3), (4, 3), dict(window_strides=(), padding="VALID")),
):
    row("conv_general_dilated", f32(*_lhs), f32(*_rhs), rtol=1e-4, note=_note, **_params)
row("conv_general_dilated", f32(2, 5, 5, 3), f32(3, 3, 3, 2), function="conv_transpose",
    strides=(2, 2), padding="SAME", rtol=1e-4, note="transpose")
row("conv_general_dilated", f32(2, 5, 3), f32(3, 2, 3), function="conv_transpose", strides=(2,),
    padding="VALID", transpose_kernel=True, rtol=1e-4, note="transpose kernel")
row("conv_general_dilated", i32(2, 3, 5), i32(4, 3, 3), window_strides=(1,), padding="SAME",
    value_only=True)
row("conv_general_dilated", bf16(2, 3, 5), bf16(4, 3, 3), window_strides=(1,), padding="SAME",
    preferred_element_type=np.float32, rtol=2e-2, value_only=True)

# ---- windows ------------------------------------------------------------------------------------
def _pool(name: str, init: float, **params: Any) -> Callable[..., Any]:
    return lambda lib, x: lib.reduce_window(x, x.dtype.type(init), getattr(lib, name), **params)


_WINDOWS = (
    dict(window_dimensions=(2, 3), window_strides=(1, 1), padding="VALID"),
    dict(window_dimensions=(2, 2), window_strides=(2, 2), padding="SAME"),
    dict(window_dimensions=(3, 2), window_strides=(2, 1), padding=((1, 2), (0, 1))),
    dict(window_dimensions=(2, 2), window_strides=(1, 2), padding=((1, 1), (1, 1)),
         base_dilation=(2, 1), window_dilation=(1, 2)),
)
for _i, _params in enumerate(_WINDOWS):
    row("reduce_window_sum", f32(5, 6), call=_pool("add", 0, **_params), note=f"windows {_i}",
        rtol=1e-4)
    row("reduce_window_max", f32(5, 6), call=_pool("max", -np.inf, **_params), note=f"windows {_i}")
    row("reduce_window_min", f32(5, 6), call=_pool("min", np.inf, **_params), note=f"windows {_i}")
row("reduce_window_sum", i32(5, 6), call=_pool("add", 3, **_WINDOWS[1]), note="init",
    value_only=True)
row("reduce_window_max", i32(5, 6), call=_pool("max", 0, **_WINDOWS[1]), note="init",
    value_only=True)


def _chosen(name: str) -> Callable[..., Any]:
    def call(lib: Any, x: Any) -> Any:
        if lib is lax:
            return getattr(lax, f"window_arg{name}_p").bind(
                x, window_dimensions=(2,), window_strides=(2,), padding=((0, 0),),
                base_dilation=(1,), window_dilation=(1,),
            )
        pairs = x.reshape(-1, 2)
        return (getattr(np, "arg" + name)(pairs, 1) + 2 * np.arange(len(pairs))).astype(np.int32)

    return call


row("window_argmax", f32(8), call=_chosen("max"))
row("window_argmin", f32(8), call=_chosen("min"))

# ---- gather and scatter -------------------------------------------------------------------------
_ROWS, _PUT = ((1,), (0,), (0,)), ((1,), (0,), (0,))  # whole rows at indices of one component


def _gather(numbers: Any, sizes: tuple[int, ...], mode: str, **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i: lib.gather(
        x, i, lib.GatherDimensionNumbers(*numbers), sizes, mode=mode, **params
    )


def _scatter(name: str, numbers: Any, **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i, u: getattr(lib, name)(
        x, i, u, lib.ScatterDimensionNumbers(*numbers), **params
    )


_OUT = i32(4, 1, low=-2, high=8)
for _mode in ("clip", "fill"):
    row("gather", f32(5, 3), _OUT, call=_gather(_ROWS, (1, 3), _mode), note=_mode)
    row("gather", i32(5, 3), _OUT, call=_gather(_ROWS, (1, 3), _mode), note=_mode)
row("gather", u8(5, 3), _OUT, call=_gather(_ROWS, (1, 3), "fill"))
row("gather", b1(5, 3), _OUT, call=_gather(_ROWS, (1, 3), "fill"))
row("gather", f32(5, 3), u8(4, 1, low=0, high=9), note="u8 index",
    call=_gather(_ROWS, (1, 3), "fill", fill_value=-1.5))
row("gather", f32(5, 3), i32(2, 2, 1, low=0, high=5), note="in bounds",
    call=_gather(((2,), (0,), (0,)), (1, 3), "promise_in_bounds"))
row("gather", f32(4, 5), i32(3, 2, low=-1, high=5), note="windows",
    call=_gather(((1, 2), (), (1, 0)), (2, 3), "clip"))
row("gather", f32(3, 5), i32(3, 4, 1, low=-1, high=6), note="batched",
    call=_gather(((), (1,), (1,), (0,), (0,)), (1, 1), "fill"))
row("gather", f32(5, 3), i32(1, low=0, high=5), note="one row",
    call=_gather(((0,), (0,), (0,)), (1, 3), "clip"))

_ONCE, _TWICE = i32(values=[[3], [0], [9], [1]]), i32(values=[[0], [2], [-1], [9]])
for _name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
    row(_name, f32(5, 3), _ONCE, f32(4, 3), note="drop", rtol=1e-4,
        call=_scatter(_name, _PUT, unique_indices=True))
    row(_name, f32(4, 5), i32(values=[[0, 0], [2, 1]]), f32(2, 2, 3), note="windows", rtol=1e-4,
        call=_scatter(_name, ((1, 2), (), (0, 1)), mode="clip", unique_indices=True))
    row(_name, f32(2, 5), i32(values=[[[1], [0], [7]], [[3], [2], [1]]]), f32(2, 3), note="batched",
        call=_scatter(_name, ((), (1,), (1,), (0,), (0,)), unique_indices=True), rtol=1e-4)
row("scatter", f32(5, 3), _OUT, f32(4, 3), call=_scatter("scatter", _PUT), note="repeated")
row("scatter", i32(5, 3), _TWICE, i32(values=[[1] * 3, [2] * 3, [1] * 3, [4] * 3]), note="clip",
    call=_scatter("scatter", _PUT, mode="clip"))
for _name in ("scatter_add", "scatter_min", "scatter_max", "scatter_sub"):
    _p = "scatter_add" if _name == "scatter_sub" else _name
    row(_p, f32(5, 3), _OUT, f32(4, 3), call=_scatter(_name, _PUT), rtol=1e-4, note=_name)
    row(_p, f32(5, 3), _ONCE, f32(4, 3), rtol=1e-4, note=_name + " clip",
        call=_scatter(_name, _PUT, mode="clip", unique_indices=True), jax_jvp=_p == "scatter_add")
    row(_p, i32(5, 3), _OUT, i32(4, 3), call=_scatter(_name, _PUT, mode="clip"), note=_name)
row("scatter_mul", f32(5, 3), _OUT, f32(4, 3), rtol=1e-4, note="repeated",
    call=lambda lib, x, i, u: _scatter("scatter_mul", _PUT)(lib, x, i, lib.stop_gradient(u)))
row("scatter_add", c64(5, 3), _OUT, c64(4, 3), call=_scatter("scatter_add", _PUT), rtol=1e-4)

# ---- order, random bits -------------------------------------------------------------------------
_WILD = f32(values=[3, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, 1, -0.0, 0.0])
row("sort", f32(3, 7), numpy=np.sort)
row("sort", i32(7, 3, low=-3, high=3), numpy=lambda x: np.sort(x, 0), dimension=0)
row("sort", _WILD, smooth=False, widen=False, note="nan, zeros")
row("sort", f32(3, 7), f32(3, 7), call=lambda lib, x, y: lib.sort((x, y), num_keys=1))
row("sort", i32(9, low=0, high=3), f32(9), call=lambda lib, x, y: lib.sort((x, y), num_keys=2))
row("sort", i8(9, low=0, high=3), i32(9), call=lambda lib, x, y: lib.sort_key_val(x, y),
    note="stable")
for _spec in (u8(9), b1(9), bf16(9), c64(9)):
    row("sort", _spec, widen=False, smooth=False)
row("sort", f32(2, 7), call=lambda lib, x: tuple(lib.top_k(x, 3)), note="top_k")
row("sort", i32(9, low=0, high=3), call=lambda lib, x: tuple(lib.top_k(x, 4)), note="top_k")
row("sort", f32(values=[3, np.nan, np.inf, 1, np.nan, 3]),
    call=lambda lib, x: tuple(lib.top_k(x, 4)), note="top_k nan", smooth=False, widen=False)


def _threefry(lib: Any, *words: Any) -> Any:
    if lib is lax:
        return tuple(lax.threefry2x32(*words))
    from jax.extend.random import threefry2x32_p

    return tuple(threefry2x32_p.bind(*words))


_WORD = arrays_of("uint32", 0, 2**32)
row("threefry2x32", _WORD(), _WORD(), _WORD(5), _WORD(5), call=_threefry)
row("threefry2x32", _WORD(3), _WORD(3), _WORD(3), _WORD(3), call=_threefry)



def _words_of_keys(lib: Any, words: Any) -> Any:
    if lib is lax:
        return random_unwrap(random_wrap(words))
    return jax.random.key_data(jax.random.wrap_key_data(words))


row("random_wrap", _WORD(3, 2), call=_words_of_keys)
row("random_unwrap", _WORD(2, 3, 2), call=_words_of_keys)

# ---- fft ---------------------------------------------------------------------------------------
row("fft", c64(3, 8), numpy=np.fft.fft, fft_type="FFT", fft_lengths=(8,))
row("fft", c64(2, 12), numpy=np.fft.ifft, fft_type="IFFT", fft_lengths=(12,))
row("fft", c64(17), numpy=np.fft.fft, fft_type="FFT", fft_lengths=(17,))
row("fft", c64(3, 4, 5), numpy=np.fft.ifftn, fft_type="IFFT", fft_lengths=(3, 4, 5))
row("fft", f32(3, 8), numpy=np.fft.rfft, fft_type="RFFT", fft_lengths=(8,))
row("fft", f32(7), numpy=np.fft.rfft, fft_type="rfft", fft_lengths=(7,))
row("fft", f32(2, 3, 4), numpy=lambda x: np.fft.rfftn(x, axes=(1, 2)), fft_type="RFFT",
    fft_lengths=(3, 4))  # fmt: skip
row("fft", c64(3, 5), numpy=np.fft.irfft, fft_type="IRFFT", fft_lengths=(8,))
row("fft", c64(4), numpy=lambda x: np.fft.irfft(x, 7), fft_type="IRFFT", fft_lengths=(7,))
row("fft", c64(3, 3), numpy=lambda x: np.fft.irfft2(x, (3, 4)), fft_type="IRFFT",
    fft_lengths=(3, 4))  # fmt: skip
row("fft", c64(2, 0, 4), value_only=True, fft_type="FFT", fft_lengths=(4,))

# ---- collectives over the lanes of a vmap -------------------------------------------------------
def _lanes(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun(lib, *lanes), over dimension 0 as the axis "i"."""

    def call(lib: Any, *xs: Any) -> Any:
        import jax

        import lamina

        vmap = lamina.vmap if lib is lax else jax.vmap
        return vmap(lambda *lanes: fun(lib, *lanes), axis_name="i")(*xs)

    return call


_PAIRS = [(0, 2), (2, 1), (1, 0)]
for _spec in (f32(3, 4), i32(3, 4), c64(3, 2)):
    row("psum", _spec, call=_lanes(lambda lib, x: lib.psum(x, "i")))
row("psum_invariant", f32(3, 4), call=_lanes(
    lambda lib, x: lib.psum_invariant_p.bind(x, axes=("i",)) if lib is lax else lib.psum(x, "i")))
row("pvary", f32(3, 4), call=_lanes(
    lambda lib, x: lib.pvary_p.bind(x, axes=("i",)) if lib is lax else x))
row("all_gather_invariant", f32(3, 2), call=_lanes(
    lambda lib, x: lib.all_gather_invariant_p.bind(
        x, all_gather_dimension=0, axis_name="i", axis_index_groups=None, axis_size=3)
    if lib is lax else lib.all_gather(x, "i", tiled=True)))  # fmt: skip
for _name in ("pmax", "pmin"):
    row(_name, f32(3, 4), call=_lanes(lambda lib, x, n=_name: getattr(lib, n)(x, "i")),
        jax_jvp=False)
row("axis_index", i32(3), call=_lanes(lambda lib, x: x + lib.axis_index("i")))
row("ppermute", f32(3, 4), call=_lanes(lambda lib, x: lib.ppermute(x, "i", _PAIRS)))
row("all_gather", f32(3, 2, 4), call=_lanes(lambda lib, x: lib.all_gather(x, "i", axis=1)))
row("all_gather", f32(3, 2), call=_lanes(lambda lib, x: lib.all_gather(x, "i", tiled=True)))
row("reduce_scatter", f32(3, 3), call=_lanes(lambda lib, x: lib.psum_scatter(x, "i")))
row("reduce_scatter", f32(3, 2, 6), note="tiled",
    call=_lanes(lambda lib, x: lib.psum_scatter(x, "i", scatter_dimension=1, tiled=True)))
row("all_to_all", f32(3, 3, 2), call=_lanes(lambda lib, x: lib.all_to_all(x, "i", 0, 1)))
row("all_to_all", f32(3, 2, 6), note="tiled",
    call=_lanes(lambda lib, x: lib.all_to_all(x, "i", 1, 0, tiled=True)))

# ---- reductions by any function ----------------------------------------------------------------
def _join(x: Any, y: Any) -> Any:
    return x + y + x * y * 0.25


row("reduce", f32(3, 4), call=lambda lib, x: lib.reduce(x, x.dtype.type(0), _join, (0,)), rtol=1e-5)
row("reduce", i32(3, 4), call=lambda lib, x: lib.reduce(
    x, np.int32(0), lambda a, b: lib.bitwise_xor(a, b) + np.int32(0), (0, 1)))  # fmt: skip
row("reduce_window", f32(4, 5), rtol=1e-5, call=lambda lib, x: lib.reduce_window(
    x, x.dtype.type(0), _join, (2, 2), (1, 2), "SAME"))  # fmt: skip
row("rng_bit_generator", u32(values=[1, 2, 3, 4]), value_only=True,
    call=lambda lib, key: tuple(lib.rng_bit_generator(key, (5,))))  # fmt: skip
row("rng_uniform", f32(), f32(low=3, high=4), value_only=True,
    call=lambda lib, a, b: lib.ge(lib.rng_uniform(a, b, (5,)), lib.broadcast(a, (5,))))  # fmt: skip

# ---- linear algebra -----------------------------------------------------------------------------
# Diagonally dominant, so that nothing is nearly singular; symmetric after lax symmetrises.
def _dominant(lib: Any, x: Any) -> Any:
    shift = (8 * np.eye(*x.shape[-2:]) + np.diag(np.arange(x.shape[-1]))).astype(x.dtype)
    return lib.add(x, np.broadcast_to(shift, x.shape))


for _spec in (f32(3, 3), c64(3, 3), f32(2, 20, 20, low=-0.3, high=0.3)):
    row("linalg.cholesky", _spec, rtol=2e-4,
        call=lambda lib, x: lib.linalg.cholesky(_dominant(lib, x)))
    row("linalg.triangular_solve", _spec, _spec, rtol=2e-4, note="left lower",
        call=lambda lib, a, b: lib.linalg.triangular_solve(
            _dominant(lib, a), b, left_side=True, lower=True, transpose_a=True, conjugate_a=True))
row("linalg.triangular_solve", f32(3, 3), f32(2, 3), note="right unit", rtol=2e-4,
    call=lambda lib, a, b: lib.linalg.triangular_solve(a, b, unit_diagonal=True))
row("linalg.cholesky", f32(3, 3, values=np.diag([1.0, -1.0, 2.0])), note="indefinite",
    value_only=True)
row("linalg.cholesky", f32(2, 0, 0), value_only=True)
row("linalg.lu", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.lu(_dominant(lib, x)))
row("linalg.lu", f32(3, 5), rtol=1e-3,
    call=lambda lib, x: lib.linalg.lu(lib.concatenate([_dominant(lib, x[:, :3]), x[:, 3:]], 1)))
row("linalg.lu", c64(5, 3), rtol=1e-3,
    call=lambda lib, x: lib.linalg.lu(lib.concatenate([_dominant(lib, x[:3]), x[3:] * 0.1], 0)))
row("linalg.lu", f32(0, 3), value_only=True)
row("linalg.lu_pivots_to_permutation", i32(3, values=[2, 2, 3]), permutation_size=5)
for _spec in (f32(5, 3), c64(3, 3)):
    row("linalg.qr", _spec, rtol=1e-3, full_matrices=False)
    # The phases of complex vectors are free: JAX's derivatives are not those of LAPACK's phases.
    row("linalg.svd", _spec, rtol=1e-3, smooth=_spec.dtype.kind != "c", full_matrices=False)
row("linalg.qr", f32(3, 5), value_only=True, note="full")
row("linalg.qr", f32(5, 3), value_only=True, note="pivoting", pivoting=True)
row("linalg.svd", f32(3, 5), rtol=1e-3, compute_uv=False)
row("linalg.svd", f32(5, 3), rtol=1e-3, value_only=True)
row("linalg.svd", f32(2, 2, values=[[1, np.nan], [0, 1]]), value_only=True, note="nan")
row("linalg.eigh", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.eigh(_dominant(lib, x)))
row("linalg.eigh", c64(3, 3), rtol=1e-3, smooth=False,
    call=lambda lib, x: lib.linalg.eigh(_dominant(lib, x), lower=False))
row("linalg.eig", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.eig(
    _dominant(lib, x), compute_left_eigenvectors=False, enable_eigvec_derivs=True))
row("linalg.eig", c64(3, 3), rtol=1e-3, value_only=True)
row("linalg.schur", f32(4, 4), rtol=1e-3)
row("linalg.schur", c64(3, 3), rtol=1e-3,
    call=lambda lib, x: [lib.abs(y) for y in lib.linalg.schur(x)])
row("linalg.hessenberg", f32(4, 4), rtol=1e-3)
row("linalg.tridiagonal", f32(4, 4), rtol=1e-3,
    call=lambda lib, x: lib.linalg.tridiagonal(_dominant(lib, x), lower=False))
row("linalg.tridiagonal_solve", f32(4), f32(4, low=4, high=6), f32(4), f32(4, 2), rtol=1e-4)
row("linalg.symmetric_product", f32(3, 2), f32(3, 3), rtol=1e-4, jax_jvp=False,
    call=lambda lib, a, c: lib.linalg.symmetric_product(
        a, c + c.T, alpha=2.0, beta=0.5, symmetrize_output=True))
row("linalg.cholesky_update", f32(3, 3), f32(3), rtol=1e-4,
    call=lambda lib, r, w: lib.abs(lib.linalg.cholesky_update(
        lib.mul(lib.add(r, r.dtype.type(3)), np.triu(np.ones((3, 3), r.dtype))), w)))
_TAUS = (f32(4, 3), f32(3, low=0.5, high=1.5))
row("linalg.householder_product", *_TAUS, rtol=1e-4)
row("linalg.ormqr", *_TAUS, f32(2, 4), rtol=1e-4, left=False, transpose=True)
row("linalg.geqrf", f32(4, 3), rtol=1e-4, call=lambda lib, x: _internal(lib).geqrf(x))
row("linalg.geqp3", f32(4, 3), i32(3, values=[0, 0, 1]), rtol=1e-4,
    call=lambda lib, x, p: _internal(lib).geqp3(x, p))


def _internal(lib: Any) -> Any:
    """jax.lax.linalg does not export all of its functions."""
    from jax._src.lax import linalg

    return lib.linalg if lib is lax else linalg
