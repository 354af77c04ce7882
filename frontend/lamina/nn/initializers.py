"""Initializers: functions of (key, shape, dtype) that give the first values of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lamina import lax, random
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import Array, ArrayLike, DTypeLike

__all__ = [
    "Axes",
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "zeros",
]


class Initializer(Protocol):
    """What initializers are."""

    def __call__(self, key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array: ...


@takes_out_sharding
def zeros(key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """The initializer that gives zeros.

    key    a random key, not looked at.
    shape  of the result.
    dtype  of the result; None: float32, or float64 with enable_x64.

    >>> print(lamina.nn.initializers.zeros(lamina.random.key(0), (2,)))
    [0. 0.]
    """
    return jnp.zeros(shape, dtype)


@takes_out_sharding
def ones(key: Any, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """The initializer that gives ones.

    key    a random key, not looked at.
    shape  of the result.
    dtype  of the result; None: float32, or float64 with enable_x64.

    >>> print(lamina.nn.initializers.ones(lamina.random.key(0), (2,)))
    [1. 1.]
    """
    return jnp.ones(shape, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that repeats a value.

    value  a number, or an array that broadcasts to the shape.
    dtype  of results that are asked for without one; None: float32, or float64 with enable_x64.

    >>> init = lamina.nn.initializers.constant(0.5)
    >>> print(init(lamina.random.key(0), (3,)))
    [0.5 0.5 0.5]
    """

    @takes_out_sharding
    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        return jnp.full(shape, value, _float(dtype))

    return init


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with values uniform in [0, scale).

    scale  the upper bound.
    dtype  of results that are asked for without one; None: float32, or float64 with enable_x64.

    >>> values = lamina.nn.initializers.uniform(3.0)(lamina.random.key(0), (1000,))
    >>> print(values.min() >= 0, values.max() < 3, values.mean().round(1))
    True True 1.5
    """

    @takes_out_sharding
    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        return random.uniform(key, shape, to) * jnp.asarray(scale, to)

    return init


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with normal values of mean 0.

    stddev  their standard deviation.
    dtype   of results that are asked for without one, real or complex; None: float32, or float64
            with enable_x64.

    >>> values = lamina.nn.initializers.normal(2.0)(lamina.random.key(0), (1000,))
    >>> print(values.std().round())
    2.0
    """

    @takes_out_sharding
    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        return random.normal(key, shape, to) * jnp.asarray(stddev, to)

    return init


def truncated_normal(stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0,
                     upper: float = 2.0) -> Initializer:  # fmt: skip
    """An initializer with standard normal values cut off at two bounds and then scaled.

    stddev        the factor; cutting off makes the standard deviation smaller than this.
    dtype         of results that are asked for without one; None: float32, or float64 with
                  enable_x64.
    lower, upper  the bounds, before values are scaled.

    >>> values = lamina.nn.initializers.truncated_normal(0.5)(lamina.random.key(0), (1000,))
    >>> print(abs(values).max() <= 1)
    True
    """

    @takes_out_sharding
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
    if in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with "
            "default in_axis. Must be at least 2D or specify in_axis explicitly."
        )

    def size(axes: Axes) -> int:
        return math.prod(shape[i] for i in ([axes] if isinstance(axes, int) else axes))

    inputs, outputs, batch = size(in_axis), size(out_axis), size(batch_axis)
    weights = inputs * outputs * batch
    receptive = math.prod(shape) / weights if weights else 0
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
    """An initializer whose variance is scale / n, which keeps the size of activations or gradients
    from layer to layer. He, Glorot and LeCun initializers are such.

    scale         a positive number.
    mode          what n is: the number of inputs ("fan_in"), of outputs ("fan_out"), their mean
                  ("fan_avg") or geometric mean ("fan_geo_avg").
    distribution  "truncated_normal", "normal" or "uniform".
    in_axis       the axis (or axes) of the weight that goes over inputs.
    out_axis      the one that goes over outputs.
    batch_axis    axes along which weights lie side by side; all others are a window's, and count as
                  inputs and as outputs.
    dtype         of results that are asked for without one, real or complex; None: float32, or
                  float64 with enable_x64.

    The initializer raises ValueError for another mode or distribution and for shapes of fewer than
    two dimensions.

    >>> init = lamina.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> print(init(lamina.random.key(0), (50, 200)).std().round(1))
    0.2
    """

    @takes_out_sharding
    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Array:
        to = _float(dtype)
        fan_in, fan_out = _fans(tuple(shape), in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                "fan_geo_avg": math.sqrt(fan_in * fan_out)}  # fmt: skip
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.asarray(scale / fans[mode] if fans[mode] else 0, to)
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
    """An initializer with uniform values of variance 2 / (inputs + outputs) (Glorot & Bengio,
    2010): for layers with activations that are linear near 0, such as tanh.

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.glorot_uniform()(lamina.random.key(0), (50, 150))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with truncated normal values of variance 2 / (inputs + outputs) (Glorot &
    Bengio, 2010): for layers with activations that are linear near 0, such as tanh.

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.glorot_normal()(lamina.random.key(0), (50, 150))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                  dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with uniform values of variance 1 / inputs (LeCun et al., 1998, "Efficient
    backprop").

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.lecun_uniform()(lamina.random.key(0), (100, 50))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
                 dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with truncated normal values of variance 1 / inputs (LeCun et al., 1998,
    "Efficient backprop").

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.lecun_normal()(lamina.random.key(0), (100, 50))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
               dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with uniform values of variance 2 / inputs (He et al., 2015, "Delving deep
    into rectifiers"): for layers with ReLU.

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.he_uniform()(lamina.random.key(0), (200, 50))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
              dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with truncated normal values of variance 2 / inputs (He et al., 2015, "Delving
    deep into rectifiers"): for layers with ReLU.

    in_axis, out_axis, batch_axis  as for variance_scaling.
    dtype                          of results that are asked for without one; None: the default
                                   float.

    >>> values = lamina.nn.initializers.he_normal()(lamina.random.key(0), (200, 50))
    >>> print(values.std().round(1))
    0.1
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1,
               dtype: DTypeLike | None = None) -> Initializer:  # fmt: skip
    """An initializer with random orthogonal matrices times a scale: columns are orthonormal (rows,
    where they are fewer).

    scale        the factor.
    column_axis  the axis that goes over columns; all others together go over rows.
    dtype        of results that are asked for without one; None: the default float.

    The initializer raises ValueError for shapes of fewer than two dimensions.

    >>> q = lamina.nn.initializers.orthogonal()(lamina.random.key(0), (3, 3))
    >>> print(jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-5))
    True
    """

    @takes_out_sharding
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
    """An initializer with convolution kernels that are an orthogonal matrix at the centre and zero
    elsewhere (Xiao et al., 2018, arXiv:1806.05393).

    scale        the factor.
    column_axis  as for orthogonal.
    dtype        of results that are asked for without one; None: the default float.

    The initializer takes shapes (*window, inputs, outputs) of 3 to 5 dimensions and raises
    ValueError for others and where there are more inputs than outputs.

    >>> kernel = lamina.nn.initializers.delta_orthogonal()(lamina.random.key(0), (3, 2, 2))
    >>> print(jnp.any(kernel != 0, axis=(1, 2)))
    [False  True False]
    """

    @takes_out_sharding
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
