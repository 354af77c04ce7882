"""Initializers: functions of (key, shape, dtype) that give the first values of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lamina import lax, random
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy.promotion import Array, ArrayLike, DTypeLike


class Initializer(Protocol):
    """What initializers are."""

    def __call__(self, key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array: ...


def zeros(key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """All zeros."""
    return jnp.zeros(shape, dtype)


def ones(key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """All ones."""
    return jnp.ones(shape, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that repeats a value."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        return jnp.full(shape, value, _float(dtype))

    return init


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with values uniform in [0, scale)."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        return random.uniform(key, shape, to) * jnp.asarray(scale, to)

    return init


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with normal values of this standard deviation."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        return random.normal(key, shape, to) * jnp.asarray(stddev, to)

    return init


def truncated_normal(stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0,
                     upper: float = 2.0) -> Initializer:  # fmt: skip
    """An initializer with normal values cut off at lower and upper before they are scaled."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        return random.truncated_normal(key, lower, upper, shape, to) * jnp.asarray(stddev, to)

    return init


def _float(dtype: DTypeLike | None) -> np.dtype:
    return dtypes.canonicalize(float if dtype is None else dtype)


Axes = int | Sequence[int]


def _fans(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """The numbers of inputs and outputs of a weight of this shape."""
    if len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. "
            "Must be at least 2D."
        )

    def size(axes: Axes) -> int:
        return math.prod(shape[i] for i in ([axes] if isinstance(axes, int) else axes))

    inputs, outputs, batch = size(in_axis), size(out_axis), size(batch_axis)
    receptive = math.prod(shape) / inputs / outputs / batch
    return inputs * receptive, outputs * receptive


def _round_zero(
    key: Any, shape: Sequence[int], dtype: np.dtype, radius: Callable[[Array], Array]
) -> Array:
    """Complex numbers of any direction, whose modulus is a function of uniform numbers."""
    of_radius, of_angle = random.split(key)
    real = dtypes.real_dtype(dtype)
    r = radius(random.uniform(of_radius, shape, real))
    angle = 2 * np.pi * random.uniform(of_angle, shape, real)
    return lax.complex(r * jnp.cos(angle), r * jnp.sin(angle))


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer whose variance is scale / n.

    n is the number of inputs ("fan_in"), outputs ("fan_out") or their mean ("fan_avg";
    "fan_geo_avg": geometric). distribution: "truncated_normal", "normal" or "uniform".
    """

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        fan_in, fan_out = _fans(tuple(shape), in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                "fan_geo_avg": math.sqrt(fan_in * fan_out)}  # fmt: skip
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.asarray(scale / fans[mode], to)
        if distribution == "normal":
            return random.normal(key, shape, to) * jnp.sqrt(variance)
        if distribution == "uniform":
            if dtypes.is_complex(to):
                return _round_zero(key, shape, to, lambda u: jnp.sqrt(2 * u)) * jnp.sqrt(variance)
            return random.uniform(key, shape, to, -1) * jnp.sqrt(3 * variance)
        if distribution == "truncated_normal":
            if dtypes.is_complex(to):
                kept = 1 - math.exp(-4)  # of the normal numbers those whose modulus is below 2
                drawn = _round_zero(key, shape, to, lambda u: jnp.sqrt(-jnp.log1p(-kept * u)))
                # The constant is their standard deviation.
                return drawn * (jnp.sqrt(variance) / jnp.asarray(0.95311164380491208, to))
            # The constant is the standard deviation of a normal cut off at -2 and 2.
            stddev = jnp.sqrt(variance) / jnp.asarray(0.87962566103423978, to)
            return random.truncated_normal(key, -2, 2, shape, to) * stddev
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def glorot_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                   dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Uniform with variance 2 / (inputs + outputs)."""
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Truncated normal with variance 2 / (inputs + outputs)."""
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Uniform with variance 1 / inputs."""
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                 dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Truncated normal with variance 1 / inputs."""
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
               dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Uniform with variance 2 / inputs."""
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
              dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Truncated normal with variance 2 / inputs."""
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1,
               dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Random orthogonal matrices times scale: columns along column_axis are orthonormal (rows,
    where they are fewer)."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to, shape = _float(dtype), tuple(shape)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, to)
        columns = shape[column_axis]
        drawn = random.orthogonal(key, math.prod(shape) // columns, (), to, columns)
        rest = list(shape)
        del rest[column_axis]
        drawn = jnp.moveaxis(jnp.reshape(drawn, (*rest, columns)), -1, column_axis)
        return jnp.asarray(scale, to) * drawn

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1,
                     dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """Convolution kernels that are an orthogonal matrix at the centre and zero elsewhere (Xiao et
    al., arXiv:1806.05393)."""

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to, shape = _float(dtype), tuple(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        matrix = orthogonal(scale, column_axis, to)(key, shape[-2:])
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, to).at[centre].set(matrix)

    return init
