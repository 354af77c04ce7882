"""What `stablehlo-fold` computes with: StableHLO ops on NumPy arrays, with XLA's values where
NumPy's differ or are undefined."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.dialects.types import dtype_of, is_float, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import ints, reducer_of

Array = Any
Evaluate = Callable[..., Any]
"""(op, *operand arrays) -> array, or None when it can't."""


def run(evaluate: Evaluate, op: ir.Operation, arrays: list[Array]) -> Array | None:
    """The op's value in its own dtype; None when it can't be computed here."""
    dtype = dtype_of(op.result.type)
    try:
        with np.errstate(all="ignore"):
            value = evaluate(op, *arrays)
    except TypeError:  # NumPy has no such loop for a narrow dtype
        return None
    return None if value is None else np.asarray(value).astype(dtype, copy=False)


def _plain(function: Callable[..., Array]) -> Evaluate:
    return lambda op, *arrays: function(*arrays)


def _in_double(function: Callable[..., Array]) -> Evaluate:
    """A function of reals computed in f64, so that rounding to the dtype happens once."""

    def evaluate(op: ir.Operation, *arrays: Array) -> Array | None:
        if not all(is_float(a.dtype) for a in arrays):
            return None
        return function(*(a.astype(np.float64) for a in arrays))

    return evaluate


def _add(op: ir.Operation, x: Array, y: Array) -> Array:
    return x | y if x.dtype == np.bool_ else x + y


def _multiply(op: ir.Operation, x: Array, y: Array) -> Array:
    return x & y if x.dtype == np.bool_ else x * y


def _divide(op: ir.Operation, x: Array, y: Array) -> Array | None:
    if is_float(x.dtype) or x.dtype.kind == "c":
        return x / y if x.dtype.kind != "c" else None  # NumPy's complex division rounds otherwise
    return _integer_division(x, y)[0]


def _remainder(op: ir.Operation, x: Array, y: Array) -> Array | None:
    if is_float(x.dtype):
        return np.fmod(x, y)
    return _integer_division(x, y)[1]


def _integer_division(x: Array, y: Array) -> tuple[Array, Array]:
    """Truncated; by zero all ones with remainder x; the least by -1 is itself, remainder 0."""
    dtype = x.dtype
    wide = [[int(v) for v in np.broadcast_to(a, np.broadcast_shapes(x.shape, y.shape)).reshape(-1)]
            for a in (x, y)]  # fmt: skip
    quotients, remainders = [], []
    for a, b in zip(*wide):
        quotient = -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        quotients.append(quotient)
        remainders.append(a if b == 0 else a - quotient * b)
    return _wrapped(quotients, dtype, x.shape), _wrapped(remainders, dtype, x.shape)


def _wrapped(values: list[int], dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    """Integers of any size taken modulo the dtype's range."""
    bits = _bits(dtype)
    low = [v & ((1 << bits) - 1) for v in values]
    if not dtype.name.startswith("u"):
        low = [v - (1 << bits) if v >> (bits - 1) else v for v in low]
    return np.array(low, dtype=object).astype(dtype).reshape(shape)


def _bits(dtype: np.dtype) -> int:
    return int(dtype.name.removeprefix("u").removeprefix("int"))


def _shift(kind: str) -> Evaluate:
    def evaluate(op: ir.Operation, x: Array, y: Array) -> Array:
        """By a width or more, or a negative number: 0, or copies of the sign."""
        bits, dtype = _bits(x.dtype), x.dtype
        out = []
        for a, s in zip((int(v) for v in x.reshape(-1)), (int(v) for v in y.reshape(-1))):
            long = s < 0 or s >= bits
            if kind == "left":
                out.append(0 if long else a << s)
            elif kind == "logical":
                out.append(0 if long else (a & ((1 << bits) - 1)) >> s)
            else:
                signed = a - (1 << bits) if a >> (bits - 1) == 1 else a
                out.append(signed >> (bits - 1 if long else s))
        return _wrapped(out, dtype, x.shape)

    return evaluate


def _extreme(function: Callable[..., Array]) -> Evaluate:
    """Maximum or minimum; NaN wins. Complex numbers are ordered otherwise than NumPy's."""
    return lambda op, x, y: None if x.dtype.kind == "c" else function(x, y)


def _power(op: ir.Operation, x: Array, y: Array) -> Array | None:
    if is_float(x.dtype):
        return np.power(x.astype(np.float64), y.astype(np.float64))
    return None  # negative exponents of integers: left to the kernels


def _sign(op: ir.Operation, x: Array) -> Array | None:
    if x.dtype.kind == "c":
        return None
    return (
        np.where(np.isnan(x), x, np.copysign(np.sign(x), x)) if is_float(x.dtype) else np.sign(x)
    )


def _round_half_away(op: ir.Operation, x: Array) -> Array:
    wide = x.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide)) + (np.abs(wide) % 1 >= 0.5), wide)


def _is_finite(op: ir.Operation, x: Array) -> Array:
    return np.isfinite(x.astype(np.float64))


def _popcnt(op: ir.Operation, x: Array) -> Array:
    mask = (1 << _bits(x.dtype)) - 1
    return _wrapped([(int(v) & mask).bit_count() for v in x.reshape(-1)], x.dtype, x.shape)


def _count_leading_zeros(op: ir.Operation, x: Array) -> Array:
    bits = _bits(x.dtype)
    mask = (1 << bits) - 1
    out = [bits - (int(v) & mask).bit_length() for v in x.reshape(-1)]
    return _wrapped(out, x.dtype, x.shape)


def _not(op: ir.Operation, x: Array) -> Array:
    return np.logical_not(x) if x.dtype == np.bool_ else np.invert(x)


def _negate(op: ir.Operation, x: Array) -> Array:
    return np.negative(x)


def _convert(op: ir.Operation, x: Array) -> Array:
    target = dtype_of(op.result.type)
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    if target == np.bool_:
        return x != 0
    if is_float(x.dtype) and not is_float(target) and target.kind != "c":
        return _saturated(x.astype(np.float64), target)
    if x.dtype.kind in "iu" and not is_float(target) and target.kind in "iu":
        return x.astype(target)
    if not is_float(x.dtype) and x.dtype.kind != "c" and x.dtype != np.bool_:
        if not is_float(target) and target.kind != "c":
            return _wrapped([int(v) for v in x.reshape(-1)], target, x.shape)
    return x.astype(target)


def _saturated(x: Array, target: np.dtype) -> Array:
    """Float to integer: towards zero, kept in range, NaN is 0."""
    bits = _bits(target)
    unsigned = target.name.startswith("u")
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def one(v: float) -> int:
        if v != v:
            return 0
        return low if v <= low else high if v >= high else int(v)

    return _wrapped([one(float(v)) for v in x.reshape(-1)], target, x.shape)


_COMPARE = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _compare(op: ir.Operation, x: Array, y: Array) -> Array | None:
    kind = op.attributes["compare_type"] if "compare_type" in op.attributes else None
    if kind is not None and stablehlo_ext.ComparisonTypeAttr(kind).value == "TOTALORDER":
        return None
    direction = stablehlo_ext.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    if x.dtype.kind == "c" and direction not in ("EQ", "NE"):
        return None
    return _COMPARE[direction](x, y)


def _select(op: ir.Operation, p: Array, x: Array, y: Array) -> Array:
    return np.where(p, x, y)


def _clamp(op: ir.Operation, low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


# Movement


def _broadcast(op: ir.Operation, x: Array) -> Array:
    shape = shape_of(op.result.type)
    aligned = [1] * len(shape)
    order = ints(op, "broadcast_dimensions")
    for dim, size in zip(order, x.shape):
        aligned[dim] = size
    x = x.transpose(sorted(range(x.ndim), key=order.__getitem__))
    return np.broadcast_to(x.reshape(aligned), shape)


def _reshape(op: ir.Operation, x: Array) -> Array:
    return x.reshape(shape_of(op.result.type))


def _transpose(op: ir.Operation, x: Array) -> Array:
    return x.transpose(ints(op, "permutation"))


def _slice(op: ir.Operation, x: Array) -> Array:
    start, limit, strides = (ints(op, n) for n in ("start_indices", "limit_indices", "strides"))
    return x[tuple(slice(s, e, t) for s, e, t in zip(start, limit, strides))]


def _reverse(op: ir.Operation, x: Array) -> Array:
    return np.flip(x, tuple(ints(op, "dimensions")))


def _concatenate(op: ir.Operation, *xs: Array) -> Array:
    return np.concatenate(xs, op.attributes["dimension"].value)


def _pad(op: ir.Operation, x: Array, value: Array) -> Array:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (ints(op, name) for name in names)
    spread = [max(n + max(n - 1, 0) * i, 0) for n, i in zip(x.shape, interior)]
    whole = [s + max(lo, 0) + max(hi, 0) for s, lo, hi in zip(spread, low, high)]
    out = np.full(whole, value, dtype=x.dtype)
    inside = tuple(
        slice(max(lo, 0), max(lo, 0) + s, i + 1) for lo, s, i in zip(low, spread, interior)
    )
    out[inside] = x
    return out[tuple(slice(max(-lo, 0), w - max(-hi, 0)) for lo, hi, w in zip(low, high, whole))]


def _iota(op: ir.Operation) -> Array:
    shape = shape_of(op.result.type)
    dim = op.attributes["iota_dimension"].value
    along = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return np.broadcast_to(along, shape)


_REDUCE: dict[str, Callable[..., Array]] = {
    "stablehlo.add": np.add.reduce,
    "stablehlo.multiply": np.multiply.reduce,
    "stablehlo.maximum": np.maximum.reduce,
    "stablehlo.minimum": np.minimum.reduce,
    "stablehlo.and": np.bitwise_and.reduce,
    "stablehlo.or": np.bitwise_or.reduce,
}
_REDUCE_BOOLEANS: dict[str, Callable[..., Array]] = {
    "stablehlo.add": np.logical_or.reduce,
    "stablehlo.multiply": np.logical_and.reduce,
}


def _reduce(op: ir.Operation, x: Array, init: Array) -> Array | None:
    """Only where the order of the operands can't be seen in the result."""
    reducer = reducer_of(op) or ""
    reduce = _REDUCE.get(reducer)
    if reduce is None or x.dtype.kind == "c":
        return None
    if is_float(x.dtype) and reducer in ("stablehlo.add", "stablehlo.multiply"):
        return None
    if x.dtype == np.bool_:
        reduce = _REDUCE_BOOLEANS.get(reducer, reduce)
    axes = tuple(ints(op, "dimensions"))
    return reduce(x, axis=axes, initial=init[()], dtype=x.dtype) if x.size else None


def _ufuncs(**functions: Callable[..., Array]) -> dict[str, Evaluate]:
    return {f"stablehlo.{name.rstrip('_')}": _plain(f) for name, f in functions.items()}


def _doubles(**functions: Callable[..., Array]) -> dict[str, Evaluate]:
    return {f"stablehlo.{name}": _in_double(f) for name, f in functions.items()}


_ELEMENTWISE: dict[str, Evaluate] = {
    **_ufuncs(
        subtract=np.subtract, and_=np.bitwise_and, or_=np.bitwise_or, xor=np.bitwise_xor,
        real=np.real, imag=np.imag, abs=np.abs,
    ),
    **_doubles(
        exponential=np.exp, exponential_minus_one=np.expm1, log=np.log, log_plus_one=np.log1p,
        sine=np.sin, cosine=np.cos, tan=np.tan, tanh=np.tanh, sqrt=np.sqrt, cbrt=np.cbrt,
        rsqrt=lambda x: 1 / np.sqrt(x), logistic=lambda x: 1 / (1 + np.exp(-x)), atan2=np.arctan2,
        floor=np.floor, ceil=np.ceil, round_nearest_even=np.rint,
    ),
    "stablehlo.add": _add,
    "stablehlo.multiply": _multiply,
    "stablehlo.divide": _divide,
    "stablehlo.remainder": _remainder,
    "stablehlo.maximum": _extreme(np.maximum),
    "stablehlo.minimum": _extreme(np.minimum),
    "stablehlo.power": _power,
    "stablehlo.negate": _negate,
    "stablehlo.sign": _sign,
    "stablehlo.not": _not,
    "stablehlo.round_nearest_afz": _round_half_away,
    "stablehlo.is_finite": _is_finite,
    "stablehlo.popcnt": _popcnt,
    "stablehlo.count_leading_zeros": _count_leading_zeros,
    "stablehlo.shift_left": _shift("left"),
    "stablehlo.shift_right_logical": _shift("logical"),
    "stablehlo.shift_right_arithmetic": _shift("arithmetic"),
    "stablehlo.convert": _convert,
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
}  # fmt: skip

_MOVEMENT: dict[str, Evaluate] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.reverse": _reverse,
}

EVALUATE: dict[str, Evaluate] = {
    **_ELEMENTWISE,
    **_MOVEMENT,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.pad": _pad,
    "stablehlo.iota": _iota,
    "stablehlo.reduce": _reduce,
}
"""How to compute each op that folds, by name."""

ONLY_MOVES = frozenset(_MOVEMENT)
"""Ops that give a constant of one repeated element the same element."""
SPLAT_TO_SPLAT = frozenset(_ELEMENTWISE) | ONLY_MOVES
"""Ops that give one repeated element when all operands have one."""
