"""Programs of JAX on lamina: the queue, errors, callbacks, several devices, compiled programs."""

import os
import re
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("on_lamina")


def _run(code: str, **environment: str) -> subprocess.CompletedProcess:
    given = {**os.environ, "JAX_PLATFORMS": "lamina", **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=600
    )


def test_installing_is_enough():
    done = _run("import jax; print(jax.devices(), jax.default_backend(), jax.jit(lambda x: x + 1)(1))")
    assert done.stdout.split() == ["[LaminaDevice(id=0)]", "cpu", "2"], done.stderr


def test_handlers_registered_for_the_platform():
    """Before JAX has made its backends, and after: what is none is said, and by its name."""
    code = """
import ctypes, jax, numpy as np
def register(name, what):
    try:
        jax.ffi.register_ffi_target(name, what, platform="lamina")
    except TypeError as error:
        return error
handler = jax.ffi.pycapsule(ctypes.CDLL(None).abs)
print(register("early", 5), register("good", handler))
print(jax.jit(lambda x: x + 1)(1))
print(register("late", 6), register("good", handler))
from lamina.jax_plugin import ffi_targets
print(ffi_targets.address_of("good") == ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value)
x = np.ones(3, np.float32)
try:
    jax.jit(lambda x: jax.ffi.ffi_call("early", jax.ShapeDtypeStruct((3,), np.float32))(x))(x)
except jax.errors.JaxRuntimeError as error:
    print(error)
"""
    lines = _run(code).stdout.splitlines()
    assert lines[:2] == ["None None", "2"]
    assert lines[2].startswith("register_ffi_target('late') takes a PyCapsule") and lines[2].endswith("got 6 None")
    assert lines[3] == "True"
    assert lines[4].startswith("UNIMPLEMENTED: ") and "register_ffi_target('early') takes a PyCapsule" in lines[4]


def test_programs_in_the_store_need_no_mlir(tmp_path):
    code = """
import sys, jax
print(jax.jit(lambda x: x + 1)(1), "lamina.dialects.vendors" in sys.modules)
"""
    environment = {"LAMINA_CACHE": "1", "LAMINA_CACHE_DIR": str(tmp_path)}
    assert [_run(code, **environment).stdout.split() for _ in range(2)] == [["2", "True"], ["2", "False"]]


def test_register_by_hand():
    code = """
import lamina.jax_plugin
lamina.jax_plugin.register()
lamina.jax_plugin.register()
import jax
print(jax.devices()[0], jax.devices("cpu")[0].device_kind)
import lamina
print(float(lamina.jit(lamina.numpy.sin)(0.0)))
"""
    environment = {"JAX_PLATFORMS": ""}
    done = _run(code, **environment)
    assert done.stdout.split() == ["LaminaDevice(id=0)", "cpu", "0.0"], done.stderr


def test_register_after_the_first_array():
    code = "import jax; jax.devices(); import lamina.jax_plugin as p; p.register()"
    done = _run(code, JAX_PLATFORMS="cpu")
    assert "before the first array is made" in done.stderr


def test_devices_of_the_platform_cpu():
    done = _run("import jax; print(jax.devices('cpu'), jax.local_devices(backend='cpu'))")
    assert done.stdout.strip() == "[LaminaDevice(id=0)] [LaminaDevice(id=0)]", done.stderr


def test_versions(lamina_device):
    assert lamina_device.platform == "cpu" and lamina_device.device_kind == "lamina cpu"
    assert lamina_device.client.platform_version.startswith("lamina ")


def test_many_calls_in_flight():
    @jax.jit
    def long(x):
        return jax.lax.fori_loop(0, 200, lambda i, y: jnp.sin(y) + 1, x)

    x = jnp.ones(20_000)
    results = [long(x + i) for i in range(100)]
    total = sum(r.sum() for r in results)
    assert np.isfinite(float(total))
    assert results[0].is_ready()


def test_threads():
    step = jax.jit(lambda x, n: x * n + 1)
    failed = []

    def work(n):
        with jax.default_device(jax.devices("lamina")[0]):
            for i in range(50):
                got = np.asarray(step(jnp.full(1000, float(i)), float(n)))
                if not (got == i * n + 1).all():
                    failed.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_pure_callbacks():
    @jax.jit
    def f(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda a: np.asarray(a) * 2, shape, x) + 1

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(f(x)), 2 * np.asarray(x) + 1)
    np.testing.assert_array_equal(np.asarray(f(x)), 2 * np.asarray(x) + 1)


def test_callbacks_that_use_jax():
    @jax.jit
    def f(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(lambda a: np.asarray(jnp.sum(a) * 2), shape, x)

    assert float(f(jnp.arange(4.0))) == 12


def test_ordered_effects():
    seen = []

    @jax.jit
    def f(x):
        for i in range(4):
            jax.experimental.io_callback(lambda a, i=i: seen.append((i, float(a))), None, x, ordered=True)
        return x + 1

    f(f(jnp.float32(1)))
    jax.effects_barrier()
    assert seen == [(i, v) for v in (1.0, 2.0) for i in range(4)]


def test_debug_print(capsys):
    jax.jit(lambda x: jax.debug.print("x is {}", x, ordered=True))(jnp.arange(3))
    jax.effects_barrier()
    assert capsys.readouterr().out == "x is [0 1 2]\n"


def test_an_exception_in_a_callback():
    def fail(a):
        raise ValueError("no luck today")

    @jax.jit
    def f(x):
        return jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck today"):
        np.asarray(f(jnp.arange(3.0)))
    assert float(jnp.sum(jnp.arange(3.0))) == 3  # the next program runs


def test_a_program_that_cannot_be_compiled_names_the_operation():
    def strange(x):
        return jax.ffi.ffi_call("nobody_knows_this", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*nobody_knows_this"):
        jax.jit(strange)(jnp.arange(3.0))


def test_programs_of_single_devices():
    code = """
import jax
there = jax.device_put(3.0, jax.devices()[2])
print((there + 1).devices(), jax.device_put(there, jax.devices()[1]) + 1)
"""
    done = _run(code, LAMINA_NUM_CPU_DEVICES="4")
    assert done.stdout.strip() == "{LaminaDevice(id=2)} 4.0", done.stderr


def test_out_of_memory_is_an_error():
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED.*out of memory"):
        jnp.zeros((1 << 42,), jnp.int8).block_until_ready()


def test_compiled_programs_tell_of_themselves():
    compiled = jax.jit(lambda a: jnp.tanh(a @ a)).lower(jnp.eye(64)).compile()
    assert compiled.cost_analysis()["flops"] >= 2 * 64**3
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == memory.output_size_in_bytes == 4 * 64**2
    assert memory.generated_code_size_in_bytes > 0
    assert "dot" in compiled.as_text()


def test_serialized_executables():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda a: a * 2 + 1).lower(jnp.arange(8.0)).compile()
    loaded = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), backend="lamina"
    )
    np.testing.assert_array_equal(np.asarray(loaded(jnp.arange(8.0))), 2 * np.arange(8.0) + 1)


def test_the_persistent_cache(tmp_path):
    code = """
import jax, jax.numpy as jnp
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
print(float(jax.jit(lambda a: jnp.sum(a * 3))(jnp.arange(5.0))), sum("cache_hits" in h for h in hits) > 0)
"""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    first, second = _run(code, **settings), _run(code, **settings)
    assert first.stdout.split() == ["30.0", "False"], first.stderr
    assert second.stdout.split() == ["30.0", "True"], second.stderr


def test_export():
    exported = jax.export.export(jax.jit(lambda a: jnp.cumsum(a)))(jnp.arange(5.0))
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(np.asarray(again.call(jnp.arange(5.0))), np.arange(5.0).cumsum())


def test_calls_leave_memory_as_it_was(lamina_device):
    step = jax.jit(lambda x: (x + 1, x.sum()))
    x = jnp.zeros(1000)
    step(x)[1].block_until_ready()
    before = lamina_device.memory_stats()["bytes_in_use"]
    for _ in range(2000):
        x, total = step(x)
    total.block_until_ready()
    del total
    assert lamina_device.memory_stats()["bytes_in_use"] <= before + 20_000


def test_a_process_ends_under_its_work():
    code = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.lax.fori_loop(0, 10**5, lambda i, y: jnp.sin(y) + 1, x))
f(jnp.ones(1000))
print("under way")
"""
    done = _run(code)
    assert done.returncode == 0 and done.stdout == "under way\n", done.stderr


def test_logged_topics(tmp_path):
    code = "import jax\n@jax.jit\ndef seven(x): return x * 7\nprint(seven(3.0))"
    environment = {"LAMINA_CACHE": "1", "LAMINA_CACHE_DIR": str(tmp_path), "LAMINA_LOG": "compile,cache"}
    first, second = (_run(code, **environment) for _ in range(2))
    assert first.stdout == second.stdout == "21.0\n"
    assert re.search(r"^lamina: compile \d+\.\d ms: jit_seven$", first.stderr, re.MULTILINE)
    assert re.search(r"^lamina: cache \d+\.\d ms: jit_seven: found in ", second.stderr, re.MULTILINE)
    assert "compile" not in second.stderr


@pytest.mark.parametrize("shape", [(), (7,), (5000,), (40, 50), (3, 4, 200)])
def test_random_bits_are_those_of_jax(lamina_device, shape):
    def draws(key):
        bits = [jax.random.bits(key, shape, dtype) for dtype in ("uint8", "uint16", "uint32")]
        return *bits, jax.random.uniform(key, shape), jax.random.permutation(key, 2000)

    key = jax.random.key(3)
    on_cpu = jax.jit(draws)(jax.device_put(key, jax.devices("cpu")[0]))
    on_lamina = jax.jit(draws)(jax.device_put(key, lamina_device))
    for found, wanted in zip(on_lamina, on_cpu, strict=True):
        np.testing.assert_array_equal(found, wanted)
