"""Neural networks out of pairs of functions.

A layer is a pair (init, apply): `init(key, input_shape)` gives the shape of the output and the
parameters, `apply(params, inputs, rng=None)` the output. Shapes include the batch's axis, of
whatever size. Combinators (`serial`, `parallel`, `shape_dependent`) make layers of layers.

    init, apply = stax.serial(stax.Dense(128), stax.Relu, stax.Dense(10), stax.LogSoftmax)
    output_shape, params = init(jax.random.key(0), (-1, 784))
    scores = apply(params, images)

Names in CamelCase are layers, or make one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax, random
from lamina import numpy as jnp
from lamina.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from lamina.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "logsoftmax",
    "parallel", "randn", "serial", "shape_dependent",
]  # fmt: skip

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax

Layer = tuple[Callable[..., Any], Callable[..., Any]]
Shape = tuple[int, ...]
Initializer = Callable[..., Any]


_SMALL = normal(1e-6)
_GLOROT_NORMAL, _NORMAL = glorot_normal(), normal()


def Dense(
    out_dim: int, W_init: Initializer = _GLOROT_NORMAL, b_init: Initializer = _NORMAL
) -> Layer:
    """The layer inputs @ W + b, whose last axis has another size. A layer is (init, apply):
    init(key, input_shape) gives (output_shape, parameters), apply(parameters, inputs) the outputs.

    out_dim  the size.
    W_init   initializers of W
    b_init   and of b. Parameters: (W, b).

    >>> init, apply = lamina.example_libraries.stax.Dense(4)
    >>> shape, parameters = init(lamina.random.key(0), (-1, 3))
    >>> shape, apply(parameters, jnp.ones((2, 3))).shape
    ((-1, 4), (2, 4))
    """

    def init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
        for_weights, for_bias = random.split(key)
        weights = W_init(for_weights, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(for_bias, (out_dim,)))

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init, apply


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    inputs_as, kernel_as, output_as = dimension_numbers
    steps = tuple(strides) if strides else (1,) * len(filter_shape)
    init_weights = W_init or glorot_normal(kernel_as.index("I"), kernel_as.index("O"))

    def apply_to(inputs: Any, weights: Any) -> Any:
        return convolve(inputs, weights, steps, padding, dimension_numbers=dimension_numbers)

    def init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
        spatial = dict(zip((c for c in kernel_as if c not in "IO"), filter_shape, strict=True))
        sizes = spatial | {"O": out_chan, "I": input_shape[inputs_as.index("C")]}
        for_weights, for_bias = random.split(key)
        weights = init_weights(for_weights, tuple(sizes[c] for c in kernel_as))
        bias = b_init(for_bias, tuple(out_chan if c == "C" else 1 for c in output_as))
        return _output_shape(lambda x: apply_to(x, weights), input_shape, inputs_as, output_as), (
            weights,
            bias,
        )

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        weights, bias = params
        return apply_to(inputs, weights) + bias

    return init, apply


def _output_shape(
    fun: Callable[[Any], Any], shape: Shape, inputs_as: str, output_as: str
) -> Shape:
    """The shape of fun's result, where the size of the batch, also -1, is taken over as it is."""
    from lamina.api import eval_shape
    from lamina.shape_dtype import ShapeDtypeStruct

    batch = inputs_as.index("N")
    given = (*shape[:batch], 1, *shape[batch + 1 :])
    out = list(eval_shape(fun, ShapeDtypeStruct(given, jnp.float32)).shape)
    out[output_as.index("N")] = shape[batch]
    return tuple(out)


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = _SMALL,
) -> Layer:
    """The layer of a convolution plus a bias for each channel, in any layout.

    dimension_numbers  axes of inputs, kernel and outputs, such as ("NHWC", "HWIO", "NHWC").
    out_chan           the number of filters,
    filter_shape       and their shape in space.
    strides            an int for each axis of space; None: ones.
    padding            "SAME", "VALID" or pairs.
    W_init             initializers of the kernel
    b_init             and of the bias. Parameters: (kernel, bias).

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> init, apply = lamina.example_libraries.stax.GeneralConv(layout, 5, (3, 3))
    >>> init(lamina.random.key(0), (1, 8, 8, 3))[0]
    (1, 6, 6, 5)
    """
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding,
        W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = _SMALL,
) -> Layer:
    """The layer of a transposed convolution plus a bias for each channel, in any layout.

    dimension_numbers  axes of inputs, kernel and outputs, such as ("NHWC", "HWIO", "NHWC").
    out_chan           the number of filters,
    filter_shape       and their shape in space.
    strides            how far it upsamples along each axis of space; None: ones.
    padding            "SAME", "VALID" or pairs.
    W_init             initializers of the kernel
    b_init             and of the bias. Parameters: (kernel, bias).

    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> init, apply = lamina.example_libraries.stax.GeneralConvTranspose(layout, 5, (2, 2), (2, 2))
    >>> init(lamina.random.key(0), (1, 4, 4, 3))[0]
    (1, 8, 8, 5)
    """
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init,
        b_init,
    )  # fmt: skip


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """The layer of inputs with mean 0 and variance 1 over some axes, times gamma, plus beta, which
    are learnt for each element of the other axes.

    axis        the axes.
    epsilon     what is added to the variance.
    center      whether there is a beta,
    scale       and a gamma.
    beta_init   initializers of beta
    gamma_init  and of gamma. Parameters: (beta, gamma), each () where it is switched off.

    >>> init, apply = lamina.example_libraries.stax.BatchNorm(axis=0)
    >>> _, parameters = init(lamina.random.key(0), (2, 1))
    >>> print(apply(parameters, jnp.array([[1.0], [3.0]])).round(3))
    [[-1.]
     [ 1.]]
    """
    over = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
        shape = tuple(size for i, size in enumerate(input_shape) if i not in over)
        for_beta, for_gamma = random.split(key)
        beta = beta_init(for_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(for_gamma, shape) if scale else ())

    def apply(params: Any, x: Any, **_: Any) -> Any:
        beta, gamma = params
        normed = standardize(x, over, epsilon=epsilon)
        missing = tuple(i for i in range(normed.ndim) if i in over)
        if scale:
            normed = jnp.expand_dims(gamma, missing) * normed
        return normed + jnp.expand_dims(beta, missing) if center else normed

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer fun(inputs, **fun_kwargs), without parameters.

    fun         an elementwise function,
    fun_kwargs  and arguments of it by name.

    >>> init, apply = lamina.example_libraries.stax.elementwise(jnp.clip, max=1.0)
    >>> print(apply((), jnp.array([0.5, 2.0])))
    [0.5 1. ]
    """
    return _keeps_shape, lambda params, inputs, **_: fun(inputs, **fun_kwargs)


def _keeps_shape(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
    return input_shape, ()


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _pooling(
    reduce: Callable[..., Any],
    start: float,
    mean: bool,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    spec: str | None,
) -> Layer:
    rank = len(window_shape) + 2
    spec = spec or "N" + "?" * len(window_shape) + "C"
    kept = sorted((spec.index("N"), spec.index("C")))

    def with_ones(sizes: Sequence[int]) -> Shape:
        spatial = iter(sizes)
        return tuple(1 if i in kept else next(spatial) for i in range(rank))

    window = with_ones(window_shape)
    steps = with_ones(strides or (1,) * len(window_shape))

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, np.asarray(start, x.dtype), reduce, window, steps, padding)

    def init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return _output_shape(pool, input_shape, spec, spec), ()

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        out = pool(inputs)
        if not mean:
            return out
        sizes = tuple(1 if i in kept else size for i, size in enumerate(inputs.shape))
        return out / pool(jnp.ones(sizes, inputs.dtype))

    return init, apply


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The layer of the greatest element of each window, without parameters.

    window_shape  in space.
    strides       how far the window moves along each axis of space; None: ones.
    padding       "SAME", "VALID" or pairs.
    spec          where the axes N and C are, such as "NHWC"; None: N first and C last.

    >>> init, apply = lamina.example_libraries.stax.MaxPool((2, 2), (2, 2))
    >>> print(apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0])
    [[ 5.  7.]
     [13. 15.]]
    """
    return _pooling(lax.max, -np.inf, False, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The layer of the sum of each window, without parameters.

    window_shape  in space.
    strides       how far the window moves along each axis of space; None: ones.
    padding       "SAME", "VALID" or pairs.
    spec          where the axes N and C are, such as "NHWC"; None: N first and C last.

    >>> init, apply = lamina.example_libraries.stax.SumPool((2, 2), (2, 2))
    >>> print(apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0])
    [[10. 18.]
     [42. 50.]]
    """
    return _pooling(lax.add, 0.0, False, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The layer of the mean of what is in each window, without what is padded, and without
    parameters.

    window_shape  in space.
    strides       how far the window moves along each axis of space; None: ones.
    padding       "SAME", "VALID" or pairs.
    spec          where the axes N and C are, such as "NHWC"; None: N first and C last.

    >>> init, apply = lamina.example_libraries.stax.AvgPool((2, 2), (2, 2))
    >>> print(apply((), jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0])
    [[ 2.5  4.5]
     [10.5 12.5]]
    """
    return _pooling(lax.add, 0.0, True, window_shape, strides, padding, spec)


def _flatten_init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
    return (input_shape[0], math.prod(input_shape[1:])), ()


Flatten: Layer = (
    _flatten_init,
    lambda params, inputs, **_: jnp.reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num: int) -> Layer:
    """The layer that gives its inputs several times, as a list: what `parallel` takes.

    num  how often.

    >>> init, apply = lamina.example_libraries.stax.FanOut(2)
    >>> apply((), 3.0)
    [3.0, 3.0]
    """
    return (lambda key, shape: ([shape] * num, ())), (lambda params, inputs, **_: [inputs] * num)


FanInSum: Layer = (lambda key, shapes: (shapes[0], ())), (lambda params, inputs, **_: sum(inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """The layer that joins a list of arrays along an axis.

    axis  counted from the end where negative.

    >>> init, apply = lamina.example_libraries.stax.FanInConcat()
    >>> print(apply((), [jnp.ones(1), jnp.zeros(2)]))
    [1. 0. 0.]
    """

    def init(key: Any, shapes: Sequence[Shape]) -> tuple[Shape, Any]:
        out = list(shapes[0])
        out[axis] = sum(shape[axis] for shape in shapes)
        return tuple(out), ()

    return init, lambda params, inputs, **_: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """The layer that keeps each element with a probability, and divides it by this, or makes it 0.

    rate  the probability with which an element is kept.
    mode  "train"; in any other mode inputs stay as they are.

    In mode "train" apply is to be given a key, `rng=`; otherwise it raises ValueError.

    >>> init, apply = lamina.example_libraries.stax.Dropout(0.5)
    >>> outputs = apply((), jnp.ones(100), rng=lamina.random.key(0))
    >>> print(jnp.unique(outputs))
    [0. 2.]
    """

    def apply(params: Any, inputs: Any, rng: Any = None, **_: Any) -> Any:
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: "
                "apply(params, inputs, rng=key), with a key such as random.key(0)"
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _keeps_shape, apply


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers one after the other. Parameters: a list of theirs.

    layers  (init, apply) pairs.

    >>> stax = lamina.example_libraries.stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))
    >>> shape, parameters = init(lamina.random.key(0), (-1, 4))
    >>> shape, apply(parameters, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
    """
    inits, applies = zip(*layers)

    def init(key: Any, input_shape: Shape) -> tuple[Shape, Any]:
        params = []
        for layer_init in inits:
            key, for_layer = random.split(key)
            input_shape, own = layer_init(for_layer, input_shape)
            params.append(own)
        return input_shape, params

    def apply(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Any:
        for layer, own, key in zip(applies, params, _keys(rng, len(layers))):
            inputs = layer(own, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: takes a sequence of inputs, one for each, and gives a list of
    outputs. Parameters: a tuple of theirs.

    layers  (init, apply) pairs.

    >>> stax = lamina.example_libraries.stax
    >>> both = stax.parallel(stax.Tanh, stax.Identity)
    >>> init, apply = stax.serial(stax.FanOut(2), both, stax.FanInSum)
    >>> _, parameters = init(lamina.random.key(0), (2,))
    >>> print(apply(parameters, jnp.array([0.0, 1.0])).round(3))
    [0.    1.762]
    """
    inits, applies = zip(*layers)

    def init(key: Any, input_shape: Sequence[Shape]) -> Any:
        keys = random.split(key, len(layers))
        return zip(*[one(k, shape) for one, k, shape in zip(inits, keys, input_shape)])

    def apply(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Any:
        rows = zip(applies, params, inputs, _keys(rng, len(layers)))
        return [layer(own, x, rng=key, **kwargs) for layer, own, x, key in rows]

    return init, apply


def shape_dependent(make_layer: Callable[[Shape], Layer]) -> Layer:
    """The layer that a function gives for the shape of the inputs.

    make_layer  a function of a shape that gives an (init, apply) pair.

    >>> stax = lamina.example_libraries.stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1] * 2))
    >>> init(lamina.random.key(0), (-1, 3))[0]
    (-1, 6)
    """
    return (
        lambda key, input_shape: make_layer(input_shape)[0](key, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
