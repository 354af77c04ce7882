"""Sparse arrays with batch and dense axes against dense ones."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.experimental import sparse

BCOO = sparse.BCOO
LAYOUTS = [(0, 0), (1, 1), (0, 2), (4, 0)]
SHAPE = (2, 3, 2, 3)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape) * (draw.random(shape) < 0.4)).astype(np.float32)


X = numbers(*SHAPE)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(sparse.todense(found), expected, atol=1e-5)


OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "twice": (lambda m: m * 2 + m, lambda x: x * 3),
    "times dense": (lambda m: m * X[0], lambda x: x * X[0]),
    "times itself": (lambda m: m * m, lambda x: x * x),
    "with padding": (lambda m: BCOO.fromdense(m.todense(), n_batch=m.n_batch, n_dense=m.n_dense, nse=m.nse + 1),
                     lambda x: x),
    "sums": (lambda m: m.sum(axis=(0, 2)), lambda x: x.sum((0, 2))),
    "all summed": (lambda m: sparse.bcoo_reduce_sum(m, axes=(0, 1, 2, 3)), lambda x: x.sum()),
    "summed duplicates": (lambda m: (m + m).sum_duplicates(), lambda x: 2 * x),
    "sorted": (lambda m: m.sort_indices(), lambda x: x),
    "reversed": (lambda m: sparse.bcoo_rev(m, (0, 1, 3)), lambda x: x[::-1, ::-1, :, ::-1]),
    "slice": (lambda m: sparse.bcoo_slice(m, start_indices=(1, 0, 0, 0), limit_indices=(2, 3, 1, 3),
                                          strides=(1, 2, 1, 2)), lambda x: x[1:2, ::2, :1, ::2]),
    "dynamic slice": (lambda m: sparse.bcoo_dynamic_slice(m, (1, 2, 0, 1), (1, 2, 1, 2)),
                      lambda x: x[1:, 1:, :1, 1:]),
    "no sparse axes": (lambda m: m.update_layout(n_batch=0, n_dense=4, on_inefficient=None), lambda x: x),
    "all sparse": (lambda m: m.update_layout(n_batch=0, n_dense=0), lambda x: x),
    "all batch": (lambda m: m.update_layout(n_batch=4, n_dense=0, on_inefficient=None), lambda x: x),
    "below one another": (lambda m: sparse.bcoo_concatenate([m, m * 2], dimension=0), lambda x: np.r_[x, 2 * x]),
    "of two layouts": (lambda m: m + BCOO.fromdense(X), lambda x: 2 * x),
    "repeated": (lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(2, *SHAPE), broadcast_dimensions=(1, 2, 3, 4)),
                 lambda x: np.stack([x, x])),
    "row": (lambda m: sparse.bcoo_squeeze(sparse.bcoo_slice(m, start_indices=(0, 1, 0, 0), limit_indices=(2, 2, 2, 3)),
                                          dimensions=(1,)), lambda x: x[:, 1]),
    "product": (lambda m: sparse.bcoo_dot_general(m, X[0], dimension_numbers=(((1, 3), (0, 2)), ((), ()))),
                lambda x: np.einsum("abcd,bed->ace", x, X[0])),
    "of batches": (lambda m: sparse.bcoo_dot_general(X, m, dimension_numbers=(((3,), (3,)), ((0,), (0,)))),
                   lambda x: np.einsum("nabc,ndec->nabde", X, x)),
    "of two": (lambda m: sparse.bcoo_dot_general(m, m, dimension_numbers=(((3,), (3,)), ((0,), (0,)))),
               lambda x: np.einsum("nabc,ndec->nabde", x, x)),
    "extracted": (lambda m: sparse.bcoo_extract(m, X), lambda x: x),
    "without zeros": (lambda m: sparse.bcoo_eliminate_zeros(m - m), lambda x: 0 * x),
    "in jit": (lamina.jit(lambda m: (m * 2).todense()), lambda x: 2 * x),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operations_on_all_layouts(layout: tuple[int, int]) -> None:
    n_batch, n_dense = layout
    mat = BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_sparse, mat.n_dense) == (n_batch, 4 - n_batch - n_dense, n_dense)
    close(mat, X)
    for name, (operation, dense) in OPERATIONS.items():
        try:
            close(operation(mat), dense(X))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def test_layouts_are_those_of_jax() -> None:
    """Of what is made, transposed, reshaped, broadcast and summed."""

    def program(lib: Any) -> Any:
        mat = lib.BCOO.fromdense(X, n_batch=1, n_dense=1)
        yield mat
        yield lib.bcoo_transpose(mat, permutation=(0, 2, 1, 3))
        yield lib.bcoo_reshape(lib.BCOO.fromdense(X, n_batch=1), new_sizes=(2, 6, 3))
        yield lib.bcoo_reduce_sum(mat, axes=(0,))
        yield lib.bcoo_broadcast_in_dim(mat, shape=(5, *SHAPE), broadcast_dimensions=(1, 2, 3, 4))
        yield lib.bcoo_update_layout(mat, n_batch=0, n_dense=0)
        yield mat + mat
        yield lib.BCSR.fromdense(X, n_batch=1, n_dense=1)

    for found, expected in zip(program(sparse), program(jax_sparse), strict=True):
        assert found.shape == expected.shape
        for a, b in zip(lamina.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_batches_of_one_stand_for_all() -> None:
    mat = BCOO((jnp.ones((1, 2)), jnp.array([[[0], [2]], [[1], [1]], [[3], [0]]])), shape=(3, 3))
    close(mat, [[1, 0, 1], [0, 2, 0], [1, 0, 0]])
    close(mat.sum(0), [2, 2, 1])
    close(lamina.vmap(lambda row: row * 2)(mat), 2 * np.asarray(mat.todense()))


def test_padding_takes_no_place_of_a_value() -> None:
    mat = BCOO((jnp.array([7.0, 5.0, 0.0, 1.0]), jnp.array([[0, 9], [1, 0], [0, 1], [1, 0]])), shape=(2, 3))
    once = mat.sum_duplicates()
    assert (once.data.tolist(), once.indices.tolist()) == ([6.0], [[1, 0]])
    kept = mat.sum_duplicates(remove_zeros=False)
    assert (kept.data.tolist(), kept.indices.tolist()) == ([0.0, 6.0], [[0, 1], [1, 0]])
    traced = lamina.jit(lambda m: m.sum_duplicates(nse=3))(mat)
    assert traced.indices.tolist() == [[1, 0], [2, 3], [2, 3]]
    close(traced, [[0, 0, 0], [6, 0, 0]])


def test_vmap_maps_over_batch_axes() -> None:
    v = np.arange(3, dtype=np.float32)
    mats = BCOO.fromdense(X[0], n_batch=1)
    close(lamina.vmap(lambda m: m @ v)(mats), X[0] @ v)
    made = lamina.vmap(lambda x: BCOO.fromdense(x, nse=4))(X[0])
    assert (made.n_batch, made.shape) == (1, (3, 2, 3))
    close(made, X[0])
    rows = lamina.vmap(lambda m: m @ v)(sparse.BCSR.fromdense(X[0], n_batch=1))
    close(rows, X[0] @ v)
    with pytest.raises(ValueError, match="must correspond to a batch dimension"):
        lamina.vmap(lambda m: m @ v)(BCOO.fromdense(X[0]))


def test_matrix_products_of_more_axes() -> None:
    stack, dense = BCOO.fromdense(X[0], n_batch=1), X[0].swapaxes(1, 2)
    close(stack @ dense, X[0] @ dense)
    close(stack @ np.ones((3, 4), np.float32), X[0] @ np.ones((3, 4), np.float32))
    close(dense @ stack, dense @ X[0])
    matrix = BCOO.fromdense(X[0, 0])
    close(matrix @ dense, X[0, 0] @ dense)
    with pytest.raises(NotImplementedError, match="leading axes"):
        stack @ np.ones((2, 3, 4), np.float32)


def test_sampled_products_of_batches() -> None:
    places = BCOO.fromdense(X[0], n_batch=1)
    a, b = numbers(3, 2, 4, seed=1), numbers(3, 4, 3, seed=2)
    dimensions = (((2,), (1,)), ((0,), (0,)))
    found = sparse.bcoo_dot_general_sampled(a, b, places.indices, dimension_numbers=dimensions)
    expected = sparse.bcoo_extract(places, lax.dot_general(a, b, dimensions))
    np.testing.assert_allclose(found, expected.data, atol=1e-5)
    rows = BCOO.fromdense(X[0], n_batch=1, n_dense=1)
    found = sparse.bcoo_dot_general_sampled(a, b, rows.indices, dimension_numbers=dimensions)
    assert found.shape == rows.data.shape


def test_rows_of_batches_of_matrices() -> None:
    mat = sparse.BCSR.fromdense(X, n_batch=1, n_dense=1)
    assert (mat.n_batch, mat.n_sparse, mat.n_dense) == (1, 2, 1)
    close(mat, X)
    close(mat.to_bcoo(), X)
    close(mat + mat, 2 * X)
    np.testing.assert_array_equal(sparse.bcsr_extract(mat.indices, mat.indptr, X), mat.data)
    numbers_of = (((2,), (0,)), ((), ()))
    close(sparse.bcsr_dot_general(mat, X[0, 0].T[:2], dimension_numbers=numbers_of),
          np.tensordot(X, X[0, 0].T[:2], ((2,), (0,))))  # fmt: skip


def test_gradients_and_random_arrays_with_batches() -> None:
    mat = sparse.random_bcoo(lamina.random.key(0), SHAPE, nse=0.5, n_batch=1, n_dense=1)
    assert (mat.data.shape, mat.indices.shape) == ((2, 3, 3), (2, 3, 2))
    slope = sparse.grad(lambda m: (m.todense() ** 2).sum())(mat)
    close(slope, 2 * np.asarray(mat.todense()))


def test_what_layouts_refuse() -> None:
    mat = BCOO.fromdense(X, n_batch=1, n_dense=1)
    with pytest.raises(NotImplementedError, match="mix batch, sparse and dense axes"):
        mat.transpose((1, 0, 2, 3))
    with pytest.raises(ValueError, match="cannot mix batch and sparse"):
        mat.reshape(3, 2, 2, 3)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 1 to 2"):
        mat.update_layout(n_batch=2)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense"):
        mat.update_layout(n_dense=2, on_inefficient="warn")
    with pytest.raises(ValueError, match="n_batch=3 and n_dense=2"):
        mat.update_layout(n_batch=3, n_dense=2)
    with pytest.raises(ValueError, match="two sparse axes"):
        sparse.BCSR.from_bcoo(BCOO.fromdense(X, n_batch=1))
    with pytest.raises(ValueError, match="do not fit"):
        BCOO((np.ones((2, 2)), np.zeros((3, 2, 1), int)), shape=(3, 4))
