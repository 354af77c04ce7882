"""Arguments of unusual kinds: numbers where arrays are usual, booleans as indices, floats as counts, weak booleans."""

from typing import Any

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

WEAK = [
    ("all", 3), ("all", 0.0), ("any", 2.5), ("isinf", 2.5), ("isposinf", 2.5), ("isneginf", -np.inf), ("signbit", -3),
    ("signbit", -0.0), ("iscomplex", 3), ("isreal", 2.5), ("logical_not", 3), ("isin", 1, 2), ("array_equal", 1, 1),
    ("array_equiv", 1, 1), ("logical_and", 1.5, 2), ("equal", 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, *args in WEAK])
def test_truth_of_numbers_is_as_weak_as_in_jax(name: str, args: list[Any]) -> None:
    found, expected = getattr(jnp, name)(*args), getattr(jax.numpy, name)(*args)
    assert (found.dtype, found.weak_type, bool(found)) == (expected.dtype, expected.weak_type, bool(expected))


def test_truth_of_weak_and_strong_operands_is_strong() -> None:
    assert not jnp.logical_and(1.5, jnp.ones(2)).weak_type
    assert not jnp.all(jnp.equal(1, 1)).weak_type


def test_take_by_booleans_takes_elements_0_and_1() -> None:
    x = jnp.arange(4.0)
    for index in (True, np.array([True, False]), jnp.array([True, False])):
        np.testing.assert_array_equal(jnp.take(x, index), jax.numpy.take(np.asarray(x), np.asarray(index)))


@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman", "bartlett"])
def test_windows_of_float_length_cut_the_fraction_off(name: str) -> None:
    for length in (4.0, 4.5, True):
        np.testing.assert_allclose(getattr(jnp, name)(length), getattr(jax.numpy, name)(length), atol=1e-6)
    with pytest.raises(ValueError, match="invalid literal"):
        getattr(jnp, name)("a")


def test_polynomials_of_numbers() -> None:
    for call in (jnp.polymul, jnp.polyadd):
        with pytest.raises(TypeError, match=r"got shape \(\): for a constant"):
            call(1, 2)
    for call in (jnp.polyder, jnp.polyint):
        with pytest.raises(TypeError, match=r"got shape \(\)"):
            call(3)
    assert jnp.roots(3).shape == (0,)


def test_blocks_must_be_lists_of_one_depth() -> None:
    with pytest.raises(ValueError, match="does not allow tuples"):
        jnp.block((1.5, 2))
    with pytest.raises(ValueError, match="Mismatched list depths"):
        jnp.block([1, [2]])
    with pytest.raises(ValueError, match="cannot be empty"):
        jnp.block([[1], []])


def test_numbers_of_triangles_are_integers() -> None:
    for call in (jnp.tril_indices, jnp.triu_indices):
        with pytest.raises(TypeError, match="integer"):
            call(2.5)


def test_interp_of_a_number_between_integers() -> None:
    found, expected = (m.interp(1.5, m.arange(3), m.arange(3) * 2) for m in (jnp, jax.numpy))
    assert (float(found), found.dtype) == (float(expected), expected.dtype)


def test_select_and_choose_by_integers_and_floats() -> None:
    conditions, choices = [np.array([1, 0])], [np.array([1, 2])]
    np.testing.assert_array_equal(jnp.select(conditions, choices), jax.numpy.select(conditions, choices))
    with pytest.raises(ValueError, match="must be integers"):
        jnp.choose(jnp.array([0.0, 1.0]), [1, 2])


def test_arguments_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="pass fill_value"):
        jnp.unique(jnp.zeros(0), size=2)
    assert jnp.unique(jnp.zeros(0), size=2, fill_value=3).tolist() == [3, 3]
    with pytest.raises(ValueError, match="method='foo'"):
        jnp.isin(jnp.arange(3), 2, method="foo")
    with pytest.raises(TypeError, match="fweights must be integers"):
        jnp.cov(jnp.arange(3.0), fweights=jnp.array([1.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="stat_length of 0"):
        jnp.pad(jnp.arange(4), 2, mode="mean", stat_length=0)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        lamina.lax.index_in_dim(jnp.arange(5), 7)
