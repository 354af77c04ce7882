"""Products of many small matrices and vectors, across which vectors go: against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina
import lamina.numpy as jnp

SPECS = (
    "bij,bjk->bik", "bij,bkj->bik", "bji,bjk->bik", "bij,bj->bi", "bji,bj->bi", "ij,bj->bi",
    "ij,bjk->bik", "bij,jk->bik", "bij,bij->b", "bi,bi->b", "bi,bj->bij", "abi,abij->abj",
    "bi,bj,bk->bijk", "bijk->b", "bij,bijk->b",
)  # fmt: skip
DTYPES = ("float32", "float64", "bfloat16", "float16", "complex64", "int32", "int8", "uint8")
ROUGH = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 0.02, "float16": 3e-3, "complex64": 2e-5}


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    if np.dtype(kind).kind in "iu":
        return rng.integers(0, 100, shape).astype(kind)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype == "complex64" else x).astype(kind)


def agree(spec: str, operands: list[np.ndarray], dtype: str) -> None:
    with lamina.enable_x64(dtype == "float64"):
        got = np.asarray(lamina.jit(lambda *a: jnp.einsum(spec, *a))(*operands))
    assert got.dtype == operands[0].dtype
    if dtype in ("int32", "int8", "uint8"):
        np.testing.assert_array_equal(got, np.einsum(spec, *operands))
        return
    wide = np.complex128 if dtype == "complex64" else np.float64
    exact = [x.astype(wide) for x in operands]
    with np.errstate(invalid="ignore"):
        want, size = np.einsum(spec, *exact), np.einsum(spec, *[np.abs(x) for x in exact])
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite].astype(wide), want[~finite])
    error = np.abs(got.astype(wide)[finite] - want[finite])
    assert np.all(error <= ROUGH[dtype] * (size[finite] + 1)), spec


@settings(max_examples=60, deadline=None)
@given(
    spec=st.sampled_from(SPECS),
    dtype=st.sampled_from(DTYPES),
    batch=st.sampled_from((0, 1, 3, 15, 16, 17, 33, 100, 257)),
    sizes=st.tuples(*[st.integers(1, 9)] * 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_size(
    spec: str, dtype: str, batch: int, sizes: tuple[int, int, int], seed: int
) -> None:
    extent = dict(zip("ijk", sizes)) | {"b": batch, "a": 3}
    rng = np.random.default_rng(seed)
    shapes = [tuple(extent[d] for d in term) for term in spec.split("->")[0].split(",")]
    agree(spec, [drawn(rng, shape, dtype) for shape in shapes], dtype)


@pytest.mark.parametrize("n", [3, 4, 8, 16])
@pytest.mark.parametrize("spec", ["bij,bjk->bik", "bij,bj->bi", "bij,bij->b"])
def test_numbers_that_are_none_stay_in_their_matrix(spec: str, n: int) -> None:
    extent = {"b": 37, "i": n, "j": n, "k": n}
    rng = np.random.default_rng(n)
    shapes = [tuple(extent[d] for d in term) for term in spec.split("->")[0].split(",")]
    a, b = (drawn(rng, shape, "float32") for shape in shapes)
    a[5, 0, 1], a[17, n - 1, 0], b[36].flat[0] = np.nan, np.inf, -np.inf
    agree(spec, [a, b], "float32")


@pytest.mark.parametrize("spec", ["bij,bjk->bik", "bij,bkj->bik"])
def test_much_work_is_worth_much_code(spec: str) -> None:
    rng = np.random.default_rng(7)
    agree(spec, [drawn(rng, (3103, 7, 7), "float32") for _ in range(2)], "float32")


def test_outer_product_keeps_the_sign_of_zero() -> None:
    x, y = np.float32([-0.0, 1.0, np.inf]), np.float32([2.0, -3.0])
    got = np.asarray(lamina.jit(jnp.outer)(x, y))
    np.testing.assert_array_equal(got, np.outer(x, y))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.outer(x, y)))


def test_strided_operands_and_what_follows() -> None:
    rng = np.random.default_rng(1)
    a, x, t = (drawn(rng, s, "float32") for s in ((67, 4, 4), (67, 3), (67, 3)))

    @lamina.jit
    def moved(a: Any, x: Any, t: Any) -> Any:
        return jnp.maximum(jnp.einsum("bij,bj->bi", a[:, :3, :3], x) + t, 0) * 2

    want = np.maximum(np.einsum("bij,bj->bi", a[:, :3, :3], x) + t, 0) * 2
    np.testing.assert_allclose(moved(a, x, t), want, rtol=1e-5, atol=1e-5)


def test_gradients_under_vmap_and_in_loops() -> None:
    rng = np.random.default_rng(2)
    a, b = (0.4 * drawn(rng, (45, 3, 3), "float32") for _ in range(2))

    def power(a: Any, b: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return c @ b * 0.5 + a, None

        return lamina.lax.scan(step, a, None, length=5)[0]

    def want(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        c = a
        for _ in range(5):
            c = c @ b * 0.5 + a
        return c

    exact = want(a.astype(float), b.astype(float))
    np.testing.assert_allclose(lamina.jit(power)(a, b), exact, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lamina.jit(lamina.vmap(power))(a, b), exact, rtol=1e-5, atol=1e-5)
    gradient = lamina.jit(lamina.grad(lambda a, b: jnp.sum(power(a, b) ** 2), (0, 1)))(a, b)
    direction = [drawn(rng, a.shape, "float64") for _ in range(2)]
    step = 1e-6
    ahead = np.sum(want(*(x + step * d for x, d in zip((a, b), direction))) ** 2)
    behind = np.sum(want(*(x - step * d for x, d in zip((a, b), direction))) ** 2)
    got = sum(np.sum(np.asarray(g) * d) for g, d in zip(gradient, direction))
    np.testing.assert_allclose(got, (ahead - behind) / (2 * step), rtol=1e-4)
