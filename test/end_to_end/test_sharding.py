"""Devices, shardings and placed arrays."""

import copy
import importlib
import pickle

import jax
import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.experimental.layout import Format, Layout
from lamina.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
X = np.arange(48, dtype=np.float32).reshape(8, 6)


def _mesh() -> Mesh:
    return auto_mesh((4, 2), ("x", "y"))


def test_devices() -> None:
    assert len(lamina.devices()) == lamina.device_count() == lamina.local_device_count() == 8
    assert [d.id for d in lamina.local_devices()] == list(range(8))
    assert lamina.process_count() == 1 and lamina.process_index() == 0
    assert lamina.default_backend() == lamina.devices()[3].platform == "cpu"
    assert lamina.devices()[1].memory_stats()["bytes_in_use"] >= 0
    with pytest.raises(RuntimeError, match="Unknown backend"):
        lamina.devices("tpu")


@pytest.mark.parametrize(
    "spec", [(), ("x",), (None, "y"), ("x", "y"), ("y", "x"), (("x", "y"),), (("y", "x"),)]
)
def test_index_maps_are_jaxs(spec) -> None:
    ours = NamedSharding(_mesh(), P(*spec))
    theirs = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y")), jax.P(*spec)
    )
    shape = (8, 8)
    wanted = {d.id: i for d, i in theirs.devices_indices_map(shape).items()}
    assert {d.id: i for d, i in ours.devices_indices_map(shape).items()} == wanted
    assert ours.shard_shape(shape) == theirs.shard_shape(shape)
    assert ours.is_fully_replicated == theirs.is_fully_replicated


def test_placed_arrays() -> None:
    sharding = NamedSharding(_mesh(), P("x", "y"))
    a = lamina.device_put({"w": X, "b": X[0]}, {"w": sharding, "b": lamina.devices()[3]})
    assert a["b"].device == lamina.devices()[3] and a["b"].committed
    w = a["w"]
    assert w.sharding == sharding and w.devices() == set(lamina.devices())
    assert w.is_fully_addressable and not w.is_fully_replicated
    shard = w.addressable_shards[3]
    assert shard.device.id == 3 and shard.replica_id == 0
    np.testing.assert_array_equal(shard.data, X[shard.index])
    np.testing.assert_array_equal(w.addressable_data(7), X[6:, 3:])
    np.testing.assert_array_equal(w, X)
    plain = lamina.numpy.asarray(X)
    assert plain.sharding == SingleDeviceSharding(lamina.devices()[0]) and not plain.committed


def test_computations_keep_placements() -> None:
    sharding = NamedSharding(_mesh(), P("x", None))
    w = lamina.device_put(X, sharding)
    for y in (w + 1, lamina.jit(lambda v: v * 2)(w)):
        assert y.sharding == sharding
    assert w.sum().sharding == NamedSharding(_mesh(), P())
    on_three = lamina.device_put(X, lamina.devices()[3])
    assert (on_three @ X.T).device == lamina.devices()[3]
    assert repr(w[1]) == repr(lamina.numpy.asarray(X)[1])
    with pytest.raises(ValueError, match="incompatible devices"):
        on_three + w


def test_jit_with_shardings() -> None:
    mesh = _mesh()
    row, column = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    f = lamina.jit(
        lambda a, b: (a + b, a.sum()), in_shardings=(row, None), out_shardings=(column, None)
    )
    out, total = f(X, X)
    assert out.sharding == column and float(total) == X.sum()
    np.testing.assert_array_equal(out, 2 * X)
    with pytest.raises(ValueError, match="does not match the sharding"):
        f(lamina.device_put(X, column), X)
    g = lamina.jit(lambda v: lamina.lax.with_sharding_constraint(v * 2, row))
    assert g(X).sharding == row
    np.testing.assert_array_equal(lamina.vmap(g)(np.stack([X, X])), 2 * np.stack([X, X]))
    with mesh, pytest.raises(ValueError, match="names that are of type Auto"):
        lamina.reshard(X, P("y"))
    with lamina.set_mesh(lamina.make_mesh((4, 2), ("x", "y"))):
        assert lamina.reshard(lamina.numpy.asarray(X), P("y")).sharding.spec == P("y")
        assert lamina.lax.with_sharding_constraint(X, P()) is X
        with pytest.raises(AssertionError, match="acts as an assert when all axes of mesh are of type `Explicit`"):
            lamina.lax.with_sharding_constraint(X, P("y"))
    with pytest.raises(ValueError, match="not under a mesh context"):
        lamina.reshard(X, P("y"))
    with pytest.raises(RuntimeError, match="non-empty mesh"):
        lamina.lax.with_sharding_constraint(X, P("x"))


def test_arrays_from_parts() -> None:
    sharding = NamedSharding(_mesh(), P("x"))
    a = lamina.make_array_from_callback(X.shape, sharding, lambda index: X[index])
    np.testing.assert_array_equal(a, X)
    shards = [s.data for s in a.addressable_shards]
    b = lamina.make_array_from_single_device_arrays(X.shape, sharding, shards)
    np.testing.assert_array_equal(b, X)
    np.testing.assert_array_equal(lamina.make_array_from_process_local_data(sharding, X), X)
    with pytest.raises(ValueError, match="per-device arrays"):
        lamina.make_array_from_single_device_arrays(X.shape, sharding, shards[:2])


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("not found in mesh", lambda: NamedSharding(_mesh(), P("z"))),
        ("duplicate", lambda: NamedSharding(_mesh(), P("x", "x"))),
        ("divisible by 4", lambda: lamina.device_put(X[:6], NamedSharding(_mesh(), P("x")))),
        ("rank at least", lambda: lamina.device_put(X, NamedSharding(_mesh(), P("x", None, "y")))),
        ("product of mesh_shape", lambda: lamina.make_mesh((9,), ("x",))),
        ("ndim", lambda: Mesh(np.array(lamina.devices()), ("x", "y"))),
    ],
)
def test_errors(text, make) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_default_device() -> None:
    with lamina.default_device(lamina.devices()[2]):
        a = lamina.numpy.ones(3) + 1
        assert a.device == lamina.devices()[2] and not a.committed
    assert lamina.numpy.ones(3).device == lamina.devices()[0]


def test_specs() -> None:
    assert P(("x",)) == P("x") == ("x",) and P(()) == P(None)
    assert P("x", None) + P("y") == P("x", None, "y") and hash(P("x")) == hash(P(("x",)))
    assert repr(P("x", ("y", "z"))) == "P('x', ('y', 'z'))"


def test_specs_are_places_on_the_mesh_that_is_set() -> None:
    with lamina.set_mesh(_mesh()):
        placed = lamina.device_put({"a": X}, P("x"))["a"]
    assert placed.sharding == NamedSharding(_mesh(), P("x")) and np.array_equal(placed, X)
    with pytest.raises(ValueError, match="set a mesh via `lamina.set_mesh`"):
        lamina.device_put(X, P("x"))


def test_pictures_of_parts(capsys) -> None:
    lamina.debug.visualize_array_sharding(lamina.device_put(X, NamedSharding(_mesh(), P("y"))), min_width=3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].strip("│ ") == "CPU 0,2,4,6" and lines[3].strip("│ ") == "CPU 1,3,5,7"
    lamina.debug.visualize_sharding((4,), NamedSharding(_mesh(), P("x")))
    assert capsys.readouterr().out.splitlines()[1].count("CPU") == 4


def test_types_along_mesh_axes() -> None:
    kinds = lamina.sharding
    assert kinds.ManualAxisType(varying={"x"}) == kinds.ManualAxisType(varying=frozenset("x"))
    assert kinds.ManualAxisType(unreduced={"x"}).unreduced_kind is kinds.UnreducedKind.sum
    for make, error in (
        (lambda: kinds.ManualAxisType(varying="x"), TypeError),
        (lambda: kinds.ManualAxisType(varying={"x"}, unreduced={"x"}), ValueError),
    ):
        with pytest.raises(error):
            make()
    assert repr(kinds.AbstractDevice("cpu", None, "cpu")) == repr(jax.sharding.AbstractDevice("cpu", None, "cpu"))
    assert kinds.make_single_device_sharding(lamina.devices()[1]) == SingleDeviceSharding(lamina.devices()[1])
    with pytest.raises(NotImplementedError, match="use psum_scatter"):
        lamina.lax.psum_scatter_start(X, "x")


MAKERS = {
    "ones": lambda m, s: m.numpy.ones(8, out_sharding=s),
    "full_like": lambda m, s: m.numpy.full_like(np.zeros(8), 2, out_sharding=s),
    "arange": lambda m, s: m.numpy.arange(8, out_sharding=s),
    "repeat": lambda m, s: m.numpy.repeat(np.arange(4), 2, out_sharding=s),
    "gamma": lambda m, s: m.random.gamma(m.random.key(0), 2.0, (8,), out_sharding=s),
    "permutation": lambda m, s: m.random.permutation(m.random.key(0), 8, out_sharding=s),
    "array": lambda m, s: m.numpy.array(np.arange(8), out_sharding=s),
    "asarray": lambda m, s: m.numpy.asarray(np.arange(8), out_sharding=s),
    "reshape": lambda m, s: m.numpy.reshape(np.arange(8).reshape(2, 4), 8, out_sharding=s),
    "ravel": lambda m, s: m.numpy.ravel(np.arange(8).reshape(2, 4), out_sharding=s),
    "lax.full": lambda m, s: m.lax.full((8,), 3, sharding=s),
    "lax.full_like": lambda m, s: m.lax.full_like(np.zeros(8), 3, sharding=s),
    "lax.reshape": lambda m, s: m.lax.reshape(np.arange(8).reshape(2, 4), (8,), out_sharding=s),
    "lax.broadcast": lambda m, s: m.lax.broadcast(2.0, (8,), out_sharding=s),
    "lax.broadcast_in_dim": lambda m, s: m.lax.broadcast_in_dim(2.0, (8,), (), out_sharding=s),
    "lax.broadcasted_iota": lambda m, s: m.lax.broadcasted_iota(np.int32, (8,), 0, out_sharding=s),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("apply", [lambda f: f, lamina.jit])
def test_arrays_are_made_under_a_sharding(name, apply) -> None:
    sharding = NamedSharding(lamina.make_mesh((lamina.device_count(),), ("x",)), P("x"))
    got = apply(lambda: MAKERS[name](lamina, sharding))()
    assert got.sharding == sharding
    np.testing.assert_array_equal(got, MAKERS[name](lamina, None))


def test_what_is_no_out_sharding() -> None:
    with pytest.raises(TypeError, match="out_sharding is a NamedSharding or a PartitionSpec, not 'x'"):
        lamina.numpy.ones(8, out_sharding="x")


def test_arrays_on_one_device_are_known_to_the_fast_path(eight_devices):
    f = lamina.jit(lambda x, y: (x, y, x + y, 3.0))
    first, second = lamina.devices()[:2]
    x, y = lamina.device_put(X, first), lamina.numpy.ones(6)
    for _ in range(3):
        assert all(out.committed and out.device == first for out in f(x, y))
    assert f.cache_size() == 1
    assert [out.committed for out in f(lamina.numpy.asarray(X), y)] == [False] * 4
    there = f(lamina.device_put(X, second), y)
    assert all(out.device == second for out in there) and f.cache_size() == 3
    assert f(there[2], y)[2].device == second and f.cache_size() == 3  # results are where that is
    for _ in range(2):
        with pytest.raises(ValueError, match=r"incompatible devices.*ids \[0\].*ids \[1\]"):
            f(x, lamina.device_put(np.ones(6, np.float32), second))
    product = x * lamina.device_put(X, first)  # op by op
    assert product.committed and product.device == first
    with pytest.raises(ValueError, match="incompatible devices"):
        _ = x * lamina.device_put(X, second)


def test_there_is_one_sharding_for_each_device():
    device = lamina.devices()[0]
    one = SingleDeviceSharding(device)
    assert one is SingleDeviceSharding(device) is copy.deepcopy(one) is pickle.loads(pickle.dumps(one))
    assert one == SingleDeviceSharding(device, memory_kind="pinned_host") is not one


def test_arrays_like_others_lie_where_they_do() -> None:
    second = lamina.devices()[1]
    x = lamina.device_put(jnp.ones(6), second)
    over = NamedSharding(lamina.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
    for like in (lamina.lax.full_like, jnp.full_like):
        assert like(x, 2).devices() == like(x, 2, shape=(3,)).devices() == {second}
        assert like(lamina.device_put(x, over), 2).sharding == over
    assert lamina.lax.full_like(jnp.ones(4), 1, sharding=over).sharding == over
    assert lamina.lax.full((4,), 1.0, sharding=over).sharding == over
    np.testing.assert_array_equal(lamina.lax.full((4,), 1.0, sharding=over), np.ones(4))


def test_kinds_of_memory() -> None:
    device = lamina.devices()[0]
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]
    assert device.default_memory() == device.memory("device")
    assert str(device.memory("pinned_host")) == "CPU_0(pinned_host)"
    assert device.default_memory().addressable_by_devices() == [device]
    mesh = lamina.make_mesh((1,), ("x",))
    for wrong in (
        lambda: device.memory("hbm"),
        lambda: SingleDeviceSharding(device, memory_kind="hbm"),
        lambda: NamedSharding(mesh, P(), memory_kind="hbm"),
    ):
        with pytest.raises(ValueError, match="Could not find memory addressable by device cpu"):
            wrong()


@pytest.mark.parametrize("m", [lamina, jax])
def test_formats(m) -> None:
    layout = importlib.import_module(f"{m.__name__}.experimental.layout")
    Format, Layout = layout.Format, layout.Layout  # noqa: N806
    mesh = m.make_mesh((2,), ("x",), axis_types=(m.sharding.AxisType.Auto,), devices=m.devices()[:2])
    over, auto = m.sharding.NamedSharding(mesh, m.P("x")), Format(Layout.AUTO)
    x = m.device_put(X, Format(Layout((0, 1)), over))
    assert x.sharding == over and x.format.sharding == over and x.format.layout.major_to_minor == (0, 1)
    np.testing.assert_array_equal(x, X)
    f = m.jit(lambda x: {"y": (x * 2).sum(), "x": x}, in_shardings=x.format, out_shardings=auto)
    compiled = f.lower(m.ShapeDtypeStruct(X.shape, X.dtype, sharding=x.format)).compile()
    (given,), named = compiled.input_formats
    assert given == x.format and named == {} and compiled.output_formats["y"].layout.major_to_minor == ()
    assert f(x)["y"] == 2 * X.sum() == compiled(x)["y"]
    assert m.ShapeDtypeStruct(X.shape, X.dtype, sharding=x.format).format.sharding == over
    assert m.make_array_from_callback(X.shape, x.format, lambda i: X[i]).format == x.format
    for kind, text, wrong in (
        (ValueError, "Sharding has to be concrete", lambda: Format(Layout((0, 1)))),
        (ValueError, "should be concrete", lambda: m.device_put(X, auto)),
        (ValueError, "Length of major_to_minor", lambda: m.device_put(X, Format(Layout((0,)), over))),
        (ValueError, "does not accept device-local layouts", lambda: m.jit(lambda x: x, in_shardings=Layout.AUTO)(X)),
        (TypeError, "Layout.AUTO", lambda: m.ShapeDtypeStruct((2,), "float32", sharding=auto)),
        (TypeError, "Layout.AUTO", lambda: m.make_array_from_callback((2,), Format(Layout.AUTO, over), X.__getitem__)),
    ):
        with pytest.raises(kind, match=text):
            wrong()


def test_layouts_are_row_major() -> None:
    other = Format(Layout((1, 0)), SingleDeviceSharding(lamina.devices()[0]))
    for wrong in (lambda: lamina.device_put(X, other), lambda: lamina.jit(lambda x: x, out_shardings=other)(X)):
        with pytest.raises(NotImplementedError, match="row-major order"):
            wrong()


def test_arrays_of_keys_are_made_of_parts() -> None:
    m = lamina
    devices, keys = m.devices(), m.random.split(m.random.key(0), 8)
    over = NamedSharding(m.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
    parts = [m.device_put(keys[i : i + 1], d) for i, d in enumerate(devices)]
    for made in (
        m.make_array_from_callback((8,), over, lambda index: keys[index]),
        m.make_array_from_single_device_arrays((8,), over, parts),
        m.device_put_sharded(list(keys), devices),
    ):
        assert made.dtype == keys.dtype and made.sharding.device_set == set(devices)
        np.testing.assert_array_equal(m.random.key_data(made), m.random.key_data(keys))
        draws = m.jit(m.vmap(lambda k: m.random.uniform(k)))
        np.testing.assert_array_equal(draws(made), draws(keys))
    copies = m.device_put_replicated(keys[3], devices)
    np.testing.assert_array_equal(m.random.key_data(copies), np.tile(m.random.key_data(keys[3]), (8, 1)))
    same = jnp.full((3,), 100, dtype=keys.dtype)
    theirs = jax.numpy.full((3,), 100, dtype=jax.random.key(0).dtype)
    np.testing.assert_array_equal(m.random.key_data(same), jax.random.key_data(theirs))
