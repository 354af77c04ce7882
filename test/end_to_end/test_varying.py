"""What varies along mesh axes (shard_map with check_vma): gradients inside and outside of bodies
against JAX; axes left to other devices, shard_maps inside of shard_maps, lanes over a mesh axis."""

import jax
import numpy as np
import pytest
from support.devices import eight_devices as eight_devices
from support.oracle.judge import assert_same

import lamina
from lamina import lax

pytestmark = pytest.mark.usefixtures("eight_devices")
X = np.arange(48, dtype=np.float32).reshape(8, 6) / 10
W = np.cos(np.arange(24, dtype=np.float32)).reshape(6, 4)
Y = np.sin(np.arange(128, dtype=np.float32)).reshape(4, 32)


def _mesh(lib, sizes, names):
    devices = np.array(lib.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return lib.sharding.Mesh(devices, names)


def _both(program, *args):
    """program(lib, lax, jnp, P) in both libraries."""
    assert_same(
        lamina.jit(program(lamina, lamina.lax, lamina.numpy, lamina.P))(*args),
        jax.jit(program(jax, jax.lax, jax.numpy, jax.P))(*args),
        weak=False,
        rtol=1e-4,
        atol=1e-4,
    )


def test_gradients_inside_of_a_body() -> None:
    def program(lib, lax, jnp, P):
        @lib.custom_vjp
        def dense(w, x):
            return jnp.sin(x @ w)

        def backward(res, g):
            w, x = res
            return lax.psum(x.T @ (g * 2), "i"), g @ w.T

        dense.defvjp(lambda w, x: (dense(w, x), (w, x)), backward)

        def body(x, w):
            def loss(w):
                return jnp.sum(jnp.sin(x @ w) ** 2)

            def looped(w):
                c, ys = lax.scan(
                    lambda c, v: (jnp.tanh(c * w.sum() + lax.pmean(v.sum(), "i")), v * w[0, 0]),
                    jnp.float32(0.5), x,
                )  # fmt: skip
                return c + ys.sum()

            def branched(w):
                w = lax.pcast(w, "i", to="varying")
                return lax.cond(
                    x.sum() > 5, lambda: jnp.sin(x @ w).sum(), lambda: jnp.sum(w * x.sum())
                )

            shared = {
                "sum over devices": lib.grad(loss)(w),
                "of the mean": lib.value_and_grad(lambda w: lax.pmean(loss(w), "i"))(w),
                "jacobian": lib.jacrev(lambda w: lax.psum(jnp.sin(x @ w).sum(0), "i"))(w),
                "jvp": lib.jvp(lambda w: lax.pmean(x @ w, "i"), (w,), (w,)),
                "checkpoint": lib.grad(lambda w: lib.checkpoint(loss)(w))(w),
                "jit": lib.grad(lambda w: jnp.sum(lib.jit(lambda w, x: jnp.sin(x @ w))(w, x)))(w),
                "scan": lib.grad(looped)(w),
                "cond": lib.grad(branched)(w),
                "custom_vjp": lib.grad(lambda w: dense(w, x).sum())(w),
                "second": lib.grad(lambda w: lib.grad(loss)(w)[0, 0])(w),
            }
            own = {
                "of own": lib.grad(lambda x: lax.psum(jnp.sum(x**3), "i"))(x),
                "each": lib.vmap(lib.grad(lambda w, r: jnp.sum(jnp.tanh(r @ w))), (None, 0))(w, x),
            }
            return shared, own

        return lib.shard_map(
            body, mesh=_mesh(lib, (4,), ("i",)), in_specs=(P("i"), P()), out_specs=(P(), P("i"))
        )

    _both(program, X, W)


def test_gradients_of_bodies() -> None:
    def program(lib, lax, jnp, P):
        mesh = _mesh(lib, (4, 2), ("i", "j"))

        def moved(x, y):
            return {
                "gather": lax.all_gather(x, "i", tiled=True).sum()[None],
                "same": lax.all_gather(x, "i", axis=1, to="invarying").sum()[None],
                "scatter": lax.psum_scatter(y, "i", scatter_dimension=1, tiled=True),
                "exchange": lax.all_to_all(y, "i", 0, 1, tiled=True),
                "permute": lax.ppermute(x, "i", [(0, 1), (1, 2)]),
                "index": lax.axis_index("i") * x,
                "unvarying": lax.psum(y[0, 0] * 0 + 2, "i") * x,
            }

        specs = {k: P() if k == "same" else P("i") for k in
                 ("gather", "same", "scatter", "exchange", "permute", "index", "unvarying")}
        move = lib.shard_map(moved, mesh=mesh, in_specs=(P("i"), P(None, "i")), out_specs=specs)
        f = lib.shard_map(
            lambda x, w: jnp.sin(lax.psum(x @ w, "j")), mesh=mesh,
            in_specs=(P("i", "j"), P("j")), out_specs=P("i"),
        )  # fmt: skip

        def run(x, w, y):
            loss = lambda x, w: jnp.sum(f(x, w) ** 2)  # noqa: E731
            moves = lambda x, y: sum(jnp.sum(jnp.sin(v)) for v in move(x, y).values())  # noqa: E731
            return {
                "moves": lib.grad(moves, (0, 1))(x, y),
                "grad": lib.grad(loss, (0, 1))(x, w),
                "jvp": lib.jvp(f, (x, w), (x, w * 2)),
                "vmap": lib.vmap(lib.grad(loss, 1), (0, None))(jnp.stack([x, 2 * x]), w),
                "second": lib.hessian(lambda s: loss(x * s, w))(jnp.float32(1.5)),
            }

        return run

    _both(program, X, W, Y)


def test_axes_left_to_others_and_lanes_over_an_axis() -> None:
    def program(lib, lax, jnp, P):
        mesh = _mesh(lib, (4, 2), ("i", "j"))

        def some(check):
            return lib.shard_map(
                lambda x, w: (lax.psum(x @ w, "i"), jnp.sin(x) @ w), mesh=mesh, check_vma=check,
                in_specs=(P("i"), P()), out_specs=(P(), P("i")), axis_names={"i"},
            )  # fmt: skip

        lanes = lib.vmap(
            lib.shard_map(lambda x, w: lax.psum(jnp.sin(x @ w), "j"), mesh=mesh,
                          in_specs=(P("j"), P()), out_specs=P()),
            (0, None), spmd_axis_name="i",
        )  # fmt: skip

        def inner(x, w):
            mapped = lib.shard_map(
                lambda y, w: lax.psum(jnp.sin(y) @ w, "j") + lax.axis_index("i"),
                in_specs=(P(None, "j"), P("j")), out_specs=P(), axis_names={"j"},
            )  # fmt: skip
            return mapped(x, w) * 2

        nested = lib.shard_map(
            inner, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"), axis_names={"i"}
        )

        def run(x, w):
            xs = jnp.stack([x, x + 1, x * 2, x - 1])
            squares = lambda f: lambda *a: sum((v**2).sum() for v in f(*a))  # noqa: E731
            return {
                "typed": (some(True)(x, w), lib.grad(squares(some(True)), (0, 1))(x, w)),
                "untyped": (some(False)(x, w), lib.grad(squares(some(False)), (0, 1))(x, w)),
                "lanes": (lanes(xs, w), lib.grad(squares(lanes), (0, 1))(xs, w)),
                "nested": nested(x, w),
            }

        return run

    _both(program, X, W)


def test_gradient_of_a_shard_map_in_a_shard_map() -> None:
    """JAX refuses to lower it."""
    mesh = _mesh(lamina, (4, 2), ("i", "j"))

    def inner(x, w):
        mapped = lamina.shard_map(
            lambda y, w: lax.psum(lamina.numpy.sin(y) @ w, "j"),
            in_specs=(lamina.P(None, "j"), lamina.P("j")), out_specs=lamina.P(), axis_names={"j"},
        )  # fmt: skip
        return mapped(x, w)

    nested = lamina.shard_map(
        inner, mesh=mesh, in_specs=(lamina.P("i"), lamina.P()), out_specs=lamina.P("i"),
        axis_names={"i"},
    )  # fmt: skip
    assert_same(
        lamina.grad(lambda x, w: (nested(x, w) ** 2).sum(), (0, 1))(X, W),
        jax.grad(lambda x, w: ((jax.numpy.sin(x) @ w) ** 2).sum(), (0, 1))(X, W),
        weak=False, rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def test_two_meshes_of_the_same_devices() -> None:
    add, P = lambda x: x + 1, lamina.P
    f = lamina.shard_map(
        add, mesh=_mesh(lamina, (4,), ("i",)), in_specs=P("i"), out_specs=P("i")
    )
    g = lamina.shard_map(
        add, mesh=_mesh(lamina, (2, 2), ("i", "j")), in_specs=P("i", "j"), out_specs=P("i", "j")
    )
    first, second = lamina.jit(lambda x: (f(x), g(x)))(X)
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X + 1)


def test_types_say_what_varies() -> None:
    seen = []

    def body(x, w):
        seen.extend(lamina.typeof(v) for v in (x, w, x * w, lax.psum(x, "i"), w + 1))
        return lax.psum(x * w, "i")

    jaxpr = lamina.make_jaxpr(
        lamina.shard_map(body, mesh=_mesh(lamina, (4,), ("i",)),
                         in_specs=(lamina.P("i"), lamina.P()), out_specs=lamina.P())
    )(np.ones(8, np.float32), np.float32(2))  # fmt: skip
    assert [sorted(t.vma) for t in seen] == [["i"], [], ["i"], [], []]
    for text in ("f32[2]{V:i}", "pvary[axes=('i',)]", "psum_invariant[axes=('i',)]", "check_vma=True"):
        assert text in str(jaxpr)


def test_ragged_all_to_all() -> None:
    """XLA has no such thing on the CPU; as its documentation defines it."""
    rng = np.random.default_rng(0)
    n = 4
    size = rng.integers(0, 3, (n, n)).astype(np.int32)
    begin = (np.cumsum(size, 1) - size).astype(np.int32)
    at = (np.cumsum(size, 0) - size).astype(np.int32)
    x = rng.standard_normal((n, 8, 3)).astype(np.float32)
    want = np.full((n, 10, 3), -1, np.float32)
    for s in range(n):
        for t in range(n):
            rows = x[s, begin[s, t] : begin[s, t] + size[s, t]]
            want[t, at[s, t] : at[s, t] + size[s, t]] = rows

    def send(x, *tables):
        out = lamina.numpy.full((10, 3), -1, np.float32)
        return lax.ragged_all_to_all(x, out, *tables, axis_name="i")

    tables = (begin, size, at, size.T)
    lanes = lamina.vmap(send, axis_name="i")
    np.testing.assert_array_equal(lanes(x, *tables), want)
    np.testing.assert_array_equal(lamina.pmap(send, axis_name="i")(x, *tables), want)
    weight = rng.standard_normal(want.shape).astype(np.float32)
    got = lamina.grad(lambda x: (lanes(x, *tables) * weight).sum())(x)
    for s in range(n):
        for t in range(n):
            np.testing.assert_array_equal(
                got[s, begin[s, t] : begin[s, t] + size[s, t]],
                weight[t, at[s, t] : at[s, t] + size[s, t]],
            )


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("bwd rule", "custom"),
        ("must refer to an axis marked as manual", "spec"),
        ("Unsupported pcast from=varying", "pcast"),
        ("should match the mesh passed to pmap", "pmap"),
        ("should match the mesh passed to shard_map", "again"),
        ("must be a subset of the mesh axes", "names"),
    ],
)
def test_errors(text: str, call: str) -> None:
    mesh, P = _mesh(lamina, (4, 2), ("i", "j")), lamina.P

    def mapped(f, spec=P("i"), **more):  # noqa: B008
        return lamina.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **more)

    @lamina.custom_vjp
    def scaled(w, x):
        return w * x

    scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda r, g: ((g * r[1]).sum(), g * r[0]))
    calls = {
        "custom": lambda: mapped(
            lambda x: x * lamina.grad(lambda w: scaled(w, x).sum())(lax.psum(x.sum(), "i"))
        )(X),
        "spec": lambda: mapped(lambda x: x, P("j"), axis_names={"i"})(X),
        "pcast": lambda: mapped(lambda x: lax.pcast(x, "i", to="varying"))(X),
        "pmap": lambda: mapped(lamina.pmap(lambda x: x))(X),
        "again": lambda: mapped(mapped(lambda x: x))(X),
        "names": lambda: mapped(lambda x: x, axis_names={"z"})(X),
    }
    with pytest.raises(ValueError, match=text):
        calls[call]()


def test_casts_are_written_out_where_auto_pcast_is_off() -> None:
    mesh, P = _mesh(lamina, (2,), ("i",)), lamina.P

    def product(cast):
        return lamina.shard_map(
            lambda x, w: x * cast(w), mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i")
        )(X[:2], X[0])

    with lamina.auto_pcast(False):
        with pytest.raises(ValueError, match="mul requires varying manual axes to match"):
            product(lambda w: w)
        out = product(lambda w: lax.pcast(w, "i", to="varying"))
    np.testing.assert_array_equal(out, product(lambda w: w))
