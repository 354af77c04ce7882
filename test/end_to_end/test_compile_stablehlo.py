"""`lamina.compile_stablehlo` on programs as JAX writes them, compared with JAX running them."""

# ruff: noqa: E501 (program text)

from __future__ import annotations

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export

import lamina
from lamina.passes.framework.base import CompileError
from lamina.stablehlo_api import LoadedStableHLO

rng = np.random.default_rng(0)


def array(*shape: int, dtype=np.float32) -> np.ndarray:
    return rng.normal(size=shape).astype(dtype)


def text_of(function, *arguments, **options) -> str:
    return jax.jit(function, **options).lower(*arguments).as_text(debug_info=True)


def check(function, *arguments, rtol=2e-5, atol=2e-6) -> LoadedStableHLO:
    """Both must give the same; gives back the compiled program."""
    compiled = lamina.compile_stablehlo(text_of(function, *arguments))
    leaves = jax.tree.leaves(arguments)
    results = compiled(*leaves)
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(results) == len(expected)
    for got, want in zip(results, expected):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(
            np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=rtol, atol=atol
        )
    return compiled


def mlp(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    logits = jax.nn.log_softmax(x @ w + b)
    return -jnp.mean(jnp.sum(logits * y, axis=1))


def test_gradients_of_an_mlp() -> None:
    sizes = (20, 32, 32, 5)
    params = [(array(m, n) * 0.3, array(n)) for m, n in zip(sizes, sizes[1:])]
    check(
        jax.value_and_grad(mlp),
        params,
        array(16, 20),
        np.eye(5, dtype=np.float32)[rng.integers(0, 5, 16)],
    )


def test_attention() -> None:
    def attend(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v

    check(attend, array(2, 3, 8, 16), array(2, 3, 8, 16), array(2, 3, 8, 16))


def test_scan_and_its_gradient() -> None:
    def loss(xs, w):
        def step(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h

        h, ys = jax.lax.scan(step, jnp.zeros(8), xs)
        return ys.sum() + (h**2).sum()

    check(
        jax.value_and_grad(loss, argnums=(0, 1)),
        array(30, 8),
        array(8, 8) * 0.3,
        rtol=1e-4,
        atol=1e-5,
    )


def test_control_flow() -> None:
    def run(n, x):
        x = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5 - 0.25), (0, x))[
            1
        ]
        x = jax.lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: -v, x)
        return jax.lax.switch(n, [lambda v: v, lambda v: v * 2, lambda v: v[::-1]], x)

    for n in (-3, 0, 1, 2, 9):
        check(run, np.int32(n), array(6))


def test_updates_sorting_and_gathers() -> None:
    def run(x, i):
        y = x.at[i].add(1.0).at[0].set(-1.0).at[:, 2].mul(3.0)
        order = jnp.argsort(y[:, 0])
        return (
            y[order],
            jnp.sort(y, axis=1),
            jnp.take_along_axis(y, i[:, None], axis=1),
            jnp.cumsum(x),
        )

    check(run, array(6, 5), np.array([0, 3, 3, 4, 1, 2], np.int32))


def test_random_bits_are_jaxs() -> None:
    def run(key):
        a, b = jax.random.split(jax.random.wrap_key_data(key))
        return (
            jax.random.uniform(a, (7,)),
            jax.random.normal(b, (4, 3)),
            jax.random.randint(a, (5,), 0, 100),
        )

    check(run, np.array([0, 42], np.uint32), rtol=1e-5)


def test_convolution_and_pooling() -> None:
    def run(x, k):
        y = jax.lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    check(run, array(2, 8, 8, 3), array(3, 3, 3, 4), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16, np.float16, np.int32, np.uint8])
def test_dtypes(dtype) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    with jax.enable_x64(True):
        check(lambda a: (a + a * 2, a.sum(axis=0), a.T, a > 3, jnp.max(a)), x, rtol=1e-2)


def test_many_steps_compile_in_linear_time() -> None:
    """XLA takes some 200 s for this one, growing quadratically."""

    def loss(x, steps):
        for _ in range(steps):
            x = jnp.sin(x) * 1.1 + jnp.cos(x @ x)
        return x.sum()

    x = array(8, 8) * 0.1
    check(jax.grad(lambda a: loss(a, 4)), x, rtol=1e-3, atol=1e-3)
    text = text_of(jax.grad(lambda a: loss(a, 200)), x)
    begin = time.process_time()
    program = lamina.compile_stablehlo(text)
    assert time.process_time() - begin < 5
    assert len(program.compilation.artifact.manifest["kernels"]) < 20
    assert program(x)[0].shape == (8, 8)


def test_a_long_loop_over_an_array_copies_nothing() -> None:
    """Each step writes one element of 4 MB: in place it takes microseconds, with a copy a second."""

    def run(x):
        return jax.lax.fori_loop(0, 1000, lambda i, a: a.at[i].set(a[i] * 2.0), x)

    x = array(1 << 20)
    compiled = check(run, x)
    assert 'lamina.kind = "control"' in compiled.as_text("fused")
    entry = compiled.as_text("llvm").split("; entry")[1]
    loop = compiled.as_text("llvm").split("; entry")[0]
    assert entry.count("@llvm.memcpy.p0.p0.i64(ptr %") == 1 and "call void @llvm.memcpy" not in loop
    compiled(x)[0].block_until_ready()
    begin = time.process_time()
    compiled(x)[0].block_until_ready()
    assert time.process_time() - begin < 0.5


def test_donated_buffers_are_used_again() -> None:
    text = text_of(
        lambda p, g: [p - 0.1 * g, (p * g).sum()], array(64), array(64), donate_argnums=0
    )
    compiled = lamina.compile_stablehlo(text)
    p = array(64)
    given = lamina.numpy.asarray(p)
    where = given.unsafe_buffer_pointer()
    g = array(64)
    new, dot = compiled(given, g)
    assert given.is_deleted() and new.unsafe_buffer_pointer() == where
    np.testing.assert_allclose(new, p - 0.1 * g, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dot, (p * g).sum(), rtol=1e-4)


# Where programs come from


def exported(function, *arguments):
    return export.export(jax.jit(function))(*arguments)


def test_text_bytecode_path_and_module(tmp_path: Path) -> None:
    from lamina.dialects.context import parse
    from lamina.dialects.serialize import to_portable_artifact

    x = array(3, 4)
    program = exported(lambda a: jnp.sin(a).sum(axis=1), x)
    text, serialized = program.mlir_module(), program.mlir_module_serialized
    (tmp_path / "program.mlir").write_text(text)
    (tmp_path / "program.mlirbc").write_bytes(serialized)
    sources = (
        text,
        text.encode(),
        serialized,
        bytearray(serialized),
        tmp_path / "program.mlir",
        str(tmp_path / "program.mlirbc"),
        parse(text),
        to_portable_artifact(parse(text)),
    )
    for source in sources:
        compiled = lamina.compile_stablehlo(source)
        np.testing.assert_allclose(compiled(x)[0], np.sin(x).sum(axis=1), rtol=1e-5, atol=1e-6)


def test_symbolic_sizes_compile_for_each_call() -> None:
    (b,) = export.symbolic_shape("b")
    spec = jax.ShapeDtypeStruct((2 * b, 4), jnp.float32)
    program = exported(lambda a: (a.reshape(-1, 2), a.sum(axis=0), jnp.arange(a.shape[0])), spec)
    compiled = lamina.compile_stablehlo(program.mlir_module())
    assert str(compiled.inputs[0]) == "float32[?,4]"
    for size in (2, 6):
        x = array(size, 4)
        a, s, i = compiled(x)
        np.testing.assert_array_equal(a, x.reshape(-1, 2))
        np.testing.assert_allclose(s, x.sum(axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(i, np.arange(size))
    with pytest.raises(CompileError, match="Division had remainder 1"):
        compiled(array(3, 4))
    with pytest.raises(
        TypeError, match=r"argument 0: float32\[\?,4\] expected, got float32\[4,5\]"
    ):
        compiled(array(4, 5))


def test_shardings_for_one_device_are_ignored() -> None:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    text = text_of(
        lambda a: jax.lax.with_sharding_constraint(a * 2, sharding), array(4), in_shardings=sharding
    )
    assert "sdy" in text
    np.testing.assert_array_equal(
        lamina.compile_stablehlo(text)(np.ones(4, np.float32))[0], np.full(4, 2)
    )


# What a program says of itself, and what goes wrong


def test_a_program_describes_itself() -> None:
    compiled = check(lambda a, b: jnp.tanh(a @ b), array(4, 8), array(8, 2))
    assert [str(i) for i in compiled.inputs] == ["float32[4,8]", "float32[8,2]"]
    assert [str(o) for o in compiled.outputs] == ["float32[4,2]"]
    assert compiled.cost_analysis()["flops"] == 2 * 4 * 8 * 2
    assert compiled.cost_analysis()["transcendentals"] == 8
    assert compiled.memory_analysis()["argument"] == 4 * (32 + 16)
    assert "HloModule" in compiled.as_text("hlo")
    assert "stablehlo.dot_general" in compiled.as_text()
    assert "(float32[4,8], float32[8,2]) -> (float32[4,2])" in repr(compiled)


ADD = "func.func public @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<4xf32> { %0 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4xf32> %1 = stablehlo.add %x, %0 : tensor<4xf32> return %1 : tensor<4xf32> }"


def test_arguments_are_checked() -> None:
    add = lamina.compile_stablehlo(ADD)
    np.testing.assert_array_equal(add(np.ones(4, np.float32), 2)[0], np.full(4, 3))
    np.testing.assert_array_equal(
        add(np.ones(8, np.float32)[::2], lamina.numpy.float32(1))[0], np.full(4, 2)
    )
    with pytest.raises(TypeError, match="takes 2 arguments, 1 were given"):
        add(np.ones(4, np.float32))
    with pytest.raises(TypeError, match=r"argument 0: float32\[4\] expected, got float32\[5\]"):
        add(np.ones(5, np.float32), 1.0)
    with pytest.raises(TypeError, match=r"argument 0: float32\[4\] expected, got float64\[4\]"):
        add(np.ones(4), 1.0)
    with pytest.raises(TypeError, match=r"argument 1: float32\[\] expected, got 1j"):
        add(np.ones(4, np.float32), 1j)


def test_callers_arrays_are_left_alone() -> None:
    x = np.zeros(4, np.float32)
    text = "func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) { %0 = stablehlo.add %x, %x : tensor<4xf32> return %x, %0 : tensor<4xf32>, tensor<4xf32> }"
    first, _ = lamina.compile_stablehlo(text)(x)
    x[:] = 5
    np.testing.assert_array_equal(first, np.zeros(4))


def test_errors_point_into_the_program(tmp_path: Path) -> None:
    bad = ADD.replace(
        "stablehlo.add %x, %0 : tensor<4xf32>",
        "\n  stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>",
    )
    with pytest.raises(CompileError) as error:
        lamina.compile_stablehlo(bad)
    assert "at <stablehlo>:2:3\n    stablehlo.custom_call @f(%x)" in str(error.value)
    path = tmp_path / "bad.mlir"
    path.write_text(bad)
    with pytest.raises(CompileError, match="bad.mlir:2:3"):
        lamina.compile_stablehlo(path)
    with pytest.raises(ValueError, match="<stablehlo>:1:"):
        lamina.compile_stablehlo("func.func @main(")
    with pytest.raises(TypeError, match="not int"):
        lamina.compile_stablehlo(3)
    with pytest.raises(FileNotFoundError):
        lamina.compile_stablehlo("nowhere.mlir")
    with pytest.raises(ValueError, match="unknown GPU architecture"):
        lamina.compile_stablehlo(ADD, target="cuda:sm_12")


def test_a_process_compiles_many_dynamic_programs():
    """Each is refined on its own, though their arguments have the same types."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for op, want in (("negate", -x), ("abs", x), ("negate", -x)):
        run = lamina.compile_stablehlo(f"""
          func.func @main(%n: tensor<i64>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {{
            %0 = stablehlo.{op} %x : tensor<?x2xf32>
            return %0 : tensor<?x2xf32>
          }}""")
        np.testing.assert_array_equal(run(np.int64(3), x)[0], want)
