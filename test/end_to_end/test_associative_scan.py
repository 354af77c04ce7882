"""associative_scan in blocks: values against a loop, derivatives, batches, and that it is few kernels."""

import functools
import re

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(5)


def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def flagged(a, b):
    return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]


def greatest(a, b):
    first = a[0] >= b[0]
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def product(a, b):
    return jnp.matmul(a, b)


def in_a_loop(fn, elems, axis, reverse):
    """The prefixes of NumPy arrays, one after the other, on slices that keep the axis."""
    many = isinstance(elems, tuple)
    xs = elems if many else (elems,)
    xs = tuple(np.flip(x, axis) if reverse else x for x in xs)
    outs = []
    with lamina.enable_x64(True):
        for i in range(xs[0].shape[axis]):
            x = tuple(np.take(v, [i], axis) for v in xs)
            if not outs:
                outs.append(x)
                continue
            y = fn(outs[-1], x) if many else (fn(outs[-1][0], x[0]),)
            outs.append(tuple(map(np.asarray, y)))
    found = [np.concatenate(parts, axis) for parts in zip(*outs)]
    return [np.flip(x, axis) if reverse else x for x in found]


def near_one(*shape):
    return 0.9 + 0.1 * RNG.random(shape)


def rotations(*shape):
    return np.linalg.qr(RNG.normal(size=(*shape, 3, 3)))[0]


CASES = {
    "one": (recurrence, (near_one(1), near_one(1)), 0),
    "short": (recurrence, (near_one(15), near_one(15)), 0),
    "in sequence": (recurrence, (near_one(33), near_one(33)), 0),
    "blocks and a rest": (recurrence, (near_one(1009), near_one(1009)), 0),
    "blocks of blocks": (recurrence, (near_one(4800), near_one(4800)), 0),
    "columns": (recurrence, (near_one(131, 20), near_one(131, 20)), 0),
    "rows": (recurrence, (near_one(3, 131), near_one(3, 131)), 1),
    "planes": (recurrence, (near_one(2, 70, 3), near_one(2, 70, 3)), 1),
    "segments": (flagged, (RNG.normal(size=300), RNG.random(300) < 0.1), 0),
    "index": (greatest, (RNG.normal(size=300), np.arange(300, dtype=np.int32)), 0),
    "integers": (jnp.bitwise_xor, RNG.integers(0, 1 << 30, 300, dtype=np.int32), 0),
    "booleans": (jnp.logical_xor, RNG.random(300) < 0.5, 0),
    "complex": (jnp.multiply, np.exp(1j * RNG.normal(size=130)), 0),
    "matrices": (product, rotations(150), 0),
    "matrices in rows": (product, rotations(2, 70), 1),
}


def narrow(x):
    kinds = {"f": np.float32, "c": np.complex64}
    return tuple(map(narrow, x)) if isinstance(x, tuple) else x.astype(kinds.get(x.dtype.kind, x.dtype))


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    fn, elems, axis = CASES[name]
    for reverse in (False, True):
        want = in_a_loop(fn, elems, axis, reverse)
        run = lamina.jit(functools.partial(lax.associative_scan, fn, reverse=reverse, axis=axis))
        for given, precision in ((narrow(elems), 2e-5), (elems, 1e-12)):
            with lamina.enable_x64(given is elems):
                got = run(given)
            for x, y in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
                assert x.shape == y.shape and x.dtype.kind == y.dtype.kind
                scale = max(np.abs(y).max(), 1)
                np.testing.assert_allclose(np.asarray(x), y, atol=precision * scale)


def test_no_elements():
    assert lax.associative_scan(jnp.bitwise_xor, jnp.zeros((0, 3), np.int32)).shape == (0, 3)


@pytest.mark.parametrize("name", ["in sequence", "blocks and a rest", "columns", "rows", "matrices"])
def test_derivatives_are_finite_differences(name):
    fn, elems, axis = CASES[name]
    many = elems if isinstance(elems, tuple) else (elems,)

    def loss(*xs):
        out = lax.associative_scan(fn, xs if isinstance(elems, tuple) else xs[0], axis=axis)
        last = out[-1] if isinstance(elems, tuple) else out
        return jnp.sum(last**2) / last.size

    along = [RNG.normal(size=x.shape) for x in many]
    with lamina.enable_x64(True):
        step = 1e-6
        up, down = (loss(*(x + s * v for x, v in zip(many, along))) for s in (step, -step))
        slope = float(up - down) / (2 * step)
        _, forward = lamina.jit(lambda x, v: lamina.jvp(loss, x, v))(many, tuple(along))
        backward = lamina.jit(lamina.grad(loss, argnums=tuple(range(len(many)))))(*many)
        assert float(forward) == pytest.approx(slope, rel=1e-6)
        total = sum(float(np.vdot(g, v)) for g, v in zip(backward, along))
        assert total == pytest.approx(slope, rel=1e-6)


def test_second_derivative_and_batches():
    x = near_one(4, 40)

    def last(v):
        return lax.associative_scan(recurrence, (v, v))[1][-1]

    with lamina.enable_x64(True):
        got = lamina.jit(lamina.vmap(lamina.grad(lambda v: lamina.grad(last)(v).sum())))(x)
        step = 1e-5
        for row, found in zip(x, got):
            for i in (0, 17, 39):
                moved = np.eye(40)[i] * step
                up, down = (float(lamina.grad(last)(row + s * moved).sum()) for s in (1, -1))
                assert float(found[i]) == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_what_the_function_closes_over_is_differentiated():
    x = near_one(100)

    def loss(w):
        return lax.associative_scan(lambda a, b: a * b * w, x)[-1]

    with lamina.enable_x64(True):
        got = lamina.jit(lamina.grad(loss))(1.01)
        assert float(got) == pytest.approx(99 * 1.01**98 * np.prod(x), rel=1e-10)


def test_outside_jit_the_function_may_look_at_values():
    def fn(a, b):
        return a + b if float(a[0]) == 1 else a

    assert lax.associative_scan(fn, jnp.ones(20))[1] == 2


def test_results_do_not_depend_on_the_number_of_threads():
    x = tuple(map(np.float32, (near_one(50_000), near_one(50_000))))
    run = lamina.jit(functools.partial(lax.associative_scan, recurrence))
    want = [np.asarray(y) for y in run(x)]
    before = lamina.get_num_threads()
    try:
        lamina.set_num_threads(1)
        got = run(x)
    finally:
        lamina.set_num_threads(before)
    for y, z in zip(want, got, strict=True):
        np.testing.assert_array_equal(y, z)


def test_few_kernels_and_no_whole_arrays_between_them():
    x = jnp.ones((8192, 16))
    made = lamina.jit(functools.partial(lax.associative_scan, recurrence)).lower((x, x)).compile()
    main = made.as_text("planned").split("func.func private")[0]
    assert len(re.findall("call @", main)) < 40  # of a tree there are more than a hundred
    assert made.memory_analysis().temp_size_in_bytes < 2 * x.nbytes


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cummax", "cummin", "maximum"])
def test_ties_share_derivatives_as_the_tree_has_them(name, axis):
    x = RNG.integers(0, 4, (37, 40)).astype(np.float32)
    weight = RNG.normal(size=x.shape).astype(np.float32)

    def gradient(m):
        def run(x):
            if name == "maximum":
                return m.lax.associative_scan(m.numpy.maximum, x, axis=axis)
            return getattr(m.lax, name)(x, axis)

        return np.asarray(m.jit(m.grad(lambda x: (run(x) * weight).sum()))(x))

    np.testing.assert_allclose(gradient(lamina), gradient(jax), rtol=1e-5, atol=1e-5)


def greatest_of_segment(a, b):
    return jnp.where(b[1], b[0], jnp.maximum(a[0], b[0])), a[1] | b[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape, axis", [((1037,), 0), ((5, 640), 1), ((640, 5), 0), ((3, 96, 17), 1)])
def test_extremes_go_in_blocks_where_no_derivative_is_taken(shape, axis, reverse):
    x = RNG.integers(-4, 4, shape).astype(np.float32)
    x.flat[5], x.flat[-7] = np.nan, np.inf
    flags = RNG.random(shape) < 0.1
    for fn, elems in ((jnp.maximum, x), (jnp.minimum, x), (greatest_of_segment, (x, flags))):
        run = lamina.jit(functools.partial(lax.associative_scan, fn, axis=axis, reverse=reverse))
        assert run.lower(elems).compile().as_text("fused").count("func.func private") <= 40
        found, expected = run(elems), in_a_loop(fn, elems, axis, reverse)
        for one, other in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


def test_second_derivatives_of_extremes_at_ties():
    x = RNG.integers(0, 3, 50).astype(np.float32)

    def curvature(m):
        def run(x):
            return (m.lax.associative_scan(m.numpy.maximum, x * x) * x).sum()

        return np.asarray(m.jit(m.jacfwd(m.grad(run)))(x))

    np.testing.assert_allclose(curvature(lamina), curvature(jax), rtol=1e-5, atol=1e-5)
