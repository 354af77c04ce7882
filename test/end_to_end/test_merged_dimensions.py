"""Programs over several dimensions that are walked as one, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)


def _softmax(xp, x):
    return (lamina.nn.softmax if xp is jnp else scipy.special.softmax)(x, axis=(2, 3))


PROGRAMS = {
    "softmax": _softmax,
    "channels last": lambda xp, x: (x.mean((0, 1, 2)), x.var((0, 1, 2))),
    "channels second": lambda xp, x: (x.mean((0, 2, 3)), x.var((0, 2, 3))),
    "normalised": lambda xp, x: (x - x.mean((2, 3), keepdims=True)) / (1 + x.std((2, 3), keepdims=True)),
    "outer ones": lambda xp, x: x - x.max((0, 1)),
    "first and third": lambda xp, x: (x.sum((0, 2)), x.min((1, 3))),
    "both ways": lambda xp, x: (x.sum((0, 1)), x.sum((2, 3))),
    "both ways, three and one": lambda xp, x: ((x * x).max((0, 1, 2)), (x * x).sum(3)),
    "both ways, scaled along one": lambda xp, x: tuple(
        (x * x[:1, :, :1, :1]).sum(axes) for axes in ((0, 1), (2, 3))
    ),
    "a row for all": lambda xp, x: xp.tanh(x + x[0, 0]),
    "a number for each of a block": lambda xp, x: x * x[:, :, :1, :1],
    "a number for one dimension": lambda xp, x: x * x[:, :1, :1, :1] + x[:1, :, :1, :1],
    "turned": lambda xp, x: (xp.transpose(x, (2, 3, 0, 1)) + 1, xp.transpose(x, (3, 0, 1, 2)).sum(1)),
    "turned back": lambda xp, x: x + xp.transpose(x[:, :2, :2], (0, 2, 1, 3)).sum((1, 2), keepdims=True),
    "positions": lambda xp, x: x + xp.arange(x.shape[2]).reshape(-1, 1).astype(x.dtype),
    "found": lambda xp, x: (x.argmax(3), xp.take(x, xp.array([1, 0, 1]), axis=1).sum((2, 3))),
    "compared": lambda xp, x: ((x > 1).all((2, 3)), xp.where(x > 1, x, 0).sum((0, 1))),
    "all": lambda xp, x: (x.sum(), x.max(), (x == x).all()),
}
SHAPES = ((3, 4, 5, 6), (8, 16, 12, 40), (2, 2, 31, 33), (1, 7, 1, 9), (40, 2, 64, 1))


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "int32"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, dtype: str) -> None:
    of = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if of.kind == "i" and name in ("softmax", "channels last", "channels second", "normalised", "a row for all"):
        of = np.dtype("float16")
    wide = of if of.itemsize > 2 else np.dtype("float32")
    tolerance = {2: 4e-2, 4: 2e-5, 8: 1e-9}[of.itemsize]
    for shape in SHAPES:
        x = (RNG.normal(size=shape) * 2).astype(of)
        if x.shape[1] < 2:
            continue
        with lamina.enable_x64(of.itemsize == 8):
            got = lamina.tree_util.tree_leaves(lamina.jit(lambda x: PROGRAMS[name](jnp, x))(x))
        want = lamina.tree_util.tree_leaves(PROGRAMS[name](np, x.astype(wide)))
        for mine, theirs in zip(got, want, strict=True):
            mine, theirs = (np.asarray(one).astype(np.float64) for one in (mine, theirs))
            scale = np.abs(theirs).max() or 1.0
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("shape", [(0, 3, 4, 5), (2, 3, 0, 5), (2, 3, 4, 0)])
def test_empty(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    down, along, more = lamina.jit(lambda x: (x.sum((0, 1)), x.sum((2, 3)), jnp.exp(x)))(x)
    np.testing.assert_array_equal(down, x.sum((0, 1)))
    np.testing.assert_array_equal(along, x.sum((2, 3)))
    assert more.shape == shape


def test_one_walk_of_rows_and_columns_of_several_dimensions() -> None:
    x = jnp.ones((64, 4, 8, 64))
    for down, along in (((0, 1), (2, 3)), ((0,), (1, 2, 3)), ((0, 1, 2), (3,))):
        fused = lamina.jit(lambda x, d=down, a=along: (x.sum(d), x.sum(a))).lower(x).compile().as_text("fused")
        assert fused.count(" call @") == 1, fused


def test_gradient_of_normalisation() -> None:
    def loss(x):
        y = (x - x.mean((0, 2, 3), keepdims=True)) / jnp.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-3)
        return (y**3).sum()

    with lamina.enable_x64(True):
        x = RNG.normal(size=(3, 4, 5, 6))
        got = np.asarray(lamina.jit(lamina.grad(loss))(x))
        direction = RNG.normal(size=x.shape)
        step = 1e-5
        want = (float(loss(x + step * direction)) - float(loss(x - step * direction))) / (2 * step)
    np.testing.assert_allclose((got * direction).sum(), want, rtol=1e-6)
