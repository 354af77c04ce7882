"""Sample applications of primitives: linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from support.samples.sample import c64, f32, i32, row

# fmt: off

# ---- linear algebra -----------------------------------------------------------------------------
# Diagonally dominant, so that nothing is nearly singular; symmetric after lax symmetrises.
def _dominant(lib: Any, x: Any) -> Any:
    shift = (8 * np.eye(*x.shape[-2:]) + np.diag(np.arange(x.shape[-1]))).astype(x.dtype)
    return lib.add(x, np.broadcast_to(shift, x.shape))


for _spec in (f32(3, 3), c64(3, 3), f32(2, 20, 20, low=-0.3, high=0.3)):
    row("linalg.cholesky", _spec, rtol=2e-4,
        call=lambda lib, x: lib.linalg.cholesky(_dominant(lib, x)))
    row("linalg.triangular_solve", _spec, _spec, rtol=2e-4, note="left lower",
        call=lambda lib, a, b: lib.linalg.triangular_solve(
            _dominant(lib, a), b, left_side=True, lower=True, transpose_a=True, conjugate_a=True))
row("linalg.triangular_solve", f32(3, 3), f32(2, 3), note="right unit", rtol=2e-4,
    call=lambda lib, a, b: lib.linalg.triangular_solve(a, b, unit_diagonal=True))
row("linalg.cholesky", f32(3, 3, values=np.diag([1.0, -1.0, 2.0])), note="indefinite",
    value_only=True)
row("linalg.cholesky", f32(2, 0, 0), value_only=True)
row("linalg.lu", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.lu(_dominant(lib, x)))
row("linalg.lu", f32(3, 5), rtol=1e-3,
    call=lambda lib, x: lib.linalg.lu(lib.concatenate([_dominant(lib, x[:, :3]), x[:, 3:]], 1)))
row("linalg.lu", c64(5, 3), rtol=1e-3,
    call=lambda lib, x: lib.linalg.lu(lib.concatenate([_dominant(lib, x[:3]), x[3:] * 0.1], 0)))
row("linalg.lu", f32(0, 3), value_only=True)
row("linalg.lu_pivots_to_permutation", i32(3, values=[2, 2, 3]), permutation_size=5)
for _spec in (f32(5, 3), c64(3, 3)):
    row("linalg.qr", _spec, rtol=1e-3, full_matrices=False)
    # The phases of complex vectors are free: JAX's derivatives are not those of LAPACK's phases.
    row("linalg.svd", _spec, rtol=1e-3, smooth=_spec.dtype.kind != "c", full_matrices=False)
row("linalg.qr", f32(3, 5), value_only=True, note="full")
row("linalg.qr", f32(5, 3), value_only=True, note="pivoting", pivoting=True)
row("linalg.svd", f32(3, 5), rtol=1e-3, compute_uv=False)
row("linalg.svd", f32(5, 3), rtol=1e-3, value_only=True)
row("linalg.svd", f32(2, 2, values=[[1, np.nan], [0, 1]]), value_only=True, note="nan")
row("linalg.eigh", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.eigh(_dominant(lib, x)))
row("linalg.eigh", c64(3, 3), rtol=1e-3, smooth=False,
    call=lambda lib, x: lib.linalg.eigh(_dominant(lib, x), lower=False))
row("linalg.eig", f32(4, 4), rtol=1e-3, call=lambda lib, x: lib.linalg.eig(
    _dominant(lib, x), compute_left_eigenvectors=False, enable_eigvec_derivs=True))
row("linalg.eig", c64(3, 3), rtol=1e-3, value_only=True)
row("linalg.schur", f32(4, 4), rtol=1e-3)
row("linalg.schur", c64(3, 3), rtol=1e-3,
    call=lambda lib, x: [lib.abs(y) for y in lib.linalg.schur(x)])
row("linalg.hessenberg", f32(4, 4), rtol=1e-3)
row("linalg.tridiagonal", f32(4, 4), rtol=1e-3,
    call=lambda lib, x: lib.linalg.tridiagonal(_dominant(lib, x), lower=False))
row("linalg.tridiagonal_solve", f32(4), f32(4, low=4, high=6), f32(4), f32(4, 2), rtol=1e-4)
row("linalg.symmetric_product", f32(3, 2), f32(3, 3), rtol=1e-4, jax_jvp=False,
    call=lambda lib, a, c: lib.linalg.symmetric_product(
        a, c + c.T, alpha=2.0, beta=0.5, symmetrize_output=True))
row("linalg.cholesky_update", f32(3, 3), f32(3), rtol=1e-4,
    call=lambda lib, r, w: lib.abs(lib.linalg.cholesky_update(
        lib.mul(lib.add(r, r.dtype.type(3)), np.triu(np.ones((3, 3), r.dtype))), w)))
_TAUS = (f32(4, 3), f32(3, low=0.5, high=1.5))
row("linalg.householder_product", *_TAUS, rtol=1e-4)
row("linalg.ormqr", *_TAUS, f32(2, 4), rtol=1e-4, left=False, transpose=True)
row("linalg.geqrf", f32(4, 3), rtol=1e-4, call=lambda lib, x: _internal(lib).geqrf(x))
row("linalg.geqp3", f32(4, 3), i32(3, values=[0, 0, 1]), rtol=1e-4,
    call=lambda lib, x, p: _internal(lib).geqp3(x, p))


def _internal(lib: Any) -> Any:
    """jax.lax.linalg does not export all of its functions."""
    from jax._src.lax import linalg

    return lib.linalg if lib is lax else linalg
