"""Batches of small matrices, one in each vector lane: against NumPy, and LAPACK's pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import lamina
import lamina.numpy as jnp

L = lamina.lax.linalg
RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: Any) -> np.ndarray:
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


# Unrolled and in loops; full and partial blocks of lanes.
@pytest.mark.parametrize(
    ("batch", "n", "k", "dtype"),
    [(37, 3, 2, np.float32), (9, 2, 1, np.complex128), (21, 6, 3, np.float64)],
)
def test_factors_and_systems(batch: int, n: int, k: int, dtype: Any) -> None:
    a, b = draw(batch, n, n, dtype=dtype), draw(batch, n, k, dtype=dtype)
    adjoint = np.swapaxes(a, -1, -2).conj()
    s = a @ adjoint + np.eye(n, dtype=dtype)
    s[1] = -s[1]
    a[2, :, 0] = 0  # singular
    a[3, n // 2, n - 1] = np.nan

    @lamina.jit
    def program(a: Any, b: Any, s: Any) -> dict[str, Any]:
        upper = {"left_side": False, "lower": False, "transpose_a": True, "conjugate_a": True}
        return {
            "lu": L.lu(a), "solve": jnp.linalg.solve(a, b), "inv": jnp.linalg.inv(s),
            "qr": tuple(jnp.linalg.qr(a)), "cholesky": L.cholesky(s),
            "upper": jnp.linalg.cholesky(s, upper=True),
            "right": L.triangular_solve(s, jnp.swapaxes(b, -1, -2), **upper),
            "unit": L.triangular_solve(s, b, left_side=True, lower=True, unit_diagonal=True),
            "det": jnp.linalg.det(s),
        }  # fmt: skip

    with lamina.enable_x64(np.dtype(dtype).itemsize in (8, 16) and dtype is not np.complex64):
        out = lamina.tree.map(np.asarray, program(a, b, s))
        text = program.lower(a, b, s).compile().as_text("fused")
    assert 'lamina.library = "lamina.small_matrices"' in text
    assert "openblas." not in text

    loose = 2e-3 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-9

    def same(got: Any, want: Any, where: Any) -> None:
        np.testing.assert_allclose(got[where], want[where], rtol=loose, atol=loose)

    fine = [i for i in range(batch) if i not in (2, 3)]
    factors, pivots, order = out["lu"]
    for i in fine:
        want, places = scipy.linalg.lu_factor(a[i])
        same(factors[i], want, ...)
        np.testing.assert_array_equal(pivots[i], places)
        same(a[i][order[i]], (np.tril(want, -1) + np.eye(n)) @ np.triu(want), ...)
    same(a[fine] @ out["solve"][fine], b[fine], ...)
    assert not np.isfinite(out["solve"][2, 0]).any() and np.isnan(out["solve"][3]).any()
    q, r = out["qr"]
    same(q[fine] @ r[fine], a[fine], ...)
    same(np.swapaxes(q, -1, -2).conj()[fine] @ q[fine], np.eye(n)[None].repeat(len(fine), 0), ...)
    assert np.isnan(r[3]).any()
    rest = [i for i in range(batch) if i != 1]
    same(out["cholesky"][rest], np.linalg.cholesky(s[rest]), ...)
    same(out["upper"][rest], np.swapaxes(np.linalg.cholesky(s[rest]), -1, -2).conj(), ...)
    assert np.isnan(out["cholesky"][1][np.tril_indices(n)]).all()
    assert (out["cholesky"][1][np.triu_indices(n, 1)] == 0).all()
    relative = np.abs(out["inv"] - np.linalg.inv(s)).max() / np.abs(np.linalg.inv(s)).max()
    assert relative < loose
    same(out["det"] / np.linalg.det(s), np.ones(batch), ...)
    triangle = np.swapaxes(np.triu(s), -1, -2).conj()
    same(out["right"] @ triangle, np.swapaxes(b, -1, -2), ...)
    unit = np.tril(s, -1) + np.eye(n)
    error = np.abs(unit @ out["unit"] - b).max() / np.abs(out["unit"]).max()
    assert error < loose


def test_gradients_of_a_batch_are_those_of_each() -> None:
    a, b = (
        draw(6, 3, 3, dtype=np.float32) + 3 * np.eye(3, dtype=np.float32),
        draw(6, 3, dtype=np.float32),
    )

    def loss(a: Any, b: Any) -> Any:
        x = jnp.linalg.solve(a, b)
        factor = L.cholesky(a @ a.T + jnp.eye(3, dtype=a.dtype))
        return (x**2).sum() + factor.sum()

    both = lamina.jit(lamina.vmap(lamina.grad(loss, (0, 1))))(a, b)
    one = lamina.jit(lamina.grad(loss, (0, 1)))
    for i in range(6):
        for got, want in zip(both, one(a[i], b[i])):
            np.testing.assert_allclose(got[i], want, rtol=2e-3, atol=2e-4)
