"""What a mesh does that is current: set_mesh, `with mesh:`, use_abstract_mesh."""

import threading

import jax
import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.partitioning import missing
from lamina.sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    get_abstract_mesh,
    use_abstract_mesh,
)

pytestmark = pytest.mark.usefixtures("eight_devices")
X = np.arange(8, dtype=np.float32)
_MADE = {
    "ones": lambda m: m.numpy.ones(8),
    "asarray of NumPy's": lambda m: m.numpy.asarray(X),
    "array of a list": lambda m: m.numpy.array([1, 2]),
    "operation on NumPy's": lambda m: m.numpy.sin(X),
    "operation on one of before": lambda m: m.numpy.add(m.before, 1),
    "key": lambda m: m.random.key(0),
    "numbers drawn": lambda m: m.random.normal(m.random.key(0), (8,)),
    "jit": lambda m: m.jit(lambda x: x * 2)(X),
    "jit that gives its argument": lambda m: m.jit(lambda x: x)(X),
    "jit without arguments": lambda m: m.jit(lambda: m.numpy.ones(3))(),
    "jit with a constraint": lambda m: m.jit(lambda x: m.lax.with_sharding_constraint(x * 1, m.P("x")))(X),
    "jit with out_shardings": lambda m: m.jit(lambda x: (x * 1, x * 2), out_shardings=(None, m.P("x")))(X)[0],
    "linear algebra": lambda m: m.numpy.linalg.inv(m.numpy.eye(3)),
    "transform": lambda m: m.numpy.fft.fft(m.numpy.ones(8)),
    "gradient": lambda m: m.grad(lambda x: (x * x).sum())(m.numpy.ones(8)),
    "device_put": lambda m: m.device_put(X),
    "device_put on the mesh": lambda m: m.device_put(X, m.P("x")),
}


@pytest.mark.parametrize("name", _MADE)
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_results_lie_on_the_mesh_as_in_jax(name: str, kind: str) -> None:
    found = []
    for m in (lamina, jax):
        m.before = m.numpy.ones(8)
        try:
            mesh = m.make_mesh((2,), ("x",), axis_types=(getattr(m.sharding.AxisType, kind),))
            with m.set_mesh(mesh):
                try:
                    out = _MADE[name](m)
                except Exception as error:
                    found.append(type(error).__name__)
                    continue
        finally:
            del m.before
        place = out.sharding
        spec = P(*place.spec).trimmed() if isinstance(place, m.sharding.NamedSharding) else None
        found.append((spec, out.committed, sorted(d.id for d in place.device_set)))
    assert found[0] == found[1]


def test_arguments_elsewhere_are_refused() -> None:
    mesh, elsewhere = lamina.make_mesh((2,), ("x",)), lamina.device_put(X, lamina.devices()[3])
    with lamina.set_mesh(mesh):
        for f in (jnp.sin, lamina.jit(lambda x: x * 2)):
            with pytest.raises(ValueError, match=r"Received incompatible devices.*\[3\].*context mesh.*\[0, 1\]"):
                f(elsewhere)
    assert jnp.sin(elsewhere).sharding == elsewhere.sharding


def test_axes_are_explicit_unless_said_otherwise() -> None:
    mesh = lamina.make_mesh((2, 2), ("x", "y"))
    assert mesh.axis_types == (AxisType.Explicit,) * 2
    assert lamina.sharding.Mesh(mesh.devices, mesh.axis_names).axis_types == (AxisType.Auto,) * 2
    with pytest.raises(ValueError, match="should be a sequence of ints. Got"):
        lamina.make_mesh(((2, 2),), ("x",))


def test_a_mesh_is_a_threads_own_and_ends_with_its_block() -> None:
    seen = []
    with lamina.set_mesh(lamina.make_mesh((2,), ("x",))):
        other = threading.Thread(target=lambda: seen.append((lamina.get_mesh().empty, jnp.ones(2).sharding)))
        other.start()
        other.join()
        with lamina.enable_x64(True):  # a setting of the thread beside the mesh
            assert jnp.ones(2).sharding.num_devices == 2
        assert jnp.ones(2).sharding.num_devices == 2
    assert seen[0][0] and seen[0][1].num_devices == 1
    assert jnp.ones(2).sharding.num_devices == 1 and not jnp.ones(2).committed
    lamina.set_mesh(lamina.make_mesh((2,), ("x",)))
    try:
        assert jnp.ones(2).sharding.num_devices == 2
    finally:
        lamina.set_mesh(None)
    assert lamina.get_mesh().empty and jnp.ones(2).sharding.num_devices == 1
    with pytest.raises(ValueError, match="outside of `jit`"):
        lamina.jit(lambda x: (lamina.set_mesh(None), x)[1])(X)


def test_traces_are_of_the_mesh_under_which_they_were_made() -> None:
    seen = []

    @lamina.jit
    def f(x):
        seen.append(get_abstract_mesh().axis_names)
        return lamina.lax.with_sharding_constraint(x, P(get_abstract_mesh().axis_names[0])) * 2

    for name, enter in (("a", lamina.set_mesh), ("b", lambda mesh: mesh), ("a", lamina.set_mesh)):
        mesh = auto_mesh((2,), (name,))
        with enter(mesh):
            assert f(X).sharding == NamedSharding(mesh, P(name))
    assert seen == [("a",), ("b",)]
    kinds = []
    g = lamina.jit(lambda x: (kinds.append(get_abstract_mesh().axis_types), x)[1])
    with lamina.set_mesh(auto_mesh((2,), ("a",))):
        g(X)
        with use_abstract_mesh(AbstractMesh((2,), ("a",), axis_types=(AxisType.Explicit,))):
            g(X)
    assert kinds == [(AxisType.Auto,), (AxisType.Explicit,)]


def test_the_axes_that_are_manual_are_those_of_all_shard_maps_around() -> None:
    seen = []

    def inner(x):
        seen.append(set(get_abstract_mesh().manual_axes))
        return x

    def outer(x):
        seen.append(set(get_abstract_mesh().manual_axes))
        return lamina.shard_map(inner, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(x)

    mesh = auto_mesh((2, 2), ("x", "y"))
    with lamina.set_mesh(mesh):
        lamina.jit(lamina.shard_map(outer, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(X)
        assert get_abstract_mesh().manual_axes == ()
    assert seen == [{"x"}, {"x", "y"}]


def test_axes_of_size_one_can_be_left_out_of_types() -> None:
    mesh = lamina.make_mesh((2, 1), ("x", "y"))
    x = lamina.device_put(X.reshape(4, 2), NamedSharding(mesh, P("x", "y")))
    assert lamina.typeof(x).sharding.spec == P("x", "y")
    with lamina.set_mesh(mesh), lamina.config.remove_size_one_mesh_axis_from_type(True):
        assert lamina.typeof(x).sharding.spec == P("x", None)
        out = lamina.jit(lambda x: lamina.lax.with_sharding_constraint(x * 2, P("x", "y")))(x)
        assert out.sharding == NamedSharding(mesh, P("x"))
        spread = lamina.vmap(jnp.sin, spmd_axis_name=("x", "y"))(lamina.device_put(x, P(("x", "y"))))
        assert spread.sharding.spec == P("x", None)
    assert lamina.typeof(x).sharding.spec == P("x", "y")


def test_batches_are_spread_in_one_way() -> None:
    mesh = lamina.make_mesh((2, 2), ("x", "y"))
    x = lamina.device_put(X.reshape(4, 2), NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="Mapped away dimension of inputs passed to vmap should be sharded the same"):
        lamina.vmap(jnp.add)(x, lamina.device_put(x, NamedSharding(mesh, P())))
    with pytest.raises(ValueError, match="Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis"):
        lamina.vmap(jnp.sin, spmd_axis_name="y")(x)
    assert lamina.vmap(jnp.sin, spmd_axis_name="x")(x).sharding == x.sharding
    mesh = auto_mesh((2, 2), ("x", "y"))
    rows, one = NamedSharding(mesh, P("x")), lamina.sharding.SingleDeviceSharding(lamina.devices()[0])
    for f, match in (
        (lambda x: lamina.lax.with_sharding_constraint(x, rows), "spmd_axis_name cannot appear in with_sharding"),
        (lambda x: lamina.lax.with_sharding_constraint(x, one), "using spmd_axis_name .* SingleDeviceSharding"),
        (lamina.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x")), "cannot appear in shard_map in"),
    ):
        with pytest.raises(ValueError, match=match):
            lamina.vmap(f, spmd_axis_name="x")(X.reshape(4, 2))


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_results_say_of_every_dimension_how_it_lies() -> None:
    mesh = lamina.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = lamina.device_put(X.reshape(4, 2), NamedSharding(mesh, P("x")))
    assert lamina.jit(lambda x: x * 2)(x).sharding.spec == P("x", None)
    left_open = NamedSharding(auto_mesh((2,), ("x",)), P(P.UNCONSTRAINED))
    assert lamina.lax.with_sharding_constraint(X, left_open).sharding.spec == P(None)


def test_keys_are_put_and_constrained() -> None:
    keys = lamina.random.split(lamina.random.key(0), 4)
    place = NamedSharding(lamina.make_mesh((2,), ("x",)), P("x"))
    for put in (lamina.device_put, lamina.reshard, lamina.jit(lambda k: k, out_shardings=place)):
        out = put(keys) if put not in (lamina.device_put, lamina.reshard) else put(keys, place)
        assert out.sharding == place and out.dtype == keys.dtype
        np.testing.assert_array_equal(lamina.random.key_data(out), lamina.random.key_data(keys))


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_keys_lie_as_they_are_put() -> None:
    keys = lamina.random.split(lamina.random.key(0), 4)
    for axis_types in ((AxisType.Auto,), (AxisType.Explicit,)):
        mesh = lamina.make_mesh((2,), ("x",), axis_types=axis_types)
        put = lamina.device_put(keys, NamedSharding(mesh, P("x")))
        assert not put.is_fully_replicated and put[1:3].dtype == keys.dtype
        draw = lamina.jit(lambda k: (k, lamina.vmap(lamina.random.normal)(k), lamina.random.key_data(k)))
        same, drawn, words = draw(put)
        assert same.sharding == put.sharding and words.sharding.spec == P("x", None)
        np.testing.assert_array_equal(drawn, draw(keys)[1])
        np.testing.assert_array_equal(lamina.random.key_data(same), lamina.random.key_data(keys))
    with lamina.set_mesh(mesh):
        assert lamina.typeof(put).sharding.spec == P("x")
        each = lamina.shard_map(lambda k: lamina.random.normal(k[0], (1, 3)), out_specs=P("x"))
        found = lamina.jit(each)(put[::2])
    np.testing.assert_array_equal(found, [lamina.random.normal(k, (3,)) for k in keys[::2]])
    select = lamina.jit(lambda k: jnp.where(np.arange(4) > 1, k, keys), in_shardings=put.sharding)
    np.testing.assert_array_equal(lamina.random.key_data(select(keys)), lamina.random.key_data(keys))


def test_pjit_runs_on_the_mesh_that_is_entered() -> None:
    from lamina.experimental.pjit import pjit

    mesh = auto_mesh((4, 2), ("x", "y"))
    f = pjit(lambda x: x * 2)
    with mesh:
        for out in (f(X), pjit(lambda: jnp.ones(8) * 1)(), lamina.jit(lambda x: x)(f(X))):
            assert out.sharding == NamedSharding(mesh, P()) and len(out.addressable_shards) == 8
        np.testing.assert_array_equal(f(X), 2 * X)
        assert len(lamina.jit(lambda x: x * 2)(X).devices()) == 1
        split = pjit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P("x"))
        assert split(X).sharding.spec == P("x")
        assert pjit(lambda x: x + 1, P("x"), None)(X).sharding.spec == P()  # None: whole
        with pytest.raises(ValueError, match=r"(?s)incompatible devices.*context mesh"):
            f(lamina.device_put(X, lamina.devices()[0]))
        with pytest.raises(ValueError, match="Mesh context manager should not be used with jit when"):
            pjit(lambda x: x, device=lamina.devices()[0])(X)
    assert len(f(X).devices()) == 1
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context"):
        split(X)


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_programs_are_lowered_over_axes_and_compiled_for_devices() -> None:
    axes = AbstractMesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2)
    like = lamina.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(axes, P("x", "y")))
    f = lamina.jit(lambda x: x @ x.T)
    lowered = f.lower(like)
    assert "num_partitions = 4" in lowered.as_text() and lowered.out_info.sharding is None
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered.compile()
    with pytest.raises(RuntimeError, match="Length of device_assignment 8 is not equal to the size 4"):
        lowered.compile(device_assignment=lamina.devices())
    devices = lamina.devices()[4:]
    compiled = lowered.compile(device_assignment=devices)
    x = lamina.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(axes.over(devices), P("x", "y")))
    out = compiled(x)
    np.testing.assert_array_equal(out, np.asarray(x) @ np.asarray(x).T)
    assert out.sharding == compiled.out_info.sharding and out.sharding.device_list == tuple(devices)
    with pytest.raises(ValueError, match="must match the device_assignment calculated"):
        f.lower(x).compile(device_assignment=lamina.devices()[:4])
    with pytest.raises(ValueError, match="AbstractMesh size: 4 does not match the device assignment size: 2"):
        lamina.jit(jnp.add).lower(like, lamina.device_put(x, NamedSharding(auto_mesh((2,), ("z",)), P("z"))))
    with use_abstract_mesh(AbstractMesh((2,), ("x",), (AxisType.Explicit,))):
        assert "num_partitions = 2" in f.lower(lamina.ShapeDtypeStruct((8, 4), np.float32)).as_text()


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_a_programs_devices_under_other_axes() -> None:
    mesh = lamina.make_mesh((2, 2), ("x", "y"))
    other = mesh.abstract_mesh.update(axis_sizes=(4, 1), axis_names=("a", "b"))

    @lamina.jit
    def f(x):
        x = jnp.sin(x)
        with use_abstract_mesh(other):
            return lamina.reshard(x, P(("a", "b"))) * 2

    with lamina.set_mesh(mesh):
        x = lamina.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), P("x", "y"))
        out = f(x)
        assert out.sharding == NamedSharding(other.over(mesh.device_list), P(("a", "b")))
        np.testing.assert_allclose(out, 2 * np.sin(np.asarray(x)), rtol=1e-6)


def test_what_an_array_lies_on_says_what_axes_stand_for() -> None:
    mesh = auto_mesh((2,), ("x",))
    wanted = NamedSharding(mesh.abstract_mesh, P("x"))
    constrained = lamina.lax.with_sharding_constraint(lamina.device_put(X, NamedSharding(mesh, P())), wanted)
    assert constrained.sharding == NamedSharding(mesh, P("x"))
    elsewhere = lamina.device_put(X, NamedSharding(auto_mesh((2,), ("y",)), P("y")))
    for x, error, match in (
        (X, ValueError, "requires the input passed should be a `lamina.Array`"),
        (jnp.arange(8), TypeError, "The sharding on the input must be a `NamedSharding`"),
        (elsewhere, ValueError, "Mesh shape of the input .* does not match the mesh shape of the target"),
    ):
        with pytest.raises(error, match=match):
            lamina.lax.with_sharding_constraint(x, wanted)


def test_unconstrained_needs_an_axis_of_the_partitioners() -> None:
    with pytest.raises(ValueError, match=r"cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`"):
        NamedSharding(lamina.make_mesh((2,), ("x",)), P(P.UNCONSTRAINED))


def test_out_sharding_says_what_types_can_say() -> None:
    mesh = auto_mesh((2,), ("x",))
    with lamina.set_mesh(mesh), pytest.raises(ValueError, match="PartitionSpec passed to einsum cannot contain axis"):
        jnp.einsum("i,j->ij", X, X, out_sharding=P("x"))
    with pytest.raises(ValueError, match="not under a mesh context is not allowed"):
        jnp.dot(X, X, out_sharding=P())
