"""experimental.sparse beside BCOO: BCSR, sparsify and linalg, against JAX's."""

import jax
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jax_sparse

import lamina
import lamina.numpy as jnp
from lamina.experimental import sparse
from lamina.experimental.sparse import linalg

X = np.array([[0, 1.5, 0, 0], [2, 0, -3, 0], [0, 0, 0, 4]], np.float32)


def by_rows(lib, sparse):
    np_ = lib.numpy
    a = sparse.BCSR.fromdense(X)
    v = np_.arange(4, dtype=np.float32)
    out = {
        "parts": [a.data, a.indices, a.indptr],
        "dense": lib.jit(lambda a: a.todense())(a),
        "padded": sparse.BCSR.fromdense(X, nse=6).todense(),
        "v": lib.jit(lambda a, v: a @ v)(a, v),
        "m": a @ np_.outer(v, v),
        "coo": a.to_bcoo().todense(),
        "from coo": sparse.BCSR.from_bcoo(sparse.BCOO.fromdense(X)).indptr,
        "scipy": sparse.BCSR.from_scipy_sparse(scipy.sparse.csr_matrix(X)).todense(),
        "grad": lib.grad(
            lambda d: (sparse.BCSR((d, a.indices, a.indptr), shape=a.shape) @ v).sum()
        )(a.data),
        "function": sparse.bcsr_todense(sparse.bcsr_fromdense(X)),
    }
    return out, repr(a)


def test_matrices_by_rows():
    (got, shown), (want, wanted) = by_rows(lamina, sparse), by_rows(jax, jax_sparse)
    assert shown == wanted
    for name, value in got.items():
        for x, y in zip(lamina.tree.leaves(value), jax.tree.leaves(want[name]), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, err_msg=name)


def test_operators_of_matrices_by_rows():
    a = sparse.BCSR.fromdense(X)
    np.testing.assert_array_equal(a.T.todense(), X.T)
    np.testing.assert_array_equal((a + a).todense(), 2 * X)
    np.testing.assert_array_equal((a + a).sum_duplicates(4).todense(), 2 * X)
    np.testing.assert_array_equal((-a * 3).todense(), -3 * X)
    np.testing.assert_array_equal(np.ones(3, np.float32) @ a, X.sum(0))
    np.testing.assert_array_equal(a + X, 2 * X)
    assert isinstance(a, sparse.JAXSparse) and isinstance(sparse.eye(2), sparse.JAXSparse)
    assert len(a) == 3 and a.size == 12 and a.block_until_ready().nse == 4
    with pytest.raises(ValueError, match="rows"):
        sparse.BCSR((np.ones(2), np.zeros(2, int), np.zeros(2, int)), shape=(3, 4))
    with pytest.raises(ValueError, match="two sparse axes"):
        sparse.BCSR.fromdense(X[0])
    with pytest.raises(ValueError, match="no permutation"):
        a.transpose((0, 0))


def sparsified(lib, sparse):
    np_ = lib.numpy
    a, v = sparse.BCOO.fromdense(X), np_.arange(4, dtype=np.float32)
    functions = {
        "product": lambda a, v: (2 * a) @ v,
        "turned": lambda a, v: v[:3] @ a,
        "transposed": lambda a, v: a.T,
        "sum": lambda a, v: a.sum(0),
        "total": lambda a, v: a.sum(),
        "kept zeros": lambda a, v: np_.sin(-a) * v,
        "squared": lambda a, v: (a + a) ** 2,
        "reshaped": lambda a, v: a.reshape(2, 6),
        "inner jit": lambda a, v: lib.jit(lambda a: a * 3)(a) @ v,
        "dense beside": lambda a, v: (np_.exp(v), a - a),
    }
    return {name: lib.jit(sparse.sparsify(f))(a, v) for name, f in functions.items()}


def test_sparsify():
    def dense(module, tree_module, value):
        leaves = tree_module.leaves(value, is_leaf=lambda x: isinstance(x, module.JAXSparse))
        return [module.todense(x) for x in leaves]

    got, want = sparsified(lamina, sparse), sparsified(jax, jax_sparse)
    for name, value in got.items():
        kinds = type(value).__name__, type(want[name]).__name__
        assert ("BCOO" in kinds[0]) == ("BCOO" in kinds[1]), name
        pairs = zip(
            dense(sparse, lamina.tree, value), dense(jax_sparse, jax.tree, want[name]), strict=True
        )
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6, err_msg=name)
    with pytest.raises(NotImplementedError, match="sparse rule for exp"):
        sparse.sparsify(jnp.exp)(sparse.BCOO.fromdense(X))
    both = sparse.BCSR.fromdense(X)
    np.testing.assert_array_equal(sparse.sparsify(lambda a: 2 * a)(both).todense(), 2 * X)


def test_systems_and_eigenvalues():
    rng = np.random.default_rng(0)
    dense = np.eye(6) * 4 + scipy.sparse.random(6, 6, 0.4, random_state=0).toarray()
    a, b = scipy.sparse.csr_matrix(dense.astype(np.float32)), rng.normal(size=6).astype(np.float32)
    got = lamina.jit(linalg.spsolve)(a.data, a.indices, a.indptr, b)
    np.testing.assert_allclose(got, np.linalg.solve(dense, b), rtol=1e-4)

    matrix = rng.normal(size=(40, 40)).astype(np.float32)
    matrix = matrix @ matrix.T
    start = rng.normal(size=(40, 3)).astype(np.float32)
    expected = np.linalg.eigvalsh(matrix)[::-1][:3]
    for given in (matrix, lambda v: matrix @ v, sparse.BCSR.fromdense(matrix)):
        values, vectors, steps = linalg.lobpcg_standard(given, start, m=60, tol=1e-5)
        np.testing.assert_allclose(values, expected, rtol=1e-3)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=0.3)
        assert 0 < int(steps) <= 60
    from jax.experimental.sparse.linalg import lobpcg_standard

    np.testing.assert_allclose(values, lobpcg_standard(matrix, start, 60, 1e-5)[0], rtol=1e-3)
    for solver in (linalg.lobpcg_standard, lobpcg_standard):
        for text, a, x in (
            ("search dim \\* 5 <", matrix[:10, :10], start[:10]), ("search dim > 0", matrix, start[:, :0]),
            ("must have same dtypes", lambda v: jnp.asarray(matrix @ v, "float16"), start),
            ("A must be", matrix[:20], start),
        ):  # fmt: skip
            if not (callable(a) and solver is lobpcg_standard):  # which traces that function with its own arrays
                with pytest.raises(ValueError, match=text):
                    solver(a, x)
    assert sparse.bcoo.bcoo_dot_general is sparse.bcoo_dot_general


@pytest.mark.parametrize("name", ["COO", "CSR", "CSC"])
def test_formats_of_matrices(name):
    def all_of(lib, sparse):
        kind, v = getattr(sparse, name), lib.numpy.arange(4, dtype=np.float32)
        a = kind.fromdense(X)
        made = {
            "parts": lib.tree.leaves(a), "of transpose": lib.tree.leaves(a.T),
            "dense": lib.jit(lambda a: a.todense())(a), "padded": kind.fromdense(X, nse=6).todense(),
            "v": lib.jit(lambda a, v: a @ v)(a, v), "m": a @ lib.numpy.outer(v, v),
            "T": a.T @ v[:3], "eye": sparse.eye(3, 4, k=1, sparse_format=name.lower()).todense(),
            "none": sparse.empty((2, 3), sparse_format=name.lower()).todense(),
            "grad": lib.grad(lambda d: (kind((d, *lib.tree.leaves(a)[1:]), shape=a.shape) @ v).sum())(a.data),
        }  # fmt: skip
        return made, repr(a)

    (got, shown), (want, wanted) = all_of(lamina, sparse), all_of(jax, jax_sparse)
    assert shown == wanted
    for key, value in got.items():
        for x, y in zip(lamina.tree.leaves(value), jax.tree.leaves(want[key]), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, err_msg=key)
    a = getattr(sparse, name).fromdense(X)
    np.testing.assert_array_equal((-a * 3).todense(), -3 * X)
    np.testing.assert_array_equal(np.ones(3, np.float32) @ a, X.sum(0))
    np.testing.assert_array_equal(sparse.sparsify(jnp.sin)(a).todense(), jnp.sin(X))
    np.testing.assert_array_equal(sparse.grad(lambda a: (a @ X[0]).sum())(a).data, X[0][a.to_bcoo().indices[:, 1]])
    with pytest.raises(NotImplementedError, match="two sparse"):
        a @ a
    with pytest.raises(NotImplementedError, match=r"shape \(\)"):
        a @ 2.0
    with pytest.raises(NotImplementedError, match="axes"):
        a.transpose((0, 1))
    with pytest.raises(ValueError, match="matrix"):
        type(a)(lamina.tree.leaves(a), shape=(3,))


def test_functions_of_formats():
    for kind in ("coo", "csr"):
        for lib in (sparse, jax_sparse):
            a = getattr(lib, f"{kind}_fromdense")(X)
            matvec, matmat = getattr(lib, f"{kind}_matvec"), getattr(lib, f"{kind}_matmat")
            np.testing.assert_allclose(matvec(a, X[1]), X @ X[1])
            np.testing.assert_allclose(matvec(a, X[:, 1], transpose=True), X.T @ X[:, 1])
            np.testing.assert_allclose(matmat(a, X.T), X @ X.T)
            np.testing.assert_allclose(matmat(a, X, transpose=True), X.T @ X)
            np.testing.assert_array_equal(getattr(lib, f"{kind}_todense")(a), X)
    with pytest.raises(ValueError, match="sparse_format"):
        sparse.eye(2, sparse_format="dia")


def test_functions_of_matrices_by_rows():
    a = sparse.BCSR.fromdense(X)
    numbers = (((0,), (0,)), ((), ()))
    np.testing.assert_allclose(sparse.bcsr_dot_general(a, X, dimension_numbers=numbers), X.T @ X)
    np.testing.assert_array_equal(sparse.bcsr_extract(a.indices, a.indptr, X), a.data)
    for axis in (0, 1):
        found = sparse.bcsr_concatenate([a, a], dimension=axis).todense()
        np.testing.assert_array_equal(found, np.concatenate([X, X], axis))
    row = sparse.BCSR.fromdense(X[:1])
    wide = sparse.bcsr_broadcast_in_dim(row, shape=(3, 4), broadcast_dimensions=(0, 1))
    np.testing.assert_array_equal(wide.todense(), np.broadcast_to(X[:1], (3, 4)))
