"""Programs over several devices through the plugin, beside JAX's own CPU backend with as many devices."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.oracle.device_programs import PROGRAMS

_SCRIPT = Path(__file__).parents[2] / "support/oracle/device_programs.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{platform: what the script writes there}."""
    found = {}
    for platform in ("cpu", "lamina"):
        path = tmp_path_factory.mktemp("devices") / platform
        environment = {**os.environ, "JAX_PLATFORMS": platform}
        subprocess.run([sys.executable, _SCRIPT, path], env=environment, check=True, timeout=500)
        found[platform] = pickle.loads(path.read_bytes())
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_on_the_cpu_backend(results, name):
    expected, got = (results[platform][name] for platform in ("cpu", "lamina"))
    assert not isinstance(expected, str), expected
    assert not isinstance(got, str), got
    assert len(got) == len(expected)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if "half" in name else {"rtol": 1e-4, "atol": 1e-4}
    for (x, _, parts), (y, *_) in zip(got, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(_wide(x), _wide(y), **tolerance)
        # The parts are the array's, wherever they lie.
        for index, part in parts:
            where = eval(index)
            np.testing.assert_array_equal(_wide(part), _wide(x[where]))
    if name.startswith("manual"):
        assert [(spec, [index for index, _ in parts]) for _, spec, parts in got] == [
            (spec, [index for index, _ in parts]) for _, spec, parts in expected
        ]


def _run(code: str, **environment: str) -> subprocess.CompletedProcess:
    given = {**os.environ, "JAX_PLATFORMS": "lamina", "LAMINA_NUM_CPU_DEVICES": "4", **environment}
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + code], env=given, capture_output=True, text=True, timeout=600
    )


_BEGIN = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((jax.device_count(),), "x", axis_types=(jax.sharding.AxisType.Auto,))
x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))
"""


def test_a_call_with_effects_is_one_call():
    done = _run("""
jax.jit(lambda x: jax.debug.print("all {}", x))(x)
jax.effects_barrier()
each = jax.shard_map(lambda x: jax.debug.print("part {}", x), mesh=mesh, in_specs=P("x"), out_specs=None)
jax.jit(each)(x)
jax.effects_barrier()
""")
    lines = sorted(done.stdout.splitlines())
    parts = [f"part [{i}. {i + 1}.]" for i in (0, 2, 4, 6)]
    assert lines == ["all [0. 1. 2. 3. 4. 5. 6. 7.]", *parts], done.stderr


def test_a_call_that_each_device_makes_with_its_part():
    done = _run("""
def f(x):
    jax.debug.print("part {}", x, partitioned=True)
    return x + 1
with jax.set_mesh(mesh):
    jax.jit(f)(x)
    jax.effects_barrier()
    jax.jit(jax.vmap(f))(jax.device_put(np.arange(8.0).reshape(1, 8), NamedSharding(mesh, P(None, "x"))))
    jax.effects_barrier()
""")
    parts = [f"part [{i}. {i + 1}.]" for i in (0, 2, 4, 6)]
    assert sorted(done.stdout.splitlines()) == sorted(2 * parts), done.stderr


def test_how_an_array_lies_is_told_each_time_a_program_is_compiled():
    done = _run("""
from jax.debug import inspect_array_sharding
def inspect(x):
    inspect_array_sharding(x, callback=lambda sharding: print(sharding.spec))
def f(x):
    inspect(x * 2)                                                     # what an op gives
    jax.jit(inspect)(x.sum())                                          # an argument of a function
    jax.lax.fori_loop(0, 3, lambda i, y: (inspect(y), y + 1)[1], x)    # what a loop carries
    jax.shard_map(lambda y: (inspect(y), y)[1], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
    return x
for _ in range(2):
    print("compiled")
    jax.jit(f)(x)
    jax.clear_caches()
def fails(sharding):
    raise ValueError("not liked")
try:
    jax.jit(lambda x: inspect_array_sharding(x + 1, callback=fails))(x)
except Exception as error:
    print("not liked" in str(error))
""")
    told = sorted(["P('x',)", "P()", "P('x',)", "P()"])
    first, second = done.stdout.split("compiled\n")[1:]
    *second, error = second.splitlines()
    assert (sorted(first.splitlines()), sorted(second), error) == (told, told, "True"), done.stderr


def test_ordered_calls_with_effects_are_one_call_each():
    done = _run("""
from jax.experimental import io_callback
calls = []
def call(a):
    calls.append(int(a.sum()))
    return a * 0 + np.float32(len(calls))
def step(total, i):
    given = io_callback(call, jax.ShapeDtypeStruct(x.shape, x.dtype), x + i, ordered=True)
    io_callback(lambda n: calls.append(-int(n)), None, i, ordered=True)
    return total + given, given[0]
total, seen = jax.jit(lambda x: jax.lax.scan(step, x, jnp.arange(3)))(x)
jax.effects_barrier()
print(calls, np.asarray(total)[[0, 7]].tolist(), np.asarray(seen).tolist())
""")
    assert done.stdout.strip() == "[28, 0, 36, -1, 44, -2] [9.0, 16.0] [1.0, 3.0, 5.0]", done.stderr


def test_parts_of_iotas_are_counted_from_where_they_begin():
    done = _run("""
text = jax.jit(lambda x: x + jnp.arange(8.0)).lower(x).compile().as_text()
print("iota" in text, "[8]" in text)
""")
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_donated_parts():
    done = _run("""
f = jax.jit(lambda x: x * 2, donate_argnums=0)
z = x + 0
y = f(z)
print(z.is_deleted(), x.is_deleted())
print(np.asarray(y).tolist())
""")
    assert done.stdout.splitlines() == [
        "True False",
        "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]",
    ], done.stderr


def test_an_error_on_one_device_is_everybodys():
    done = _run("""
def fail(a):
    if a[0] > 3:
        raise ValueError("not this part")
    return a
f = jax.shard_map(
    lambda x: jax.lax.psum(jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x), "x"),
    mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False,
)
try:
    print(jax.jit(f)(x))
except jax.errors.JaxRuntimeError as error:
    print("not this part" in str(error))
print(float(jnp.sum(x)))
""")
    assert done.stdout.splitlines() == ["True", "28.0"], done.stderr


def test_a_callback_that_uses_all_devices_is_an_error():
    done = _run("""
def add(a):
    return np.asarray(jnp.sum(x)) + a
f = jax.jit(lambda x: jax.pure_callback(add, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
try:
    print(f(x))
except jax.errors.JaxRuntimeError as error:
    print("give the callback's part to one device" in str(error))
""")
    assert done.stdout.splitlines() == ["True"], done.stderr


def test_what_cannot_be_compiled_names_operation_and_line():
    done = _run("""
try:
    jax.jit(lambda x: jax.ffi.ffi_call("nobody_knows_this", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))(x)
except jax.errors.JaxRuntimeError as error:
    print(error)
""")
    assert "UNIMPLEMENTED" in done.stdout and "nobody_knows_this" in done.stdout, done.stderr
    assert "<string>:8" in done.stdout


def test_compiled_programs_of_several_devices():
    done = _run("""
from jax.experimental import serialize_executable
compiled = jax.jit(lambda x: (x * 2, x.sum())).lower(x).compile()
print(compiled.input_shardings[0][0].spec, [s.spec for s in compiled.output_shardings])
again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
y, total = again(x)
print(y.sharding.spec, float(total))
""")
    assert done.stdout.splitlines() == [
        "P('x',) [P('x',), P()]",
        "P('x',) 28.0",
    ], done.stderr


def test_the_text_is_one_devices_program():
    """JAX reads no Shardy ops in it: constraints and shard_map have become collectives."""
    done = _run("""
everywhere = NamedSharding(mesh, P())
summed = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
for f in (lambda x: jax.lax.with_sharding_constraint(x * 2, everywhere) + 1, summed):
    text = jax.jit(f).lower(x).compile().as_text()
    print("f32[2]" in text, "all-reduce" in text or "all-gather" in text or "dynamic-update-slice" in text)
""")
    assert done.stdout.splitlines() == ["True True", "True True"], done.stderr
    one = _run(
        """
summed = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
print("f32[8]" in jax.jit(summed).lower(x).compile().as_text())
""",
        LAMINA_NUM_CPU_DEVICES="1",
    )
    assert one.stdout.splitlines() == ["True"], one.stderr


def test_kept_programs_need_no_partitioner(tmp_path):
    code = """
import lamina.partitioning.helper as helper
print(float((x @ x) + x.sum()), helper._running is None)
"""
    first, second = (_run(code, LAMINA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == "168.0 False\n", first.stderr
    assert second.stdout == "168.0 True\n", second.stderr


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def test_whole_arrays_become_terms_once():
    """What they are summed up to is the array itself, and not as many times that as there are devices."""
    done = _run("""
mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
v = np.arange(8.0, dtype=np.float32).reshape(4, 2)
at, back = P("b", unreduced={"a"}), P("b")
reshard = jax.sharding.reshard
def check(name, got, expected):
    if not np.allclose(np.asarray(got), expected):
        print(name, np.asarray(got).tolist())
check("from NumPy", reshard(jnp.array(v, out_sharding=P(None, None, unreduced={"a"})), P()), v)
for begin in (P(), P("b"), P("a"), P(None, "b")):
    x = reshard(jnp.asarray(v), begin)
    check(begin, jax.jit(lambda x: reshard(reshard(jnp.sin(x), at), back))(x), np.sin(v))
    check(begin, jax.jit(lambda x: reshard(reshard(x, at), back))(x), v)
    check(begin, jax.jit(lambda x: (lambda y: reshard(y + y, back))(reshard(jnp.exp(x), at)))(x), 2 * np.exp(v))
    check(begin, jax.jit(lambda x: (lambda y: y.sum() + reshard(reshard(y, at), back).sum())(jnp.exp(x)))(x),
          2 * np.exp(v).sum())
    check(begin, jax.jit(lambda x: reshard(reshard(jax.lax.sort((x, -x), num_keys=1)[1], at), back))(
        reshard(x, P())), -np.sort(v))
terms = jax.jit(lambda x: reshard(jnp.sin(x), at))(v)
check("out and in", jax.jit(lambda y: reshard(y, back))(terms), np.sin(v))
half = jax.jit(lambda y: reshard(reshard(y.astype(jnp.float16), at), back))
check("twice", half(terms), np.sin(v).astype(np.float16))
print("done")
""")
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_collectives_that_are_started_and_ended():
    """What they give is what those give that JAX writes as one operation."""
    done = _run("""
from jax._src.lax import parallel
lax, y = jax.lax, jnp.arange(64.0).reshape(16, 4)
programs = {
    "gather": (lambda x: lax.all_gather(x, "x", tiled=True), lambda x: parallel.all_gather_start(x, "x", tiled=True)),
    "gather apart": (lambda x: lax.all_gather(x, "x"), lambda x: parallel.all_gather_start(x, "x")),
    "scatter": (lambda x: lax.psum_scatter(x, "x", tiled=True),
                lambda x: parallel.psum_scatter_start(x, "x", tiled=True)),
    "exchange": (lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True),
                 lambda x: parallel.all_to_all_start(x, "x", 1, 0, tiled=True)),
    "permute": (lambda x: lax.ppermute(x, "x", [(0, 1), (1, 3)]),
                lambda x: parallel.ppermute_start(x, "x", [(0, 1), (1, 3)])),
}
def mapped(f, out=P("x"), check=False):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=check))
for name, (at_once, started) in programs.items():
    np.testing.assert_array_equal(mapped(at_once)(y), mapped(lambda x: started(x).done())(y), err_msg=name)
total = mapped(lambda x: parallel.psum_start(x, "x").done(), P(), True)(y)
np.testing.assert_array_equal(total, y.reshape(4, 4, 4).sum(0))
print("done")
""")
    assert done.stdout == "done\n", done.stdout + done.stderr
