"""Functions and arguments that JAX has since 0.12, with JAX as the oracle."""

import jax
import numpy as np
import pytest
import scipy.special
from support.oracle.judge import JAX, LAMINA, assert_same, check, check_all

import lamina
import lamina.numpy as jnp

NAN = np.float32(np.nan)
FLOATS = np.array([1, NAN, -0.0, 0.0, 3, -np.inf, -NAN, 3], np.float32)


@pytest.mark.parametrize("name, parameters", [
    ("gamma", ([0.01, 0.5, 3.0, 40.0, 1e4],)), ("loggamma", ([0.01, 0.5, 3.0, 40.0, 1e4],)),
    ("beta", ([0.2, 3.0], [1.5, 0.3])), ("chisquare", ([0.2, 3.0, 70.0],)),
    ("poisson", ([0.0, 0.2, 3.0, 6.99, 7.0, 70.0, 1e5],)),
])  # fmt: skip
@pytest.mark.parametrize("x64", [False, True])
def test_approximate_samplers(name, parameters, x64):
    """The same numbers: of one normal draw each, but for rounding."""

    def program(m):
        draw = getattr(m.module.random, name)
        given = [np.asarray(p, np.float64 if x64 else np.float32) for p in parameters]
        return draw(m.module.random.key(7), *given, (200, len(given[0])), method="approximate")

    with lamina.enable_x64(x64), jax.enable_x64(x64):
        got, want = (m.jit(lambda m=m: program(m))() for m in (LAMINA, JAX))
        assert_same(got, want, rtol=1e-9 if x64 else 2e-5, atol=1e-6)


def test_approximate_samplers_of_narrow_floats_and_their_derivatives():
    def program(m):
        random = m.module.random
        a = np.asarray([0.3, 7.0], np.float32)
        return {
            "narrow": random.gamma(random.key(1), a, dtype="bfloat16", method="approximate"),
            "beta": random.beta(
                random.key(1), *(a.astype(np.float16),) * 2, dtype="float16", method="approximate"
            ),
            "slope": m.grad(
                lambda a: m.np.sum(random.gamma(random.key(2), a, method="approximate"))
            )(a),
            "rbg": random.poisson(random.key(3, impl="rbg"), a, method="approximate").shape,
        }

    check_all(program, rtol=1e-2, atol=1e-3)
    with pytest.raises(ValueError, match="must be one of {'exact', 'approximate'}, got 'fast'"):
        lamina.random.gamma(lamina.random.key(0), 1.0, method="fast")


@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("x", [
    FLOATS, FLOATS > 0, np.array([[3, 1, 2], [9, 9, 0]], np.uint8), np.array([-128, 127, 3], np.int8),
], ids=lambda x: x.dtype.name)  # fmt: skip
def test_top_k(mode, x):
    check(lambda m, x: tuple(m.np.top_k(x, 2, mode=mode, axis=0)), x)


def test_top_k_refuses():
    for call in (
        lambda: jnp.top_k(FLOATS, 9), lambda: jnp.top_k(FLOATS, 1, mode="both"),
        lambda: jnp.top_k(FLOATS + 0j, 1), lambda: jnp.top_k(FLOATS, 1, axis=2),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
    assert [x.tolist() for x in lamina.lax.top_k(np.arange(3), 1, is_stable=False)] == [[2], [2]]


def test_minmax():
    x, z = np.arange(6, dtype=np.int32).reshape(2, 3), np.array([2 + 1j, 2 - 1j, 0], np.complex64)

    def program(m):
        where = np.array([True, False, True])
        return {
            "nan": m.np.minmax(FLOATS), "axis": m.np.minmax(x, 1, keepdims=True), "z": m.np.minmax(z),
            "pair": m.np.minmax(x, axis=0, initial=(1, 4)),
            "masked": m.np.minmax(x, axis=1, initial=3, where=where), "bool": m.np.minmax(x > 2),
            "slope": m.grad(lambda v: 2 * m.np.minmax(v)[0] + m.np.minmax(v)[1])(
                np.array([1, 1, 4, 4, 3], np.float32)
            ),
        }  # fmt: skip

    check_all(program)
    with pytest.raises(ValueError, match="zero-size array"):
        jnp.minmax(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="initial value must be a scalar"):
        jnp.minmax(x, initial=np.arange(6))


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("mixed", [False, True])
def test_sorting_by_many_keys(batch_size, mixed):
    drawn = np.random.default_rng(0).integers(0, 2, (20, 3, 7)).astype(np.int32)
    keys = [k.astype(np.float32) if mixed and i % 2 else k for i, k in enumerate(drawn)]

    def program(m):
        return {
            axis: m.np.lexsort([m.np.asarray(k) for k in keys], axis=axis, batch_size=batch_size)
            for axis in (0, 1)
        }

    check_all(program)
    np.testing.assert_array_equal(jnp.lexsort(keys, batch_size=batch_size), np.lexsort(keys))
    np.testing.assert_array_equal(jnp.lexsort(drawn, batch_size=batch_size), np.lexsort(drawn))


def test_no_keys_and_no_batches():
    with pytest.raises(ValueError, match="batch_size must be positive, got 0"):
        jnp.lexsort([np.arange(3)], batch_size=0)
    with pytest.raises(TypeError, match="need sequence of keys"):
        jnp.lexsort(np.array(3))


@pytest.mark.parametrize("count", [0, 1, 2, 9, 70])
@pytest.mark.parametrize("unroll", [None, 4])
def test_polynomials(count, unroll):
    rng = np.random.default_rng(count)
    p, x = rng.normal(size=count).astype(np.float32), rng.uniform(size=(5, 3)).astype(np.float32)

    def program(m):
        value = m.grad(lambda p, x: m.np.sum(m.np.polyval(p, x, unroll=unroll) ** 2), (0, 1))
        of_columns = m.lax.polynomial(x, [p[i] * x[:, :1] for i in range(count)], unroll=unroll)
        twice = m.grad(m.grad(lambda v: m.lax.polynomial(v, list(p), unroll=unroll)))(0.5)
        return {
            "value": m.np.polyval(p, x, unroll=unroll), "slopes": value(p, x) if count else (),
            "columns": of_columns, "twice": twice if count else (),
        }  # fmt: skip

    check_all(program, rtol=2e-4, atol=1e-4)


def test_one_minus_square_keeps_its_digits():
    def program(m):
        f = m.lax.one_minus_square
        x = np.array([0.0, 1e-30, 1 - 2**-24, -1.0, 0.5], np.float32)
        return {"value": f(x), "slope": m.vmap(m.grad(f))(x), "second": m.grad(m.grad(f))(0.5)}

    check_all(program)


INDICES = [np.array([1, -1, -9]), -1, np.int32(-2), slice(-2, None), np.array([2], np.uint8)]


@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_negative_indices_out_of_bounds(index, mode):
    """wrap_negative_indices=False: they do not count from the end."""
    x = np.arange(1, 6, dtype=np.float32)

    def program(m):
        at = m.np.asarray(x).at[index]
        options = {"mode": mode, "wrap_negative_indices": False}
        changed = {
            name: getattr(at, name)(7.0, **options)
            for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
        }
        return {"get": at.get(**options), "apply": at.apply(m.np.sin, **options), **changed}

    check_all(program, rtol=1e-6)


def test_negative_indices_while_tracing():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def program(m):
        def update(x, i):
            return x.at[i, -1].add(1.0, wrap_negative_indices=False), x.at[1:, i].set(
                0.0, wrap_negative_indices=False
            )

        return {i: m.jit(update)(x, i) for i in (-1, 1)}

    check_all(program)


def test_one_hot_mode():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def program(m):
        take = m.np.take_along_axis
        return {
            "rows": take(x, np.array([[1, -1, 20], [0, 0, 1], [3, 3, 3]]), 1, mode="one_hot"),
            "columns": take(x, np.array([[1, -1, 20, 0]]), 0, mode="one_hot"),
            "integers": take(x.astype(np.int32), np.array([[1], [0], [9]]), 1, mode="one_hot"),
            "flat": take(x, np.array([1, 30]), None, mode="one_hot"),
            "kept": take(
                x, np.array([[1], [-1], [9]]), 1, mode="one_hot", wrap_negative_indices=False
            ),
            "set": m.np.asarray(x).at[np.array([1, 9])].set(0.0, mode="one_hot"),
            "slope": m.grad(
                lambda x: m.np.sum(take(x, np.array([[1, 7, 1]]), 1, mode="one_hot") ** 2)
            )(x[:1]),
        }

    check_all(program)


def test_strategies_of_reading():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def program(m):
        x_ = m.np.asarray(x)
        return {
            "static": x_.at[1:, None, -1].get(strategy="static_slice"),
            "dynamic": x_.at[m.np.asarray(1), ::-1].get(strategy="dynamic_slice"),
            "gather": x_.at[1:2].get(strategy="gather"),
        }

    check_all(program)
    at = jnp.asarray(x).at
    with pytest.raises(TypeError, match="static_slice: indices must be static"):
        at[np.array([1])].get(strategy="static_slice")
    with pytest.raises(TypeError, match="dynamic_slice"):
        at[np.array([1])].get(strategy="dynamic_slice")
    with pytest.raises(TypeError, match="dynamic_slice"):
        at[::2].get(strategy="dynamic_slice")
    with pytest.raises(IndexError, match="index 5 out of bounds for axis 0 with size 3"):
        at[5].get(strategy="static_slice")
    with pytest.raises(ValueError, match="Unknown indexing strategy: 'fast'"):
        at[5].get(strategy="fast")


def test_several_arrays_are_a_tuple():
    def program(m):
        x, y = np.arange(3), np.float32(2)
        return {
            "meshgrid": m.np.meshgrid(x, x[:2]), "ij": m.np.meshgrid(x, sparse=True, indexing="ij"),
            "at least": [f(x, y) for f in (m.np.atleast_1d, m.np.atleast_2d, m.np.atleast_3d)],
            "broadcast": m.np.broadcast_arrays(x, y), "none": m.np.broadcast_arrays(),
        }  # fmt: skip

    check_all(program)


def test_cross_products_are_of_three_components():
    for m in (LAMINA, JAX):
        for x, y in ((np.ones(2), np.ones(2)), (np.ones(3), np.ones(2))):
            with pytest.raises(ValueError, match="Dimension must be 3 for cross product"):
                m.np.cross(x, y)


def test_condition_numbers_of_singular_matrices():
    def program(m):
        singular = m.np.zeros((2, 3, 3))
        unknown = np.array([[1, np.nan], [0, 2]], np.float32)
        cond = m.np.linalg.cond
        return {"none": cond(singular), "-2": cond(singular, -2), "nan": cond(unknown), "1": cond(singular, 1)}

    check_all(program)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_erfcinv(dtype):
    y = np.array([0, 1e-37, 1e-30, 1e-5, 0.5, 1, 1.5, 1.9999, 2, -0.1, 2.1, np.nan])
    with lamina.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):

        def program(m):
            f = m.module.scipy.special.erfcinv if m is LAMINA else jax.scipy.special.erfcinv
            x = m.np.asarray(y, dtype)
            slope = m.vmap(m.grad(f))(x[3:8]) if dtype != "bfloat16" else ()
            return {"value": f(x), "slope": slope}

        check_all(program, rtol={"float64": 1e-11, "float32": 1e-5, "bfloat16": 1e-2}[dtype])
        want = scipy.special.erfcinv(y)
        if dtype == "float64":
            np.testing.assert_allclose(jnp.asarray(lamina.scipy.special.erfcinv(y)), want, rtol=1e-14)
    with pytest.raises(ValueError, match="does not support complex"):
        lamina.scipy.special.erfcinv(1j)


def test_names_of_processes_and_meshes():
    for m in (lamina, jax):
        assert m.process_indices() == [0]
        mesh = m.make_mesh((1,), ("x",))
        assert not m.get_mesh().axis_names and not m.get_abstract_mesh().axis_names
        with m.set_mesh(mesh):
            assert m.get_mesh() == mesh and m.get_abstract_mesh() == mesh.abstract_mesh
    assert lamina.host_ids() == [0] and lamina.host_count() == 1 and lamina.host_id() == 0


def test_divide_and_conquer():
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def program(m):
        named = m.lax.linalg.SvdAlgorithm.DIVIDE_AND_CONQUER if m is LAMINA else None
        return m.lax.linalg.svd(x, compute_uv=False, algorithm=named)

    assert_same(program(LAMINA), program(JAX), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="POLAR"):
        lamina.lax.linalg.svd(x, algorithm=lamina.lax.linalg.SvdAlgorithm.POLAR)
