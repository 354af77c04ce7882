"""shard_map against JAX on eight virtual devices: blocks, collectives, transformations, errors."""

import types
from typing import Any

import jax
import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices
from support.oracle.judge import assert_same

import lamina
import lamina.numpy as jnp
from lamina.partitioning import missing
from lamina.sharding import NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
partitioned = pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
P, PJ = lamina.P, jax.P
X = np.arange(48, dtype=np.float32).reshape(8, 6) / 10
W = np.cos(np.arange(24, dtype=np.float32)).reshape(6, 4)


def _shard_map(lib: types.ModuleType, sizes: tuple[int, ...], names: tuple[str, ...]):
    devices = np.array(lib.devices()[: int(np.prod(sizes))]).reshape(sizes)
    mesh = lib.sharding.Mesh(devices, names)

    def mapped(f, in_specs, out_specs):
        return lib.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)

    return mapped


def _both(program, *args):
    """program(lib, lax, jnp, P) in both libraries."""
    assert_same(
        program(lamina, lamina.lax, lamina.numpy, P)(*args),
        program(jax, jax.lax, jax.numpy, PJ)(*args),
        weak=False,
        atol=1e-5,
    )


def test_collectives_on_one_axis() -> None:
    def program(lib, lax, jnp, P):
        def f(x, y):
            i = lax.axis_index("i")
            return {
                "sum": lax.psum(x, "i"),
                "mean": lax.pmean(x, "i"),
                "max": lax.pmax(jnp.sin(x), "i"),
                "min": lax.pmin(x.astype(jnp.int32), "i"),
                "half": lax.psum(x.astype(jnp.bfloat16), "i"),
                "complex": lax.psum(lax.complex(x, x), "i"),
                "groups": lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]) * (i + 1),
                "gather": lax.all_gather(x, "i", axis=1),
                "tiled": lax.all_gather(x, "i", axis=1, tiled=True),
                "permute": lax.ppermute(x, "i", [(0, 1), (1, 3)]),
                "exchange": lax.all_to_all(y, "i", 0, 1, tiled=True),
                "swap": lax.all_to_all(y, "i", 0, 0),
                "scatter": lax.psum_scatter(y, "i", scatter_dimension=0, tiled=True),
                "size": x * lax.psum(1, "i"),
            }

        return lib.jit(
            _shard_map(lib, (4,), ("i",))(f, (P("i"), P(None, "i")), P("i"))
        )

    _both(program, X, np.arange(32, dtype=np.float32).reshape(4, 8))


def test_groups_over_several_axes() -> None:
    def program(lib, lax, jnp, P):
        def f(x):
            names, groups = ("i", "j"), [[0, 3], [1, 2]]
            return {
                "sum": lax.psum(x, names, axis_index_groups=groups),
                "max": lax.pmax(x, names, axis_index_groups=groups),
                "gather": lax.all_gather(x, names, axis_index_groups=groups, axis=1, tiled=True),
                "scatter": lax.psum_scatter(x, names, axis_index_groups=groups, tiled=True),
                "exchange": lax.all_to_all(x, names, 0, 1, axis_index_groups=groups, tiled=True),
            }

        return lib.jit(_shard_map(lib, (2, 2), ("i", "j"))(f, P(("i", "j")), P(("i", "j"))))

    _both(program, X)
    with pytest.raises(NotImplementedError, match="over several axes, of which vmap maps over 'b'"):
        of_pairs = lamina.vmap(_sum_of_pairs, axis_name="b")
        lamina.vmap(of_pairs, axis_name="a")(X[:2, :2])


def _sum_of_pairs(x):
    return lamina.lax.psum(x, ("a", "b"), axis_index_groups=[[0, 3], [1, 2]])


@partitioned
def test_gradients_of_a_batch_that_is_spread_over_an_axis() -> None:
    mesh = auto_mesh((2, 2), ("i", "j"))
    over_rows = {"mesh": mesh, "in_specs": P("j"), "out_specs": P(), "check_vma": False}
    f = lamina.shard_map(lambda x: jnp.sin(lamina.lax.psum(jnp.sum(x), "j")), **over_rows)
    x = lamina.device_put(X[:4, :4], NamedSharding(mesh, P("i", "j")))
    wanted = np.repeat(np.cos(X[:4, :4].sum(1, keepdims=True)), 4, 1)
    for spread in ({}, {"spmd_axis_name": "i"}):
        np.testing.assert_allclose(lamina.vmap(lamina.grad(f), **spread)(x), wanted, rtol=1e-5)


def test_what_calls_outside_of_a_shard_map_are_told() -> None:
    with pytest.raises(NameError, match=r"please call psum under `lamina.shard_map`, .* bound here: none"):
        lamina.lax.psum(X, "i")
    with lamina.set_mesh(lamina.make_mesh((2, 1), ("i", "j"))):
        with pytest.raises(ValueError, match=r"pvary should be called under lamina.shard_map. Got the axes \['i'\]"):
            lamina.lax.pcast(X, "i", to="varying")
        jaxpr = lamina.make_jaxpr(lambda x: lamina.lax.pcast(x, "j", to="varying"))(X)
        assert not jaxpr.jaxpr.eqns  # of one device there is nothing to say
    mesh = auto_mesh((2, 2), ("i", "j"))
    f = lamina.shard_map(lambda x: x, mesh=mesh, in_specs=([P("i")],), out_specs=[P("i")])
    with pytest.raises(ValueError, match=r"shard_map in_specs\[0\] specification must be a tree prefix"):
        f([X, X])
    g = lamina.pmap(lambda x, y: x, in_axes=((0, (0, 0)), 0))
    with pytest.raises(ValueError, match=r"pmap in_axes\[0\]\[1\] specification must be a tree prefix"):
        g((X, (X, X, X)), X)


def test_what_is_made_of_a_shard_map_is_one() -> None:
    mesh = auto_mesh((4,), ("i",))
    f = lamina.shard_map(lambda x: lamina.lax.psum(x * 2, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    for made in (
        lamina.make_jaxpr(lamina.vjp(f, X)[1])(np.ones((2, 6), np.float32)),
        lamina.make_jaxpr(lamina.vmap(f))(np.stack([X, X])),
        lamina.make_jaxpr(lambda x: lamina.jvp(f, (x,), (x,)))(X),
    ):
        assert [eqn.primitive.name for eqn in made.jaxpr.eqns] == ["shard_map"]
    np.testing.assert_allclose(lamina.grad(lambda x: f(x).sum())(X), np.full_like(X, 2))


def test_two_axes_loops_and_branches() -> None:
    def program(lib, lax, jnp, P):
        def f(x, w):
            y = lax.psum(x @ w, "j")
            all_of_it = lax.all_gather(x, ("i", "j"), tiled=True).sum()

            def step(c, v):
                return lax.pmean(c + v.sum() * lax.axis_index("i"), "i"), lax.psum(v, "i")

            last, seen = lax.scan(step, jnp.float32(1), y)
            steps = lax.while_loop(lambda n: lax.psum(n, ("i", "j")) < 100, lambda n: n + 1, 0)
            branch = lax.cond(last > 3, lambda v: lax.psum(v, "i"), lambda v: v, y)
            at = lax.axis_index(("i", "j"))
            return y + all_of_it + last, seen, branch, jnp.full((1, 1), steps + at)

        specs = (P("i"), P(None, None), P("i"), P("i", "j"))
        return lib.jit(_shard_map(lib, (4, 2), ("i", "j"))(f, (P("i", "j"), P("j")), specs))

    _both(program, X, W)


def test_transformations() -> None:
    def program(lib, lax, jnp, P):
        mapped = _shard_map(lib, (4, 2), ("i", "j"))

        def f(x, w):
            return jnp.sin(lax.psum(x @ w, "j"))

        g = mapped(f, (P("i", "j"), P("j")), P("i"))
        loss = lambda x, w: jnp.sum(g(x * 2, w) ** 2) + jnp.sum(w)  # noqa: E731
        xs = lambda x: jnp.stack([x, x + 1, x * 2])  # noqa: E731

        def run(x, w):
            return {
                "grad": lib.grad(loss, argnums=(0, 1))(x, w),
                "jvp": lib.jvp(g, (x, w), (x + 1, w * 2)),
                "vmap": lib.vmap(g, in_axes=(0, None))(xs(x), w),
                "vmap of grad": lib.vmap(lib.grad(loss), in_axes=(0, None))(xs(x), w),
                "grad of scan": lib.grad(
                    lambda w: lax.scan(lambda c, x: (c + g(x, w).sum(), None), 0.0, xs(x))[0]
                )(w),
                "second": lib.grad(lambda w: lib.grad(loss, 1)(x, w)[0, 0])(w),
                "inner vmap": mapped(
                    lambda x: lib.vmap(lambda r: r - lax.psum(r, ("k", "i")), axis_name="k")(x),
                    (P("i"),), P("i"),
                )(x),
            }  # fmt: skip

        return lib.jit(run)

    _both(program, X, W)


def test_results_are_sharded_and_eager_is_jit() -> None:
    mesh = lamina.make_mesh((4, 2), ("i", "j"))
    f = lamina.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i", "j"))
    y = f(X)
    assert y.sharding == lamina.NamedSharding(mesh, P("i", "j"))
    assert [s.data.shape for s in y.addressable_shards] == [(2, 3)] * 8
    np.testing.assert_array_equal(y, X * 2)
    np.testing.assert_array_equal(f(y), X * 4)
    with mesh:
        np.testing.assert_array_equal(
            lamina.shard_map(lambda x: x + 1, in_specs=P("j"), out_specs=P("j"))(X), X + 1
        )


def test_donated_blocks_are_taken_over() -> None:
    mesh = lamina.make_mesh((4,), ("i",))
    f = lamina.shard_map(lambda x: x + 1, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    step = lamina.jit(f, donate_argnums=0)
    x = f(np.zeros((8, 1024), np.float32))
    before = {s.unsafe_buffer_pointer() for s in x.shards}
    y = step(x)
    assert x.is_deleted()
    assert {s.unsafe_buffer_pointer() for s in y.shards} == before
    np.testing.assert_array_equal(y, np.full((8, 1024), 2))


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ValueError, "not evenly divisible", lambda s: s(lambda x: x, P("i"), P("i"))(X[:6])),
        (ValueError, "too long to be compatible", lambda s: s(lambda x: x, P("i", None, None),
                                                              P("i"))(X)),
        (ValueError, "not found in mesh", lambda s: s(lambda x: x, P("z"), P("i"))(X)),
        (ValueError, "can't be statically inferred", lambda s: s(lambda x: x, P("i"), P())(X)),
        (ValueError, "in_specs", lambda s: s(lambda x: x, (P("i"), P("i")), P("i"))(X)),
        (NameError, "unbound axis name: z",
         lambda s: s(lambda x: lamina.lax.psum(x, "z"), P("i"), P())(X)),
        (ValueError, "ppermute sources and destinations must be unique",
         lambda s: s(lambda x: lamina.lax.ppermute(x, "i", [(0, 1), (0, 2)]), P("i"), P("i"))(X)),
    ],
)  # fmt: skip
def test_errors(error, text, call) -> None:
    mesh = lamina.make_mesh((4,), ("i",))
    with pytest.raises(error, match=text):
        call(lambda f, i, o: lamina.shard_map(f, mesh=mesh, in_specs=i, out_specs=o))


def test_what_is_replicated_is_inferred_through_control_flow() -> None:
    mesh = lamina.make_mesh((4,), ("i",))
    lax = lamina.lax

    def f(x):
        total = lax.psum(x.sum(), "i")
        total, _ = lax.scan(lambda c, _: (c * 2, None), total, None, length=3)
        total = lax.while_loop(lambda c: c < 1e6, lambda c: c * 3, total)
        return lax.cond(total > 0, lambda t: t + lax.psum(x, "i").sum(), lambda t: t, total)

    lamina.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P())(X)


def test_arguments_without_a_spec_are_given_as_they_are() -> None:
    mesh = lamina.make_mesh((4,), ("i",))
    settings = {"name": "double", "factor": 2}

    def body(settings: dict[str, Any], x: Any, other: None) -> Any:
        assert settings["name"] == "double" and other is None
        assert x.shape == (2,)
        return settings["factor"] * x

    f = lamina.shard_map(body, mesh=mesh, in_specs=(None, P("i"), None), out_specs=P("i"))
    x = jnp.arange(8.0)
    np.testing.assert_array_equal(f(settings, x, None), 2 * np.arange(8.0))
    np.testing.assert_array_equal(lamina.jit(lambda x: f(settings, x, None))(x), 2 * np.arange(8.0))
    with pytest.raises(ValueError, match="evenly divisible"):
        f(settings, jnp.arange(7.0), None)


def test_types_and_the_mesh_say_what_is_manual() -> None:
    mesh = auto_mesh((4, 2), ("i", "j"))
    seen = []

    def body(x: Any) -> Any:
        axes = lamina.sharding.get_abstract_mesh()
        seen.append((axes.manual_axes, axes.auto_axes, lamina.typeof(x).mat.varying))
        return x

    f = lamina.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), axis_names={"i"})
    f(jnp.arange(8.0))
    assert seen == [(("i",), ("j",), frozenset({"i"}))]
    assert mesh.auto_axes == ("i", "j") and mesh.manual_axes == ()
    assert lamina.typeof(jnp.ones(2)).mat.empty


def test_a_shape_like_an_array_is_placed_as_it_is() -> None:
    place = NamedSharding(lamina.make_mesh((4,), ("i",)), P("i"))
    like = lamina.ShapeDtypeStruct.like(lamina.device_put(jnp.arange(8), place))
    assert (like.shape, like.dtype, like.sharding) == ((8,), np.int32, place)
    assert lamina.ShapeDtypeStruct.like(jnp.float32(2)).sharding is None


def test_gradients_of_small_weights_are_one_message() -> None:
    mesh = lamina.make_mesh((4,), ("d",))
    weights = [(np.cos(np.arange(36.0)).reshape(6, 6).astype("f") * i, X[i]) for i in range(1, 4)]

    def gradient(x):
        def loss(weights):
            out = x
            for matrix, bias in weights:
                out = jnp.tanh(out @ matrix + bias)
            return jnp.sum(out)

        return lamina.grad(loss)(weights)

    def sums(x):
        return lamina.tree.map(lambda g: lamina.lax.psum(g, "d"), gradient(x))

    step = lamina.jit(lamina.shard_map(sums, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False))
    assert step.lower(X).compile().as_text("optimized").count('"stablehlo.all_reduce"(') == 1
    terms = [lamina.jit(gradient)(X[i : i + 2]) for i in range(0, 8, 2)]
    alone = lamina.tree.map(lambda *each: sum(map(np.asarray, each)), *terms)
    lamina.tree.map(np.testing.assert_array_equal, step(X), alone)


@partitioned
def test_over_some_axes_types_say_how_blocks_lie_over_the_others() -> None:
    devices = np.array(lamina.devices()).reshape(2, 2, 2)
    mesh = lamina.sharding.Mesh(devices, ("i", "j", "k"), axis_types=(lamina.sharding.AxisType.Explicit,) * 3)
    with lamina.set_mesh(mesh):
        x = lamina.device_put(X[:, :4], P("i", "j"))

        def sines(x):
            assert lamina.typeof(x).sharding.spec == P(None, "j")
            assert lamina.typeof(x).mat.invarying(lamina.sharding.get_abstract_mesh()) == set()
            inner = lamina.shard_map(jnp.sin, in_specs=P(None, "j"), out_specs=P(None, "j"))  # over j, k
            return lamina.lax.psum(lamina.jit(jnp.tanh)(inner(x)), "i")

        f = lamina.shard_map(sines, in_specs=P("i"), out_specs=P(), axis_names={"i"})
        out = lamina.jit(f)(x)
        assert out.sharding.spec == P(None, "j")
        wanted = np.tanh(np.sin(X[:, :4]))
        np.testing.assert_allclose(np.asarray(out), wanted[:4] + wanted[4:], rtol=1e-5)
        grads = lamina.jit(lamina.grad(lambda x: jnp.sum(f(x))))(x)
        assert grads.sharding.spec == P("i", "j")
        np.testing.assert_allclose(
            np.asarray(grads), np.cos(X[:, :4]) / np.cosh(np.sin(X[:, :4])) ** 2, rtol=1e-5
        )


def test_what_calls_of_shard_map_are_told() -> None:
    mesh = auto_mesh((2, 2), ("i", "j"))
    rows = NamedSharding(mesh, P("i"))

    def body(x):
        return lamina.lax.with_sharding_constraint(x, rows)

    inside = lamina.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), axis_names={"i"}, check_vma=False)
    both = lamina.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i"))
    number = lamina.shard_map(lambda x: x, mesh=mesh, in_specs=P(None), out_specs=P())
    once = lamina.shard_map(
        lambda x: lamina.lax.ppermute(x, "i", zip([0], [1])), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    x = np.arange(8.0).reshape(4, 2)
    for f, arg, error, match in (
        (inside, x, ValueError, r"contains a manual axes \['i'\] of mesh"),
        (both, x, ValueError, r"only varying across mesh axes \{i\} and not \{j\}, .* varying over \{i,j\}"),
        (number, 3.0, ValueError, r"which has rank 0.*an in_specs entry of `P\(\)`"),
        (once, x, TypeError, "`perm` passed to `lamina.lax.ppermute` must be a list"),
    ):
        with pytest.raises(error, match=match):
            f(arg)
    with pytest.raises(ValueError, match="A single out_shardings specification .* duplicate entries for `i`"):
        lamina.jit(lambda x: x, out_shardings=P("i", "i"))
    given = lamina.shard_map(lambda x: x, mesh=mesh, in_specs=None, out_specs=P())
    assert given(3.0) == 3.0  # as it is


@pytest.mark.parametrize("wrap", [lambda f: f, lamina.jit])
def test_axes_without_devices_run_on_those_of_the_arguments(wrap):
    mesh = auto_mesh((2, 2), ("x", "y"))
    given = lamina.device_put(X, NamedSharding(mesh, P("x", "y")))

    def body(x, y):
        return lamina.lax.psum(x * y, "y")

    f = wrap(lamina.shard_map(body, mesh=mesh.abstract_mesh, in_specs=P("x", "y"), out_specs=P("x")))
    expected = X[:, :3] ** 2 + X[:, 3:] ** 2
    out = f(X, given)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert out.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_allclose(lamina.grad(lambda x: f(x, x).sum())(given), 2 * X, rtol=1e-6)
    with lamina.set_mesh(mesh):
        np.testing.assert_allclose(f(X, X), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="Please pass `lamina.Array`s with a `NamedSharding`"):
        f(X, X)
    with pytest.raises(ValueError, match="Mesh shape of the input .* does not match the mesh shape"):
        f(X, lamina.device_put(X, NamedSharding(auto_mesh((2,), ("x",)), P("x"))))


def test_axes_without_devices_are_lowered_before_devices_are_known():
    axes = lamina.sharding.AbstractMesh((4,), ("x",))
    f = lamina.shard_map(lambda x: lamina.lax.psum(x, "x"), mesh=axes, in_specs=P("x"), out_specs=P())
    assert "all_reduce" in lamina.jit(f).lower(X).as_text()


def test_rules_that_bring_constants_into_a_body() -> None:
    table = np.arange(1, 4, dtype=np.float32)

    @lamina.custom_jvp
    def square(x):
        return x * x

    @square.defjvp
    def _(primals, tangents):
        return square(*primals), tangents[0] * primals[0] * jnp.asarray(table)

    mesh = auto_mesh((4,), ("i",))
    for check in (True, False):
        f = lamina.shard_map(
            lambda x: square(x).sum(keepdims=True), mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=check
        )
        x = np.arange(12, dtype=np.float32)
        slope = lamina.grad(lambda x, f=f: f(x).sum())
        wanted = x * np.tile(table, 4)
        np.testing.assert_array_equal(slope(x), wanted)
        np.testing.assert_array_equal(lamina.jit(lamina.vmap(slope))(np.stack([x, 2 * x]))[1], 2 * wanted)
        np.testing.assert_array_equal(lamina.linearize(f, x)[1](x), (x * wanted).reshape(4, 3).sum(1))
