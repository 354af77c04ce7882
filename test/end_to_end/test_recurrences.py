"""cumlogsumexp and recurrences h -> a h + b as kernels: values, derivatives, and how few they are."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(11)


def kernels(f, *args):
    """How many a function is compiled to, and those of libraries among them."""
    text = lamina.jit(f).lower(*args).compile().as_text("fused")
    main, private = text.split("func.func private", 1)
    return main.count("call @"), private.count("lamina.library")


def in_long_doubles(x, axis, reverse):
    x = np.asarray(x, np.longdouble)
    x = np.flip(x, axis) if reverse else x
    with np.errstate(invalid="ignore"):
        out = np.logaddexp.accumulate(x, axis)
    return np.flip(out, axis) if reverse else out


def check_logs(x, axis=0, reverse=False, bound=6.0):
    run = lamina.jit(functools.partial(lax.cumlogsumexp, axis=axis, reverse=reverse))
    with lamina.enable_x64(x.dtype == np.float64):
        got = np.asarray(run(x))
    want = in_long_doubles(x, axis, reverse)
    assert got.dtype == x.dtype and got.shape == x.shape
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite].astype(x.dtype))
    error = np.abs(got[finite] - want[finite]) / np.maximum(1, np.abs(want[finite]))
    assert error.max(initial=0) <= bound * np.finfo(x.dtype).eps


@given(st.data())
def test_logs_of_sums_of_exponentials(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((0, 1, 2, 5, 16, 17, 70)), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    dtype = data.draw(st.sampled_from((np.float32, np.float64)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.normal(size=shape) * data.draw(st.sampled_from((1e-3, 1.0, 1e3)))
    for special in data.draw(st.lists(st.sampled_from((-np.inf, np.inf, np.nan)), max_size=2)):
        x[rng.random(shape) < 0.1] = special
    check_logs(x.astype(dtype), axis, data.draw(st.booleans()))


N = 100_003  # chunks, the last not full
LONG = {
    "drawn": RNG.normal(size=N),
    "slowly up": np.linspace(0, 1, N),
    "steeply up": np.linspace(-600, 600, N),
    "down": np.linspace(1, 0, N),
    "one alone": np.where(np.arange(N) == 7, 0.0, -60),
    "last": np.where(np.arange(N) < N - 1, -20.0, 0.0),
    "huge": RNG.normal(size=N) * 1e30,
    "masked": np.where(RNG.random(N) < 0.5, -np.inf, RNG.normal(size=N)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LONG)
def test_errors_do_not_grow_with_the_length(name, dtype):
    check_logs(LONG[name].astype(dtype))


def test_one_element_is_exactly_itself():
    x = np.float32(RNG.normal(size=(400, 50)))
    got = np.asarray(lamina.jit(lax.cumlogsumexp)(x))
    np.testing.assert_array_equal(got[0], x[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats_are_summed_in_f32(dtype):
    x = jnp.zeros(3000, dtype)
    got = np.asarray(lamina.jit(lax.cumlogsumexp)(x), np.float32)
    assert np.abs(got - np.log(np.arange(1, 3001))).max() < 2.0**-5


def test_accumulate_of_logaddexp():
    x = np.float32(RNG.normal(size=(3, 50)))
    run = functools.partial(jnp.logaddexp.accumulate, axis=1)
    np.testing.assert_allclose(run(x), np.logaddexp.accumulate(x, 1), rtol=1e-5, atol=1e-6)
    assert kernels(run, x)[0] <= 6
    assert run(np.arange(6).reshape(2, 3)).dtype == np.float32


# ---- derivatives ---------------------------------------------------------------------------------
def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def swapped(a, b):
    return b[0] + a[0] * b[1], b[1] * a[1]


PROGRAMS = {
    "logs": lambda m, x, axis: m.lax.cumlogsumexp(x, axis),
    "logs from the end": lambda m, x, axis: m.lax.cumlogsumexp(x, axis, reverse=True),
    "products": lambda m, x, axis: m.lax.cumprod(x, axis),
    "products from the end": lambda m, x, axis: m.lax.cumprod(x, axis, reverse=True),
    "recurrence": lambda m, x, axis: m.lax.associative_scan(recurrence, (x, x * x), axis=axis)[1],
    "both results": lambda m, x, axis: sum(m.lax.associative_scan(recurrence, (x, 1 - x), axis=axis)),
    "from the end": lambda m, x, axis: m.lax.associative_scan(
        recurrence, (m.numpy.sin(x), x), reverse=True, axis=axis)[1],
    "swapped": lambda m, x, axis: m.lax.associative_scan(swapped, (x * x, x), axis=axis)[0],
}  # fmt: skip


def oscillators(m, x, axis):
    """Complex factors and terms."""
    pair = m.lax.complex(x, 0.4 * x), m.lax.complex(1 - x, x * x)
    a, b = m.lax.associative_scan(recurrence, pair, reverse=axis == 1, axis=axis)
    return m.numpy.real(a * b) + 2 * m.numpy.imag(b)


PROGRAMS["complex"] = oscillators


@pytest.mark.parametrize("shape, axis", [((67,), 0), ((5, 40), 1), ((40, 5), 0)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_jaxs(name, shape, axis):
    x = 0.7 + 0.5 * RNG.random(shape)
    v, weights = RNG.normal(size=(2, *shape))

    def results(m):
        def run(x):
            return PROGRAMS[name](m, x, axis)

        def loss(x):
            return (run(x) * weights).sum()

        def slope(x):
            return (m.grad(loss)(x) * v).sum()

        return m.jit(lambda x: {
            "jvp": m.jvp(run, (x,), (v,)), "grad": m.grad(loss)(x), "twice": m.grad(slope)(x),
            "forward over reverse": m.jvp(m.grad(loss), (x,), (v,))[1],
            "batches": m.vmap(run, in_axes=-1, out_axes=0)(m.numpy.stack([x, x * x], -1)),
        })(x)  # fmt: skip

    with lamina.enable_x64(True), jax.enable_x64(True):
        found, expected = results(lamina), results(jax)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-9)


def test_a_gradient_of_logs_where_exponentials_overflow():
    """The weights are softmaxes of what comes before, of any range."""
    x = np.float32(RNG.normal(size=300) * 200)
    run = lamina.jit(lamina.grad(lambda x: lax.cumlogsumexp(x)[-1]))
    np.testing.assert_allclose(run(x), jax.nn.softmax(x), atol=2e-6)
    masked = np.where(RNG.random(300) < 0.3, -np.inf, x).astype(np.float32)
    masked[:40] = -np.inf
    np.testing.assert_allclose(run(masked), jax.nn.softmax(masked), atol=2e-6)


def test_how_few_kernels():
    x = jnp.ones((64, 512))
    for axis in (0, 1):
        logs = functools.partial(lax.cumlogsumexp, axis=axis)
        pair = functools.partial(lax.associative_scan, recurrence, axis=axis)
        assert kernels(logs, x) <= (6, 2)
        assert kernels(lamina.grad(lambda x, f=logs: f(x).sum()), x) <= (9, 3)
        assert kernels(lambda x, f=pair: f((x, x))[1], x) == (1, 1)
        assert kernels(lambda x, f=pair: f((x, x)), x) == (2, 2)
        assert kernels(lambda x, f=pair: f((x, x), reverse=True)[1], x) == (1, 1)
        assert kernels(lamina.grad(lambda x, f=pair: f((x, x))[1].sum()), x) <= (5, 2)
        assert kernels(lamina.grad(lambda x, a=axis: lax.cumprod(x, a).sum()), x) <= (5, 2)
        z = jnp.ones((64, 512), np.complex64)
        assert kernels(lambda x, f=pair: f((x, x))[1], z) == (1, 1)


def test_factors_and_terms_of_infinities():
    """What is behind an infinity is as in a loop; the first factor is not read."""
    a, b = np.ones((2, 100), np.float32)
    a[0], b[30], a[60], b[61] = np.inf, np.inf, 0, np.nan
    got = np.asarray(lamina.jit(lambda a, b: lax.associative_scan(recurrence, (a, b))[1])(a, b))
    want = b.copy()
    with np.errstate(invalid="ignore"):
        for i in range(1, 100):
            want[i] += a[i] * want[i - 1]
    np.testing.assert_array_equal(got, want)


def test_gpus_take_the_tree():
    x = np.float32(RNG.normal(size=(2, 40)))

    def run(x):
        return lax.cumlogsumexp(x, 1), lamina.grad(lambda x: lax.cumprod(x, 1).sum())(x)

    for got, want in zip(Program(run, x).run(), lamina.jit(run)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
