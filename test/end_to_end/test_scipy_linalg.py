"""lamina.scipy.linalg against JAX and SciPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
from support.oracle.judge import check_all

import lamina
import lamina.scipy.linalg as sl

KEEP = {"rtol": 3e-3, "atol": 3e-4, "weak": False}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


A = draw(4, 4) + 5 * np.eye(4, dtype=np.float32)
S = (A + A.T).astype(np.float32)
C = (draw(3, 3) + 1j * draw(3, 3, seed=1) + 4 * np.eye(3)).astype(np.complex64)
B, V, T = draw(4, 2, seed=2), draw(4, seed=3), draw(5, 3)


def of(m: Any) -> Any:
    import jax.scipy.linalg

    return sl if m.name == "lamina" else jax.scipy.linalg


def compare(program: Any, *args: Any) -> None:
    def flat(m: Any, *xs: Any) -> dict[str, Any]:
        out = program(m, of(m), *xs)
        return {k: tuple(v) if isinstance(v, (list, tuple)) else v for k, v in out.items()}

    check_all(flat, *args, jit=True, **KEEP)


def test_every_name_is_there() -> None:
    import jax.scipy.linalg as theirs

    names = [n for n in dir(theirs) if not n.startswith("_")]
    assert len(names) == 40
    assert not [n for n in names if not hasattr(sl, n)]


def test_decompositions() -> None:
    def program(m: Any, la: Any, a: Any, s: Any, c: Any, t: Any) -> dict[str, Any]:
        return {
            "cholesky": la.cholesky(s), "lower": la.cholesky(s, lower=True), "lu": la.lu(a),
            "lu c": la.lu(c), "permute_l": la.lu(t, permute_l=True), "lu_factor": la.lu_factor(a),
            "qr": la.qr(t), "qr economic": la.qr(t, mode="economic", pivoting=True),
            "qr r": la.qr(t, mode="r"), "svd": la.svd(t), "multiply": la.qr_multiply(t, t.T),
            "multiply left": la.qr_multiply(t, t[:3], mode="left"),
            "eigh": la.eigh(s), "eigvals": la.eigh(s, eigvals_only=True, lower=False),
            "schur": la.schur(s), "hessenberg": la.hessenberg(a, calc_q=True),
            "polar": la.polar(t), "polar svd": la.polar(t, side="left", method="svd"),
            "tridiagonal": la.eigh_tridiagonal(s[0], s[1, :3], eigvals_only=True),
            "positions": la.eigh_tridiagonal(s[0], s[1, :3], eigvals_only=True, select="i",
                                             select_range=(1, 2)),
        }  # fmt: skip

    compare(program, A, S, C, T)


def test_solving() -> None:
    def program(m: Any, la: Any, a: Any, s: Any, c: Any, b: Any, v: Any) -> dict[str, Any]:
        out = {f"solve {k}": la.solve(s, b, assume_a=k) for k in ("gen", "sym", "pos")}
        out |= {f"triangular {t}": la.solve_triangular(a, v, trans=t, lower=True) for t in "NTC"}
        out |= {f"lu_solve {t}": la.lu_solve(la.lu_factor(a), b, trans=t) for t in (0, 1, 2)}
        out |= {f"grad {k}": m.grad(lambda x, k=k: la.solve(x, b, assume_a=k).sum())(s)
                for k in ("gen", "pos")}  # fmt: skip
        return out | {
            "cho": la.cho_solve(la.cho_factor(s), b), "det": la.det(c), "inv": la.inv(c),
            "cho lower": la.cho_solve(la.cho_factor(s, lower=True), v),
            "complex": la.solve_triangular(c, c, trans=2), "unit": la.solve_triangular(
                a, b, unit_diagonal=True), "sylvester": la.solve_sylvester(a, s, s),
            "eigen": la.solve_sylvester(a, s, s, method="eigen"),
            "batches": [la.solve_sylvester(m.np.stack([a, s]), s, s), la.polar(m.np.stack([a, s]))],
        }  # fmt: skip

    compare(program, A, S, C, B, V)


def test_functions() -> None:
    def program(m: Any, la: Any, a: Any, s: Any, c: Any) -> dict[str, Any]:
        small = a / 10
        return {
            "expm": la.expm(a), "small": la.expm(small / 10), "large": la.expm(a * 3),
            "batch": la.expm(m.np.stack([a, small])), "triangular": la.expm(
                m.np.triu(a), upper_triangular=True), "too large": la.expm(a * 1e8),
            "frechet": la.expm_frechet(small, s), "grad": m.grad(
                lambda x: la.expm(x).sum())(small), "sqrtm": la.sqrtm(c), "sqrtm real": la.sqrtm(s),
            "funm": la.funm(c, m.np.exp), "rsf2csf": la.rsf2csf(*la.schur(s)),
        }  # fmt: skip

    compare(program, A, S, C)


def test_special_matrices() -> None:
    x = np.arange(1.0, 7, dtype=np.float32)
    y = np.stack([x, x * x])
    with np.errstate(all="ignore"):
        for name, args in {
            "toeplitz": [(x,), (x, x[:3]), (y,)], "hankel": [(x,), (x, x[:3])],
            "circulant": [(x,), (y,)], "companion": [(x,), (y,)], "leslie": [(x, x[1:])],
            "convolution_matrix": [(x, 4), (x, 8, "same"), (x, 4, "valid")],
            "fiedler": [(x,)], "fiedler_companion": [(x,), (x[:4],), (x[:2],)],
            "hilbert": [(4,)], "invhilbert": [(4,)], "hadamard": [(4,)],
            "helmert": [(4,), (4, True)], "dft": [(5,), (5, "n"), (5, "sqrtn")],
            "pascal": [(4,), (4, "upper")], "invpascal": [(4,), (4, "lower")],
            "block_diag": [(x, y, 3.0)],
        }.items():  # fmt: skip
            for given in args:
                got = getattr(sl, name)(*given)
                want = getattr(jax.scipy.linalg, name)(*given)
                assert got.dtype == want.dtype and got.shape == want.shape, name
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_real_schur_form_becomes_complex() -> None:
    turn = np.array([[0, 2, 1], [-1, 0.5, 0], [0.3, 1, 2]], np.float32)
    t, z = sl.rsf2csf(*sl.schur(turn))
    np.testing.assert_allclose(np.tril(t, -1), 0, atol=1e-5)
    np.testing.assert_allclose(z @ t @ z.conj().T, turn, atol=1e-4)
    root = np.asarray(sl.sqrtm(turn))
    np.testing.assert_allclose(root @ root, turn, atol=1e-4)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalised_eigenvalues(kind: int) -> None:
    """Which JAX does not have."""
    b = S @ S / 10 + np.eye(4, dtype=np.float32)
    w, v = sl.eigh(S, b, type=kind)
    want = scipy.linalg.eigh(S, b, type=kind)
    np.testing.assert_allclose(w, want[0], rtol=1e-3)
    np.testing.assert_allclose(np.abs(v), np.abs(want[1]), rtol=1e-2, atol=1e-3)


def test_errors() -> None:
    x = lamina.numpy.ones((3, 3))
    for call, text in {
        lambda: sl.solve(x, x, assume_a="foo"): "Expected assume_a to be one of",
        lambda: sl.solve_triangular(x, x, trans=7): "Invalid 'trans' value 7",
        lambda: sl.hadamard(3): "positive power of 2; got 3",
        lambda: sl.schur(x, output="z"): "Expected 'output' to be either",
        lambda: sl.expm(x[:2]): r"square matrix, got A.shape=\(2, 3\)",
        lambda: sl.leslie(x[0], x[0]): "Incorrect lengths for f and s",
        lambda: sl.dft(3, scale="zz"): "scale must be None, 'sqrtn', or 'n'",
    }.items():
        with pytest.raises(ValueError, match=text):
            call()
