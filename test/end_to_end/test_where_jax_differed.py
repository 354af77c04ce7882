"""Values and errors that differed from JAX 0.12's, found by its own tests."""

from collections import namedtuple
from typing import Any

import jax
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.stats
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

needs_0_12 = pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="is so since JAX 0.12")


def alike(name: str, *args: Any, atol: float = 1e-6, rtol: float = 1e-5, **kwargs: Any) -> None:
    """The function of this name, below either library, gives the same."""
    got, want = lamina, jax
    for part in name.split("."):
        got, want = getattr(got, part), getattr(want, part)
    found, expected = got(*args, **kwargs), want(*args, **kwargs)
    for a, b in zip(lamina.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=atol, rtol=rtol)


@needs_0_12
@pytest.mark.parametrize("name", ["numpy.i0", "scipy.special.i0", "scipy.special.i1"])
def test_derivatives_of_bessel_functions(name: str) -> None:
    module, _, function = name.rpartition(".")
    for x in (0.0, -0.0, 1e-20, 2.0, -2.0):
        for order in (1, 2, 3) if x else (1, 2):
            derivatives = []
            for library in (lamina, jax):
                place: Any = library
                for part in module.split("."):
                    place = getattr(place, part)
                fun = getattr(place, function)
                for _ in range(order):
                    fun = library.grad(fun)
                derivatives.append(float(fun(x)))
            np.testing.assert_allclose(*derivatives, atol=1e-6, rtol=1e-5)


def test_sets_of_complex_nans_and_broken_promises() -> None:
    nan = np.nan
    values = np.array([1 + 1j, complex(nan, 1), complex(1, nan), 2, complex(nan, 0)], np.complex64)
    alike("numpy.unique", values, return_index=True, return_inverse=True, return_counts=True)
    twice, other = np.array([1, 1, 2, 3, 3], np.int32), np.array([2, 5, 5], np.int32)
    for size in (None, 2, 9):
        alike("numpy.setxor1d", twice, other, assume_unique=True, size=size, fill_value=99)
    alike("numpy.setxor1d", twice[:0], 4, assume_unique=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_spacing(dtype: str) -> None:
    values = [-1, -1e-3, -7e-5, -1e-7, -0.0, 0, 1e-7, -np.inf, np.nan, 1, 65504, -65504]
    x = np.array(values, jnp.dtype(dtype))
    alike("numpy.spacing", x, atol=0, rtol=0)


@needs_0_12
def test_softmax_of_nothing_is_zero() -> None:
    none = np.zeros(4, bool)
    alike("nn.softmax", np.arange(4, dtype=np.float32), where=none)
    alike("nn.log_softmax", np.arange(4, dtype=np.float32), where=none)


def test_one_hot_of_a_list() -> None:
    alike("nn.one_hot", [1, 2], 3)


@needs_0_12
def test_interpolated_integers_round_halves_away_from_zero() -> None:
    places = [np.array([0.5, 1.5, 2.5, 3.5, 8.5, 11.5], np.float32)]
    for order in (0, 1):
        alike("scipy.ndimage.map_coordinates", np.arange(-8, 8, dtype=np.int32), places, order=order)
    alike("scipy.ndimage.map_coordinates", np.arange(3), [[0.5, 1.5]], order=1)


def test_derivatives_of_loggamma_samples_at_tiny_shapes() -> None:
    slopes = [
        np.asarray(m.vmap(m.grad(lambda a, m=m: m.random.loggamma(m.random.key(1), a)))(
            np.array([1e-30, 1e-10, 0.1, 1], np.float32)))
        for m in (lamina, jax)
    ]  # fmt: skip
    np.testing.assert_allclose(*slopes, rtol=1e-4)


def test_bfgs_of_a_steep_function() -> None:
    for m in (lamina, jax):
        scale = m.numpy.eye(2) * 1e4
        found = m.scipy.optimize.minimize(
            lambda x, m=m, scale=scale: m.numpy.mean((scale @ x) ** 2), m.numpy.ones(2), method="BFGS"
        )
        np.testing.assert_allclose(found.x, 0, atol=1e-6)


def test_lbfgs_of_complex_numbers() -> None:
    def loss(x: Any) -> Any:
        real, imag = jnp.real(x), jnp.imag(x)
        return jnp.sum((real - 1) ** 2 + 3 * (imag + 2) ** 2)

    with lamina.numpy_dtype_promotion("strict"):
        found = lamina.scipy.optimize.minimize(
            loss, jnp.zeros(3, "complex64"), method="l-bfgs-experimental-do-not-rely-on-this"
        )
    np.testing.assert_allclose(found.x, np.full(3, 1 - 2j), atol=1e-3)


def test_beta_has_no_density_of_shapes_that_are_not_positive() -> None:
    x = np.array([0, 0.5, 1, 1.2, np.nan], np.float32)
    for a, b in ((-1.0, 2.0), (1.0, 0.0), (0.0, 0.0), (1.0, 2.0)):
        alike("scipy.stats.beta.logpdf", x, a, b)


def test_functions_under_strict_promotion() -> None:
    with lamina.numpy_dtype_promotion("strict"):
        x = jnp.sin(jnp.arange(64, dtype="float32"))
        assert lamina.scipy.signal.csd(x, x, nperseg=16)[1].shape == (9,)
        p = jnp.array([0.5, 0.5])
        logs = lamina.scipy.stats.multinomial.logpmf(jnp.array([1, 2]), 3, p)
    np.testing.assert_allclose(logs, -0.9808292, rtol=1e-5)


def test_outer_under_strict_rank_promotion() -> None:
    with lamina.numpy_rank_promotion("raise"):
        assert jnp.maximum.outer(jnp.ones((4, 1)), jnp.ones((2, 3))).shape == (4, 1, 2, 3)


def test_reduceat_without_indices_is_empty() -> None:
    assert jnp.add.reduceat(jnp.ones((4, 2)), jnp.array([], int), axis=1).shape == (4, 0)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial_values_are_scalars(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: initial value must be a scalar"):
        getattr(jnp, name)(jnp.ones((2, 3)), axis=0, initial=jnp.ones(3))


def test_operators_leave_named_tuples_to_their_class() -> None:
    class Pair(namedtuple("Pair", ["a"])):
        def __rmul__(self, other: Any) -> str:
            return "theirs"

    assert jnp.ones(2) * Pair(1) == "theirs"
    with pytest.raises(TypeError, match=r"for -: 'list' and 'ArrayImpl': make an array of the list"):
        [1, 2] - jnp.ones(2)  # type: ignore[operator]


def test_gradients_at_python_numbers_are_checked_as_floats_of_their_width() -> None:
    lamina.test_util.check_grads(lamina.nn.elu, (1.0,), order=3)
