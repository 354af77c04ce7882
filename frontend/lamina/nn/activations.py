"""Activation functions, elementwise but for glu."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.control_flow import custom_jvp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, check_arraylike, promote_args_inexact

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _inexact(name: str, x: ArrayLike) -> Array:
    return jnp.asarray(promote_args_inexact(name, x)[0])


def _array(name: str, x: ArrayLike) -> Array:
    check_arraylike(name, x)
    return jnp.asarray(x)


@custom_jvp
def relu(x: ArrayLike) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.relu(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0. 0. 8.]
    """
    return jnp.maximum(_array("relu", x), 0)


relu.defjvps(lambda g, ans, x: jnp.where(jnp.greater(x, 0), g, lax.full_like(g, 0)))


@custom_jvp
def _relu6(x: Any) -> Array:
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


def _inside(g: Any, ans: Any, x: Any) -> Array:
    inside = jnp.logical_and(jnp.greater(x, 0), jnp.less(x, 6))
    return jnp.where(inside, g, lax.full_like(g, 0))


_relu6.defjvps(_inside)


@compiled
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and 6 is 0.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.relu6(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0. 0. 6.]
    """
    return _relu6(x)


def identity(x: ArrayLike) -> Array:
    """x.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.identity(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-4.  0.  8.]
    """
    check_arraylike("identity", x)
    return jnp.asarray(x)


tanh = jnp.tanh


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.sigmoid(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.018 0.5   1.   ]
    """
    return lax.logistic(_inexact("sigmoid", x))


@compiled
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)) without overflow on the way.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.softplus(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.018 0.693 8.   ]
    """
    return jnp.logaddexp(_inexact("softplus", x), 0.0)


@compiled
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, (x + 1)**2 / 4 between.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.sparse_plus(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.   0.25 8.  ]
    """
    x = _inexact("sparse_plus", x)
    return jnp.where(x <= -1, 0.0, jnp.where(x >= 1, x, (x + 1.0) ** 2 / 4))


@compiled
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, 1 from 1 on, linear between.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.sparse_sigmoid(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.  0.5 1. ]
    """
    return 0.5 * jnp.clip(_inexact("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@compiled
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1).

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.soft_sign(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-0.8    0.     0.889]
    """
    x = _inexact("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@compiled
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x).

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.silu(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-0.072  0.     7.997]
    """
    x = _inexact("silu", x)
    return x * lax.logistic(x)


swish = silu


@compiled
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x)).

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.mish(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-0.073  0.     8.   ]
    """
    x = _inexact("mish", x)
    return x * jnp.tanh(softplus(x))


@compiled
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)) without overflow on the way.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.log_sigmoid(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-4.018 -0.693 -0.   ]
    """
    return -softplus(-_inexact("log_sigmoid", x))


@compiled
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha * (exp(x) - 1).

    x      numbers of any shape; integers become floats.
    alpha  minus the limit below.

    >>> print(lamina.nn.elu(jnp.array([-1.0, 0.0, 2.0])).round(3))
    [-0.632  0.     2.   ]
    """
    x = _array("elu", x)
    # expm1 sees no large x: an overflow there would make the gradient NaN.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@compiled
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1).

    x      numbers of any shape; integers become floats.
    alpha  minus the limit below.

    >>> print(lamina.nn.celu(jnp.array([-1.0, 0.0, 2.0])).round(3))
    [-0.632  0.     2.   ]
    """
    x = _inexact("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@compiled
def selu(x: ArrayLike) -> Array:
    """elu scaled so that activations keep mean 0 and variance 1.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.selu(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-1.726  0.     8.406]
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@compiled
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where not negative, else negative_slope * x.

    x               numbers of any shape; integers become floats.
    negative_slope  below 0.

    >>> print(lamina.nn.leaky_relu(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-0.04  0.    8.  ]
    """
    x = _array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@compiled
def hard_tanh(x: ArrayLike) -> Array:
    """x kept between -1 and 1.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.hard_tanh(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-1.  0.  1.]
    """
    x = _array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@compiled
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.  0.5 1. ]
    """
    return relu6(_inexact("hard_sigmoid", x) + 3.0) / 6.0


@compiled
def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x).

    x  numbers of any shape; integers become floats.

    >>> print(lamina.nn.hard_silu(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [-0.  0.  8.]
    """
    x = _inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@compiled
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2.

    x  numbers of any shape; integers become floats.
    b  how wide the bend is.

    >>> print(lamina.nn.squareplus(jnp.array([-4.0, 0.0, 8.0])).round(3))
    [0.236 1.    8.123]
    """
    x = _inexact("squareplus", x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the normal distribution function, by default through tanh, else exact.

    x            numbers of any shape; integers become floats.
    approximate  through tanh.

    >>> print(lamina.nn.gelu(jnp.array([-1.0, 0.0, 2.0])).round(3))
    [-0.159  0.     1.955]
    """
    return _gelu(_inexact("gelu", x), approximate=bool(approximate))


@compiled(static=("approximate",))
def _gelu(x: Any, *, approximate: bool) -> Array:
    if approximate:
        slope = np.sqrt(2 / np.pi).astype(x.dtype)
        return x * (0.5 * (1.0 + jnp.tanh(slope * (x + 0.044715 * (x**3)))))
    return 0.5 * x * lax.erfc(-x * np.sqrt(0.5).astype(x.dtype))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second; the size must be even.

    x     an array of floats.
    axis  which one.

    >>> lamina.nn.glu(jnp.array([2.0, 4.0, 0.0, 0.0])).tolist()
    [1.0, 2.0]
    """
    x = _inexact("glu", x)
    if x.shape[axis] % 2:
        raise ValueError(
            f"glu: the size of axis {axis} must be divisible by 2, got shape {x.shape}"
        )
    return _glu(x, axis=axis)


@compiled(static=("axis",))
def _glu(x: Any, *, axis: int) -> Array:
    values, gates = jnp.split(x, 2, axis)
    return values * lax.logistic(gates)
