"""Block-scaled products: operands of few bits, with a scale for each block along the sum.

The formats are those of the OCP Microscaling specification (mxfp8) and of NVIDIA's nvfp4.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.custom_derivatives import custom_vjp
from lamina.numpy.promotion import Array, ArrayLike, DTypeLike

_F32 = np.dtype(np.float32)


@dataclasses.dataclass(eq=False)
class BlockScaleConfig:
    """How an operand is quantised: mode "mxfp8" or "nvfp4", the elements that share a scale, the
    dtypes of elements and scales, and nvfp4's scale of the whole."""

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Array | None
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """The configuration of a format of numbers with a scale for each block, for scaled_dot_general.

    mode          "nvfp4" (blocks of 16) or "mxfp8" (blocks of 32).
    global_scale  of nvfp4: a scalar for the whole operand; None: 1.

    Raises ValueError for another mode.

    >>> lamina.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        whole = jnp.ones((1,), _F32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, whole, False
        )
    if mode == "mxfp8":
        return BlockScaleConfig(
            mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False
        )
    raise ValueError(f"Unsupported mode: {mode}")


def scaled_matmul(
    lhs: Array, rhs: Array, lhs_scales: Array, rhs_scales: Array,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:  # fmt: skip
    """Matrix products of operands times their scales, each of which is shared by a block of
    neighbours along the contracted axis.

    lhs                     of shape (B, M, K), narrow floats.
    rhs                     of shape (B, N, K).
    lhs_scales              of shape (B, M, blocks); K is a multiple of the number of blocks.
    rhs_scales              of shape (B, N, blocks).
    preferred_element_type  the dtype of the result, which has shape (B, M, N).

    Raises ValueError for other shapes.

    >>> lhs, rhs = jnp.ones((1, 1, 4), "float8_e4m3fn"), jnp.ones((1, 1, 4), "float8_e4m3fn")
    >>> scales, ones = jnp.array([[[1.0, 10.0]]]), jnp.ones((1, 1, 2))
    >>> print(lamina.nn.scaled_matmul(lhs, rhs, scales, ones))
    [[[22.]]]
    """
    operands = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(x.ndim != 3 for x in operands):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    a, b, a_scales, b_scales = operands
    if (a.shape[0], a.shape[2]) != (b.shape[0], b.shape[2]):
        raise ValueError(
            "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) "
            f"dimensions, but got shapes {a.shape} and {b.shape}"
        )
    if (a_scales.shape[0], a_scales.shape[2]) != (b_scales.shape[0], b_scales.shape[2]):
        raise ValueError(
            "scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, "
            f"but got shapes {a_scales.shape} and {b_scales.shape}"
        )
    if (a_scales.shape[1], b_scales.shape[1]) != (a.shape[1], b.shape[1]):
        raise ValueError(
            "scaled_matmul requires scales to match non-contract dimensions of inputs, but got "
            f"shapes a: {a.shape}, b: {b.shape}, a_scales: {a_scales.shape}, b_scales: "
            f"{b_scales.shape}"
        )
    return lax.scaled_dot(
        a, b, lhs_scale=a_scales, rhs_scale=b_scales, dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=np.dtype(preferred_element_type),
    )  # fmt: skip


def scaled_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None, implementation: str | None = None,
) -> Array:  # fmt: skip
    """lax.dot_general of operands that are quantised in blocks first; in its derivative the
    cotangent is quantised, too.

    lhs, rhs                arrays of floats.
    dimension_numbers       those of lax.dot_general.
    preferred_element_type  the dtype of the result: float32, bfloat16 or float16.
    configs                 of get_scaled_dot_general_config, for lhs, rhs and the cotangent; None:
                            nothing is quantised.
    implementation          without effect.

    With configs raises TypeError for another preferred_element_type and ValueError where the size
    that is summed over is no multiple of a block.

    >>> config = lamina.nn.get_scaled_dot_general_config("mxfp8")
    >>> x, numbers = jnp.ones((1, 32)), (((1,), (1,)), ((), ()))
    >>> print(lamina.nn.scaled_dot_general(x, x, numbers, configs=[config] * 3))
    [[32.]]
    """
    if implementation is not None:
        warnings.warn("Backend selector, now ignored. The system chooses the backend "
                      "automatically.", DeprecationWarning, stacklevel=2)  # fmt: skip
    to = np.dtype(preferred_element_type)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=to)
    if to not in (_F32, dtypes.bfloat16, np.float16):
        raise TypeError(
            f"Only support preferred_element_type in (f32, bf16, f16), but got {to.name}"
        )
    (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
    a, a_kept = _as_matrices(jnp.asarray(lhs), a_sum, a_batch)
    b, b_kept = _as_matrices(jnp.asarray(rhs), b_sum, b_batch)
    batch = tuple(np.shape(lhs)[i] for i in a_batch)

    def product(a: Array, b: Array) -> Array:
        return _quantised_product(tuple(configs), to, a, b)

    rule = custom_vjp(product)
    rule.defvjp(
        lambda a, b: (product(a, b), (a, b)),
        functools.partial(_cotangents, tuple(configs), to),
    )
    return jnp.reshape(rule(a, b), (*batch, *a_kept, *b_kept))


def _as_matrices(
    x: Array, contracting: Sequence[int], batch: Sequence[int]
) -> tuple[Array, tuple[int, ...]]:
    """x as (batch, kept, summed), and the sizes of the kept axes."""
    kept = [i for i in range(x.ndim) if i not in contracting and i not in batch]
    sizes = [math.prod(x.shape[i] for i in axes) for axes in (batch, kept, contracting)]
    moved = jnp.transpose(x, (*batch, *kept, *contracting))
    return jnp.reshape(moved, sizes), tuple(x.shape[i] for i in kept)


def _quantised_product(
    configs: tuple[BlockScaleConfig, ...], to: np.dtype, a: Array, b: Array
) -> Array:
    (a_small, a_scales), (b_small, b_scales) = map(_quantise, (a, b), configs[:2])
    if configs[0].mode != "nvfp4":
        return scaled_matmul(a_small, b_small, a_scales, b_scales, to)
    whole = _whole(configs[0]) * _whole(configs[1])
    return (scaled_matmul(a_small, b_small, a_scales, b_scales, _F32) * whole).astype(to)


def _whole(config: BlockScaleConfig) -> Any:
    return np.float32(1) if config.global_scale is None else config.global_scale


def _quantise(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """x in few bits, and its scales."""
    if x.shape[-1] % config.block_size or not x.shape[-1]:
        raise ValueError(
            f"scaled_dot_general: the summed size {x.shape[-1]} is not a multiple of "
            f"{config.mode}'s block size {config.block_size}"
        )
    blocks = jnp.reshape(x, (*x.shape[:-1], -1, config.block_size))
    greatest = np.asarray(dtypes.finfo(config.data_type).max).astype(x.dtype)
    if config.mode == "nvfp4":
        blocks = blocks / _whole(config)
    scales = jnp.max(jnp.abs(blocks), -1, keepdims=True) / greatest
    if config.mode == "nvfp4":
        most = np.asarray(dtypes.finfo(config.scale_type).max).astype(x.dtype)
        # The barrier keeps the rounding to few bits.
        small = lax.optimization_barrier(jnp.clip(scales, 0, most).astype(config.scale_type))
        scaled = blocks / small.astype(_F32)
    else:
        exponents = _exponents_up(scales)
        small = lax.bitcast_convert_type(exponents, config.scale_type)
        scaled = blocks / _power(exponents, x.dtype)
    out = jnp.clip(scaled, -greatest, greatest).astype(config.data_type)
    return jnp.reshape(out, x.shape), jnp.reshape(small, small.shape[:-1])


def _exponents_up(x: Array) -> Array:
    """The biased exponents, uint8, of the least powers of two not below x."""
    word = lax.bitcast_convert_type(x.astype(_F32), np.uint32)
    exponent, fraction = word >> 23, word & 0x7FFFFF
    up = (fraction > 0) & (exponent != 0xFE) & ~((exponent == 0) & (fraction <= 0x400000))
    return jnp.where(up, exponent + 1, exponent).astype(np.uint8)


def _power(exponents: Array, dtype: np.dtype) -> Array:
    """2 to the biased exponents; where the dtype has no such number, its least power that JAX
    takes."""
    power = lax.bitcast_convert_type(exponents.astype(np.uint32) << 23, _F32)
    least = np.float32(2.0**-15 if dtype == np.float16 else 2.0**-127)
    return jnp.where(exponents == 0, least, power).astype(dtype)


def _cotangents(
    configs: tuple[BlockScaleConfig, ...], to: np.dtype, operands: tuple[Array, Array], ct: Array
) -> tuple[Array, Array]:
    a, b = operands
    swapped = jnp.swapaxes(ct, 1, 2)
    out = []
    for g, other, config, own in ((ct, b, configs[1], a), (swapped, a, configs[0], b)):
        if configs[2].mode == "nvfp4":
            made = jnp.matmul(g, other, preferred_element_type=to)
        else:
            pair = (configs[2], config)
            made = _quantised_product(pair, to, g, jnp.swapaxes(other, 1, 2))
        out.append(made.astype(own.dtype))
    if configs[2].mode == "nvfp4":  # what was clipped has no derivative
        for i, (own, config) in enumerate(zip(operands, configs, strict=False)):
            ranges = [float(dtypes.finfo(t).max) for t in (config.data_type, config.scale_type)]
            inside = jnp.abs(own) <= _whole(config) * math.prod(ranges)
            out[i] = jnp.where(inside, out[i], jnp.zeros_like(out[i]))
    return out[0], out[1]
