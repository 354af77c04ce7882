"""Sparsified functions with loops, branches and calls; convolutions; sparse arrays of other layouts and in trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.experimental import sparse
from lamina.experimental.sparse import BCOO, BCSR

X = np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0]], np.float32)
S = BCOO.fromdense(X)


def _check(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.todense(), wanted, rtol=1e-6)


@sparse.sparsify
def _doubled_or_transposed(which: Any, x: Any) -> Any:
    return lax.cond(which, lambda x: 2 * x, lambda x: x.T, x)


def test_branches():
    _check(_doubled_or_transposed(True, S), 2 * X)
    _check(lamina.jit(_doubled_or_transposed)(False, S), X.T)
    with pytest.raises(TypeError, match="sparsified true_fun output must have same type structure"):
        sparse.sparsify(lambda x, y: lax.cond(True, lambda a, b: a, lambda a, b: b, x, y))(S, X)


def test_while_loops():
    def turned(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2].T, 2 * c[1]), (0, x, x))

    steps, a, b = sparse.sparsify(turned)(S)
    wanted = turned(X)
    assert steps == wanted[0]
    _check(a, wanted[1])
    _check(b, wanted[2])


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse):
    def program(rows, m, v):
        def step(carry, row):
            return m @ carry + 1, (row * 2, carry.sum())

        return lax.scan(step, v, rows, reverse=reverse)

    v = np.arange(3, dtype=np.float32)
    last, (rows, sums) = sparse.sparsify(program)(BCOO.fromdense(X, n_batch=1), S, v)
    wanted, (wanted_rows, wanted_sums) = program(X, X, v)
    np.testing.assert_allclose(last, wanted)
    np.testing.assert_allclose(sums, wanted_sums)
    _check(rows, wanted_rows)
    assert rows.n_batch == 1
    with pytest.raises(NotImplementedError, match="without a batch axis"):
        sparse.sparsify(program)(S, S, v)


def test_values_at_one_place_in_a_loop():
    twice = S + S
    found = sparse.sparsify(lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c), x))(twice)
    _check(found, np.tanh(np.tanh(2 * X)))


def test_functions_with_rules_of_their_own():
    @lamina.custom_jvp
    def half(x):
        return jnp.sin(x) / 2

    half.defjvp(lambda p, t: (half(p[0]), 3 * t[0]))
    _check(sparse.sparsify(half)(S), np.sin(X) / 2)
    _check(sparse.sparsify(lamina.checkpoint(lambda x: x * 2))(S), 2 * X)
    found = sparse.grad(lambda m: sparse.sparsify(half)(m).todense().sum())(S).data
    np.testing.assert_allclose(found, np.cos(S.data) / 2, rtol=1e-6)


def test_dense_within_a_sparsified_function():
    f = sparse.sparsify(lambda x: sparse.todense(x) + 1)
    for x in (X, S, BCSR.fromdense(X)):
        np.testing.assert_array_equal(lamina.jit(f)(x), X + 1)
    np.testing.assert_array_equal(lamina.vmap(sparse.todense)(X), X)
    np.testing.assert_array_equal(lamina.grad(lambda x: (sparse.todense(x) ** 2).sum())(X), 2 * X)


def test_formats_stay():
    found = sparse.sparsify(jnp.negative)(BCSR.fromdense(X))
    assert isinstance(found, BCSR)
    _check(found, -X)
    _check(BCSR.fromdense(X[None], n_batch=1)[0], X)
    with pytest.raises(NotImplementedError, match="to_bcoo"):
        BCSR.fromdense(X)[0]


def test_what_has_no_rule():
    with pytest.raises(NotImplementedError, match="cos is not implemented because it would result in dense output"):
        sparse.sparsify(jnp.cos)(S)
    with pytest.raises(NotImplementedError, match=r"sparse rule for complex is not implemented\.$"):
        sparse.sparsify(lax.complex)(S, S)
    with pytest.raises(NotImplementedError, match="integer_pow with non-positive exponent"):
        S**-1


@pytest.mark.parametrize("options", [
    {"window_strides": (1,), "padding": "SAME"},
    {"window_strides": (2,), "padding": [(1, 2)], "rhs_dilation": (2,)},
    {"window_strides": (1,), "padding": "VALID", "lhs_dilation": (3,)},
])  # fmt: skip
def test_convolutions(options):
    random = np.random.default_rng(0)
    x, k = (random.integers(0, 3, shape).astype(np.float32) for shape in ((2, 3, 6), (4, 3, 3)))
    wanted = lax.conv_general_dilated(x, k, **options)
    for left, right in ((BCOO.fromdense(x), k), (x, BCOO.fromdense(k)), (BCOO.fromdense(x), BCOO.fromdense(k))):
        found = sparse.bcoo_conv_general_dilated(left, right, **options)
        _check(found, wanted)
        assert found.nse <= wanted.size
    with pytest.raises(NotImplementedError, match="groups"):
        sparse.bcoo_conv_general_dilated(BCOO.fromdense(x), k, feature_group_count=3, **options)


def test_convolutions_of_images():
    random = np.random.default_rng(1)
    x, k = (random.integers(0, 3, shape).astype(np.float32) for shape in ((1, 5, 4, 2), (2, 2, 2, 3)))
    options = {"window_strides": (1, 2), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    found = sparse.bcoo_conv_general_dilated(BCOO.fromdense(x, n_batch=1), k, **options)
    _check(found, lax.conv_general_dilated(x, k, **options))


def test_convolution_in_a_sparsified_function():
    v = jnp.array([0.0, 3.0, 0.0, 1.0])
    found = sparse.sparsify(lambda v: jnp.convolve(v, jnp.array([1.0, 2.0])))(BCOO.fromdense(v))
    _check(found, np.convolve(v, [1, 2]))
    found = sparse.sparsify(lambda x: lax.dynamic_slice(x, (1, 0), (1, 3)))(S)
    _check(found, X[1:2])


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_zeros_and_ones_of_any_layout(n_batch, n_dense):
    zeros = sparse.empty((3, 4), n_batch=n_batch, n_dense=n_dense, nse=2)
    assert (zeros.n_batch, zeros.n_dense, zeros.nse) == (n_batch, n_dense, 2)
    _check(zeros, np.zeros((3, 4)))
    ones = sparse.eye(3, 4, -1, n_batch=n_batch, n_dense=n_dense)
    assert ones.nse == BCOO.fromdense(np.eye(3, 4, -1), n_batch=n_batch, n_dense=n_dense).nse
    _check(ones, np.eye(3, 4, -1))
    if n_batch + n_dense:
        with pytest.raises(ValueError, match="of matrices"):
            sparse.empty((3, 4), sparse_format="coo", n_batch=n_batch, n_dense=n_dense)


def test_products_of_arrays_that_are_repeated():
    row = np.array([[1, 0, 2]], np.float32)
    _check(S * BCOO.fromdense(row), X * row)
    _check(BCOO.fromdense(row[0]) * S, X * row)
    assert (S @ S).nse == 9 and (S * S).nse == 9


def test_indices_that_batch_elements_share():
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    mat = BCOO((data, np.array([[[2], [0]]])), shape=(3, 4))
    found = mat.sort_indices()
    assert found.indices_sorted and found.indices.shape == (1, 2, 1)
    _check(found, mat.todense())
    assert S.transpose((0, 1)).indices_sorted and not S.T.indices_sorted


def test_derivatives_by_trees():
    tree = {"mat": S, "rest": [None, jnp.ones(3)]}

    def loss(tree, v):
        return ((tree["mat"] @ v + tree["rest"][1]) ** 2).sum()

    v = np.arange(3, dtype=np.float32)
    found = sparse.grad(loss)(tree, v)
    wanted = lamina.grad(loss)({"mat": X, "rest": [None, np.ones(3, np.float32)]}, v)
    np.testing.assert_allclose(found["rest"][1], wanted["rest"][1])
    _check(found["mat"], np.where(X, wanted["mat"], 0))


def test_texts():
    assert repr(BCOO.fromdense(X, n_batch=1)) == "BCOO(float32[3, 3], nse=2, n_batch=1)"
    broken = BCOO.fromdense(X)
    broken.indices = jnp.array([])
    assert repr(broken) == "BCOO(<invalid>)"
