"""lamina.numpy's sorting, searching, sets and functions along axes, against JAX."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle.judge import LAMINA, check, check_all

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = np.array([3.0, 1.0, 2.0, 1.0], np.float32)


# ---- sorting, searching, sets --------------------------------------------------------------------
SPECIAL = np.array([3.0, -0.0, np.nan, np.inf, 0.0, -np.inf, 1.0, -np.nan, 1.0], np.float32)


def test_sorting():
    check_all(
        lambda m: {
            "sort": m.np.sort(X, 1),
            "special": m.np.sort(SPECIAL),
            "down": m.np.sort(SPECIAL, descending=True),
            "all": m.np.sort(X, None),
            "argsort": m.np.argsort(X, 0),
            "special arg": m.np.argsort(SPECIAL),
            "ties": m.np.argsort(np.array([2, 1, 2, 1]), descending=True),
            "bool": m.np.sort(np.array([True, False])),
            "lexsort": m.np.lexsort((V, np.array([1, 0, 1, 0]))),
            "ints": m.np.sort(np.array([3, -1, 2], np.int8)),
            "complex": m.np.sort(np.array([1 + 2j, 1 - 1j, 0])),
            "method": m.np.asarray(V).sort(),
            "argmethod": m.np.asarray(V).argsort(descending=True),
        }
    )
    np.testing.assert_array_equal(np.sort(np.asarray(jnp.partition(V, 2))), np.sort(V))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searching_sorted(side):
    a = np.array([1.0, 2.0, 2.0, 5.0, np.nan], np.float32)
    v = np.array([[0.0, 1.0, 2.0], [3.0, 9.0, np.nan]], np.float32)
    check(lambda m: m.np.searchsorted(a, v, side))
    check(lambda m: m.np.searchsorted(np.arange(17), np.array([-1, 0, 8, 16, 99]), side))
    check(lambda m: m.np.searchsorted(a[:0], v, side))
    check(lambda m: m.np.asarray(a).searchsorted(2.0, side))


def test_interp():
    xp, fp = np.array([0.0, 1.0, 3.0], np.float32), np.array([1.0, 2.0, 0.0], np.float32)
    x = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 4.0], np.float32)
    check(lambda m: m.np.interp(x, xp, fp))
    check(lambda m: m.np.interp(x, xp, fp, left=-5, right="extrapolate"))
    check(lambda m: m.np.interp(x, xp, fp, period=3.5))
    check(lambda m: m.np.interp(x, xp, fp.astype(np.complex64) * 1j, left=2))


@pytest.mark.parametrize("types", [("f4", "f8", "f4"), ("f8", "f4", "f4"), ("f4", "f4", "f8"), ("i4", "f2", "f4")])
def test_interp_of_unlike_types_has_the_type_of_its_sums(types):
    x, xp, fp = (np.array([0, 1, 3], of) for of in types)
    for x64 in (False, True):
        with lamina.enable_x64(x64), jax.enable_x64(x64):
            check(lambda m: m.np.interp(x, xp, fp))
            check(lambda m: m.np.interp(x, xp, fp, left=np.float64(3), period=None))


def test_interp_refuses_what_has_no_order():
    with pytest.raises(ValueError, match="x and xp must be real, got complex64"):
        jnp.interp(1j, np.arange(3.0), np.arange(3.0))
    with pytest.raises(ValueError, match=r"period must be a scalar, got an array of shape \(2,\)"):
        jnp.interp(1.0, np.arange(3.0), np.arange(3.0), period=np.ones(2))


def test_sets():
    a, b = np.array([3, 1, 2, 1, 3]), np.array([2, 3, 9])
    check_all(
        lambda m: {
            "unique": m.np.unique(a),
            "all": m.np.unique(a, True, True, True),
            "size": m.np.unique(a, size=5),
            "fill": m.np.unique(a, size=5, fill_value=-1),
            "nan": m.np.unique(SPECIAL),
            "axis": m.np.unique(np.array([[1, 2], [1, 2], [0, 2]]), axis=0),
            "axis inverse": m.np.unique(
                np.array([[1, 2, 1], [0, 2, 0]]), axis=1, return_inverse=True, return_counts=True
            ),
            "sized": m.jit(
                lambda v: m.np.unique(
                    v, size=4, return_counts=True, return_inverse=True, return_index=True
                )
            )(a),
            "short": m.np.unique(a, size=2, return_counts=True),
            "isin": m.np.isin(a, b),
            "not": m.np.isin(a, b, invert=True),
            "union": m.np.union1d(a, b),
            "union size": m.np.union1d(a, b, size=6),
            "intersect": m.np.intersect1d(a, b),
            "intersect indices": m.np.intersect1d(a, b, return_indices=True),
            "setdiff": m.np.setdiff1d(a, b),
            "setxor": m.np.setxor1d(a, b),
            "setdiff of nothing": m.np.setdiff1d(a[:0], b, size=3, fill_value=7),
            "intersect of nothing": m.np.intersect1d(a[:0], b, size=2),
        }
    )
    with pytest.raises(
        lamina.errors.ConcretizationTypeError,
        match="specify a concrete value for the size argument",
    ):
        lamina.jit(jnp.unique)(a)


@pytest.mark.parametrize(
    "a, fill", [([0, 1, 2, 5, 1, 0], None), ([-3, 0, -3, 4], 9), ([1, 1], None), ([7, 7, 7], None)]
)
def test_sets_of_a_given_size(a, fill):
    """What only fills an intermediate result up is no member again."""
    a, b = np.array(a, np.float32), np.array([0, 1, 2, 4, 4, 0], np.float32)
    check_all(lambda m, a, b: {
        "setdiff": m.np.setdiff1d(a, b, size=4, fill_value=fill),
        "setdiff back": m.np.setdiff1d(b, a, size=4, fill_value=fill),
        "short": m.np.setdiff1d(a, b, size=1),
        "assumed": m.np.setdiff1d(a, b, True, size=7, fill_value=fill),
        "setxor": m.np.setxor1d(a, b, size=7, fill_value=fill),
        "setxor back": m.np.setxor1d(b, a, size=3, fill_value=fill),
        "intersect": m.np.intersect1d(a, b, size=5, fill_value=fill),
        "indices": m.np.intersect1d(b, a, return_indices=True, size=5, fill_value=fill),
    }, a, b, jit=True)  # fmt: skip
    assert jnp.setdiff1d(a, b, size=0).shape == (0,)


@settings(max_examples=20)
@given(st.lists(st.integers(-3, 3), min_size=0, max_size=8))
def test_unique_is_numpys(values):
    a = np.array(values, np.int32)
    got = jnp.unique(a, return_index=True, return_inverse=True, return_counts=True)
    for g, w in zip(got, np.unique(a, True, True, True), strict=True):
        np.testing.assert_array_equal(np.asarray(g), w)


# ---- functions along axes ------------------------------------------------------------------------
def test_functions_along_axes():
    f = lambda m: m.np.vectorize(lambda x, y: m.np.dot(x, y), signature="(n),(n)->()")  # noqa: E731
    check(lambda m: f(m)(X, X[0]))
    check(lambda m: m.np.vectorize(lambda x, y: x + 2 * y)(X, V))
    check(lambda m: m.np.vectorize(lambda n, x: x * n, excluded={0})(3, V))
    check(lambda m: m.jit(f(m))(X, X))
    check(lambda m: m.np.apply_along_axis(m.np.sum, 1, X))
    check(lambda m: m.np.apply_over_axes(m.np.sum, X, (0, 2)))
    check(lambda m: m.np.piecewise(V, [V < 2, V >= 3], [lambda v: -v, 10.0, lambda v: v * v]))
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n'"):
        f(LAMINA)(X, V[:2])


def test_a_long_search_in_what_the_program_computes():
    """Some 400 ops in one kernel, whose gathers read at places that others of them compute."""
    bins = np.random.default_rng(0).integers(0, 20, 2304) > 0

    def program(m, bins, x):
        return {"bins": m.np.digitize(x.astype("int16"), m.np.sort(bins))}

    check_all(program, bins, np.array([True, False, False, True, False]), jit=True)
