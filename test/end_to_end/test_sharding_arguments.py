"""What functions take and give of shardings: arguments of jit, arrays like others, parts, meshes and specs."""

import itertools

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.core import ShardingTypeError
from lamina.partitioning import missing
from lamina.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
partitioned = pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def _mesh(*sizes, explicit=False):
    kinds = (AxisType.Explicit if explicit else AxisType.Auto,) * len(sizes)
    return lamina.make_mesh(sizes, tuple("xyz"[: len(sizes)]), axis_types=kinds)


# ---- reshape -----------------------------------------------------------------------------------
_FORMS = [(8, 4), (32,), (4, 8), (2, 2, 8), (2, 4, 4), (1, 8, 4), (8, 2, 2), (2, 2, 2, 4), (4, 1, 8), (16, 2)]
_SPECS = [("x",), (None, "x"), ("x", "y"), (("x", "y"),), (None, "x", "y"), ("x", None, "y"), (("y", "x"), None)]


def _fits(spec, form):
    names = [() if n is None else n if isinstance(n, tuple) else (n,) for n in spec]
    return len(spec) <= len(form) and all(n % 2 ** len(of) == 0 for of, n in zip(names, form))


def _elements(array):
    """What each device holds, in the order of memory."""
    return [np.asarray(s.data).ravel().tolist() for s in array.addressable_shards]


def test_reshape_leaves_elements_where_they_are() -> None:
    """Where a type is found for the result, each device has the elements that it had; where none is, no
    sharding of the new shape would do that (tried with all)."""
    mesh = _mesh(2, 2, explicit=True)
    values = np.arange(32, dtype=np.float32)
    entries = [None, "x", "y", ("x", "y"), ("y", "x")]
    with lamina.set_mesh(mesh):
        for before, after, spec in itertools.product(_FORMS, _FORMS, _SPECS):
            if not _fits(spec, before):
                continue
            x = lamina.device_put(values.reshape(before), P(*spec))
            try:
                found = lamina.typeof(lamina.eval_shape(lambda x, to=after: x.reshape(to), x)).sharding.spec
            except ShardingTypeError:
                found = None
            if found is not None:
                assert _elements(lamina.device_put(values.reshape(after), found)) == _elements(x), (before, after, spec)
                continue
            for other in itertools.product(entries, repeat=len(after)):
                names = [n for e in other if e for n in (e if isinstance(e, tuple) else (e,))]
                if len(set(names)) == len(names) and _fits(other, after):
                    there = lamina.device_put(values.reshape(after), P(*other))
                    assert _elements(there) != _elements(x), (before, after, spec, other)


@partitioned
def test_reshape_of_several_axes_and_its_gradient() -> None:
    mesh = _mesh(2, 2, 2, explicit=True)
    with lamina.set_mesh(mesh):
        x = lamina.device_put(X.reshape(4, 8), P(("x", "y"), "z"))
        flat = lamina.jit(lambda x: x.reshape(32) * 2)(x)
        np.testing.assert_array_equal(flat, X.ravel() * 2)
        w = np.arange(32, dtype=np.float32).reshape(2, 2, 8)
        grad = lamina.jit(lamina.grad(lambda x: (x.reshape(2, 2, 8) ** 2 * w).sum()))
        x = lamina.device_put(X, P(("x", "y")))
        assert grad(x).sharding.spec == P(("x", "y"), None)
        np.testing.assert_array_equal(grad(x), 2 * X * w.reshape(8, 4))


# ---- arrays like others ------------------------------------------------------------------------
@pytest.mark.parametrize("like", [jnp.zeros_like, jnp.ones_like, lambda x, **k: jnp.full_like(x, 3, **k)])
def test_arrays_like_a_placed_one_lie_as_it_does(like) -> None:
    mesh = _mesh(4, 2)
    where = NamedSharding(mesh, P("x", "y"))
    x = lamina.device_put(X, where)
    assert like(x).sharding == where and [s.data.shape for s in like(x).addressable_shards] == [(2, 2)] * 8
    assert like(lamina.ShapeDtypeStruct((8, 4), "int8", sharding=where)).sharding == where
    second = SingleDeviceSharding(lamina.devices()[1])
    assert like(lamina.device_put(X, second)).sharding == second
    assert like(x, device=second).sharding == second  # what is said goes before
    assert like(x, shape=(3,)).sharding.num_devices == 1 and not like(jnp.ones(3)).committed
    with lamina.set_mesh(_mesh(2, 2, explicit=True)):
        y = lamina.device_put(X, P("x"))
        assert lamina.typeof(lamina.eval_shape(like, y)).sharding.spec == P("x", None)


# ---- parts -------------------------------------------------------------------------------------
def test_rows_lie_on_the_devices_of_the_array() -> None:
    mesh = _mesh(4, 2)
    for spec, of_rows in ((P("x", "y"), P("y")), (P(None, "x"), P("x")), (P(), P())):
        rows = list(lamina.device_put(X, NamedSharding(mesh, spec)))
        assert all(row.sharding == NamedSharding(mesh, of_rows) for row in rows)
        np.testing.assert_array_equal(np.stack(rows), X)
    last = lamina.devices()[7]
    assert {d for row in lamina.device_put(X, last) for d in row.devices()} == {last}


def test_parts_of_what_nobody_placed_are_not_placed_either() -> None:
    assert not jnp.arange(3).addressable_shards[0].data.committed
    assert lamina.device_put(X, lamina.devices()[1]).addressable_shards[0].data.committed


def test_single_device_arrays_are_checked() -> None:
    mesh = _mesh(2)
    where, make = NamedSharding(mesh, P("x")), lamina.make_array_from_single_device_arrays
    first, second, third = lamina.devices()[:3]
    one, two = (lamina.device_put(X[i : i + 4], d) for i, d in ((0, first), (4, second)))
    np.testing.assert_array_equal(make((8, 4), where, [one, two], dtype="float32"), X)
    for error, arrays, dtype, message in (
        (ValueError, [one, lamina.device_put(one, first)], None, "distinct devices"),
        (ValueError, [one, lamina.device_put(two, third)], None, r"devices \{1\} .* devices \{2\}"),
        (ValueError, [one, two.astype("int32")], None, "matching dtypes"),
        (ValueError, [one, two], "int32", "`dtype` is provided"),
        (ValueError, [make((8, 4), where, [one, two])] * 2, None, "had 2 shard"),
        (ValueError, [one, X], None, "concrete arrays"),
        (TypeError, one, None, "must be a list or tuple"),
    ):
        with pytest.raises(error, match=message):
            make((8, 4), where, arrays, dtype=dtype)
    with pytest.raises(lamina.errors.UnexpectedTracerError, match="within a traced context"):
        lamina.jit(lambda x: lamina.make_array_from_callback((8, 4), where, lambda i: x[i]))(X)


def test_process_local_data_takes_devices_and_specs() -> None:
    make, device = lamina.make_array_from_process_local_data, lamina.devices()[3]
    assert make(device, X).devices() == {device}
    with pytest.raises(ValueError, match="set a mesh via .* passed to make_array_from_process_local_data"):
        make(P("x"), X)
    with lamina.set_mesh(_mesh(2)):
        np.testing.assert_array_equal(make(P("x"), X), X)


# ---- arguments of jit --------------------------------------------------------------------------
def test_arguments_of_jit_are_checked() -> None:
    mesh, f = _mesh(2), lambda x: x
    where = NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="Unconstrained dims are not allowed in in_shardings"):
        lamina.jit(f, in_shardings=NamedSharding(mesh, P(P.UNCONSTRAINED)))
    with pytest.raises(ValueError, match="Unconstrained dims are not allowed in out_shardings"):
        lamina.jit(f, out_shardings={"a": P("x", P.UNCONSTRAINED)})
    with pytest.raises(ValueError, match="then out_shardings should not"):
        lamina.jit(f, out_shardings=where, backend="cpu")
    with pytest.raises(ValueError, match="does not support kwargs"):
        lamina.jit(f, in_shardings=where)(x=jnp.arange(8))
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context"):
        lamina.jit(f, in_shardings=P("x"))(jnp.arange(8))
    with pytest.raises(ValueError, match="One of pjit arguments .*rank at least 2"):
        lamina.jit(f, in_shardings=NamedSharding(mesh, P(None, None)))(jnp.arange(8))
    static = lamina.jit(lambda x, n: x * n, in_shardings=where, static_argnames="n")
    assert static(jnp.arange(2), n=3).tolist() == [0, 3]


def test_what_is_lowered_says_what_is_donated() -> None:
    lowered = lamina.jit(lambda x, y: (x + 1, y), donate_argnums=(1,)).trace(X, X).lower(lowering_platforms=("cpu",))
    assert lowered.donate_argnums == lowered.compile().donate_argnums == (1,)


def test_constraints_are_checked() -> None:
    wsc, mesh = lamina.lax.with_sharding_constraint, _mesh(2)
    with pytest.raises(ValueError, match="sharding None which is not allowed"):
        wsc(X, None)
    x = lamina.device_put(X, NamedSharding(mesh, P()))
    turned = NamedSharding(Mesh(lamina.devices()[1::-1], "x"), P("x"))
    with pytest.raises(ValueError, match="incompatible devices"):
        wsc(x, turned)
    with pytest.raises(ValueError, match="One of with_sharding_constraint arguments .*should be P"):
        wsc(jnp.float32(1), NamedSharding(mesh, P("x")))


def test_out_sharding_of_updates_and_more() -> None:
    mesh = _mesh(2, explicit=True)
    key = lamina.random.key(0)
    with lamina.set_mesh(mesh):
        x, ids = lamina.device_put(X, P("x")), lamina.device_put(np.arange(8) // 2, P("x"))
        made = {
            "set": lambda at: at.set(1.0, out_sharding=P(None, "x")),
            "add": lambda at: at.add(1.0, out_sharding=P(None, "x")),
            "power": lambda at: at.power(2.0, out_sharding=P(None, "x")),
        }
        for name, update in made.items():
            got = update(x.at[jnp.array([0, 3])])
            assert got.sharding.spec == P(None, "x")
            np.testing.assert_array_equal(got, update(jnp.asarray(X).at[jnp.array([0, 3])]), err_msg=name)
        assert jnp.percentile(x, 50, axis=0, out_sharding=P()).sharding == NamedSharding(mesh, P())
        sums = lamina.ops.segment_sum(x, ids, num_segments=4, out_sharding=P(None))
        np.testing.assert_array_equal(sums, X.reshape(4, 2, 4).sum(1))
        hot = lamina.nn.one_hot(jnp.arange(4), 8, out_sharding=P("x"))
        he = lamina.nn.initializers.he_normal()(key, (8, 2), out_sharding=P("x"))
        assert hot.sharding.spec == he.sharding.spec == P("x")


# ---- meshes and specs --------------------------------------------------------------------------
def test_meshes_are_checked_and_say_what_they_are() -> None:
    mesh = _mesh(2, 1)
    assert str(mesh) == "Mesh('x': 2, 'y': 1, axis_types=(Auto, Auto))"
    assert repr(mesh) == "Mesh(axis_sizes=(2, 1), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert eval(repr(mesh).replace("Mesh", "AbstractMesh").replace("Auto", "AxisType.Auto")) == mesh.abstract_mesh
    empty = Mesh(np.empty((), dtype=object), [])
    assert empty.empty and empty.size == 0 and empty == lamina.get_mesh() and AbstractMesh((), ()).empty
    with pytest.raises(ValueError, match="cannot be None"):
        Mesh(lamina.devices(), (None,))
    with pytest.raises(ValueError, match="a name for each axis"):
        AbstractMesh((2, 2), "x")
    for kinds in ("explicit", ("explicit",)):
        with pytest.raises(TypeError, match="axis_types .* must be of type"):
            AbstractMesh((2,), ("x",), axis_types=kinds)
    with pytest.raises(ValueError, match="contains manual axes"):
        lamina.set_mesh(Mesh(lamina.devices(), "x", AxisType.Manual))
    with (
        lamina.set_mesh(mesh),
        pytest.raises(ValueError, match="cannot change the size"),
        lamina.sharding.use_abstract_mesh(AbstractMesh((4,), ("x",))),
    ):
        pass
    with lamina.set_mesh(mesh):
        with lamina.set_mesh(None):
            assert lamina.get_mesh().empty
        assert lamina.get_mesh() == mesh


def test_a_mesh_decorates_a_function() -> None:
    mesh = _mesh(2)

    @mesh
    def current():
        return lamina.lax.with_sharding_constraint(jnp.arange(8), P("x")).sharding

    assert current() == current() == NamedSharding(mesh, P("x"))


def test_specs_are_checked() -> None:
    assert repr(P("x", None)) == "P('x', None)" and eval(repr(P(("x", "y")))) == P(("x", "y"))
    with pytest.raises(ValueError, match="cannot contain a nested tuple"):
        P("x", ("y", ("z",)))
    with pytest.raises(TypeError, match="Unexpected None"):
        NamedSharding(_mesh(2), None)
    where = NamedSharding(_mesh(2).abstract_mesh, P("x"))
    assert where.is_equivalent_to(NamedSharding(_mesh(2).abstract_mesh, P("x")), 2)
    where.check_compatible_aval((8,))
    with pytest.raises(ValueError, match="rank at least 1"):
        where.check_compatible_aval(())


def test_types_with_specs_are_of_the_mesh_that_is_current() -> None:
    said = lamina.ShapeDtypeStruct((2, 2), np.float32, sharding=P("x"))
    mesh = _mesh(2)
    with lamina.set_mesh(mesh):
        assert said.sharding == NamedSharding(mesh, P("x"))
    with pytest.raises(TypeError, match="context mesh cannot be empty"):
        _ = said.sharding
    assert said.update(shape=(4, 2)) == lamina.ShapeDtypeStruct((4, 2), np.float32, sharding=P("x"))
    with pytest.raises(ValueError, match="rank at least 3"):
        lamina.ShapeDtypeStruct((2, 2), np.float32, sharding=P(None, "x", None))


def test_trees_of_shardings_that_do_not_fit() -> None:
    row = NamedSharding(auto_mesh((2,), ("x",)), P("x"))
    x = np.ones(4, np.float32)
    with pytest.raises(ValueError, match="in_shardings is the wrong length: .* length 3 .* length 2"):
        lamina.jit(lambda a, b: a, in_shardings=(row, row, row))(x, x)
    with pytest.raises(ValueError, match="Note that in_shardings is not a tuple.* might need to be wrapped"):
        lamina.jit(lambda a: a, in_shardings={"a": row})({"a": x})
    with pytest.raises(ValueError, match=r"pjit in_shardings\[1\]\['a'\] specification must be a tree prefix"):
        lamina.jit(lambda a, b: a, in_shardings=(row, {"a": [row, row]}))(x, {"a": [x]})
    with pytest.raises(ValueError, match=r"pjit out_shardings\['a'\] specification must be a tree prefix"):
        lamina.jit(lambda a: {"a": a}, out_shardings={"a": [row]})(x)
    with pytest.raises(TypeError, match="in_shardings leaf specifications are expected to be PartitionSpec.*got x"):
        lamina.jit(lambda a: a, in_shardings="x")
    with pytest.raises(ValueError, match="out_shardings of jit got an empty NamedSharding"):
        lamina.jit(lambda a: a, out_shardings=NamedSharding(Mesh(np.empty(0, object), ()), P()))
