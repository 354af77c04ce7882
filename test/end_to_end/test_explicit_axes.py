"""Meshes with explicit axes: types say how arrays lie, and programs are held to it."""

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P, lax
from lamina.core import ShardingTypeError
from lamina.partitioning import missing
from lamina.sharding import AxisType, Mesh, NamedSharding, auto_axes, explicit_axes, reshard

pytestmark = pytest.mark.usefixtures("eight_devices")
partitioned = pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def mesh():
    mesh = lamina.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with lamina.set_mesh(mesh):
        yield mesh


def _on(mesh: Mesh, value, *spec):
    return lamina.device_put(value, NamedSharding(mesh, P(*spec)))


def _spec(x) -> P:
    return lamina.typeof(x).sharding.spec


# Each an operation, where its operands lie, and where JAX says that its result does.
_RULES = [
    (lambda x: jnp.sin(x) * x, [("x", "y")], ("x", "y")),
    (lambda x, y: x + y, [("x",), (None, "y")], ("x", "y")),
    (lambda x: x.sum(0), [("x", "y")], ("y",)),
    (lambda x: x.max(1), [("x", "y")], ("x",)),
    (lambda x: jnp.argmax(x, 1), [("x",)], ("x",)),
    (lambda x: x.T, [("x", "y")], ("y", "x")),
    (lambda x: x[None], [("x", "y")], (None, "x", "y")),
    (lambda x: x.reshape(2, 4, 4), [("x", "y")], ("x", None, "y")),
    (lambda x: x.reshape(32), [("x",)], ("x",)),
    (lambda x: jnp.broadcast_to(x, (3, 8, 4)), [("x", "y")], (None, "x", "y")),
    (lambda x: x[:, 1], [("x",)], ("x",)),
    (lambda x: x[2:6], [("x", "y")], ("x", "y")),
    (lambda x: jnp.concatenate([x, x]), [("x", "y")], ("x", "y")),
    (lambda x: jnp.split(x, 2)[1], [("x", "y")], ("x", "y")),
    (lambda x: jnp.sort(x, 1), [("x",)], ("x", None)),
    (lambda x: jnp.cumsum(x, 1), [("x",)], ("x", None)),
    (lambda x: jnp.where(x > 3, x, 0), [("x", "y")], ("x", "y")),
    (lambda x: x.astype(jnp.int32), [("x", "y")], ("x", "y")),
    (lambda x, y: x @ y.T, [("x",), ("y",)], ("x", "y")),
    (lambda x, y: jnp.einsum("ij,kj->ki", x, y), [("x",), ("y",)], ("y", "x")),
    (lambda x: x.at[0].set(1), [("x", "y")], ("x", "y")),
    (lambda x: lamina.vmap(lambda row: row * 2)(x), [("x", "y")], ("x", "y")),
    (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0] * 0, x)[1], [(None, "y")], (None, "y")),
    (lambda x: lax.cond(True, jnp.sin, jnp.cos, x), [("x", "y")], ("x", "y")),
    (lambda x: lamina.jit(jnp.tanh)(x), [("x", "y")], ("x", "y")),
    (lambda x: lamina.checkpoint(jnp.tanh)(x), [("x", "y")], ("x", "y")),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(_RULES)))
def test_types_of_results_follow_from_those_of_operands(mesh, case) -> None:
    function, specs, wanted = _RULES[case]
    args = [_on(mesh, X, *spec) for spec in specs]
    said = lamina.eval_shape(function, *args)
    found = lamina.make_jaxpr(function)(*args).out_avals[0]
    rank = len(said.shape)
    assert found.sharding == NamedSharding(mesh.abstract_mesh, P(*wanted, *[None] * (rank - len(wanted))))


@partitioned
@pytest.mark.parametrize("case", [1, 2, 6, 7, 12, 18, 20, 22])
def test_results_lie_as_their_types_say(mesh, case) -> None:
    function, specs, wanted = _RULES[case]
    args = [_on(mesh, X, *spec) for spec in specs]
    for out in (lamina.jit(function)(*args), function(*args)):
        assert out.sharding == NamedSharding(mesh, P(*wanted))
        np.testing.assert_allclose(out, function(*[jnp.asarray(X)] * len(specs)), rtol=1e-6)


def test_types_print_where_values_lie(mesh) -> None:
    x = _on(mesh, X, ("x", "y"))
    assert str(lamina.typeof(x)) == "float32[8@(x,y),4]"
    assert "f32[8@(x,y),4] = sin a" in str(lamina.make_jaxpr(jnp.sin)(x))
    assert str(lamina.typeof(jnp.ones(3))) == "float32[3]"
    assert _spec(jnp.ones(3)) == P(None)


@pytest.mark.parametrize(
    ("function", "specs", "message"),
    [
        (lambda x, y: x * y, [("x",), ("y",)], "incompatible shardings for broadcasting"),
        (lambda x, y: x + y, [("x",), (None, "x")], "illegally sharded result"),
        (lambda x, y: x @ y.T, [(None, "x"), (None, "x")], "Contracting dimensions are sharded"),
        (lambda x, y: jnp.concatenate([x, y]), [("x",), ()], "the same sharding"),
        (lambda x: x.reshape(4, 8), [(None, "y")], "This reshape is not supported"),
        (lambda x: jnp.sort(x, 0), [("x",)], "Arguments to sort must be unsharded"),
        (lambda x: x[:3], [("x",)], "not divisible by mesh axes"),
        (lambda x, i: x[i[:, 0].astype(int)], [("x",), ()], r"\.get\(out_sharding=\)"),
    ],
)
def test_what_operands_leave_open_is_an_error(mesh, function, specs, message) -> None:
    args = [_on(mesh, X, *spec) for spec in specs]
    with pytest.raises(ShardingTypeError, match=message):
        lamina.make_jaxpr(function)(*args)


@partitioned
def test_a_program_says_where_the_result_is_to_lie(mesh) -> None:
    x = _on(mesh, X, None, "y")
    for wanted in (P("x", None), P(None, "y"), P(None, None)):
        out = lamina.jit(lambda x, w=wanted: jnp.dot(x, x.T, out_sharding=w))(x)
        assert _spec(out) == wanted
        np.testing.assert_array_equal(out, X @ X.T)
    assert _spec(jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x"))) == P("x", None)
    assert _spec(x.reshape(4, 8, out_sharding=P("x", "y"))) == P("x", "y")
    assert _spec(reshard(x, P("y"))) == P("y", None)


@partitioned
def test_gradients_lie_as_what_they_belong_to(mesh) -> None:
    x, w = _on(mesh, X, "x", None), _on(mesh, X.T, None, "y")

    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    wanted = lamina.grad(loss, (0, 1))(jnp.asarray(X.T), jnp.asarray(X))
    for grad in (lamina.jit(lamina.grad(loss, (0, 1))), lamina.grad(loss, (0, 1))):
        dw, dx = grad(w, x)
        assert _spec(dw) == P(None, "y") and _spec(dx) == P("x", None)
        assert dw.sharding == w.sharding and dx.sharding == x.sharding
        for found, value in zip((dw, dx), wanted):
            np.testing.assert_allclose(found, value, atol=1e-5)


@partitioned
def test_a_part_of_a_program_with_other_axes(mesh) -> None:
    x = _on(mesh, X, "x", "y")

    def product(a):
        assert lamina.typeof(a).placed is None
        return a @ a.T

    def half(a):
        assert _spec(a) == P(None, "y")
        return jnp.sin(a)

    free = auto_axes(product, out_sharding=P("x", None))
    assert _spec(lamina.jit(free)(x)) == _spec(free(x)) == P("x", None)
    np.testing.assert_array_equal(free(x), X @ X.T)
    partly = lamina.jit(auto_axes(half, axes="x", out_sharding=P("x", "y")))(x)
    assert partly.sharding == x.sharding
    gradient = lamina.jit(lamina.grad(lambda x: free(x).sum()))(x)
    assert gradient.sharding == x.sharding
    np.testing.assert_allclose(gradient, 2 * np.broadcast_to(X.sum(0), X.shape))
    with pytest.raises(ValueError, match="no axis 'z'"):
        auto_axes(half, axes="z", out_sharding=P())(x)


@partitioned
def test_explicit_axes_within_a_program_of_automatic_ones() -> None:
    mesh = auto_mesh((2, 2), ("x", "y"))

    def inside(a):
        assert _spec(a) == P("x", None)
        return a * 2

    with lamina.set_mesh(mesh):
        x = _on(mesh, X, "x", "y")
        assert lamina.typeof(x).placed is None
        out = lamina.jit(lambda x: explicit_axes(inside, in_sharding=P("x", None))(x) + 1)(x)
    np.testing.assert_array_equal(out, X * 2 + 1)


@partitioned
def test_what_is_told_its_sharding_afterwards_passes_the_check_of_types(mesh) -> None:
    x, w = _on(mesh, X, None, "x"), _on(mesh, X.T, "x")
    with lamina.config.enable_checks(True):
        f = lamina.jit(lambda x, w: jnp.matmul(x, w, out_sharding=P("x", "y")).sum())
        np.testing.assert_allclose(f(x, w), (X @ X.T).sum(), rtol=1e-6)
        np.testing.assert_allclose(lamina.grad(f)(x, w), np.broadcast_to(X.sum(0), X.shape))
        with pytest.raises(ShardingTypeError, match="Contracting dimensions are sharded"):
            lamina.jit(jnp.matmul)(x, w)


@partitioned
def test_one_axis_of_a_mesh_can_be_explicit() -> None:
    mesh = lamina.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = _on(mesh, X, "x", "y")
    assert _spec(x) == P("x", None)
    out = lamina.jit(lambda x: jnp.sin(x).sum(1))(x)
    assert _spec(out) == P("x")
    np.testing.assert_allclose(out, np.sin(X).sum(1), atol=1e-5)


def test_shard_map_cuts_arguments_as_their_types_say(mesh) -> None:
    x = _on(mesh, X, "x", "y")

    def body(block):
        assert block.shape == (4, 2) and lamina.typeof(block).vma == {"x", "y"}
        return lax.psum(block, "y")

    mapped = lamina.shard_map(body, out_specs=P("x"))
    assert _spec(lamina.eval_shape(mapped, x)) == P("x", None)
    np.testing.assert_array_equal(mapped(x), X[:, :2] + X[:, 2:])
    auto = auto_mesh((2, 2), ("x", "y"))
    with pytest.raises(TypeError, match="in_axes was not specified"):
        lamina.shard_map(body, mesh=auto, out_specs=P("x"))(x)


@partitioned
def test_vmap_over_a_dimension_that_is_split(mesh) -> None:
    x, w = _on(mesh, X, "x"), _on(mesh, X.T, None, "y")
    out = lamina.jit(lamina.vmap(lambda row, w: lamina.jit(jnp.dot)(row, w), (0, None)))(x, w)
    assert _spec(out) == P("x", "y")
    np.testing.assert_allclose(out, X @ X.T)
    with pytest.raises(ValueError, match="Mapped away dimension"):
        lamina.vmap(jnp.add)(x, _on(mesh, X, "y"))


@partitioned
def test_matrices_of_a_batch_that_is_split(mesh) -> None:
    a = np.random.default_rng(0).normal(size=(4, 3, 3)).astype(np.float32)
    b = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    of_one, sides = _on(mesh, a, "x"), _on(mesh, b, "x")
    square = a @ a.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32)
    for f, args, wanted in (
        (lambda a: jnp.linalg.slogdet(a)[1], (of_one,), np.linalg.slogdet(a)[1]),
        (lamina.vmap(jnp.linalg.solve), (of_one, sides), np.linalg.solve(a, b[..., None])[..., 0]),
        (lamina.vmap(jnp.linalg.solve, in_axes=(None, 0)), (a[0], sides), b @ np.linalg.inv(a[0]).T),
        (jnp.linalg.cholesky, (_on(mesh, square, "x"),), np.linalg.cholesky(square)),
        (lambda a: jnp.linalg.svd(a)[1], (of_one,), np.linalg.svd(a)[1]),
        (lambda a: jnp.linalg.eigh(a)[0], (_on(mesh, square, "x"),), np.linalg.eigh(square)[0]),
    ):
        assert _spec(lamina.jit(f)(*args))[0] == "x"
        for out in (f(*args), lamina.jit(f)(*args)):
            np.testing.assert_allclose(out, wanted, rtol=2e-3, atol=1e-3)
    with pytest.raises(ShardingTypeError, match="what it does to a matrix or vector over a sharded dimension"):
        lamina.jit(lax.linalg.lu)(_on(mesh, np.eye(4, dtype=np.float32), "x"))


def test_dimensions_along_which_elements_are_moved_are_whole(mesh) -> None:
    x = _on(mesh, X, "x", "y")
    for f, message in (
        (lambda x: jnp.cumsum(x, 0), "Input should be unsharded over the axis being reduced"),
        (jnp.cumprod, "The input should be fully replicated where axis is None"),
        (lambda x: jnp.roll(x, 1, 1), "`a` cannot be sharded on the axis being rolled over"),
        (lambda x: jnp.tile(x, (2, 1)), "`A` cannot be sharded along axes along which tiling is non-trivial"),
        (jnp.unstack, "unstack operand cannot be sharded on the unstacking axis"),
    ):
        with pytest.raises(ShardingTypeError, match=message):
            lamina.eval_shape(f, x)
    rows = _on(mesh, X, "x")
    for f in (lambda x: jnp.cumsum(x, 1), lambda x: jnp.roll(x, 1, 1), lambda x: jnp.tile(x, (1, 2))):
        assert _spec(f(rows)) == P("x", None)
    assert _spec(rows[0, 0]) == P()
    with pytest.raises(ValueError, match="does not evenly divide the dimension size 5"):
        lamina.core.ShapedArray((5,), np.float32, sharding=NamedSharding(mesh, P("x")))


def test_a_result_that_vmap_repeats_is_split_as_the_batch(mesh) -> None:
    x = _on(mesh, X, "x")
    assert lamina.vmap(lambda row: jnp.zeros(3), out_axes=-1)(x).sharding.spec == P(None, "x")
    bits = lamina.jit(lambda key: lax.rng_bit_generator(key, (4, 8), out_sharding=P("x"))[1])
    key = np.arange(4, dtype=np.uint32)
    assert bits(key).sharding.spec == P("x", None)
    np.testing.assert_array_equal(bits(key), lax.rng_bit_generator(key, (4, 8))[1])


@partitioned
def test_an_array_broadcast_like_another_lies_as_that_does(mesh) -> None:
    like = _on(mesh, X, "x", None)
    for out in (lax.broadcast_like(np.arange(4.0), like), lamina.jit(lax.broadcast_like)(jnp.arange(4.0), like)):
        assert out.sharding.spec == P("x", None)
        np.testing.assert_array_equal(out, np.broadcast_to(np.arange(4.0), (8, 4)))
    with pytest.raises(ValueError, match="Incompatible shardings for broadcasting"):
        lax.broadcast_like(_on(mesh, np.arange(4.0), "y"), like)


@partitioned
def test_convolutions_of_arrays_that_are_split_in_space(mesh) -> None:
    x = np.random.default_rng(0).integers(0, 4, (4, 8, 3)).astype(np.float32)
    k = np.random.default_rng(1).integers(0, 4, (3, 3, 2)).astype(np.float32)

    def f(x, padding="SAME"):
        return lax.conv_general_dilated(x, k, (1,), padding, dimension_numbers=("NWC", "WIO", "NWC"))

    split = _on(mesh, x, "x", "y")
    out = lamina.jit(f)(split)
    assert out.sharding.spec == P("x", "y", None)
    np.testing.assert_array_equal(out, f(x))
    by_x = lamina.jit(lamina.grad(lambda x: (f(x) ** 2).sum()))(split)
    assert by_x.sharding.spec == P("x", "y", None)
    np.testing.assert_allclose(by_x, lamina.grad(lambda x: (f(x) ** 2).sum())(x))
    with pytest.raises(ShardingTypeError, match="7 elements there, which 2 devices can't share"):
        f(split, [(0, 1)])
    with pytest.raises(ShardingTypeError, match="can be sharded"):
        lax.conv_general_dilated(_on(mesh, np.ones((1, 2, 4)), None, "x"), np.ones((1, 2, 1)), (1,), "SAME")


@partitioned
def test_gradients_of_gathers_lie_as_the_batch_of_a_vmap(mesh) -> None:
    rows = np.arange(32, dtype=np.float32).reshape(4, 8)
    ids = np.array([[0, 1], [2, 2], [7, 3], [4, 4]])

    def total(row, i):
        return (row.at[i].get(out_sharding=P()) ** 2).sum()

    each = lamina.vmap(lamina.grad(total))
    found = lamina.jit(each)(_on(mesh, rows, "x", None), _on(mesh, ids, "x", None))
    assert found.sharding.spec == P("x", None)
    wanted = np.zeros_like(rows)
    np.add.at(wanted, (np.arange(4)[:, None], ids), 2 * np.take_along_axis(rows, ids, 1))
    np.testing.assert_array_equal(found, wanted)
