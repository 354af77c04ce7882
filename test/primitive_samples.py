"""Sample applications of every primitive in lamina.lax: one table, used by all generic tests.

A row names the primitive, applies it as `function(lax, *arrays)` (so that lamina.lax and jax.lax can
both run it) and describes the arrays. Give rows for what could differ: ranks (0 too), empty arrays,
dtypes, parameters. `numpy` is an independent reference; without one JAX is.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

from lamina import lax
from lamina.core import Primitive

bfloat16 = np.dtype(ml_dtypes.bfloat16)


@dataclasses.dataclass(frozen=True)
class Spec:
    """How to make an array: by drawing from [low, high), or from the given values."""

    shape: tuple[int, ...]
    dtype: np.dtype
    low: float = -2.0
    high: float = 2.0
    values: Any = None

    def make(self, rng: np.random.Generator) -> np.ndarray:
        if self.values is not None:
            return np.asarray(self.values, self.dtype)
        if self.dtype.kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if self.dtype.kind in "iu":
            return rng.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)
        drawn = rng.uniform(self.low, self.high, self.shape)
        if self.dtype.kind == "c":
            drawn = drawn + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(drawn).astype(self.dtype)

    def widened(self) -> Spec:
        """The same in double precision."""
        wide = {"float32": np.float64, "complex64": np.complex128}.get(self.dtype.name, self.dtype)
        return dataclasses.replace(self, dtype=np.dtype(wide))

    def __str__(self) -> str:
        name = {"bfloat16": "bf16", "bool": "bool"}.get(
            self.dtype.name, self.dtype.kind + str(8 * self.dtype.itemsize)
        )
        return f"{name}[{','.join(map(str, self.shape))}]"


def arrays_of(dtype: Any, low: float, high: float) -> Callable[..., Spec]:
    """A maker of specs of one dtype: of a shape, or of given values."""

    def spec(*shape: int, low: float = low, high: float = high, values: Any = None) -> Spec:
        found = np.shape(values) if values is not None else shape
        return Spec(tuple(found), np.dtype(dtype), low, high, values)

    return spec


f16, f32, f64 = (arrays_of(d, -2, 2) for d in ("float16", "float32", "float64"))
bf16 = arrays_of(bfloat16, -2, 2)
c64 = arrays_of("complex64", -2, 2)
i8, i16, i32, i64 = (arrays_of(d, -100, 100) for d in ("int8", "int16", "int32", "int64"))
u8, u16, u32 = (arrays_of(d, 0, 200) for d in ("uint8", "uint16", "uint32"))
b1 = arrays_of(bool, 0, 1)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One row: an application of a primitive. See the fields of `row`."""

    primitive: Primitive
    function: Callable[..., Any]
    specs: tuple[Spec, ...]
    numpy: Callable[..., Any] | None
    smooth: bool
    widen: bool
    vmap: bool
    jax_jvp: bool
    rtol: float
    note: str

    def __str__(self) -> str:
        args = ",".join(map(str, self.specs))
        return f"{self.primitive}({args}){'-' + self.note if self.note else ''}"

    def arrays(self, *, wide: bool = False, seed: int = 0) -> list[np.ndarray]:
        """The arguments, the same at every call."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()) + seed)
        return [(s.widened() if wide else s).make(rng) for s in self.specs]


ROWS: list[Sample] = []


def row(primitive: Primitive, function: Callable[..., Any], *specs: Spec,
        numpy: Callable[..., Any] | None = None, smooth: bool = True, widen: bool = True,
        vmap: bool = True, jax_jvp: bool = True, rtol: float = 0.0, note: str = "") -> None:  # fmt: skip
    """Adds a row.

    numpy    a reference for the value, of the arrays alone.
    smooth   whether derivatives are to be compared with finite differences.
    widen    whether the sample also makes sense in double precision.
    vmap     whether to batch it.
    jax_jvp  whether JAX's derivative is right (it is not everywhere).
    rtol     a tolerance in place of the one that goes with the dtype.
    """
    ROWS.append(Sample(primitive, function, specs, numpy, smooth, widen, vmap, jax_jvp, rtol, note))


def _apply(name: str, **params: Any) -> Callable[..., Any]:
    return lambda lib, *xs: getattr(lib, name)(*xs, **params)


# ---- elementwise: one operand -------------------------------------------------------------------
_UNARY: dict[str, tuple[Callable[..., Any], float, float]] = {
    # name: reference, and an interval where the function is smooth
    "neg": (np.negative, -2, 2), "exp": (np.exp, -2, 2), "exp2": (np.exp2, -2, 2),
    "expm1": (np.expm1, -2, 2), "log": (np.log, 0.1, 4), "log1p": (np.log1p, -0.5, 4),
    "sin": (np.sin, -4, 4), "cos": (np.cos, -4, 4), "tan": (np.tan, -1, 1),
    "asin": (np.arcsin, -0.9, 0.9), "acos": (np.arccos, -0.9, 0.9), "atan": (np.arctan, -2, 2),
    "sinh": (np.sinh, -2, 2), "cosh": (np.cosh, -2, 2), "tanh": (np.tanh, -2, 2),
    "asinh": (np.arcsinh, -2, 2), "acosh": (np.arccosh, 1.1, 4), "atanh": (np.arctanh, -0.9, 0.9),
    "logistic": (scipy.special.expit, -4, 4), "sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4), "cbrt": (np.cbrt, 0.1, 4),
    "square": (np.square, -2, 2),
}  # fmt: skip
_REAL_ONLY: dict[str, tuple[Callable[..., Any], float, float]] = {
    "erf": (scipy.special.erf, -2, 2), "erfc": (scipy.special.erfc, -2, 2),
    "erf_inv": (scipy.special.erfinv, -0.9, 0.9), "lgamma": (scipy.special.gammaln, 0.5, 4),
}  # fmt: skip
_STEPS: dict[str, Callable[..., Any]] = {
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "is_finite": np.isfinite,
}  # fmt: skip
_SPECIAL = f32(values=[0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 3e38])

for _name, (_ref, _low, _high) in (_UNARY | _REAL_ONLY).items():
    _p = getattr(lax, _name + "_p")
    row(_p, _apply(_name), f32(3, 4, low=_low, high=_high), numpy=_ref, rtol=2e-5)
    row(_p, _apply(_name), f32(low=_low, high=_high), numpy=_ref, rtol=2e-5)
    row(_p, _apply(_name), f32(0, 3, low=_low, high=_high), numpy=_ref)
    row(_p, _apply(_name), bf16(5, low=_low, high=_high), smooth=False, widen=False)
    row(_p, _apply(_name), f16(5, low=_low, high=_high), smooth=False, widen=False)
    row(_p, _apply(_name), _SPECIAL, smooth=False, widen=False, note="special values", vmap=False)
    if _name in _UNARY and _name not in ("cbrt", "square", "neg", "asin", "acos", "atan", "asinh",
                                         "acosh", "atanh", "logistic"):  # fmt: skip
        row(_p, _apply(_name), c64(3, low=0.2, high=1.5), rtol=1e-4)
for _name in ("neg", "square", "logistic"):
    row(getattr(lax, _name + "_p"), _apply(_name), c64(3, low=0.2, high=1.5), rtol=1e-4)
for _name, _ref in _STEPS.items():
    _p = getattr(lax, _name + "_p")
    row(_p, _apply(_name), f32(3, 4), numpy=_ref)
    row(_p, _apply(_name), f32(), numpy=_ref)
    row(_p, _apply(_name), bf16(5), widen=False)
    row(_p, _apply(_name), _SPECIAL, note="special values", numpy=_ref, widen=False)
row(lax.digamma_p, _apply("digamma"), f32(3, low=0.5, high=4), numpy=scipy.special.digamma,
    smooth=False, rtol=2e-5)  # fmt: skip
row(lax.sign_p, _apply("sign"), i32(5), numpy=np.sign)
row(lax.sign_p, _apply("sign"), u8(5), numpy=np.sign)
row(lax.neg_p, _apply("neg"), i8(5, values=[-128, 127, 0, 1, -1]), numpy=np.negative)
row(lax.neg_p, _apply("neg"), u8(5), numpy=np.negative)
row(lax.abs_p, _apply("abs"), f32(3, 4), numpy=np.abs)
row(lax.abs_p, _apply("abs"), i32(3, values=[-(2**31), 5, -7]), numpy=np.abs)
row(lax.abs_p, _apply("abs"), c64(4), numpy=np.abs)
row(lax.abs_p, _apply("abs"), _SPECIAL, numpy=np.abs, smooth=False, widen=False)
row(lax.round_p, _apply("round"), f32(values=[0.5, 1.5, -0.5, -2.5, 2.4, 2.6, np.nan, np.inf]))
row(lax.round_p, lambda lib, x: lib.round(x, lib.RoundingMethod.TO_NEAREST_EVEN),
    f32(values=[0.5, 1.5, -0.5, -2.5, 2.4, 2.6, np.nan, np.inf]), numpy=np.round, note="even")  # fmt: skip
row(lax.round_p, _apply("round"), f16(5), widen=False)
for _y in (0, 1, 2, 3, -1, -3, 7):
    row(lax.integer_pow_p, _apply("integer_pow", y=_y), f32(3, 4, low=0.5, high=2), note=f"y={_y}",
        numpy=lambda x, y=_y: np.power(x, np.float32(y)), rtol=2e-5)  # fmt: skip
row(lax.integer_pow_p, _apply("integer_pow", y=3), i32(5), numpy=lambda x: x**3)
row(lax.integer_pow_p, _apply("integer_pow", y=3), c64(5), rtol=1e-4)

# ---- elementwise: two operands ------------------------------------------------------------------
_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
           "max": np.maximum, "min": np.minimum, "atan2": np.arctan2}  # fmt: skip
for _name, _ref in _BINARY.items():
    _p, _away = getattr(lax, _name + "_p"), f32(3, 4, low=0.5, high=2)
    row(_p, _apply(_name), f32(3, 4), _away, numpy=_ref, rtol=2e-5)
    row(_p, _apply(_name), f32(), f32(low=0.5), numpy=_ref, rtol=2e-5)
    row(_p, _apply(_name), f32(3, 4), f32(low=0.5), numpy=_ref, note="scalar operand", rtol=2e-5)
    row(_p, _apply(_name), f32(), _away, numpy=_ref, note="scalar operand first", rtol=2e-5)
    row(_p, _apply(_name), f32(0, 3), f32(0, 3), numpy=_ref)
    row(_p, _apply(_name), bf16(5), bf16(5, low=0.5), smooth=False, widen=False)
    row(_p, _apply(_name), f16(5), f16(5, low=0.5), smooth=False, widen=False)
    row(_p, _apply(_name), _SPECIAL, f32(7, low=0.5), smooth=False, widen=False)
    if _name != "atan2":
        row(_p, _apply(_name), c64(3), c64(3, low=0.5), rtol=1e-4, smooth=_name not in ("max", "min"))
    if _name not in ("atan2", "div"):
        row(_p, _apply(_name), i32(3, 4), i32(3, 4), numpy=_ref)
        row(_p, _apply(_name), u8(3, 4), u8(3, 4), numpy=_ref)
        row(_p, _apply(_name), i8(3, 4), i8(3, 4), numpy=_ref)
row(lax.add_p, lambda lib, x: lib.add(x, x), f32(3), numpy=lambda x: x + x, note="one operand twice")
row(lax.mul_p, lambda lib, x: lib.mul(x, x), f32(3), numpy=lambda x: x * x, note="one operand twice")
row(lax.max_p, _apply("max"), b1(5), b1(5), numpy=np.maximum)
row(lax.max_p, _apply("max"), f32(values=[1, np.nan, 3]), f32(values=[2, 1, np.nan]), numpy=np.maximum,
    smooth=False, widen=False)  # fmt: skip
row(lax.max_p, _apply("max"), f32(values=[1.0, 2.0, 3.0]), f32(values=[1.0, 5.0, 3.0]),
    smooth=False, note="ties")  # fmt: skip
_SIGNS = i32(values=[7, -7, 7, -7, 7, -(2**31), -(2**31), 0]), i32(values=[2, 2, -2, -2, 0, -1, 0, 5])
for _name in ("div", "rem"):
    row(getattr(lax, _name + "_p"), _apply(_name), *_SIGNS, note="signs, zero, overflow")
    row(getattr(lax, _name + "_p"), _apply(_name), u8(4), u8(values=[3, 0, 7, 255]))
row(lax.rem_p, _apply("rem"), f32(3, 4), f32(3, 4, low=0.7), numpy=np.fmod, rtol=2e-5)
row(lax.rem_p, _apply("rem"), f32(3, 4), f32(low=0.7), numpy=np.fmod, rtol=2e-5)
row(lax.rem_p, _apply("rem"), f32(values=[1, -1, np.inf, 1, 0]), f32(values=[0, np.inf, 1, np.nan, 3]),
    smooth=False, widen=False, numpy=np.fmod)  # fmt: skip
row(lax.pow_p, _apply("pow"), f32(3, 4, low=0.5), f32(3, 4), numpy=np.power, rtol=2e-5)
row(lax.pow_p, _apply("pow"), f32(3, 4, low=0.5), f32(), numpy=np.power, rtol=2e-5)
row(lax.pow_p, _apply("pow"), f32(low=0.5), f32(3, 4), numpy=np.power, rtol=2e-5)
row(lax.pow_p, _apply("pow"), f32(4), i32(values=[0, 1, 2, -3]), rtol=2e-5, note="integer exponent")
row(lax.pow_p, _apply("pow"), f32(values=[0, 0, 0, -2, 2]), f32(values=[0, 2, -1, 3, np.nan]),
    numpy=np.power, smooth=False, widen=False, note="special values")  # fmt: skip
row(lax.pow_p, _apply("pow"), c64(3, low=0.3), c64(3), rtol=1e-3)
row(lax.pow_p, _apply("pow"), bf16(3, low=0.3), bf16(3), smooth=False, widen=False)
row(lax.nextafter_p, _apply("nextafter"), f32(values=[0, 1, -1, np.inf]), f32(values=[1, 2, 2, 0]),
    numpy=np.nextafter)  # fmt: skip
row(lax.add_any_p, lambda lib, x, y: lax.add_any(x, y) if lib is lax else lib.add(x, y),
    f32(3, 4), f32(3, 4), numpy=np.add)  # fmt: skip
row(lax.complex_p, _apply("complex"), f32(3, 4), f32(3, 4), numpy=lambda x, y: x + 1j * y)
row(lax.real_p, _apply("real"), c64(3, 4), numpy=np.real)
row(lax.imag_p, _apply("imag"), c64(3, 4), numpy=np.imag)
row(lax.conj_p, _apply("conj"), c64(3, 4), numpy=np.conj)
row(lax.conj_p, _apply("conj"), f32(3, 4), numpy=lambda x: x.astype(np.complex64), widen=False)

# ---- comparisons, bits --------------------------------------------------------------------------
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal}  # fmt: skip
_NANS = f32(values=[1, np.nan, 3, 0, np.inf]), f32(values=[1, 1, np.nan, -0.0, np.inf])
for _name, _ref in _COMPARE.items():
    _p = getattr(lax, _name + "_p")
    row(_p, _apply(_name), f32(3, 4), f32(3, 4), numpy=_ref)
    row(_p, _apply(_name), f32(3, 4), f32(), numpy=_ref)
    row(_p, _apply(_name), *_NANS, numpy=_ref, note="nan")
    row(_p, _apply(_name), i8(9, low=-2, high=2), i8(9, low=-2, high=2), numpy=_ref)
    row(_p, _apply(_name), u8(values=[0, 200, 255]), u8(values=[1, 100, 255]), numpy=_ref)
    row(_p, _apply(_name), b1(9), b1(9), numpy=_ref)
    row(_p, _apply(_name), bf16(5), bf16(5), widen=False)
row(lax.eq_p, _apply("eq"), c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]), numpy=np.equal)
row(lax.ne_p, _apply("ne"), c64(values=[1 + 1j, 2, 3j]), c64(values=[1 + 1j, 2 + 1j, 3j]),
    numpy=np.not_equal)  # fmt: skip
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    _p = getattr(lax, _name + "_p")
    for _specs in ((i32(3, 4), i32(3, 4)), (u8(5), u8(5)), (b1(7), b1(7)), (i32(5), i32())):
        row(_p, _apply("bitwise_" + _name), *_specs, numpy=_ref)
for _spec in (i32(5), u8(5), b1(5), i8()):
    row(lax.not_p, _apply("bitwise_not"), _spec, numpy=np.bitwise_not)
_AMOUNTS = [0, 1, 5, 31, 32, 40, -1]
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    _p = getattr(lax, _name + "_p")
    row(_p, _apply(_name), i32(values=[1, -1, -8, 7, -1, 3, -5]), i32(values=_AMOUNTS))
    row(_p, _apply(_name), u8(values=[1, 255, 128, 7]), u8(values=[1, 7, 8, 200]))
    row(_p, _apply(_name), i32(3, 4), i32(low=0, high=31))
for _spec in (i32(5), u8(5), i8(values=[-128, 0, 1, 127]), u32(3)):
    row(lax.population_count_p, _apply("population_count"), _spec)
    row(lax.clz_p, _apply("clz"), _spec)

# ---- choice and types ---------------------------------------------------------------------------
row(lax.select_n_p, _apply("select_n"), b1(3, 4), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row(lax.select_n_p, _apply("select_n"), b1(), f32(3, 4), f32(3, 4), numpy=lambda w, x, y: np.where(w, y, x))
row(lax.select_n_p, _apply("select_n"), i32(6, low=0, high=3), f32(6), f32(6), f32(6),
    numpy=lambda w, *xs: np.choose(w, xs))  # fmt: skip
row(lax.select_n_p, _apply("select_n"), i32(6, low=0, high=5), *[i8(6)] * 5, numpy=lambda w, *xs: np.choose(w, xs))
row(lax.select_n_p, _apply("select_n"), i32(low=0, high=1), f32(6), note="one case")
row(lax.select_n_p, _apply("select"), b1(5), c64(5), c64(5), numpy=np.where)
row(lax.clamp_p, _apply("clamp"), f32(values=-1.0), f32(3, 4), f32(values=1.0), jax_jvp=False,
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))  # fmt: skip
row(lax.clamp_p, _apply("clamp"), f32(5, low=-1, high=-0.5), f32(5), f32(5, low=0.5, high=1),
    numpy=lambda lo, x, hi: np.clip(x, lo, hi))  # fmt: skip
row(lax.clamp_p, _apply("clamp"), i32(values=-10), i32(9), i32(values=10), numpy=lambda lo, x, hi: np.clip(x, lo, hi))
row(lax.clamp_p, _apply("clamp"), f32(values=[2.0, 0.0]), f32(values=[1.5, np.nan]), f32(values=[1.0, 1.0]),
    smooth=False, widen=False, note="low above high, nan")  # fmt: skip
_FLOATS = f32(values=[0.0, -1.7, 1.7, 300.0, -300.0, 3e9, np.nan, np.inf, -np.inf])
for _to in ("int8", "uint8", "int32", "uint32", "bool", "float16", "bfloat16", "complex64"):
    row(lax.convert_element_type_p, lambda lib, x, to=_to: lib.convert_element_type(x, np.dtype(to)),
        _FLOATS, note=f"to {_to}", widen=False, smooth=False)  # fmt: skip
for _spec in (i32(values=[-1, 0, 300, -(2**31)]), u8(values=[0, 255, 128]), b1(4), bf16(4)):
    for _to in ("int8", "uint8", "int32", "float32", "bool", "bfloat16", "complex64"):
        row(lax.convert_element_type_p, lambda lib, x, to=_to: lib.convert_element_type(x, np.dtype(to)),
            _spec, note=f"to {_to}", widen=False, smooth=False)  # fmt: skip
row(lax.convert_element_type_p, lambda lib, x: lib.convert_element_type(x, np.dtype("float32")), c64(3),
    widen=False, smooth=False)  # fmt: skip
for _spec, _to in ((f32(3, 4), "int32"), (f32(3), "uint8"), (u8(3, 4), "float32"), (i16(3), "bfloat16"),
                   (i16(3, 2), "uint32"), (f32(), "uint32")):  # fmt: skip
    row(lax.bitcast_convert_type_p, lambda lib, x, to=_to: lib.bitcast_convert_type(x, np.dtype(to)),
        _spec, note=f"to {_to}", widen=False)  # fmt: skip
row(lax.reduce_precision_p, _apply("reduce_precision", exponent_bits=5, mantissa_bits=4), f32(3, 4),
    smooth=False)  # fmt: skip

# ---- shape --------------------------------------------------------------------------------------
row(lax.broadcast_in_dim_p, _apply("broadcast_in_dim", shape=(2, 3, 4), broadcast_dimensions=(0, 2)), f32(2, 4))
row(lax.broadcast_in_dim_p, _apply("broadcast_in_dim", shape=(2, 3), broadcast_dimensions=(0, 1)), f32(2, 1))
row(lax.broadcast_in_dim_p, _apply("broadcast_in_dim", shape=(2, 3), broadcast_dimensions=()), f32())
row(lax.broadcast_in_dim_p, _apply("broadcast_in_dim", shape=(0, 3), broadcast_dimensions=(1,)), f32(3))
row(lax.broadcast_in_dim_p, _apply("broadcast_in_dim", shape=(2, 3), broadcast_dimensions=(1,)), b1(3))
row(lax.reshape_p, _apply("reshape", new_sizes=(4, 3)), f32(3, 4), numpy=lambda x: x.reshape(4, 3))
row(lax.reshape_p, _apply("reshape", new_sizes=()), f32(1, 1), numpy=lambda x: x.reshape(()))
row(lax.reshape_p, _apply("reshape", new_sizes=(0, 5)), f32(3, 0), numpy=lambda x: x.reshape(0, 5))
row(lax.reshape_p, _apply("reshape", new_sizes=(12,), dimensions=(1, 0)), f32(3, 4), numpy=lambda x: x.T.reshape(12),
    note="dimensions")  # fmt: skip
row(lax.transpose_p, _apply("transpose", permutation=(2, 0, 1)), f32(2, 3, 4), numpy=lambda x: x.transpose(2, 0, 1))
row(lax.transpose_p, _apply("transpose", permutation=(1, 0)), i8(2, 3), numpy=np.transpose)
row(lax.squeeze_p, _apply("squeeze", dimensions=(0, 2)), f32(1, 3, 1), numpy=np.squeeze)
row(lax.squeeze_p, _apply("squeeze", dimensions=(-1,)), f32(3, 1), numpy=np.squeeze)
row(lax.broadcast_in_dim_p, _apply("expand_dims", dimensions=(0, -1)), f32(3), numpy=lambda x: x[None, :, None])
row(lax.rev_p, _apply("rev", dimensions=(0, 2)), f32(2, 3, 4), numpy=lambda x: x[::-1, :, ::-1])
row(lax.concatenate_p, lambda lib, *xs: lib.concatenate(xs, 0), f32(2, 3), f32(1, 3), f32(0, 3),
    numpy=lambda *xs: np.concatenate(xs))  # fmt: skip
row(lax.concatenate_p, lambda lib, *xs: lib.concatenate(xs, 1), b1(2, 3), b1(2, 2),
    numpy=lambda *xs: np.concatenate(xs, 1))  # fmt: skip
row(lax.split_p, lambda lib, x: tuple(lib.split(x, (2, 0, 3), 1)), f32(2, 5),
    numpy=lambda x: tuple(np.split(x, (2, 2), 1)))  # fmt: skip
row(lax.pad_p, _apply("pad", padding_config=((1, 2, 0), (0, 0, 1))), f32(2, 3), f32())
row(lax.pad_p, _apply("pad", padding_config=((-1, 0, 0), (1, -1, 2))), f32(3, 3), f32())
row(lax.pad_p, _apply("pad", padding_config=((2, 1, 3),)), f32(0), f32())
row(lax.pad_p, _apply("pad", padding_config=((1, 1, 0),)), i32(3), i32(values=7))
row(lax.copy_p, lambda lib, x: lax.copy(x) if lib is lax else x, f32(3, 4), numpy=lambda x: x)
row(lax.iota_p, lambda lib: lib.iota(np.int32, 5), numpy=lambda: np.arange(5, dtype=np.int32))
row(lax.iota_p, lambda lib: lib.broadcasted_iota(np.float32, (2, 3), 1))
row(lax.iota_p, lambda lib: lib.iota(np.uint8, 0), note="empty")
row(lax.stop_gradient_p, _apply("stop_gradient"), f32(3), numpy=lambda x: x, smooth=False)
row(lax.optimization_barrier_p, lambda lib, x, y: lib.optimization_barrier((x, y)), f32(3), i32(2))

# ---- slices -------------------------------------------------------------------------------------
row(lax.slice_p, _apply("slice", start_indices=(1, 0), limit_indices=(3, 4)), f32(3, 4), numpy=lambda x: x[1:3])
row(lax.slice_p, _apply("slice", start_indices=(0, 1), limit_indices=(3, 6), strides=(2, 3)), f32(3, 6),
    numpy=lambda x: x[::2, 1:6:3])  # fmt: skip
row(lax.slice_p, _apply("slice", start_indices=(2,), limit_indices=(2,)), f32(3), numpy=lambda x: x[2:2])
row(lax.slice_p, _apply("slice_in_dim", start_index=-3, limit_index=-1, axis=1), f32(2, 5), numpy=lambda x: x[:, -3:-1])
row(lax.slice_p, _apply("index_in_dim", index=-1, axis=1, keepdims=False), f32(2, 5), numpy=lambda x: x[:, -1])
_AT = i32(low=-4, high=6)
row(lax.dynamic_slice_p, lambda lib, x, i, j: lib.dynamic_slice(x, (i, j), (2, 3)), f32(4, 5), _AT, _AT)
row(lax.dynamic_slice_p, lambda lib, x, i: lib.dynamic_slice_in_dim(x, i, 2, 1), i8(3, 5), _AT)
row(lax.dynamic_slice_p, lambda lib, x, i: lib.dynamic_index_in_dim(x, i, 0, False), f32(5, 2), u8(low=0, high=5))
row(lax.dynamic_slice_p, lambda lib, x, i: lib.dynamic_slice(x, i, (2, 2)), f32(4, 5), i32(2, low=-1, high=3))
row(lax.dynamic_update_slice_p, lambda lib, x, u, i, j: lib.dynamic_update_slice(x, u, (i, j)),
    f32(4, 5), f32(2, 3), _AT, _AT)  # fmt: skip
row(lax.dynamic_update_slice_p, lambda lib, x, u, i: lib.dynamic_update_index_in_dim(x, u, i, 1),
    i32(2, 5), i32(2), _AT)  # fmt: skip

# ---- reductions ---------------------------------------------------------------------------------
for _name, _ref in {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max,
                    "reduce_min": np.min}.items():  # fmt: skip
    _p = getattr(lax, _name + "_p")
    row(_p, _apply(_name, axes=(0, 2)), f32(2, 3, 4), numpy=lambda x, f=_ref: f(x, (0, 2)), rtol=2e-5)
    row(_p, _apply(_name, axes=(1,)), f32(2, 3), numpy=lambda x, f=_ref: f(x, 1), rtol=2e-5)
    row(_p, _apply(_name, axes=()), f32(2, 3), numpy=lambda x: x)
    row(_p, _apply(_name, axes=(0,)), f32(0, 3), smooth=False)
    row(_p, _apply(_name, axes=(0,)), i8(9), note="i8")
    row(_p, _apply(_name, axes=(0,)), u8(9), note="u8")
    row(_p, _apply(_name, axes=(0,)), bf16(9), widen=False, smooth=False, rtol=5e-2)
    row(_p, _apply(_name, axes=(0,)), f16(9), widen=False, smooth=False, rtol=1e-2)
    row(_p, _apply(_name, axes=(0,)), f32(values=[1, np.nan, 3]), widen=False, smooth=False, note="nan")
for _name in ("reduce_sum", "reduce_prod"):
    row(getattr(lax, _name + "_p"), _apply(_name, axes=(0,)), c64(4, 2), rtol=1e-4)
row(lax.reduce_prod_p, _apply("reduce_prod", axes=(0,)), f32(values=[[0, 0, 1], [2, 0, 3], [3, 1, 2]]), note="zeros")
row(lax.reduce_max_p, _apply("reduce_max", axes=(0,)), f32(values=[1, 3, 3, 2]), smooth=False, note="ties")
row(lax.reduce_max_p, _apply("reduce_max", axes=(0,)), b1(4))
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    _p = getattr(lax, f"reduce_{_name}_p")
    for _spec in (b1(3, 4), i32(3, 4), u8(3, 4)):
        row(_p, _apply(f"reduce_{_name}", axes=(1,)), _spec, numpy=lambda x, f=_ref: f.reduce(x, 1))
for _name, _ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
    _p = getattr(lax, _name + "_p")
    for _spec in (f32(3, 7), i32(3, 7, low=-3, high=3), u8(3, 7, low=0, high=4), b1(3, 7),
                  f32(values=[[1, np.nan, np.nan, 2], [np.inf, 1, np.inf, 0], [-np.inf, -np.inf, 1, 1]])):  # fmt: skip
        row(_p, _apply(_name, axis=1, index_dtype=np.int32), _spec, numpy=lambda x, f=_ref: f(x, 1).astype(np.int32))
    row(_p, _apply(_name, axis=0, index_dtype=np.int32), bf16(9), widen=False)
for _name in ("cumsum", "cumprod", "cummax", "cummin"):
    _p = getattr(lax, _name + "_p")
    for _n in (1, 2, 3, 8, 13):
        row(_p, _apply(_name, axis=0), f32(_n, 2), rtol=1e-4)
    row(_p, _apply(_name, axis=1, reverse=True), f32(2, 7), rtol=1e-4)
    row(_p, _apply(_name, axis=0), f32(0, 2))
    row(_p, _apply(_name, axis=0), i8(9))
    row(_p, _apply(_name, axis=0), bf16(9), widen=False, smooth=False, rtol=5e-2)

# ---- products -----------------------------------------------------------------------------------
def _dot(contracting: Any, batch: Any = ((), ()), **params: Any) -> Callable[..., Any]:
    return lambda lib, x, y: lib.dot_general(x, y, (contracting, batch), **params)


row(lax.dot_general_p, _dot(((1,), (0,))), f32(3, 4), f32(4, 5), numpy=np.matmul, rtol=1e-4)
row(lax.dot_general_p, _dot(((0,), (0,))), f32(4), f32(4), numpy=np.dot, rtol=1e-4)
row(lax.dot_general_p, _dot(((), ())), f32(3), f32(4), numpy=np.multiply.outer)
row(lax.dot_general_p, _dot(((2,), (1,)), ((0,), (0,))), f32(2, 3, 4), f32(2, 4, 5), numpy=np.matmul, rtol=1e-4)
row(lax.dot_general_p, _dot(((0, 2), (3, 1)), ((1,), (2,))), f32(2, 3, 4), f32(5, 4, 3, 2), rtol=1e-4)
row(lax.dot_general_p, _dot(((1,), (0,))), f32(3, 0), f32(0, 5), numpy=np.matmul)
row(lax.dot_general_p, _dot(((1,), (0,))), i32(3, 4), i32(4, 5), numpy=np.matmul)
row(lax.dot_general_p, _dot(((1,), (0,)), preferred_element_type=np.int32), i8(3, 4), i8(4, 5),
    numpy=lambda x, y: x.astype(np.int32) @ y.astype(np.int32))  # fmt: skip
row(lax.dot_general_p, _dot(((1,), (0,)), preferred_element_type=np.float32), bf16(3, 4), bf16(4, 5),
    widen=False, smooth=False, rtol=1e-2)  # fmt: skip
row(lax.dot_general_p, _dot(((1,), (0,)), precision="highest"), f32(3, 4), f32(4, 5), numpy=np.matmul, rtol=1e-4)
row(lax.dot_general_p, _dot(((1,), (0,))), c64(3, 4), c64(4, 5), numpy=np.matmul, rtol=1e-4)
row(lax.dot_general_p, _dot(((1,), (0,))), f16(3, 4), f16(4, 5), widen=False, smooth=False, rtol=2e-2)
row(lax.dot_general_p, _apply("batch_matmul"), f32(2, 3, 4), f32(2, 4, 5), numpy=np.matmul, rtol=1e-4)
row(lax.dot_general_p, _apply("dot"), f32(3, 4), f32(4), numpy=np.dot, rtol=1e-4)

# ---- gather and scatter -------------------------------------------------------------------------
_TAKE = dict(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
_PUT = dict(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))


def _gather(numbers: dict[str, Any], sizes: tuple[int, ...], **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i: lib.gather(x, i, lib.GatherDimensionNumbers(**numbers), sizes, **params)


def _scatter(name: str, numbers: dict[str, Any], **params: Any) -> Callable[..., Any]:
    return lambda lib, x, i, u: getattr(lib, name)(x, i, u, lib.ScatterDimensionNumbers(**numbers), **params)


_OUT = i32(4, 1, low=-2, high=8)
for _mode in ("clip", "fill"):
    row(lax.gather_p, _gather(_TAKE, (1, 3), mode=_mode), f32(5, 3), _OUT, note=_mode)
    row(lax.gather_p, _gather(_TAKE, (1, 3), mode=_mode), i32(5, 3), _OUT, note=_mode)
row(lax.gather_p, _gather(_TAKE, (1, 3), mode="fill"), u8(5, 3), _OUT)
row(lax.gather_p, _gather(_TAKE, (1, 3), mode="fill"), b1(5, 3), _OUT)
row(lax.gather_p, _gather(_TAKE, (1, 3), mode="fill", fill_value=-1.5), f32(5, 3), u8(4, 1, low=0, high=9), note="u8 index")
row(lax.gather_p, _gather(_TAKE, (1, 3), mode="promise_in_bounds"), f32(5, 3), i32(2, 2, 1, low=0, high=5))
row(lax.gather_p, _gather(dict(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(1, 0)), (2, 3), mode="clip"),
    f32(4, 5), i32(3, 2, low=-1, high=5))  # fmt: skip
row(lax.gather_p, _gather(dict(offset_dims=(), collapsed_slice_dims=(1,), start_index_map=(1,),
                               operand_batching_dims=(0,), start_indices_batching_dims=(0,)), (1, 1), mode="fill"),
    f32(3, 5), i32(3, 4, 1, low=-1, high=6))  # fmt: skip
row(lax.gather_p, _gather(dict(offset_dims=(0,), collapsed_slice_dims=(0,), start_index_map=(0,)), (1, 3), mode="clip"),
    f32(5, 3), i32(1, low=0, high=5))  # fmt: skip
for _name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
    _p = getattr(lax, _name + "_p")
    _unique = i32(values=[[3], [0], [9], [1]])
    _wide = _name not in ("scatter_min", "scatter_max")
    for _mode in ("clip", "drop"):
        if _name != "scatter" or _mode == "drop":
            row(_p, _scatter(_name, _PUT, mode=_mode, unique_indices=True), f32(5, 3), _unique, f32(4, 3),
                note=f"unique {_mode}", rtol=1e-4, jax_jvp=_wide or _mode == "drop")  # fmt: skip
    if _name != "scatter_mul":
        row(_p, _scatter(_name, _PUT), f32(5, 3), _OUT, f32(4, 3), rtol=1e-4, note="repeated")
    else:
        row(_p, lambda lib, x, i, u: _scatter("scatter_mul", _PUT)(lib, x, i, lib.stop_gradient(u)),
            f32(5, 3), _OUT, f32(4, 3), rtol=1e-4, note="repeated")  # fmt: skip
    row(_p, _scatter(_name, _PUT, mode="clip"), i32(5, 3), i32(4, 1, values=[[0], [2], [-1], [9]])
        if _name == "scatter" else _OUT, i32(4, 3) if _name != "scatter" else i32(values=[[1] * 3, [2] * 3, [1] * 3, [4] * 3]))  # fmt: skip
    row(_p, _scatter(_name, dict(update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)),
                     mode="clip", unique_indices=True), f32(4, 5), i32(values=[[0, 0], [2, 1]]), f32(2, 2, 3), rtol=1e-4)  # fmt: skip
    row(_p, _scatter(_name, dict(update_window_dims=(), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,),
                                 operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)), unique_indices=True),
        f32(2, 5), i32(values=[[[1], [0], [7]], [[3], [2], [1]]]), f32(2, 3), rtol=1e-4)  # fmt: skip
row(lax.scatter_add_p, _scatter("scatter_sub", _PUT), f32(5, 3), _OUT, f32(4, 3), rtol=1e-4, note="sub")
row(lax.scatter_add_p, _scatter("scatter_add", _PUT), c64(5, 3), _OUT, c64(4, 3), rtol=1e-4)

# ---- order, random bits -------------------------------------------------------------------------
_WILD = f32(values=[3, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, 1, -0.0, 0.0])
row(lax.sort_p, _apply("sort"), f32(3, 7), numpy=np.sort)
row(lax.sort_p, _apply("sort", dimension=0), i32(7, 3, low=-3, high=3), numpy=lambda x: np.sort(x, 0))
row(lax.sort_p, _apply("sort"), _WILD, smooth=False, widen=False, note="nan, zeros")
row(lax.sort_p, lambda lib, x, y: lib.sort((x, y), num_keys=1), f32(3, 7), f32(3, 7))
row(lax.sort_p, lambda lib, x, y: lib.sort((x, y), num_keys=2), i32(9, low=0, high=3), f32(9))
row(lax.sort_p, lambda lib, x, y: lib.sort_key_val(x, y), i8(9, low=0, high=3), i32(9), note="stable")
for _spec in (u8(9), b1(9), bf16(9), c64(9)):
    row(lax.sort_p, _apply("sort"), _spec, widen=False, smooth=False)
row(lax.sort_p, lambda lib, x: tuple(lib.top_k(x, 3)), f32(2, 7), note="top_k")
row(lax.sort_p, lambda lib, x: tuple(lib.top_k(x, 4)), i32(9, low=0, high=3), note="top_k")
row(lax.sort_p, lambda lib, x: tuple(lib.top_k(x, 4)), f32(values=[3, np.nan, np.inf, 1, np.nan, 3]), note="top_k nan", smooth=False, widen=False)


def _threefry(lib: Any, *words: Any) -> Any:
    if lib is lax:
        return tuple(lax.threefry2x32(*words))
    from jax.extend.random import threefry2x32_p

    return tuple(threefry2x32_p.bind(*words))


_WORD = arrays_of("uint32", 0, 2**32)
row(lax.threefry2x32_p, _threefry, _WORD(), _WORD(), _WORD(5), _WORD(5))
row(lax.threefry2x32_p, _threefry, _WORD(3), _WORD(3), _WORD(3), _WORD(3))


def rows_of(primitive: Primitive) -> Iterator[Sample]:
    """The rows of one primitive."""
    return (s for s in ROWS if s.primitive is primitive)
