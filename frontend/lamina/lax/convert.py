"""Changes of type: convert_element_type, bitcast_convert_type, reduce_precision."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    get_aval,
)  # fmt: skip
from lamina.core.array_class import Array
from lamina.core.placed import Operands, Sums, linear_in, no_sums
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis
from lamina.lax.checks import FLOAT
from lamina.lax.elementwise_rules import elementwise

_SCALARS = (bool, int, float, complex)


# ---- user functions ----------------------------------------------------------------------------
def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """The values of operand in another dtype.

    Floats become integers by truncation, saturating, NaN to 0; integers wrap; complex to real drops
    the imaginary part; anything but 0 becomes True.

    operand    a number or array. Python and NumPy scalars are converted at once and stay NumPy
               scalars.
    new_dtype  a dtype or its name; without enable_x64, 64-bit ones stand for 32-bit ones.

    Raises ValueError for keys and TypeError for what is no number or array.

    >>> print(lax.convert_element_type(jnp.array([1.7, -1.7, 1e20]), 'int32'))
    [         1         -1 2147483647]
    """
    return convert(operand, dtypes.canonicalize(new_dtype), False)


def convert(operand: Any, dtype: np.dtype, weak_type: bool) -> Any:
    """convert_element_type to a canonical dtype that may be weak."""
    kind = type(operand)
    have = get_aval(operand).dtype if dtypes.is_key(dtype) or kind not in _SCALARS else dtype
    if have != dtype and (dtypes.is_key(have) or dtypes.is_key(dtype)):
        raise ValueError(f"Cannot convert_element_type from {have.name} to {dtype.name}")
    if (
        kind in _SCALARS
        or isinstance(operand, np.generic)
        or (kind is np.ndarray and not operand.shape)
    ):
        if not weak_type:
            return _scalar(operand, dtype)
    aval = get_aval(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type and kind is not np.ndarray:
        return operand
    if aval.dtype.kind == "c" and dtype.kind not in "cb":
        operand = lax.real(operand)
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type)


def _scalar(value: Any, dtype: np.dtype) -> Any:
    with warnings.catch_warnings():
        # Overflow to infinity and dropped imaginary parts are what was asked for.
        warnings.simplefilter("ignore")
        return np.asarray(value).astype(dtype)[()]


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The bits of operand read as another dtype, in the machine's order (little-endian).

    operand    an array of numbers.
    new_dtype  a narrower one adds a last axis of the parts of each element; a wider one takes the
               last axis away, whose size must be the ratio of the widths.

    Raises ValueError where the last axis has another size; TypeError between booleans and others.

    >>> print(lax.bitcast_convert_type(jnp.float32(1.0), 'uint32') == 0x3F800000)
    True
    >>> print(lax.bitcast_convert_type(jnp.int32(258), 'uint8'))
    [2 1 0 0]
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=dtypes.canonicalize(new_dtype))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """operand rounded, elementwise, to what a float format of fewer bits can hold, in its own
    dtype: ties to even, infinite beyond that format's range.

    operand        an array of floats.
    exponent_bits  of the format, at least 1: 5 for float16, 8 for bfloat16.
    mantissa_bits  of the format, at least 0: 10 for float16, 7 for bfloat16.

    Raises TypeError for other dtypes; ValueError for fewer bits.

    >>> print(lax.reduce_precision(jnp.array([0.1, 1e6]), exponent_bits=5, mantissa_bits=10))
    [0.09997559        inf]
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"[reduce_precision] needs exponent_bits > 0 and mantissa_bits >= 0, got {exponent_bits} "
            f"and {mantissa_bits}"
        )
    return reduce_precision_p.bind(
        operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


def dtype(x: Any) -> np.dtype:
    """The dtype of a value as an array, or that a type or a name stands for.

    x  an array, a number, a dtype, a scalar type or a dtype's name.

    Raises TypeError where x is none of these.

    >>> lax.dtype(1.0), lax.dtype(jnp.ones(2, 'int8')), lax.dtype(int)
    (dtype('float32'), dtype('int8'), dtype('int32'))
    """
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    if isinstance(x, type) and x in (bool, int, float, complex):
        return dtypes.default_dtype(x)
    return dtypes.canonicalize(x) if isinstance(x, type | np.dtype | str) else get_aval(x).dtype


# ---- convert_element_type ----------------------------------------------------------------------
def _convert_abstract_eval(x: ShapedArray, *, new_dtype: np.dtype, weak_type: bool) -> ShapedArray:
    if x.dtype.kind == "c" and new_dtype.kind not in "cb":
        raise TypeError(f"convert_element_type cannot turn {x.str_short()} into "
                        f"{new_dtype.name}: take its real or imaginary part")  # fmt: skip
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_lowering(ctx: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
    aval = ctx.avals_in[0]
    if aval.dtype == new_dtype:
        return x
    if new_dtype.kind == "b":
        return hlo.compare(x, hlo.full(0, aval.shape, aval.dtype), "NE")
    return hlo.convert(x, new_dtype)


def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
    (x,), (g,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    if not dtypes.is_inexact(new_dtype):
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, convert_element_type_p.bind(g, new_dtype=new_dtype, weak_type=weak_type)


def _convert_transpose(ct: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> list[Any]:
    to, weak = x.aval.dtype, x.aval.weak_type
    if dtypes.canonicalize(to) != to:  # of a block with enable_x64: a NumPy scalar would lose it
        return [convert_element_type_p.bind(ct, new_dtype=to, weak_type=weak)]
    return [convert(ct, to, weak)]


def _convert_batching(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
    return convert_element_type_p.bind(*args, **params), dims[0]


def _convert_sums(operands: Operands, *, new_dtype: np.dtype, **_: Any) -> Sums:
    cuts = dtypes.is_inexact(operands.avals[0].dtype) and not dtypes.is_inexact(new_dtype)
    return (no_sums if cuts else linear_in(0))(operands)


convert_element_type_p: Primitive = Primitive(
    "convert_element_type",
    abstract_eval=_convert_abstract_eval,
    lowering=_convert_lowering,
    jvp=_convert_jvp,
    sums=_convert_sums,
    transpose=_convert_transpose,
    batching=_convert_batching,
)


# ---- bitcast_convert_type ----------------------------------------------------------------------
def _bits(dtype: np.dtype) -> int:
    if dtypes.is_integer(dtype) and dtype.name.endswith(("int2", "int4")):
        return int(dtype.name[-1])
    return dtype.itemsize * 8


def _bitcast_abstract_eval(x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
    if "b" in (x.dtype.kind, new_dtype.kind) and x.dtype != new_dtype:
        raise TypeError("bitcast_convert_type does not convert between booleans and other dtypes: "
                        f"got {x.str_short()} and {new_dtype.name}")  # fmt: skip
    if (x.dtype.kind == "c") != (new_dtype.kind == "c"):
        raise TypeError("bitcast_convert_type does not convert between real and complex dtypes: "
                        f"got {x.str_short()} and {new_dtype.name}")  # fmt: skip
    old, new = _bits(x.dtype), _bits(new_dtype)
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if old > new:
        return ShapedArray((*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ValueError(
            f"[bitcast_convert_type] {new_dtype.name} needs a last axis of size {new // old} to "
            f"take its bits from, got {x.str_short()}"
        )
    return ShapedArray(x.shape[:-1], new_dtype)


def _bitcast_lowering(ctx: Any, x: Any, *, new_dtype: np.dtype) -> Any:
    return hlo.bitcast_convert(x, ctx.avals_out[0].shape, new_dtype)


def _bitcast_batching(args: Sequence[Any], dims: Sequence[int], *, new_dtype: np.dtype) -> Any:
    return bitcast_convert_type_p.bind(move_axis(args[0], dims[0], 0), new_dtype=new_dtype), 0


bitcast_convert_type_p: Primitive = Primitive(
    "bitcast_convert_type",
    abstract_eval=_bitcast_abstract_eval,
    lowering=_bitcast_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_bitcast_batching,
)


# ---- reduce_precision --------------------------------------------------------------------------
def _reduce_precision_lowering(ctx: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    return hlo.reduce_precision(x, exponent_bits, mantissa_bits)


reduce_precision_p: Primitive = elementwise(
    "reduce_precision", _reduce_precision_lowering, FLOAT,
    derivatives=[lambda g, ans, x, **params: reduce_precision(g, **params)],
    transpose=lambda ct, x, **params: [reduce_precision(ct, **params)],
    sums=linear_in(0),
)  # fmt: skip
