"""Values and errors that differed from JAX 0.12's, found by its own tests."""

from collections import namedtuple
from typing import Any

import jax
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.stats
import numpy as np
import pytest
import scipy.stats

import lamina
import lamina.numpy as jnp


def alike(name: str, *args: Any, atol: float = 1e-6, rtol: float = 1e-5, **kwargs: Any) -> None:
    """The function of this name, below either library, gives the same."""
    got, want = lamina, jax
    for part in name.split("."):
        got, want = getattr(got, part), getattr(want, part)
    found, expected = got(*args, **kwargs), want(*args, **kwargs)
    for a, b in zip(lamina.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=atol, rtol=rtol)


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


def test_softmax_of_nothing_is_zero() -> None:
    none = np.zeros(4, bool)
    alike("nn.softmax", np.arange(4, dtype=np.float32), where=none)
    alike("nn.log_softmax", np.arange(4, dtype=np.float32), where=none)


def test_one_hot_of_a_list() -> None:
    alike("nn.one_hot", [1, 2], 3)


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


def test_lanes_that_do_not_take_a_branch_have_no_derivative_of_it() -> None:
    def fun(m: Any) -> Any:
        def root(x: Any) -> Any:
            return m.lax.cond(x < 1e-3, lambda: 1e-3, lambda: m.numpy.sqrt(x))

        def chosen(i: Any, x: Any) -> Any:
            return m.lax.switch(i, [lambda x: x, m.numpy.sqrt, m.numpy.log], x)

        x = m.numpy.array([0.0, 1.0, 0.0, 4.0])
        which = m.numpy.array([0, 1, 0, 2])
        return (
            m.grad(lambda x: m.vmap(root)(x).sum())(x),
            m.jit(m.grad(lambda x: m.vmap(root)(x).sum()))(x),
            m.grad(lambda x: m.vmap(chosen)(which, x).sum())(x),
        )

    for got, want in zip(fun(lamina), fun(jax), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("numpy_resid", [False, True])
def test_lstsq_of_zeros(numpy_resid: bool) -> None:
    ones, zeros = np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32)
    alike("numpy.linalg.lstsq", zeros, ones, numpy_resid=numpy_resid)
    full = np.array([[1, 2], [3, 4], [5, 7]], np.float32)
    alike("numpy.linalg.lstsq", full, ones, numpy_resid=numpy_resid, rtol=1e-4, atol=1e-4)


def test_the_derivative_of_pinv_makes_no_matrix_larger_than_its_argument() -> None:
    tall = jnp.ones((200_000, 2)) + jnp.eye(200_000, 2)
    assert lamina.grad(lambda m: jnp.linalg.pinv(m).sum())(tall).shape == (200_000, 2)
    rng = np.random.default_rng(0)
    for shape in ((5, 3), (3, 5), (4, 4)):
        a = rng.standard_normal(shape).astype(np.float32)
        slopes = [m.jvp(m.numpy.linalg.pinv, (a,), (np.cos(a),))[1] for m in (lamina, jax)]
        np.testing.assert_allclose(np.asarray(slopes[0]), np.asarray(slopes[1]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2, np.inf, "nuc", "fro"])
def test_norms_of_empty_matrices_are_zero(order: Any) -> None:
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        alike("numpy.linalg.norm", np.ones(shape, np.float32), ord=order, axis=(-2, -1))


def test_numbers_set_in_unsigned_arrays_may_exceed_int32() -> None:
    assert int(jnp.zeros(1, "uint32").at[0].set(2**32 - 1)[0]) == 2**32 - 1
    for value in (3, -1, 300):
        for dtype in ("int8", "uint8", "int32"):
            got, want = (m.numpy.zeros(1, dtype).at[0].set(value) for m in (lamina, jax))
            assert int(got[0]) == int(want[0])


def test_membership_takes_single_numbers() -> None:
    assert 1 in jnp.arange(3) and 7 not in jnp.arange(3)
    with pytest.raises(ValueError, match="query value must be a scalar"):
        jnp.arange(2) in jnp.arange(2)  # noqa: B015
    with pytest.raises(TypeError, match="unsupported operand type"):
        "abc" in jnp.arange(2)  # noqa: B015


def test_arguments_that_jax_refuses_or_takes() -> None:
    with pytest.raises(ValueError, match="only one of tol or rtol"):
        jnp.linalg.matrix_rank(jnp.eye(2), rtol=0.1, tol=0.1)
    with pytest.raises(ValueError, match="take: indices must have an integer type, got float32"):
        jnp.take(jnp.ones(3), jnp.array([1.0]))
    doubled = lamina.lax.map(lambda x: 2 * x, jnp.arange(3), batch_size=0)
    assert doubled.tolist() == [0, 2, 4]


def test_logsumexp_of_the_greatest_with_no_weight() -> None:
    a, b = np.array([-1000.0, -2.0, 3.0], np.float32), np.array([1.0, 0.0, 0.0], np.float32)
    alike("scipy.special.logsumexp", a, b=b)
    alike("scipy.special.logsumexp", a + 1j, b=b)
    for library in (lamina, jax):
        grads = library.grad(lambda a, m=library: m.scipy.special.logsumexp(a, b=b))(a)
        np.testing.assert_array_equal(grads, [1, 0, 0])


def test_spherical_harmonics_of_colatitudes_below_0() -> None:
    m = np.array([-2, 1, 0, 2, -1, 1, -1], np.int32)
    angles = np.linspace(-2, 1, 7), np.linspace(-4, 5, 7)
    alike("scipy.special.sph_harm_y", abs(m), m, *angles, n_max=3)
    got = lamina.jacfwd(lambda t: lamina.scipy.special.sph_harm_y(1, 1, t, 0.0, n_max=1).real)(0.0)
    np.testing.assert_allclose(got, -np.sqrt(3 / (8 * np.pi)), rtol=1e-6)


@pytest.mark.parametrize("bounds", [(1.0, 3.0), (0.5, 3.7), (np.float32(2), 5.0), (3.0, 1.0)])
def test_loops_between_floats(bounds: tuple[float, float]) -> None:
    def loop(m: Any, lower: Any, upper: Any) -> Any:
        return m.lax.fori_loop(lower, upper, lambda i, total: total + i, m.numpy.float32(0))

    for apply in (lambda m, f: f, lambda m, f: m.jit(f)):
        got, want = (apply(m, lambda *b, m=m: loop(m, *b))(*bounds) for m in (lamina, jax))
        assert float(got) == float(want)
    of_traced = [m.grad(lambda x, m=m: m.lax.fori_loop(x, x + 2.0, lambda i, c: c * x, x))(1.5) for m in (lamina, jax)]
    assert float(of_traced[0]) == float(of_traced[1])


def test_bounds_of_loops_are_of_one_kind() -> None:
    for lower, upper in ((0, 3.0), (False, True), (0j, 2j), (0, np.arange(2))):
        with pytest.raises(TypeError, match="lower and upper arguments to fori_loop must have equal types"):
            lamina.lax.fori_loop(lower, upper, lambda i, c: c, 0)


def test_gradients_of_wide_numpy_arrays_are_checked_as_narrow() -> None:
    lamina.test_util.check_grads(jnp.cumsum, (np.random.default_rng(0).standard_normal(300),), 2)


def test_complex_becomes_real_with_a_warning() -> None:
    for call in (lambda x: x.astype("float32"), lambda x: jnp.astype(x, "int32")):
        with pytest.warns(DeprecationWarning, match="Casting from complex to real dtypes") as caught:
            call(jnp.array(1 + 2j))
        assert caught[0].filename == __file__  # not a line of the library's own


@pytest.mark.parametrize("base", [(3, 4), (3, 1), (1, 4)])
@pytest.mark.parametrize("axis", [-3, 1, 2])
@pytest.mark.parametrize("prefix", [(), (2,)])
def test_categorical_of_broadcast_logits(base: tuple[int, ...], axis: int, prefix: tuple[int, ...]) -> None:
    logits = np.zeros(np.insert(base, axis % 3, 5), np.float32)
    got, want = (
        m.random.categorical(m.random.key(0), m.numpy.asarray(logits), axis=axis, shape=(*prefix, 3, 4))
        for m in (lamina, jax)
    )
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(4,), (3, 5), (3, 4, 2)])
def test_categorical_of_a_shape_that_logits_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="categorical requires shape to end with"):
        lamina.random.categorical(lamina.random.key(0), jnp.zeros((3, 4, 6)), shape=shape)


@pytest.mark.parametrize(
    ("name", "shape"), [("beta", (2.0, 3.0)), ("gamma", (2.0,)), ("chi2", (3.0,)), ("uniform", ())]
)
def test_densities_of_a_scale_that_is_none(name: str, shape: tuple[float, ...]) -> None:
    x = np.array([0.3, -1, 0, 1, 2], np.float32)
    for scale in (-1.0, 0.0):
        with np.errstate(all="ignore"):
            want = getattr(scipy.stats, name).logpdf(x, *shape, 0.0, scale)
        np.testing.assert_array_equal(getattr(lamina.scipy.stats, name).logpdf(x, *shape, 0.0, scale), want)
