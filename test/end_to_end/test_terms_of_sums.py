"""Arrays that are sums of terms, one on each device (P(unreduced=)), and those whose cotangents are (P(reduced=))."""

import pickle

import numpy as np
import pytest
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P, lax
from lamina.core import ShardingTypeError
from lamina.partitioning import missing
from lamina.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, UnreducedKind, reshard

pytestmark = pytest.mark.usefixtures("eight_devices")
partitioned = pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")

_ABSTRACT = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def test_specs_say_terms():
    spec = P("a", None, unreduced={"c"}, reduced={"d"})
    assert repr(spec) == "P('a', None, unreduced={'c'}, reduced={'d'}, unreduced_kind=sum)"
    assert spec == pickle.loads(pickle.dumps(spec)) and hash(spec) == hash(spec.update())
    assert spec != P("a", None) and P("a", unreduced={"b"}) + P("c", unreduced={"d"}) == P(
        "a", "c", unreduced={"b", "d"}
    )
    assert P("a", unreduced=set()) == P("a") and hash(P("a", unreduced=set())) == hash(P("a"))
    with pytest.raises(TypeError, match="unreduced in `__add__`"):
        P(unreduced={"x"}) + (None,)
    with pytest.raises(ValueError, match="partitions cannot overlap with unreduced"):
        P("x", unreduced={"x"})
    with pytest.raises(TypeError, match="Expected unreduced_kind"):
        P(unreduced={"x"}, unreduced_kind="sum")
    with pytest.raises(ValueError, match="Unreduced axes .* not found in mesh"):
        NamedSharding(_ABSTRACT, P(unreduced={"z"}))
    with pytest.raises(ValueError, match="Unreduced axes can only refer to mesh axes"):
        NamedSharding(AbstractMesh((2,), ("x",)), P(unreduced={"x"}))


def _types(mesh, specs):
    return [
        lamina.ShapeDtypeStruct((4, 4), np.float32, sharding=NamedSharding(mesh, s)) for s in specs
    ]


@pytest.mark.parametrize(
    "f, given, out",
    [
        (lambda x: -x.T.reshape(2, 8), [P(unreduced={"x"})], P(None, None, unreduced={"x"})),
        (lambda x: x.sum(0).astype(jnp.bfloat16), [P(unreduced={"x"})], P(None, unreduced={"x"})),
        (
            lambda x, y: jnp.concatenate([x + y, y]),
            [P(unreduced={"x"})] * 2,
            P(None, None, unreduced={"x"}),
        ),
        (
            lambda x, y: x * y,
            [P(unreduced={"x"}), P(reduced={"x"})],
            P(None, None, unreduced={"x"}),
        ),
        (
            lambda x, y: x / y,
            [P("y", unreduced={"x"}), P("y", reduced={"x"})],
            P("y", None, unreduced={"x"}),
        ),
        (lambda x: jnp.sin(x) * 2, [P("x", reduced={"y"})], P("x", None, reduced={"y"})),
        (lambda x: lax.slice(x, (0, 0), (2, 3))[1], [P(reduced={"y"})], P(None, reduced={"y"})),
        (lambda x, w: x @ w, [P("x"), P(reduced={"x"})], P("x", None)),
    ],
)
def test_types_of_results(mesh, f, given, out):
    assert lamina.eval_shape(f, *_types(mesh, given)).sharding.spec == out


@pytest.mark.parametrize(
    "f, given, error, message",
    [
        (jnp.sin, [P(unreduced={"x"})], NotImplementedError, "unreduced rule for sin"),
        (
            lambda x: x * 2,
            [P(unreduced={"x"})],
            Exception,
            "RHS should be reduced along the same axes LHS",
        ),
        (
            jnp.add,
            [P(unreduced={"x"}), P()],
            ShardingTypeError,
            "lhs is unreduced while rhs is not",
        ),
        (
            jnp.add,
            [P(unreduced={"x"}), P(unreduced={"y"})],
            Exception,
            "unreduced along the same mesh axes",
        ),
        (
            jnp.multiply,
            [P(reduced={"x"}), P("x")],
            ShardingTypeError,
            "sharded/varying on the same axes",
        ),
        (jnp.multiply, [P(reduced={"x"}), P()], ShardingTypeError, "replicated on the same axes"),
        (jnp.divide, [P(unreduced={"x"})] * 2, ValueError, "denominator cannot be unreduced"),
        (jnp.matmul, [P(unreduced={"x"}), P()], ShardingTypeError, "cannot be unreduced"),
        (lambda x: x.astype(int), [P(unreduced={"x"})], NotImplementedError, "unreduced rule"),
    ],
)
def test_what_terms_do_not_tell(mesh, f, given, error, message):
    with pytest.raises(error, match=message):
        lamina.eval_shape(f, *_types(mesh, given))


@pytest.fixture
def mesh():
    devices = np.array(lamina.devices()[:4]).reshape(2, 2)
    mesh = Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with lamina.set_mesh(mesh):
        yield mesh


def _terms(x):
    return [np.asarray(s.data) for s in x.addressable_shards]


def _close(x, y):
    np.testing.assert_allclose(np.asarray(x), y, rtol=1e-5, atol=1e-5)


def _alone(f, *args):
    """The same on one device."""
    with lamina.set_mesh(Mesh(np.array(lamina.devices()[:1]), ("z",))):
        return lamina.tree.map(np.asarray, f(*args))


@partitioned
def test_arrays_of_terms(mesh):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)).astype("f")
    x = lamina.device_put(a, P(unreduced={"x"}))
    np.testing.assert_array_equal(_terms(x), [a, a, 0 * a, 0 * a])
    np.testing.assert_array_equal(np.asarray(x), a)  # the sum
    assert not x.sharding.is_fully_replicated
    np.testing.assert_array_equal(np.asarray(lamina.device_put(x, P("y"))), a)
    of = lamina.make_array_from_single_device_arrays(
        (2,),
        NamedSharding(mesh, P(None, unreduced={"x", "y"}, unreduced_kind=UnreducedKind.max)),
        [lamina.device_put(np.float32([i, -i]), d) for i, d in enumerate(mesh.devices.flat)],
    )
    assert np.asarray(of).tolist() == [3, 0]

    f = lamina.jit(lambda a, b: jnp.einsum("ab,bc->ac", a, b, out_sharding=P("x", unreduced={"y"})))
    left, right = lamina.device_put(a, P("x", "y")), lamina.device_put(a, P("y"))
    out = f(left, right)
    assert "all_reduce" not in f.lower(left, right).compile().as_text("optimized")
    np.testing.assert_allclose(_terms(out)[1], a[:2, 2:] @ a[2:], rtol=1e-5)
    assert out.sharding.spec == P("x", None, unreduced={"y"})
    _close(lamina.jit(lambda o: reshard(o + o, P("x")))(out), 2 * (a @ a))
    _close(out + out, 2 * (a @ a))  # outside of jit, too

    top = lamina.jit(
        lambda x: lax.reduce_max(
            x, (0,), out_sharding=P("y", unreduced={"x"}, unreduced_kind=UnreducedKind.max)
        )
    )(left)
    np.testing.assert_array_equal(_terms(top)[0], a[:2, :2].max(0))
    np.testing.assert_array_equal(
        np.asarray(lamina.jit(lambda x: reshard(x, P("y")))(top)), a.max(0)
    )


@partitioned
def test_gradients_are_summed_once(mesh):
    # The gradients of weights that all devices have, of two parts of a batch each: one sum, of them all.
    rng = np.random.default_rng(0)
    w = {
        "a": rng.normal(size=(4, 8)).astype("f"),
        "b": rng.normal(size=(8, 3)).astype("f"),
        "c": rng.normal(size=8).astype("f"),
    }
    xs = rng.normal(size=(2, 4, 4)).astype("f")

    def loss(w, x, spread=lambda c: c):
        hidden = jnp.tanh(x @ w["a"] + spread(w["c"]))
        return jnp.sum(jnp.sin(hidden @ w["b"]) * 3)

    def spread(c):
        return lax.broadcast_in_dim(c, (4, 8), (1,), out_sharding=P("x"))

    @lamina.jit
    def step(w, xs):
        def body(total, x):
            return lamina.tree.map(jnp.add, total, lamina.grad(loss)(w, x, spread)), None

        zeros = reshard(lamina.tree.map(jnp.zeros_like, w), P(unreduced={"x"}))
        total, _ = lax.scan(body, zeros, xs)
        return reshard(total, P())

    given = lamina.device_put(w, P(reduced={"x"})), lamina.device_put(xs, P(None, "x"))
    got = step(*given)
    wanted = _alone(lamina.grad(lambda w: loss(w, xs[0]) + loss(w, xs[1])), w)
    lamina.tree.map(_close, got, wanted)
    plan = step.lower(*given).compile().as_text("optimized")
    assert plan.count('"stablehlo.all_reduce"(') == 1 and "stablehlo.while" in plan
    assert plan.index("stablehlo.while") < plan.index("all_reduce")  # after the loop
    direct = lamina.jit(lambda w, x: lamina.grad(loss)(w, x, spread))(given[0], given[1][0])
    assert direct["a"].sharding.spec == P(None, None, unreduced={"x"})

    # By hand: the same types along the axes of a shard_map.
    def layers(w, x):
        return jnp.sin(
            jnp.where(w["a"][0, 0] > 0, 1.0, 2.0) * jnp.tanh(x @ w["a"] + w["c"]) @ w["b"]
        )

    @lamina.jit
    @lamina.shard_map(in_specs=(P(reduced={"x"}), P("x")), out_specs=P("x"))
    def by_hand(w, x):
        assert lamina.typeof(w["a"]).mat.reduced == {"x"}
        return layers(w, x)

    grads = lamina.jit(lamina.grad(lambda w, x: jnp.sum(by_hand(w, x)) * 3))(
        *given[:1], given[1][0]
    )
    by_one = _alone(lamina.grad(lambda w, x: jnp.sum(layers(w, x)) * 3), w, xs[0])
    assert grads["b"].sharding.spec == P(None, None, unreduced={"x"})
    lamina.tree.map(_close, grads, by_one)

    @lamina.shard_map(in_specs=P("x"), out_specs=P(reduced={"x"}))
    def gathered(x):
        out = lax.all_gather(x, "x", tiled=True, to="reduced")
        assert lamina.typeof(out).mat.reduced == {"x"}
        return out

    @lamina.shard_map(in_specs=P(unreduced={"x"}), out_specs=P("x"))
    def scattered(x):
        return lax.psum_scatter(x, "x", tiled=True)

    @lamina.shard_map(in_specs=P("x"), out_specs=P(unreduced={"x"}))
    def summed(x):
        return lax.pcast(x, "x", to="unreduced")

    x = lamina.device_put(np.arange(8.0, dtype="f"), P("x"))
    _close(lamina.jit(lambda x: scattered(summed(x)))(x), [4, 6, 8, 10])
    _close(lamina.grad(lambda x: jnp.sum(gathered(x) ** 2))(x), 2 * np.arange(8.0))
    _close(
        lamina.jit(lamina.grad(lambda x: jnp.sum(scattered(summed(x)) ** 2)))(x),
        2 * np.float32([4, 6, 8, 10] * 2),
    )
    sines = lamina.shard_map(jnp.sin, in_specs=P(unreduced={"x"}), out_specs=P())
    with pytest.raises(NotImplementedError, match="unreduced rule for sin"):
        sines(lamina.device_put(x, P(unreduced={"x"})))


@partitioned
@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: x.at[i].get(),
        lambda x, i: lax.dynamic_slice(x, (i[0], 0), (2, 2)),
        lambda x, i: x[:2] * 3,
    ],
    ids=["gather", "dynamic_slice", "multiply"],
)
def test_terms_stay_terms_in_inner_jits(mesh, read):
    """What goes into a function of its own must not be added up there: it would count once for each device."""
    x = np.arange(16, dtype="f").reshape(8, 2)
    given = lamina.device_put(x, P(reduced={"x"})), lamina.device_put(np.int32([0, 3]), P())

    def loss(x, i):
        return (lamina.jit(read)(x, i) * x[0, 1]).sum()

    found = lamina.jit(lamina.grad(loss))(*given)
    assert found.sharding.spec == P(None, None, unreduced={"x"})
    _close(reshard(found, P()), _alone(lamina.grad(loss), x, np.int32([0, 3])))


@partitioned
@pytest.mark.parametrize("kind", ["max", "min"])
def test_extrema_of_what_devices_have_of_an_extremum(kind) -> None:
    with lamina.set_mesh(lamina.make_mesh((2,), ("x",))):
        x = lamina.device_put(np.arange(8.0, dtype=np.float32).reshape(4, 2), P("x"))
        spec = P(None, unreduced={"x"}, unreduced_kind=UnreducedKind[kind])
        terms = lamina.jit(lambda x: getattr(lax, f"reduce_{kind}")(x, (0,), out_sharding=spec))(x)
        over = lamina.jit(lamina.shard_map(lambda x: getattr(lax, f"p{kind}")(x, "x"), out_specs=P()))
        np.testing.assert_array_equal(over(terms), getattr(np, kind)(x, axis=0))
        other = {"max": lax.pmin, "min": lax.pmax}[kind]
        with pytest.raises(ShardingTypeError, match="and these are combined otherwise"):
            lamina.jit(lamina.shard_map(lambda x: other(x, "x"), out_specs=P()))(terms)


@partitioned
def test_an_einsum_of_one_operand_leaves_terms() -> None:
    with lamina.set_mesh(lamina.make_mesh((2,), ("x",))):
        x = lamina.device_put(np.arange(8.0, dtype=np.float32).reshape(4, 2), P("x"))
        f = lamina.jit(lambda x: jnp.einsum("ab->b", x, out_sharding=P(None, unreduced={"x"})))
        assert "all-reduce" not in f.lower(x).compile().as_text()
        np.testing.assert_array_equal([part.data for part in f(x).addressable_shards], [[2, 4], [10, 12]])
        np.testing.assert_array_equal(reshard(f(x), P()), [12, 16])


@partitioned
def test_sums_of_segments_are_left_as_each_devices_own():
    mesh = lamina.make_mesh((4, 2), ("x", "y"))
    with lamina.set_mesh(mesh):
        rows = lamina.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), P("x", "y"))
        ids = lamina.device_put(np.array([0, 0, 1, 1, 1, 2, 2, 3]), P("x"))
        expected = lamina.ops.segment_sum(np.asarray(rows), np.asarray(ids), 4)

        def sums(rows, ids):
            return lamina.ops.segment_sum(rows, ids, num_segments=4, out_sharding=P(None, "y", unreduced={"x"}))

        for f in (sums, lamina.jit(sums)):
            out = f(rows, ids)
            assert out.sharding.spec == P(None, "y", unreduced={"x"})
            np.testing.assert_array_equal(out.addressable_shards[0].data, [[4, 6], [0, 0], [0, 0], [0, 0]])
            np.testing.assert_array_equal(reshard(out, P()), expected)
        ones = lamina.grad(lambda rows: reshard(sums(rows, ids), P()).sum())(rows)
        np.testing.assert_array_equal(ones, np.ones((8, 4)))
        counts = jnp.bincount(ids, length=4, out_sharding=P(unreduced={"x"}))
        np.testing.assert_array_equal(counts.addressable_shards[0].data, [2, 0, 0, 0])
        np.testing.assert_array_equal(reshard(counts, P()), [2, 3, 2, 1])
        with pytest.raises(ShardingTypeError, match="segment_sum: its arguments are split along"):
            lamina.ops.segment_sum(rows, ids, 4, out_sharding=P(unreduced={"x"}))
        with pytest.raises(NotImplementedError, match="segment_max does not give terms"):
            lamina.ops.segment_max(ids, ids, 4, out_sharding=P(unreduced={"x"}))


@partitioned
def test_gradients_of_layers_in_a_scan_are_added_up_once():
    mesh = lamina.make_mesh((2,), ("x",), devices=lamina.devices()[:2])
    w = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 4, 4)
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(2, 4, 4)

    def loss(w, rows):
        return lax.scan(lambda rows, layer: (jnp.sin(rows @ layer), None), rows, w)[0].sum()

    def step(w, x, start):
        total, _ = lax.scan(lambda total, rows: (total + lamina.grad(loss)(w, rows), None), start(w), x)
        return total

    expected = step(w, x, jnp.zeros_like)
    with lamina.set_mesh(mesh):
        w, x = lamina.device_put(w, P(reduced={"x"})), lamina.device_put(x, P(None, "x"))
        terms = lambda w: reshard(jnp.zeros_like(w), P(unreduced={"x"}))  # noqa: E731
        compiled = lamina.jit(lambda w, x: reshard(step(w, x, terms), P())).lower(w, x).compile()
        assert compiled.as_text("hlo").count("all-reduce(") == 1
        np.testing.assert_allclose(compiled(w, x), expected, rtol=1e-5, atol=1e-5)


@partitioned
def test_terms_along_one_axis_become_terms_along_another():
    mesh = lamina.make_mesh((2, 2), ("x", "y"), devices=lamina.devices()[:4])
    a, b = np.arange(16.0).reshape(8, 2), np.arange(8.0).reshape(2, 4)
    with lamina.set_mesh(mesh):
        left, right = lamina.device_put(a, P("x", "y")), lamina.device_put(b, P("y", None))
        terms = jnp.dot(left, right, out_sharding=P("x", unreduced={"y"}))
        out = lamina.jit(lambda x: lax.reduce_sum(x, [0], out_sharding=P(unreduced={"x"})))(terms)
        assert out.sharding.spec == P(None, unreduced={"x"})
        np.testing.assert_array_equal(reshard(out, P()), (a @ b).sum(0))
        with pytest.raises(ValueError, match="`dot_general` asks for terms of a max"):
            jnp.dot(left, right, out_sharding=P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max))
