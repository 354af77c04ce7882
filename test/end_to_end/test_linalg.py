"""lamina.numpy.linalg against JAX: values, types, derivatives, batches, odd shapes, errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.oracle.judge import check_all

import lamina

KEEP = {"rtol": 2e-3, "atol": 2e-4, "weak": False}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


A = draw(2, 4, 4) + 5 * np.eye(4, dtype=np.float32)
C = (draw(3, 3) + 1j * draw(3, 3, seed=1) + 4 * np.eye(3)).astype(np.complex64)
T, W = draw(5, 3), draw(2, 3, 5)
S = (A + np.swapaxes(A, -1, -2)).astype(np.float32)
B, V = draw(2, 4, 3, seed=2), draw(4, seed=3)


def compare(program: Any, *args: Any) -> None:
    """The results agree; named tuples, which are not of one class, as plain ones."""

    def plain(m: Any, *xs: Any) -> dict[str, Any]:
        out = program(m, *xs)
        return {k: tuple(v) if isinstance(v, tuple) else v for k, v in out.items()}

    check_all(plain, *args, jit=True, **KEEP)


def test_every_name_is_there() -> None:
    names = [n for n in dir(jax.numpy.linalg) if not n.startswith("_")]
    assert len(names) == 31
    assert not [n for n in names if not hasattr(lamina.numpy.linalg, n)]


def test_decompositions() -> None:
    def program(m: Any, a: Any, c: Any, t: Any, w: Any, s: Any) -> dict[str, Any]:
        la = m.np.linalg
        eigh = la.eigh(s, UPLO="U")
        return {
            "cholesky": la.cholesky(s), "upper": la.cholesky(s, upper=True),
            "indefinite": la.cholesky(-s), "complex": la.cholesky(c @ c.conj().T),
            "qr": la.qr(t), "qr full": la.qr(t, mode="complete"), "qr r": la.qr(w, mode="r"),
            "raw": la.qr(t, mode="raw"), "svd": la.svd(t), "svd thin": la.svd(w, False),
            "svd values": la.svdvals(c), "hermitian": la.svd(s, hermitian=True)[1],
            "hermitian values": la.svd(s, compute_uv=False, hermitian=True),
            "eigh": (eigh.eigenvalues, eigh.eigenvectors), "eigvalsh": la.eigvalsh(s),
            "eig": la.eig(a)[0], "eigvals": la.eigvals(c), "nan": la.eigvals(a * m.np.nan),
        }  # fmt: skip

    compare(program, A, C, T, W, S)


def test_solving() -> None:
    def program(m: Any, a: Any, c: Any, t: Any, w: Any, b: Any, v: Any) -> dict[str, Any]:
        la = m.np.linalg
        return {
            "solve": la.solve(a, b), "vector": la.solve(a, v), "wide": la.solve(a[0], b),
            "broadcast": la.solve(a[:, None], b), "int": la.solve(m.np.eye(3, dtype=int) * 2, t.T),
            "inv": la.inv(a), "inv complex": la.inv(c), "pinv": la.pinv(t), "pinv wide": la.pinv(w),
            "pinv hermitian": la.pinv(a[0] + a[0].T, hermitian=True),
            "pinv rank": la.pinv(m.np.ones((4, 3))), "lstsq": la.lstsq(t, m.np.ones(5)),
            "lstsq 2d": la.lstsq(w[0], w[0][:, :2]), "det": la.det(a), "det 3": la.det(c),
            "det 2": la.det(a[:, :2, :2]), "slogdet": la.slogdet(a), "slogdet -": la.slogdet(-c),
            "slogdet qr": la.slogdet(a, method="qr"),
            "singular": la.slogdet(m.np.ones((4, 4))), "rank": la.matrix_rank(m.np.ones((4, 3))),
            "rank tol": la.matrix_rank(a, tol=5.0), "power": la.matrix_power(a, 5),
            "power -2": la.matrix_power(a, -2), "power 0": la.matrix_power(a, 0),
            "tensorsolve": la.tensorsolve(m.np.reshape(a[0], (2, 2, 4)), b[0, :, :1].reshape(2, 2)),
            "tensorinv": la.tensorinv(m.np.reshape(a[0], (2, 2, 4))),
        }  # fmt: skip

    compare(program, A, C, T, W, B, V)


def test_norms_and_products() -> None:
    def program(m: Any, a: Any, c: Any, v: Any) -> dict[str, Any]:
        la, inf = m.np.linalg, np.inf
        out = {f"vector {o}": la.norm(v, o) for o in (None, 0, 1, 2, 3, -1, inf, -inf)}
        out |= {f"matrix {o}": la.norm(a, o, axis=(1, 2)) for o in
                ("fro", "nuc", 1, -1, 2, -2, inf, -inf)}  # fmt: skip
        out |= {f"cond {p}": la.cond(a, p) for p in (None, 1, -2, "fro", inf)}
        return out | {
            "all": la.norm(c), "kept": la.norm(a, 2, axis=(0, 2), keepdims=True),
            "vector_norm": la.vector_norm(a, axis=(0, 1), ord=3), "half": la.norm(v.astype("f2")),
            "matrix_norm": la.matrix_norm(a, ord=2, keepdims=True),
            "multi_dot": la.multi_dot([v, a[0], a[1], a[0, :, :2]]), "cross": la.cross(c, c[:, ::-1]),
            "outer": la.outer(v, v), "trace": la.trace(a, offset=1), "vecdot": la.vecdot(c, c),
            "diagonal": la.diagonal(a, offset=-1), "matmul": la.matmul(a, a),
            "transpose": la.matrix_transpose(a), "tensordot": la.tensordot(a[0], a, axes=[[1], [1]]),
        }  # fmt: skip

    compare(program, A, C, V)


def test_derivatives() -> None:
    def program(m: Any, a: Any, s: Any, t: Any, b: Any) -> dict[str, Any]:
        la = m.np.linalg
        one = m.np.ones((4, 4))
        scalar = {
            "solve": lambda x: la.solve(x, b[0]).sum(), "inv": lambda x: (la.inv(x) ** 2).sum(),
            "det": la.det, "slogdet": lambda x: la.slogdet(x)[1], "norm": la.norm,
            "pinv": lambda x: (la.pinv(x[:, :3]) ** 2).sum(), "nuc": lambda x: la.norm(x, "nuc"),
            "cholesky": lambda x: la.cholesky(x + x.T).sum(), "power": lambda x:
            la.matrix_power(x, 3).sum(), "eigvalsh": lambda x: (la.eigvalsh(x) ** 3).sum(),
            "eigh": lambda x: la.eigh(x + x.T)[1][:, 0].sum(), "qr": lambda x: la.qr(x)[1].sum(),
            "wide qr": lambda x: sum(m.np.sin(part).sum() for part in la.qr(x[:2], mode="complete")),
            "lstsq": lambda x: la.lstsq(x[:, :2], b[0, :, 0])[0].sum(),
        }  # fmt: skip
        out = {k: m.grad(f)(a[0]) for k, f in scalar.items()}
        out |= {f"batch {k}": m.vmap(m.grad(scalar[k]))(a) for k in ("solve", "det", "qr", "wide qr")}
        out["singular det"] = m.grad(la.det)(m.np.diag(m.np.array([1.0, 2.0, 3.0, 0.0])))
        out["right-hand side"] = m.grad(lambda y: (la.solve(a, y) ** 2).sum())(b)
        out["hessian"] = m.hessian(lambda y: la.solve(a[0] + y * one, b[0]).sum())(0.1)
        out["jvp"] = m.jvp(lambda x: tuple(la.slogdet(x)), (a,), (s,))
        wide = a[:, :2] * (1 + 0.5j * s[:, :2])
        out["complex wide qr"] = m.jvp(lambda x: tuple(la.qr(x)), (wide,), (m.np.roll(wide, 1, 0),))
        return out

    compare(program, A, S, T, B)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (1, 1), (0, 3, 3)])
def test_small_and_empty(shape: tuple[int, ...]) -> None:
    def program(m: Any, x: Any) -> dict[str, Any]:
        la = m.np.linalg
        return {"det": la.det(x), "inv": la.inv(x), "qr": la.qr(x), "eigvalsh": la.eigvalsh(x),
                "slogdet": la.slogdet(x), "cholesky": la.cholesky(x), "svd": la.svd(x),
                "solve": la.solve(x, x), "eigvals": la.eigvals(x)}  # fmt: skip

    compare(program, np.full(shape, 2, np.float32))


def test_wide_matrices_use_the_library() -> None:
    x = lamina.numpy.asarray(draw(40, 40) + 10 * np.eye(40, dtype=np.float32))
    b = lamina.numpy.asarray(draw(40, 7))
    compiled = lamina.jit(lamina.numpy.linalg.solve).lower(x, b).compile()
    text = compiled.as_text("fused")
    assert 'lamina.library = "openblas.getrf"' in text
    assert 'lamina.library = "openblas.trsm"' in text
    np.testing.assert_allclose(compiled(x, b), np.linalg.solve(x, b), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda la, x: la.inv(x[0]), ValueError, r"must have shape \[..., n, n\], got \(3,\)"),
    (lambda la, x: la.det(x[:2]), ValueError, "got \\(2, 3\\)"),
    (lambda la, x: la.solve(x, x[:2]), ValueError, "inconsistent"),
    (lambda la, x: la.norm(x, "bad"), ValueError, "Invalid order 'bad' for matrix norm"),
    (lambda la, x: la.norm(x[None], 2), ValueError, "Improper number of axes for norm"),
    (lambda la, x: la.norm([1, 2]), TypeError, "requires ndarray or scalar"),
    (lambda la, x: la.qr(x, mode="foo"), ValueError, "Unsupported QR decomposition mode 'foo'"),
    (lambda la, x: la.matrix_power(x, 1.5), TypeError, "exponent must be an integer, got 1.5"),
    (lambda la, x: la.slogdet(x, method="z"), ValueError, "Unknown slogdet method 'z'"),
    (lambda la, x: la.eigh(x, UPLO="Q"), ValueError, "UPLO must be one of None, 'L', or 'U'"),
    (lambda la, x: la.multi_dot([x]), ValueError, "at least two"),
    (lambda la, x: la.svd(x[0]), TypeError, "rank at least 2"),
    (lambda la, x: la.tensorinv(x, 0), ValueError, "ind must be a positive integer"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(lamina.numpy.linalg, lamina.numpy.ones((3, 3)))
