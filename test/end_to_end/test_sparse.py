"""experimental.sparse against JAX's."""

import jax
import jax.numpy as xnp
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse

import lamina
import lamina.numpy as jnp
from lamina import errors
from lamina.experimental import sparse


def program(lib, np_, sparse):
    """What is computed with sparse arrays in one library; each value with its dense form."""
    x = np_.array([[0, 1.5, 0], [2, 0, -3]], np_.float32)
    a = sparse.BCOO.fromdense(x)
    padded = sparse.BCOO.fromdense(x, nse=5)
    v = np_.arange(3, dtype=np_.float32)

    @lib.jit
    def compute(a, padded, v):
        return {
            "dense": a.todense(), "v": a @ v, "m": a @ np_.outer(v, v), "left": np_.ones(2) @ a,
            "T": a.T, "sum": a.sum(), "columns": a.sum(0), "rows": a.sum(axis=(1,)), "twice": a * 2,
            "neg": -a, "plus": a + a, "minus": a - a, "padded": padded.todense(),
            "padded sum": padded.sum(), "padded v": padded @ v, "by dense": a * x,
            "reshaped": padded.reshape(3, 2), "sorted": a.T.sort_indices(),
        }  # fmt: skip

    out = compute(a, padded, v)
    out["grad"] = lib.grad(
        lambda d: (sparse.BCOO((d, a.indices), shape=a.shape) @ v).sum()
    )(a.data)
    out["vmap"] = lib.vmap(lambda v: a @ v)(np_.stack([v, 2 * v]))
    out["once"] = (a + a).sum_duplicates()
    out["eye"], out["eye k"] = sparse.eye(3), sparse.eye(3, 4, 1)
    out["empty"] = sparse.empty((2, 3))
    out["indices"], out["padded indices"] = a.indices, padded.indices
    return out


def test_sparse_arrays_compute_what_dense_ones_do():
    got, want = program(lamina, jnp, sparse), program(jax, xnp, jax_sparse)
    for name, value in got.items():
        wanted = want[name]
        if isinstance(value, sparse.BCOO):
            assert repr(value) == repr(wanted), name
            value, wanted = value.todense(), wanted.todense()
        np.testing.assert_allclose(value, wanted, rtol=1e-6, err_msg=name)


def test_what_sparse_arrays_refuse():
    a = sparse.eye(3)
    with pytest.raises(TypeError, match="contracting"):
        a @ np.ones(4, np.float32)
    with pytest.raises(errors.ConcretizationTypeError, match="nse"):
        lamina.jit(sparse.BCOO.fromdense)(np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="do not fit"):
        sparse.BCOO((np.ones(2), np.zeros((3, 2), int)), shape=(2, 2))
