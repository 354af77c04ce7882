"""Convolutions of arrays that an element-wise op makes: in the convolution's kernel."""

import re

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def array(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * 0.5).astype(dtype)


def reasons(f, *args):
    return re.findall(r'lamina\.reason = "([^"]*)"', lamina.jit(f).lower(*args).compile().as_text("fused"))


def same(f, *args, rtol=1e-5):
    """Whether f gives what it gives when each of its ops is a kernel of its own."""
    with lamina.enable_x64(args[0].dtype == np.float64):
        together = lamina.tree_util.tree_leaves(lamina.jit(f)(*args))
        with lamina.disable_jit():
            apart = lamina.tree_util.tree_leaves(f(*map(jnp.asarray, args)))
    for found, expected in zip(together, apart, strict=True):
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        np.testing.assert_allclose(found, expected, rtol, rtol * np.abs(expected).max())


def made_before(f, *args, ops, kernels=1):
    """Whether f is so many kernels, of which a convolution makes its input by so many ops."""
    with lamina.enable_x64(args[0].dtype == np.float64):
        found = reasons(f, *args)
    assert len(found) == kernels, found
    assert sum(f"convolution with {ops} ops before" in reason for reason in found) == 1, found


def by_hand(x, w):
    """A convolution of one place each, channels last, in f64."""
    return np.asarray(x, np.float64) @ np.asarray(w, np.float64)[0, 0]


def convolve(x, w, layout=NHWC, padding="SAME", step=1, **rest):
    steps = (step,) * (x.ndim - 2)
    return lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=layout, **rest)


def normalised(x, scale, shift):
    return jnp.maximum(x * scale + shift, 0)


SIZES = [(8, 28, 28, 64, 64), (3, 13, 11, 37, 50), (1, 7, 11, 131, 33), (2, 1, 64, 96, 128), (5, 9, 9, 64, 17)]
"""Batch, height, width, channels in and out."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "h", "w", "i", "o"), SIZES)
def test_one_place_each_with_channels_last(n, h, w, i, o, dtype):
    x, k = array(n, h, w, i, dtype=dtype), array(1, 1, i, o, dtype=dtype)
    scale, shift = array(i, dtype=dtype, seed=1), array(i, dtype=dtype, seed=2)

    def f(x, k, scale, shift):
        return convolve(normalised(x, scale, shift), k)

    with lamina.enable_x64(dtype == np.float64):
        found = np.asarray(lamina.jit(f)(x, k, scale, shift))
    expected = by_hand(np.maximum(x.astype(np.float64) * scale + shift, 0), k)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5 * np.abs(expected).max())
    made_before(f, x, k, scale, shift, ops=5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "h", "w", "i", "o"), [(8, 32, 32, 64, 24), (4, 16, 48, 37, 50), (5, 4, 4, 64, 96)])
def test_one_place_each_with_channels_first(n, h, w, i, o, dtype):
    x, k = array(n, i, h, w, dtype=dtype), array(o, i, 1, 1, dtype=dtype)
    scale, shift = array(i, 1, 1, dtype=dtype, seed=1), array(i, 1, 1, dtype=dtype, seed=2)

    def f(x, k, scale, shift):
        return convolve(normalised(x, scale, shift), k, NCHW)

    with lamina.enable_x64(dtype == np.float64):
        found = np.asarray(lamina.jit(f)(x, k, scale, shift))
    made = np.maximum(x.astype(np.float64) * scale + shift, 0)
    expected = np.einsum("nihw,oi->nohw", made, k[:, :, 0, 0].astype(np.float64))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5 * np.abs(expected).max())
    if w % 16 == 0:  # else channels are laid out last
        made_before(f, x, k, scale, shift, ops=5)


def test_costly_ops_are_done_once_for_each_element():
    x, k, padded = array(8, 28, 28, 64), array(1, 1, 64, 64), array(3, 3, 64, 64)
    made_before(lambda x, k: convolve(jnp.tanh(x), k), x, k, ops=1)
    assert len(reasons(lambda x, k: convolve(jnp.abs(jnp.tanh(x)), k), x, padded)) == 2
    same(lambda x, k: convolve(jnp.tanh(x), k), x, k)
    same(lambda x, k: convolve(jnp.abs(jnp.tanh(x)), k), x, padded)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((8, 28, 28, 64), (3, 3, 64, 64), {}),
        ((4, 31, 17, 24), (3, 3, 24, 40), {}),
        ((2, 40, 40, 32), (5, 3, 32, 32), {"padding": ((2, 1), (0, 3))}),
        ((4, 32, 32, 32), (3, 3, 32, 32), {"step": 2}),
        ((4, 32, 32, 32), (3, 3, 32, 32), {"rhs_dilation": (2, 2)}),
        ((2, 40, 40, 64), (3, 3, 1, 64), {"feature_group_count": 64}),
        ((2, 40, 40, 64), (3, 3, 16, 64), {"feature_group_count": 4}),
        ((1, 5, 5, 3), (3, 3, 3, 8), {}),
        ((8, 32, 32, 16), (1, 1, 16, 16), {"padding": ((1, 1), (0, 2))}),
    ],
)
def test_padded_inputs_are_made_in_the_copy(shape, kernel, how, dtype):
    x, k = array(*shape, dtype=dtype), array(*kernel, dtype=dtype)
    scale, shift = array(shape[-1], dtype=dtype, seed=1), array(shape[-1], dtype=dtype, seed=2)

    def f(x, k, scale, shift):
        return convolve(normalised(x, scale, shift + 1), k, **how)  # what is around stays zero

    with lamina.enable_x64(dtype == np.float64):
        assert any("ops before" in reason for reason in reasons(f, x, k, scale, shift))
    same(f, x, k, scale, shift)


def test_other_dimensions_of_space():
    x, k = array(8, 4096, 16), array(9, 16, 16)
    made_before(lambda x, k: convolve(jnp.abs(x), k, ("NWC", "WIO", "NWC")), x, k, ops=1)
    same(lambda x, k: convolve(jnp.abs(x), k, ("NWC", "WIO", "NWC")), x, k)
    three = ("NDHWC", "DHWIO", "NDHWC")
    same(lambda x, k: convolve(jnp.abs(x), k, three), array(2, 12, 14, 16, 16), array(3, 3, 3, 16, 16))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("layout", [NHWC, NCHW])
def test_with_what_follows_and_the_input_again(layout, size):
    shape = (4, 16, 24, 32) if layout is NHWC else (4, 32, 16, 24)
    kernel = (size, size, 32, 32) if layout is NHWC else (32, 32, size, size)

    def f(x, k, shift):
        shift = shift if layout is NHWC else shift[:, None, None]
        return x + jnp.maximum(convolve(jnp.maximum(x + shift, 0), k, layout) + shift, 0)

    x, k, shift = array(*shape), array(*kernel), array(32)
    same(f, x, k, shift)
    donated = lamina.jit(f, donate_argnums=0)(jnp.asarray(x), k, shift)
    np.testing.assert_allclose(donated, lamina.jit(f)(x, k, shift), 1e-6)


def test_a_shift_before_and_after_is_no_array():
    """What is repeated for each place is not written down for the two that need it."""
    x, k, shift = array(8, 28, 28, 64), array(1, 1, 64, 64), array(64)
    made_before(lambda x, k, s: jnp.maximum(convolve(jnp.maximum(x + s, 0), k) + s, 0), x, k, shift, ops=3)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("layout", [NHWC, NCHW])
def test_statistics_of_a_batch(layout, size):
    """Are a kernel of their own; what they normalise is not."""
    shape = (8, 16, 16, 64) if layout is NHWC else (8, 64, 16, 16)
    kernel = (size, size, 64, 64) if layout is NHWC else (64, 64, size, size)
    axes = (0, 1, 2) if layout is NHWC else (0, 2, 3)

    def f(x, k, scale, shift):
        mean = jnp.mean(x, axes, keepdims=True)
        spread = jnp.mean((x - mean) ** 2, axes, keepdims=True)
        scale, shift = (v.reshape(mean.shape) for v in (scale, shift))
        return convolve(normalised((x - mean) / jnp.sqrt(spread + 1e-5), scale, shift), k, layout)

    same(f, array(*shape), array(*kernel), array(64), array(64, seed=1), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("layout", [NHWC, NCHW])
@pytest.mark.parametrize("argument", [0, 1])
def test_gradients(layout, size, argument):
    """The gradient of what follows is masked in the kernels of those to the input and to the weights."""
    shape = (4, 12, 16, 32) if layout is NHWC else (4, 32, 12, 16)
    kernel = (size, size, 32, 48) if layout is NHWC else (48, 32, size, size)

    def loss(x, k, c, d):
        return jnp.sum(jnp.maximum(convolve(jnp.maximum(x, d), k, layout), 0) * c * c)

    c = array(4, 12, 16, 48) if layout is NHWC else array(4, 48, 12, 16)
    same(lamina.grad(loss, argument), array(*shape), array(*kernel), c, np.float32(0.25))


def test_the_gradient_to_weights_of_a_product_makes_both():
    x, c = array(8, 28, 28, 64), array(8, 28, 28, 96)

    def f(x, c):
        return lamina.vjp(lambda k: convolve(jnp.tanh(x), k), jnp.zeros((1, 1, 64, 96)))[1](c * (c > 0))[0]

    assert any("4 ops before" in reason for reason in reasons(f, x, c)), reasons(f, x, c)
    same(f, x, c)


def test_nan_and_infinities_stay_where_they_are():
    x, k = array(2, 9, 16, 32), np.zeros((1, 1, 32, 32), np.float32)
    k[0, 0] = np.eye(32)
    x[0, 0, 0, 0], x[1, 3, 2, 1] = np.nan, np.inf
    found = np.asarray(lamina.jit(lambda x, k: convolve(jnp.abs(x), k))(x, k))
    assert np.isnan(found[0, 0, 0]).all() and np.isfinite(found[0, 1:]).all()
    assert np.isinf(found[1, 3, 2, 1]) and np.isfinite(found[1, :3]).all()


def test_empty_arrays():
    f = lamina.jit(lambda x, k: convolve(jnp.abs(x), k))
    assert f(array(0, 8, 8, 32), array(3, 3, 32, 32)).shape == (0, 8, 8, 32)
    none = f(array(4, 8, 8, 0), array(1, 1, 0, 32))
    assert none.shape == (4, 8, 8, 32) and not np.asarray(none).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "complex64"])
def test_other_types(dtype):
    x, k = array(2, 9, 16, 32).astype(dtype), array(3, 3, 32, 32).astype(dtype)
    if dtype == "int32":
        x, k = (np.round(10 * v).astype(np.int32) for v in (array(2, 9, 16, 32), array(3, 3, 32, 32)))
    f = lambda x, k: convolve(x * x + x, k)  # noqa: E731
    found, expected = lamina.jit(f)(x, k), None
    with lamina.disable_jit():
        expected = f(jnp.asarray(x), jnp.asarray(k))
    if dtype == "complex64":
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
    else:
        near = {"bfloat16": 2e-2, "float16": 2e-3, "int32": 0}[dtype]
        np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), near, near * 30)
