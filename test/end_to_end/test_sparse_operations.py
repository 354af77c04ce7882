"""What `lax` does to arrays on sparse ones, and derivatives by them, against NumPy and JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse

import lamina
import lamina.numpy as jnp
from lamina.experimental import sparse
from lamina.experimental.sparse import BCOO

_RANDOM = np.random.default_rng(3)


def _x(*shape: int, share: float = 1.0) -> np.ndarray:
    found = _RANDOM.standard_normal(shape).astype(np.float32)
    found[_RANDOM.random(shape) > share] = 0
    return found


X, Y, Z = _x(4, 5, share=0.4), _x(5, 3, share=0.4), _x(4, 5, share=0.4)
W, U, V = _x(2, 4, 5, share=0.4), _x(2, 5, 6, share=0.4), _x(5)
S = BCOO.fromdense(X)
PADDED = BCOO.fromdense(X, nse=18)
TWICE = S + BCOO.fromdense(Z)  # places that are there twice


def _check(found: Any, wanted: Any) -> None:
    mine, theirs = (np.asarray(x.todense() if hasattr(x, "todense") else x) for x in (found, wanted))
    assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("name, x, y, numbers", [
    ("ij,jk->ik", X, Y, (((1,), (0,)), ((), ()))),
    ("ij,ij->", X, Z, (((0, 1), (0, 1)), ((), ()))),
    ("ij,kj->ik", X, Z, (((1,), (1,)), ((), ()))),
    ("bij,bjk->bik", W, U, (((2,), (1,)), ((0,), (0,)))),
    ("bij,bjk->jik", W, U, (((0,), (0,)), ((2,), (1,)))),
    ("i,jk->ijk", V, Y, (((), ()), ((), ()))),
])  # fmt: skip
def test_products(name, x, y, numbers, left, right):
    if not left and not right:
        with pytest.raises(ValueError, match="expected a BCOO"):
            sparse.bcoo_dot_general(x, y, dimension_numbers=numbers)
        return
    given = [BCOO.fromdense(a, nse=a.size) if is_sparse else a for a, is_sparse in ((x, left), (y, right))]
    multiply = lamina.jit(lambda a, b: sparse.bcoo_dot_general(a, b, dimension_numbers=numbers))
    found = multiply(*given)
    assert isinstance(found, BCOO) == (left and right)
    _check(found, np.einsum(name, x, y))


def test_operators_of_two_sparse_arrays():
    _check(TWICE * TWICE, (X + Z) ** 2)
    _check(PADDED * S, X * X)
    _check(TWICE @ BCOO.fromdense(Y), (X + Z) @ Y)
    with pytest.raises(TypeError, match=r"contracting dimensions to have the same shape, got \(5,\) and \(4,\)"):
        S @ S
    with pytest.raises(ValueError, match=r"\[BCOO\] \* of shapes \(4, 5\) and \(5, 3\)"):
        S * BCOO.fromdense(Y)


@pytest.mark.parametrize("mat, dense", [(S, X), (PADDED, X), (TWICE, X + Z)], ids=["plain", "padded", "twice"])
def test_parts_and_shapes(mat, dense):
    for start, limit, strides in (((0, 1), (3, 5), None), ((1, 0), (4, 5), (2, 3)), ((0, 0), (4, 0), None)):
        part = tuple(map(slice, start, limit, strides or (1, 1)))
        _check(sparse.bcoo_slice(mat, start_indices=start, limit_indices=limit, strides=strides), dense[part])
    for start in ((0, 1), (-1, 3), (9, 9)):
        wanted = jax.lax.dynamic_slice(dense, start, (2, 2))
        _check(lamina.jit(lambda *at: sparse.bcoo_dynamic_slice(mat, at, (2, 2)))(*start), wanted)
    _check(sparse.bcoo_rev(mat, (1,)), dense[:, ::-1])
    _check(sparse.bcoo_rev(mat, (0, -1)), dense[::-1, ::-1])
    _check(sparse.bcoo_concatenate([mat, S], dimension=1), np.concatenate([dense, X], 1))
    _check(sparse.bcoo_concatenate([mat, S], dimension=0), np.concatenate([dense, X]))
    repeated = sparse.bcoo_broadcast_in_dim(mat, shape=(4, 3, 5), broadcast_dimensions=(0, 2))
    _check(repeated, np.broadcast_to(dense[:, None], (4, 3, 5)))
    one = sparse.bcoo_slice(mat, start_indices=(1, 0), limit_indices=(2, 5))
    repeated = sparse.bcoo_broadcast_in_dim(one, shape=(3, 5), broadcast_dimensions=(0, 1))
    _check(repeated, np.broadcast_to(dense[1:2], (3, 5)))
    _check(sparse.bcoo_reshape(mat, new_sizes=(5, 4), dimensions=(1, 0)), dense.T.reshape(5, 4))
    _check(sparse.bcoo_squeeze(one, dimensions=(0,)), dense[1])
    _check(sparse.bcoo_extract(mat, Z), np.where(dense != 0, Z, 0))
    np.testing.assert_allclose(np.asarray(sparse.bcoo_multiply_dense(S, V)).sum(), (X * V).sum(), rtol=1e-4)


def test_what_does_not_fit_is_said():
    for call, error, text in (
        (lambda: sparse.bcoo_slice(S, start_indices=(0,), limit_indices=(1,)), ValueError, "2 indices expected"),
        (lambda: sparse.bcoo_slice(S, start_indices=(0, 0), limit_indices=(1, 9)), ValueError, "invalid indices"),
        (lambda: sparse.bcoo_dynamic_slice(S, (0, 0), (5, 5)), TypeError, "slice_sizes"),
        (lambda: sparse.bcoo_concatenate([], dimension=0), ValueError, "operands is empty"),
        (lambda: sparse.bcoo_concatenate([S, BCOO.fromdense(Y)], dimension=0), ValueError, "differ beside"),
        (lambda: sparse.bcoo_squeeze(S, dimensions=(0,)), ValueError, "squeeze"),
        (lambda: sparse.bcoo_broadcast_in_dim(S, shape=(3, 5), broadcast_dimensions=(0, 1)), ValueError, "broadcast"),
        (lambda: sparse.bcoo_extract(S, Y), ValueError, "shape mismatch"),
        (lambda: sparse.random_bcoo(lamina.random.key(0), (2, 2), nse=5), ValueError, "4 places"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_sparsified_functions_take_parts_and_put_them_together():
    function = sparse.sparsify(lambda a, b: jnp.concatenate([a[1:, ::-1], (b * a)[:3]], axis=0))
    _check(function(S, TWICE), np.concatenate([X[1:, ::-1], ((X + Z) * X)[:3]]))


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_gradients_by_sparse_arguments(name):
    def program(lib, m, v):
        return getattr(lib, name)(lambda m, v: (m @ v).sum() ** 2, argnums=(0, 1))(m, v)

    found = program(sparse, S, V)
    wanted = program(jax_sparse, jax_sparse.BCOO.fromdense(X), V)
    if name == "value_and_grad":
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
        found, wanted = found[1], wanted[1]
    assert isinstance(found[0], BCOO)
    _check(found[0], wanted[0])
    _check(found[1], wanted[1])


def test_gradients_with_something_beside():
    derivative, beside = sparse.grad(lambda m: ((m @ V).sum(), "beside"), has_aux=True)(S)
    _check(derivative, np.where(X != 0, np.broadcast_to(V, X.shape), 0))
    (value, beside_too), _ = sparse.value_and_grad(lambda m: ((m @ V).sum(), "beside"), has_aux=True)(S)
    assert beside == beside_too == "beside"
    np.testing.assert_allclose(value, (X @ V).sum(), rtol=1e-5)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians_by_sparse_arguments(name):
    wanted = getattr(jax_sparse, name)(lambda m: m @ V)(jax_sparse.BCOO.fromdense(X))
    _check(getattr(sparse, name)(lambda m: m @ V)(S), wanted)


@pytest.mark.parametrize("is_sorted", [False, True])
def test_random_arrays(is_sorted):
    mat = sparse.random_bcoo(lamina.random.key(1), (6, 7), nse=0.5, sorted_indices=is_sorted)
    assert mat.nse == 21 and mat.unique_indices
    flat = np.ravel_multi_index(tuple(np.asarray(mat.indices).T), (6, 7))
    assert len(set(flat)) == 21 and (list(flat) == sorted(flat) or not is_sorted)
    assert (np.asarray(mat.data) >= 0).all() and (np.asarray(mat.todense()) != 0).sum() == 21
    normal = sparse.random_bcoo(
        lamina.random.key(1), (6, 7), nse=9, unique_indices=False, generator=lamina.random.normal, dtype=np.float16
    )
    assert normal.nse == 9 and normal.dtype == np.float16


@pytest.mark.parametrize(
    "index",
    [
        0, -1, (0, 1), (slice(None), slice(1, None)), (slice(None, None, -1), slice(None, None, 2)), (None, 0),
        (..., 2), (slice(2, 0, -1), None, 3), slice(5, 7), np.array([2, 0]), (slice(None), np.array([[0, 3], [-1, 1]])),
    ],
)  # fmt: skip
def test_index_expressions(index):
    for mat, dense in ((S, X), (PADDED, X), (TWICE, X + Z)):
        _check(mat[index], dense[index])


def test_indices_that_are_traced_or_refused():
    _check(lamina.jit(lambda m, i: m[i, 1:])(S, 2), X[2, 1:])
    _check(lamina.jit(lambda m: m[1, 2].reshape(1))(PADDED), X[1, 2].reshape(1))
    for row, wanted in zip(S, X, strict=True):
        _check(row, wanted)
    for index, error in (((0, 0, 0), IndexError), (4, IndexError), ((..., ...), IndexError),
                         (X > 0, NotImplementedError), ("a", NotImplementedError),
                         ((np.array([0]), 1), NotImplementedError)):  # fmt: skip
        with pytest.raises(error):
            S[index]


@pytest.mark.parametrize("offsets, collapsed, starts, sizes", [
    ((1,), (0,), (0,), (1, 5)),
    ((0,), (0,), (0,), (1, 3)),
    ((0, 2), (), (0, 1), (2, 3)),
    ((), (0, 1), (1, 0), (1, 1)),
])  # fmt: skip
def test_gathers(offsets, collapsed, starts, sizes):
    at = np.array([[1, 2], [2, 0], [3, 3]], np.int32)[:, : len(starts)]
    numbers = jax.lax.GatherDimensionNumbers(offsets, collapsed, starts)
    wanted = jax.lax.gather(X, at, numbers, sizes, mode="clip")
    ours = lamina.lax.GatherDimensionNumbers(offsets, collapsed, starts)
    _check(lamina.jit(lambda m: sparse.bcoo_gather(m, at, ours, sizes, mode="clip"))(PADDED), wanted)
    with pytest.raises(NotImplementedError, match="mode"):
        sparse.bcoo_gather(S, at, ours, sizes, mode="fill")


def test_products_at_places():
    for x, y, numbers in ((X, Y, (((1,), (0,)), ((), ()))), (W, U, (((2,), (1,)), ((0,), (0,)))),
                          (X, Z, (((0, 1), (0, 1)), ((), ())))):  # fmt: skip
        full = np.asarray(jax.lax.dot_general(x, y, numbers))
        at = np.argwhere(np.ones_like(full))[::2].astype(np.int32)
        found = sparse.bcoo_dot_general_sampled(x, y, jnp.asarray(at), dimension_numbers=numbers)
        np.testing.assert_allclose(found, full[tuple(at.T)], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="a product of 2 axes"):
        sparse.bcoo_dot_general_sampled(X, Y, np.zeros((1, 3), int), dimension_numbers=(((1,), (0,)), ((), ())))


def test_operators():
    for mat, dense in ((S, X), (PADDED, X), (TWICE, X + Z)):
        _check(abs(mat), abs(dense))
        _check(+mat, dense)
        _check(mat**2, dense**2)
        _check(X - mat, X - dense)
        _check(mat + X, dense + X)
    for wrong in (lambda: S + 1, lambda: S + V, lambda: S**0, lambda: S**-1):
        with pytest.raises(NotImplementedError):
            wrong()
