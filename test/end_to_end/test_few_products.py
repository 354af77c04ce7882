"""Products of matrices made on the way with vectors and few columns, against NumPy; how many kernels."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(0)
MAKERS = {
    "exp": lambda xp, a: xp.exp(a),
    "masked": lambda xp, a: xp.where(a > 0, a, 0),
    "rows": lambda xp, a: (a - a.mean(1, keepdims=True)) / (a.var(1, keepdims=True) + 1),
    "kept": lambda xp, a: a,
}
PRODUCTS = {
    "vector": (lambda e, b: e @ b[0][: e.shape[1]], 1),
    "from left": (lambda e, b: b[0][: e.shape[0]] @ e, 1),
    "columns": (lambda e, b: e @ b[:, : e.shape[1]].T, 4),
    "rows": (lambda e, b: b[:, : e.shape[0]] @ e, 4),
    "turned": (lambda e, b: e.T @ b[:, : e.shape[0]].T, 4),
    "more": (lambda e, b: (e @ b[:1, : e.shape[1]].T, e.sum(1), b[:2, : e.shape[0]] @ e, e.max()), 3),
}
SHAPES = ((150, 130), (700, 257), (33, 600))


@pytest.mark.parametrize("dtype", (np.float32, np.float64), ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("maker", MAKERS)
def test_values(maker, product, dtype):
    function, columns = PRODUCTS[product]
    for shape in SHAPES:
        a, b = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal((columns, 700)).astype(dtype)
        with lamina.enable_x64(dtype == np.float64):
            got = lamina.jit(lambda a, b: function(MAKERS[maker](jnp, a), b))(a, b)
        want = function(MAKERS[maker](np, a.astype(np.float64)), b.astype(np.float64))
        tolerance = 1e-11 if dtype == np.float64 else 2e-4
        for mine, theirs in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def test_gradients():
    a, b = RNG.standard_normal((150, 130)).astype(np.float32), RNG.standard_normal((130, 3)).astype(np.float32)
    loss = lambda a, b: (jnp.sin(jnp.exp(a) @ b)).sum()  # noqa: E731
    of_a, of_b = lamina.jit(lamina.grad(loss, (0, 1)))(a, b)
    e = np.exp(a.astype(np.float64))
    slope = np.cos(e @ b.astype(np.float64))
    np.testing.assert_allclose(of_b, e.T @ slope, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(of_a, (slope @ b.T.astype(np.float64)) * e, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("side", [0, 1])
def test_nothing_is_stored_of_what_is_made(side):
    a, v = np.ones((512, 512), np.float32), np.ones(512, np.float32)
    function = lamina.jit(lambda a, v: jnp.exp(a) @ v if side else v @ jnp.exp(a))
    compiled = function.lower(a, v).compile()
    assert [kernel["kind"] for kernel in json.loads(compiled.as_text("manifest"))["kernels"]] == ["input"]
    assert compiled.memory_analysis().temp_size_in_bytes == 0


NARROW = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8": ml_dtypes.float8_e4m3fn}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_matrices_of_narrow_numbers(columns, dtype):
    """All layouts, beside a matrix that is made of bytes; NaN and infinity where they belong."""
    of = NARROW[dtype]
    a = RNG.standard_normal((700, 257)).astype(of)
    if dtype != "f8":
        a[3, 5], a[9, 7] = np.nan, np.inf
    quantised, scale = RNG.integers(-127, 128, (257, 700)).astype(np.int8), np.asarray(0.25, of)
    b = RNG.standard_normal((columns, 700)).astype(of)

    def products(xp, a, b, w):
        c = b[:, :257]
        return a @ c.T, b @ a, a.T @ b.T, c @ a.T, c @ w, w.T @ c.T, a[:, :].T @ b[0]

    got = lamina.jit(lambda a, b, q, s: products(jnp, a, b, q.astype(of) * s))(a, b, quantised, scale)
    made = (quantised.astype(of) * scale).astype(np.float32)
    want = products(np, a.astype(np.float32), b.astype(np.float32), made)
    tolerance = 2.0 ** -3 if dtype == "f8" else 2.0 ** -7
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == of
        if dtype == "f8":  # what is too large is NaN there
            theirs = theirs.astype(of)
        np.testing.assert_allclose(
            np.asarray(mine, np.float32), theirs.astype(np.float32), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("side", [0, 1])
def test_nothing_is_widened_in_memory(side):
    a, v = np.ones((512, 512), ml_dtypes.bfloat16), np.ones(512, ml_dtypes.bfloat16)
    compiled = lamina.jit(lambda a, v: a @ v if side else v @ a).lower(a, v).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 4096
