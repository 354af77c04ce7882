"""Programs on sharded arrays, partitioned over the devices of a mesh."""

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
import lamina.partitioning
from lamina import P, lax
from lamina.partitioning import missing
from lamina.sharding import Mesh, NamedSharding

pytestmark = [
    pytest.mark.usefixtures("eight_devices"),
    pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]"),
]
X = np.arange(48, dtype=np.float32).reshape(8, 6)


def _mesh() -> Mesh:
    return auto_mesh((2, 2), ("x", "y"))


def _on(value, *spec, mesh=None):
    return lamina.device_put(value, NamedSharding(mesh or _mesh(), P(*spec)))


def _partitioned(f, *args) -> str:
    """The program that each device runs."""
    return lamina.jit(f).lower(*args).compile().as_text("partitioned")


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (("x",), (), ("x",)),
        (("x",), (None, "y"), ("x", "y")),
        ((None, "x"), ("x",), ()),
        (("y", "x"), ("x",), ("y",)),
    ],
)
def test_products_lie_as_their_operands_let_them(left, right, result) -> None:
    a, b = X[:, :4], X[:4]
    out = lamina.jit(jnp.matmul)(_on(a, *left), _on(b, *right))
    assert out.sharding == NamedSharding(_mesh(), P(*result))
    np.testing.assert_array_equal(out, a @ b)


W = np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6)


def _constrained(x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(_mesh(), P(*spec)))


def _by_hand(x, **options):
    def body(block):
        return block * lax.psum(block.sum(), "y") + lax.axis_index("y")

    spec = P(None, "y")
    return lamina.shard_map(body, mesh=_mesh(), in_specs=spec, out_specs=spec, **options)(x)


@lamina.custom_vjp
def _sine(x):
    return jnp.sin(x)


_sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * ct * jnp.cos(x),))

PROGRAMS = {
    "grad": lambda x, w: lamina.grad(lambda w: jnp.tanh(x @ w).sum())(w),
    "vmap": lambda x, w: lamina.vmap(lambda row: jnp.sin(row) @ w)(x),
    "scan": lambda x, w: lax.scan(lambda c, row: (jnp.tanh(c @ w) + row, c.sum()), x[0], x),
    "scan-grad": lambda x, w: lamina.grad(
        lambda w: lax.scan(lambda c, row: (jnp.tanh(c @ w) + row, None), x[0], x)[0].sum()
    )(w),
    "cond": lambda x, w: lax.cond(x.sum() > 0, lambda a: a @ w, lambda a: a - 1, x),
    "while": lambda x, w: lax.while_loop(lambda c: c.sum() < 100, lambda c: jnp.abs(c @ w) * 3 + 1, x * 0),
    "custom-vjp": lambda x, w: lamina.grad(lambda w: _sine(x @ w).sum())(w),
    "random": lambda x, w: x + lamina.random.normal(lamina.random.key(3), x.shape),
    "dropout": lambda x, w: jnp.where(lamina.random.bernoulli(lamina.random.key(1), 0.5, x.shape), x, 0),
    "constraint": lambda x, w: _constrained(x @ w, ("x", "y")).sum(1),
    "constraint-grad": lambda x, w: lamina.grad(lambda w: (_constrained(x @ w, None, "y") ** 2).sum())(w),
    "constraint-vmap": lambda x, w: lamina.vmap(lambda row: _constrained(row @ w, "y"))(x),
    "constraint-uneven": lambda x, w: _constrained(x[:7], ("x", "y")).sum(0),
    "shard-map": lambda x, w: _by_hand(x @ w) + 1,
    "shard-map-some-axes": lambda x, w: _by_hand(x @ w, axis_names={"y"}) + 1,
    "shard-map-grad": lambda x, w: lamina.grad(lambda w: _by_hand(x @ w).sum())(w),
    "inner-jit": lambda x, w: lamina.jit(
        lambda a: a * 2, out_shardings=NamedSharding(_mesh(), P(None, "x"))
    )(x) + 1,
    "sort": lambda x, w: jnp.sort(x @ w, axis=0),
    "top-k": lambda x, w: lax.top_k(x @ w, 2),
    "erf-inv": lambda x, w: lax.erf_inv(x / 50),
    "cumsum": lambda x, w: jnp.cumsum(x, axis=0),
    "gather": lambda x, w: x[jnp.array([1, 3, 5])] @ w,
    "scatter": lambda x, w: x.at[jnp.array([1, 3, 5])].add(w[:3]),
    "update": lambda x, w: lax.dynamic_update_slice(x, w[:2, :3], (1, 2)),
    "solve": lambda x, w: jnp.linalg.solve(w.T @ w + jnp.eye(6), x.T),
    "fft": lambda x, w: jnp.abs(jnp.fft.fft(x)),
    "callback": lambda x, w: lamina.pure_callback(np.cos, lamina.ShapeDtypeStruct(x.shape, x.dtype), x) @ w,
    "checkpoint": lambda x, w: lamina.grad(lamina.checkpoint(lambda w: jnp.sin(x @ w).sum()))(w),
    "convolution": lambda x, w: lax.conv(x.reshape(8, 1, 2, 3), jnp.ones((3, 1, 2, 2)), (1, 1), "SAME"),
    "no-elements": lambda x, w: (x[:0].sum(0), x[:, :0] @ w[:0]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_those_of_one_device(name) -> None:
    program, x = PROGRAMS[name], X / 48
    out = lamina.jit(program)(_on(x, "x", "y"), _on(W, None, "x"))
    for mine, wanted in zip(lamina.tree.leaves(out), lamina.tree.leaves(lamina.jit(program)(x, W))):
        assert mine.sharding.device_set == set(lamina.devices()[:4])
        np.testing.assert_allclose(mine, wanted, rtol=2e-5, atol=2e-5)


def test_a_donated_argument_is_taken() -> None:
    x = _on(X, "x")
    out = lamina.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and out.sharding == NamedSharding(_mesh(), P("x"))
    np.testing.assert_array_equal(out, X + 1)


def test_where_arguments_and_results_of_a_compiled_program_lie() -> None:
    row, column = NamedSharding(_mesh(), P("x")), NamedSharding(_mesh(), P(None, "y"))
    f = lamina.jit(lambda d, w: (d["a"] @ w, w), in_shardings=({"a": row}, None), out_shardings=(column, None))
    compiled = f.lower({"a": X}, W).compile()
    ((first, second), named), results = compiled.input_shardings, compiled.output_shardings
    assert first == {"a": row} and named == {} and results[0] == column
    assert second == NamedSharding(_mesh(), P(None, "y"))  # the partitioner's choice
    assert "tensor<4x6xf32>" in compiled.as_text("partitioned")
    assert 'sdy.sharding<@mesh, [{"x"}, {}]>' in compiled.as_text("stablehlo")
    out, same = compiled({"a": X}, W)
    np.testing.assert_allclose(out, X @ W, rtol=1e-5)
    assert out.sharding == column and np.array_equal(same, W)
    with pytest.raises(ValueError, match=r"(?s)disagree with the sharding.*argument d.'a'."):
        compiled({"a": _on(X, "y")}, W)
    with pytest.raises(ValueError, match="was not partitioned"):
        lamina.jit(jnp.sin).lower(X).compile().as_text("partitioned")


def test_the_text_of_a_compiled_program_says_what_moves() -> None:
    x, w = _on(X, "x", "y"), _on(W, "y")
    compiled = lamina.jit(lambda x, w: x @ w).lower(x, w).compile()
    text = compiled.as_text()
    assert text.count(" all-reduce(") == 1 == compiled.as_text("hlo").count(" all-reduce(")
    assert "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%region" in text
    assert "func.func public @main" in text  # the other stages follow
    whole = lamina.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(_mesh(), P())))
    gathered = whole.lower(_on(X, "x")).compile().as_text("hlo")
    assert "all-gather(" in gathered and "replica_groups={{0,2},{1,3}}" in gathered and "dimensions={0}" in gathered
    assert "HloModule" not in lamina.jit(jnp.sin).lower(X).compile().as_text()


_FACTORISED = {
    "qr": lambda a: jnp.linalg.qr(a),
    "lu": lambda a: lax.linalg.lu(a),
    "eigh": lambda a: jnp.linalg.eigh(a + a.mT),
    "solve": lambda a: lax.linalg.tridiagonal_solve(a[:, 0], a[:, 1] + 9, a[:, 2], a.mT),
}


@pytest.mark.parametrize("name", _FACTORISED)
def test_batches_of_matrices_are_factorised_where_they_lie(name) -> None:
    f = _FACTORISED[name]
    a = np.random.default_rng(0).random((4, 6, 6), np.float32)
    split = _on(a, "x")
    assert "stablehlo.all_" not in _partitioned(f, split)
    for found, wanted in zip(lamina.tree.leaves(lamina.jit(f)(split)), lamina.tree.leaves(f(a)), strict=True):
        assert found.sharding.spec[0] == "x"
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_meshes_of_the_same_devices() -> None:
    line, wide = auto_mesh((4,), ("z",)), auto_mesh((2, 2, 1), ("a", "b", "c"))
    f = lamina.jit(lambda a, b: (a + b, a), out_shardings=(NamedSharding(wide, P("b")), None))
    out, _ = f(_on(X, "x"), _on(X, "z", mesh=line))
    assert out.sharding == NamedSharding(wide, P("b"))
    np.testing.assert_array_equal(out, 2 * X)
    flat = auto_mesh((3, 2), ("i", "j")), auto_mesh((2, 3), ("k", "l"))
    a, b = (_on(X[:6], None, name, mesh=m) for name, m in zip("jk", flat, strict=True))
    np.testing.assert_array_equal(lamina.jit(jnp.add)(a, b), 2 * X[:6])  # on whole arrays


def test_devices_that_differ() -> None:
    other = Mesh(np.array(lamina.devices()[4:]).reshape(2, 2), ("x", "y"))
    for f, args in (
        (jnp.add, (_on(X, "x"), _on(X, "x", mesh=other))),
        (lambda x: _constrained(x, "y"), (_on(X, "x", mesh=other),)),
        (lambda x: _constrained(x, "y"), (lamina.device_put(X, lamina.devices()[3]),)),
    ):
        with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"):
            lamina.jit(f)(*args)
    with pytest.raises(ValueError, match="One of pjit outputs .* divisible by 2"):
        lamina.jit(lambda x: x[:7], out_shardings=NamedSharding(_mesh(), P("x")))(X)


def test_without_shardy_one_program_runs_on_whole_arrays(monkeypatch, capfd) -> None:
    monkeypatch.setattr(lamina.partitioning, "missing", lambda: "there is no jaxlib")
    with lamina.config.log({"partition"}):
        out = lamina.jit(lambda x, w: (x @ w) * 2.5)(_on(X, "x"), W)
    np.testing.assert_allclose(out, (X @ W) * 2.5, rtol=1e-5)
    assert "one program on whole arrays: there is no jaxlib" in capfd.readouterr().err


def test_a_warm_start_partitions_nothing(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path))
    for wanted in ("partition", "cache"):
        f = lamina.jit(lambda x, w: jnp.cos(x @ w) * 7.5)
        with lamina.config.log({"partition", "cache"}):
            out = f(_on(X, "x"), W)
        said = capfd.readouterr().err
        assert f"lamina: {wanted} " in said and said.count("\n") == 1
        assert out.sharding == NamedSharding(_mesh(), P("x"))


def test_a_program_that_a_new_context_begins_with(monkeypatch) -> None:
    """After many programs the compiler's memory of attributes is made anew, which takes Shardy's, too."""
    from lamina.dialects import context

    monkeypatch.setattr(context, "_MOST_KEPT_BYTES", 0)
    place = NamedSharding(auto_mesh((4,), ("x",)), P("x"))
    x = lamina.device_put(np.arange(8.0, dtype=np.float32), place)
    np.testing.assert_array_equal(lamina.jit(lambda x: x * 3 - 1)(x), np.arange(8.0) * 3 - 1)
