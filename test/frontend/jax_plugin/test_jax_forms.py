"""Programs in the forms that JAX lowers to, which lamina's passes take for what they are: values by JAX's CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.oracle.jax_programs import compiled, run

import lamina

RNG = np.random.default_rng(20)


def _agrees(f, *args, rtol=1e-5, atol=1e-6):
    """The program compiled; its results are JAX's."""
    program = compiled(f, *args)
    wanted = jax.tree_util.tree_leaves(jax.jit(f)(*args))
    for got, want in zip(run(program, args), wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=rtol, atol=atol)
    return program


def _steps(x, count):
    """Halving until a number of steps is done or the value is small; a table and a step's number beside."""

    def body(state):
        y, k, table = state
        return 0.5 * (y + x / y) + table[k % 4], k + 1, table

    table = jnp.arange(4, dtype=x.dtype) / 100
    y, k, _ = jax.lax.while_loop(lambda s: (s[1] < count) & (s[0] > 0.1), body, (x, jnp.int32(0), table))
    return y, k


def _vectors(x, count):
    """The same on lanes of some elements."""

    def step(state):
        return jnp.sin(state[0]) + state[0].mean() * 0.1, state[1] + 1

    return jax.lax.while_loop(lambda s: (s[1] < count) & (s[0].max() > 0.2), step, (x, jnp.int32(0)))


@pytest.mark.parametrize("lanes", [1, 64, 65, 200, 4096])
def test_lanes_that_stop_by_themselves(lanes):
    count = RNG.integers(0, 30, lanes, np.int32)
    _agrees(jax.vmap(_steps), RNG.uniform(0.5, 2, lanes).astype(np.float32), count, rtol=1e-4)
    _agrees(jax.vmap(_vectors), RNG.uniform(0, 1, (lanes, 5)).astype(np.float32), count, rtol=1e-4)


def test_lanes_of_lanes():
    x, count = RNG.uniform(0.5, 2, (70, 3)).astype(np.float32), RNG.integers(0, 30, (70, 3), np.int32)
    _agrees(jax.vmap(jax.vmap(_steps)), x, count, rtol=1e-4)
    _agrees(jax.vmap(jax.vmap(_steps, in_axes=(0, None))), x, count[:, 0], rtol=1e-4)


def test_lanes_with_nan_and_effects():
    """NaN stops a lane; what a step says is said as often as all lanes take steps together."""
    x = np.array([1.5, np.nan, 2.5, 0.01] * 30, np.float32)
    _agrees(jax.vmap(_steps), x, np.full(120, 9, np.int32), rtol=1e-4)
    said = []

    def step(state):
        y, k = state
        jax.debug.callback(lambda k: said.append(int(k)), k)
        return y * 0.5, k + 1

    def f(y, n):
        return jax.lax.while_loop(lambda s: s[1] < n, step, (y, jnp.int32(0)))[0]

    with jax.default_device(jax.devices("lamina")[0]):
        jax.block_until_ready(jax.jit(jax.vmap(f))(x, np.arange(120, dtype=np.int32) % 3))
        jax.effects_barrier()
    assert len(said) == 240


def test_lanes_go_together_where_they_are_asked_to():
    """By lamina's own setting, which the module says."""

    def halved(x, n):
        start = (x, lamina.numpy.int32(0))
        return lamina.lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 0.5, s[1] + 1), start)[0]

    x, count = np.ones(256, np.float32), np.arange(256, dtype=np.int32)
    with lamina.config.lanes("select"):
        lowered = lamina.jit(lamina.vmap(halved)).lower(x, count)
    assert "lamina.lanes_together" in lowered.as_text()
    together = lowered.compile()
    assert "lamina.lanes =" not in together.as_text("fused")
    text = lowered.as_text().replace("lamina.lanes_together", "other.word")
    apart = lamina.compile_stablehlo(text)
    assert "lamina.lanes =" in apart.as_text("fused")
    np.testing.assert_array_equal(apart(x, count)[0], together(x, count))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape, right", [((5, 5), (5,)), ((40, 3, 3), (40, 3, 1)), ((40, 3, 3), (40, 3, 2)),
                                          ((4, 6, 4, 4), (4, 6, 4, 5)), ((3, 40, 40), (3, 40, 2))])  # fmt: skip
def test_systems_of_equations(dtype, shape, right):
    """Pivots, rows in their order and triangular systems; a kernel for all of it where matrices are small."""
    with jax.enable_x64(True):
        a = RNG.standard_normal(shape).astype(dtype) + np.eye(shape[-1], dtype=dtype)
        b = RNG.standard_normal(right).astype(dtype)
        _agrees(jnp.linalg.solve, a, b, rtol=2e-3, atol=2e-3)
        if dtype == np.complex64:
            return
        _agrees(lambda a: jax.scipy.linalg.lu(a), a, rtol=2e-3, atol=2e-3)
        if shape == (5, 5):
            _agrees(lambda a: jax.lax.linalg.lu(a[:, :3]), a, rtol=2e-3, atol=2e-3)
            _agrees(lambda a: jax.lax.linalg.lu(a[:3]), a, rtol=2e-3, atol=2e-3)
            _agrees(lambda a: (jnp.linalg.slogdet(a), jnp.linalg.inv(a)), a, rtol=2e-3, atol=2e-3)


def test_sums_of_what_is_negated():
    """With the sign of zero that a sum of negated numbers has."""
    x = np.array([[0.0, -0.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0], [-0.0] * 4, [np.nan, 1, np.inf, 2]], np.float32)
    got = run(compiled(lambda x: jnp.sum(-x, 1), x), (x,))[0]
    want = np.asarray(jnp.sum(-x, 1))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:3]), np.signbit(want[:3]))

    def norm(x):
        return jnp.sum((x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5) * x)

    _agrees(jax.grad(norm), RNG.standard_normal((9, 33)).astype(np.float32), rtol=1e-3, atol=1e-5)


def test_rows_taken_in_any_layout():
    """Gathers between transposes and dimensions of one, batched along each dimension."""
    x = RNG.standard_normal((4, 5, 6)).astype(np.float32)
    i = RNG.integers(-6, 6, (4, 7), np.int32)
    for axis in range(3):
        for out in range(3):

            def take(x, i, axis=axis, out=out):
                return jnp.moveaxis(jnp.take(x[..., None], i, axis, mode="clip")[..., 0], 0, out)

            _agrees(take, x, i)
    for axis in (0, 1):
        for indices_along in (0, 1):
            f = jax.vmap(lambda x, i: x.T[:, None][i], in_axes=(axis, indices_along), out_axes=axis)
            _agrees(f, x[:4, :4], i[:, :4])
    _agrees(lambda x, y: jnp.cross(x, y), x[..., :3], x[..., 3:])
    _agrees(lambda x: jnp.stack([x[0], x[1], x[2]]).transpose(1, 2, 0), x)


def test_a_batch_of_kalman_filters():
    """A solve in each step of a scan, under vmap."""
    a, h = jnp.eye(4) + 0.1 * jnp.eye(4, k=2), jnp.eye(2, 4)

    def follow(measured):
        def step(carry, z):
            m, p = a @ carry[0], a @ carry[1] @ a.T + 0.01 * jnp.eye(4)
            gain = jnp.linalg.solve(h @ p @ h.T + 0.1 * jnp.eye(2), h @ p).T
            return (m + gain @ (z - h @ m), p - gain @ h @ p), m

        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), measured)[1]

    _agrees(jax.vmap(follow), RNG.standard_normal((20, 30, 2)).astype(np.float32), rtol=1e-3, atol=1e-4)


def test_rays_marched_until_each_has_met_something():
    def distance(p):
        return jnp.minimum(jnp.linalg.norm(p - jnp.array([0.0, 0, 3])) - 1, p[1] + 1)

    def shade(direction):
        d = direction / jnp.linalg.norm(direction)

        def step(state):
            near = distance(state[0] * d)
            return state[0] + near, state[1] + 1, near

        going = lambda s: (s[1] < 64) & (s[2] > 1e-3) & (s[0] < 20)  # noqa: E731
        far = jax.lax.while_loop(going, step, (0.0, 0, 1.0))[0]
        normal = jax.grad(distance)(far * d)
        return jnp.where(far < 20, jnp.clip(normal @ jnp.array([0.5, 0.7, -0.5]), 0, 1), 0.0), far

    u, v = np.meshgrid(np.linspace(-1, 1, 32), np.linspace(-1, 1, 32))
    directions = np.stack([u, v, np.ones_like(u)], -1).reshape(-1, 3).astype(np.float32)
    (shades, far), want = run(compiled(jax.vmap(shade), directions), (directions,)), jax.vmap(shade)(directions)
    close = np.isclose(shades, np.asarray(want[0]), atol=1e-2) & np.isclose(far, np.asarray(want[1]), rtol=1e-2)
    assert close.mean() > 0.98  # at an edge a ray is decided by the last bit
    assert 0.2 < (shades > 0).mean() < 0.9


def test_what_a_reversed_scan_reads_is_not_copied():
    """JAX counts such steps as (n - i) - 1. Factors of a product, collected in that order, are those arrays."""

    def loss(w, u, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x @ u)
            return h, h

        return (jax.lax.scan(step, jnp.zeros(64, jnp.float32), xs)[1] ** 2).sum()

    w, u, xs = (RNG.normal(0, 0.1, shape).astype(np.float32) for shape in ((64, 64), (64, 64), (200, 64)))
    program = _agrees(jax.grad(loss, (0, 1)), w, u, xs, rtol=1e-4, atol=1e-5)
    text = program.text("fused")
    backward = text[text.rindex("stablehlo.while") :]
    assert backward.count("stablehlo.dynamic_update_slice") == 1
