"""Programs that JAX hands over: compiled, found again, serialised, refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo
from support.oracle.jax_programs import bytes_of, check, compiled, lowered, options, run

from lamina.jax_plugin import shardings
from lamina.jax_plugin.compiler import PluginError, compile_program, deserialize_program


def _mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b) ** 2)


_X = np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)
_PARAMS = [(np.full((4, 5), 0.1, np.float32), np.zeros(5, np.float32)),
           (np.full((5, 2), 0.2, np.float32), np.ones(2, np.float32))]  # fmt: skip


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x: x * 2 + 1.5, (_X,)),
        (lambda x: (x, x.sum(), x.max(axis=0), x[1:]), (_X,)),
        (lambda: jnp.arange(5), ()),
        (lambda x: x, (np.float32(2.5),)),
        (lambda x: x + 1, (np.zeros((0, 3), np.float32),)),
        (jax.grad(_mlp), (_PARAMS, _X)),
        (jax.vmap(jax.nn.softmax), (_X,)),
        (lambda x: jax.lax.top_k(x, 2), (_X,)),
        (lambda x: jnp.sort(x, axis=0), (_X,)),
        (lambda x: (jax.lax.erf(x), jax.scipy.special.erfinv(x / 3)), (_X,)),
        (lambda x: jax.lax.erf(x.astype(jnp.bfloat16)), (_X,)),
        (lambda x: jax.lax.fori_loop(0, 5, lambda i, v: v * x + i, x), (_X,)),
        (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (_X,)),
        (lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), x[0], x), (_X,)),
        (lambda x: jnp.fft.rfft(x), (_X,)),
        (lambda x: (x.min(), x.max(), x.sum()), (np.uint32(3),)),
        (lambda x: jax.lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), ()), (_X,)),
        (lambda k: jax.random.normal(k, (7,)), (jax.random.key(3),)),
        (lambda x: jax.lax.optimization_barrier((x, x + 1)), (_X,)),
        (lambda x: jax.lax.composite(lambda v: v * 2, "my.composite")(x), (_X,)),
        (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), (_X,)),
    ],
)
def test_programs_give_what_jax_gives(f, args):
    check(f, *args)


@pytest.mark.parametrize(
    "dtype",
    "bool int4 uint4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e8m0fnu float4_e2m1fn".split(),
)
def test_arrays_of_every_dtype(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(np.array([[0, 1, 1], [1, 0, 1]]), dtype)
        check(lambda v: (v, v.T, v[0], jnp.concatenate([v, v])), x)


def test_what_the_plugin_asks():
    program = compiled(lambda x: (x + 1, x.astype(jnp.int32)[0]), _X)
    assert program.name == "jit__lambda"
    assert [(of.dtype, of.shape) for of in program.inputs] == [("float32", (3, 4))]
    assert [(of.dtype, of.shape) for of in program.outputs] == [("float32", (3, 4)), ("int32", (4,))]
    assert (program.num_replicas, program.num_partitions, program.device_ids) == (1, 1, [[0]])
    assert program.cost()["flops"] >= 12
    assert program.memory()["argument"] == 48 and program.memory()["output"] == 48 + 16
    assert "stablehlo.add" in program.text()


def test_serialised_programs_run_again():
    program = compiled(lambda x: jnp.tanh(x) * 3, _X)
    again = deserialize_program(program.serialize(), options())
    assert again.fingerprint == program.fingerprint and again.inputs == program.inputs
    np.testing.assert_array_equal(run(again, [_X])[0], run(program, [_X])[0])
    for damaged in (b"", b"LAMINAJX", program.serialize()[:-4], b"something else"):
        with pytest.raises(PluginError) as raised:
            deserialize_program(damaged, options())
        assert raised.value.code == "INVALID_ARGUMENT"


def test_donated_arguments_take_results():
    program = compiled(lambda x, y: x + y, _X, _X, donate_argnums=0)
    assert program.memory()["alias"] in (0, 48)  # JAX marks donations where the platform has them
    np.testing.assert_array_equal(run(program, [_X, _X])[0], _X + _X)


def test_older_artifacts_are_read():
    code = bytes_of(lowered(lambda x: jnp.sin(x) + 1, _X), "1.0.0")
    np.testing.assert_allclose(run(compile_program(code, "mlir", options()), [_X])[0], np.sin(_X) + 1, rtol=1e-6)


def test_text_is_read():
    text = lowered(lambda x: jnp.sin(x) + 1, _X).as_text()
    program = compile_program(text.encode(), "mlir", options())
    np.testing.assert_allclose(run(program, [_X])[0], np.sin(_X) + 1, rtol=1e-6)


def test_artifacts_are_of_the_older_version_of_two():
    code = bytes_of(lowered(jnp.sin, _X))
    of_jax = stablehlo.get_current_version()
    assert f"StableHLO_v{of_jax}".encode() in shardings.without_shardings(code, "99.0.0")
    oldest = shardings.without_shardings(code, "1.9.0")
    assert b"StableHLO_v1.9.0" in oldest
    assert compile_program(oldest, "mlir", options()).name == "jit_sin"


def test_shardings_over_one_device_mean_nothing():
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((1,), ("x",), axis_types=auto, devices=jax.devices()[:1])
    spec = jax.sharding.PartitionSpec("x")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    def f(v):
        return jax.shard_map(lambda a: a * 2 + jax.lax.psum(a, "x"), mesh=mesh, in_specs=spec, out_specs=spec)(v)

    program = compiled(f, _X, in_shardings=sharding, out_shardings=sharding)
    np.testing.assert_array_equal(run(program, [_X])[0], _X * 3)


def test_settings_are_options_of_one_compilation():
    code = bytes_of(lowered(lambda x: x @ x.T, _X))
    program = compile_program(code, "mlir", options(matrix_products="kernel", xla_cpu_enable_fast_math=True))
    np.testing.assert_allclose(run(program, [_X])[0], _X @ _X.T, rtol=1e-6)
    with pytest.raises(PluginError, match="No such compile option: 'no_such_thing'") as raised:
        compile_program(code, "mlir", options(no_such_thing=True))
    assert raised.value.code == "INVALID_ARGUMENT"


def test_what_is_not_compiled_is_named_with_its_line():
    def calls_a_stranger(x):
        return jax.ffi.ffi_call("a_stranger", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # here

    with pytest.raises(PluginError) as raised:
        compiled(calls_a_stranger, _X)
    assert raised.value.code == "UNIMPLEMENTED"
    assert "a_stranger" in raised.value.message and "# here" in raised.value.message


@pytest.mark.parametrize("code", [b"", b"no program", b"ML\xefR\x00\x00", b"ML\xefRStableHLO_v1.0.0\x00junk"])
def test_what_is_no_program(code):
    with pytest.raises(PluginError) as raised:
        compile_program(code, "mlir", options())
    assert raised.value.code in ("INVALID_ARGUMENT", "UNIMPLEMENTED")


def test_other_formats_are_refused():
    with pytest.raises(PluginError, match="'hlo'") as raised:
        compile_program(b"", "hlo", options())
    assert raised.value.code == "UNIMPLEMENTED"


def test_a_program_is_found_by_its_bytes_without_mlir(monkeypatch):
    from lamina.jax_plugin import compiler

    code = bytes_of(lowered(lambda x: jnp.cos(x) * 7, _X))
    first = compile_program(code, "mlir", options())
    monkeypatch.setattr(compiler, "_compiled_module", None)
    again = compile_program(code, "mlir", options())
    assert again.fingerprint == first.fingerprint


def test_the_optimised_program_is_text_that_jax_reads(on_lamina):
    """Simplified, in one function, without operations that HLO does not have; with the user's names."""
    f = jax.jit(lambda x: (jax.jit(lambda y: y * 2 + 0 * y.shape[0])(x) + 1, jax.lax.erf(x), jax.lax.top_k(x, 2)))
    text = f.lower(_X).compile().as_text()
    assert text.startswith("HloModule") and "call(" not in text and "op_name=" in text
    assert len(text.split("ENTRY")) == 2


_DONORS = """module @donors {
  func.func public @main(%x: tensor<8x2xf32> {jax.buffer_donor = true}, %y: tensor<4xf32> {jax.buffer_donor = true},
                         %z: tensor<2x2xf32> {jax.buffer_donor = true},
                         %w: tensor<2xf32> {tf.aliasing_output = 1 : i32})
      -> (tensor<2x8xf32>, tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %1 = stablehlo.add %w, %w : tensor<2xf32>
    %2 = stablehlo.add %y, %y : tensor<4xf32>
    return %0, %1, %2 : tensor<2x8xf32>, tensor<2xf32>, tensor<4xf32>
  }
}"""


def test_donors_are_gone_where_a_result_has_as_many_bytes():
    program = compile_program(_DONORS.encode(), "mlir", options())
    assert [one.donated for one in program.inputs] == [True, True, False, True]
    again = deserialize_program(program.serialize(), options())
    assert [one.donated for one in again.inputs] == [True, True, False, True]
