"""JAX's profiler on lamina: its traces name our programs and kernels, with their times."""

import gzip
import itertools
import json
import os
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("on_lamina")

_PLANE = "/device:CUSTOM:lamina"


def _program():
    return jax.jit(lambda x: jnp.sort(jnp.tanh(x @ x), axis=0))


def _traced(folder, work):
    """Our events in the trace of some work: each a name, when it began and ended (us), what else is said."""
    with jax.profiler.trace(folder):
        work()
    (file,) = folder.rglob("*.trace.json.gz")
    return _ours(file)


def _ours(file, thread=None):
    """Our events in a file, or those of one thread."""
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    return [
        (e["name"], e["ts"], e["ts"] + e["dur"], e.get("args", {}))
        for e in events
        if e.get("ph") == "X" and names[e["pid"]] == _PLANE and thread in (None, e["tid"])
    ]


def _check_kernels(events, calls):
    programs = [event for event in events if event[0] == "jit__lambda"]
    kernels = [event for event in events if "dot_general" in event[3].get("ops", "")]
    assert len(programs) == len(kernels) == calls, events
    for (_, began, ended, _), (name, begin, end, said) in zip(programs, kernels, strict=True):
        assert began <= begin < end <= ended
        assert name.startswith("fused_dot_general") and said["program"] == "jit__lambda"


def test_kernels_of_a_program_that_was_compiled_before(tmp_path):
    f, x = _program(), np.ones((200, 200), np.float32)
    wanted = f(x).block_until_ready()

    def work():
        for _ in range(3):
            np.testing.assert_array_equal(f(x), wanted)

    _check_kernels(_traced(tmp_path, work), 3)
    np.testing.assert_array_equal(f(x), wanted)


def test_each_trace_has_what_happened_in_it(tmp_path):
    f, x = _program(), np.ones((200, 200), np.float32)
    _check_kernels(_traced(tmp_path / "first", lambda: f(x).block_until_ready()), 1)
    f(x).block_until_ready()
    _check_kernels(_traced(tmp_path / "second", lambda: (f(x), f(x).block_until_ready())), 2)
    assert not _traced(tmp_path / "third", lambda: None)


def test_the_file_for_browsers_names_kernels(tmp_path):
    f, x = _program(), np.ones((200, 200), np.float32)
    with jax.profiler.trace(tmp_path, create_perfetto_trace=True):
        f(x).block_until_ready()
    (file,) = tmp_path.rglob("perfetto_trace.json.gz")
    _check_kernels(_ours(file), 1)


def test_kernels_of_one_argument(tmp_path):
    f, x = jax.jit(lambda x: x[0]), np.arange(2 * 128 * 256.0, dtype=np.float32).reshape(2, 128, 256)
    events = _traced(tmp_path, lambda: np.testing.assert_array_equal(f(x), x[0]))
    assert [said["ops"] for _, _, _, said in events if said] == ["slice"]


def test_kernels_with_many_buffers_and_calls_of_python(tmp_path):
    many = [np.full((64, 64), i, np.float32) for i in range(20)]

    @jax.jit
    def f(xs):
        total = jnp.tanh(sum(xs)) @ xs[0]
        host = jax.pure_callback(np.negative, jax.ShapeDtypeStruct((64, 64), jnp.float32), total)
        return jnp.sort(host, axis=0), [x + 1 for x in xs]

    wanted = f(many)
    events = _traced(tmp_path, lambda: jax.tree.map(np.testing.assert_array_equal, f(many), wanted))
    assert any("sort" in said.get("ops", "") for _, _, _, said in events)


def test_who_waits_for_a_short_call_does_it(tmp_path):
    f = jax.jit(lambda x: jnp.arctan2(x, x + 1) * jnp.tan(x))
    x = jnp.ones(1 << 15)  # about 100 us, so that calls are queued

    def work():
        for _ in range(100):
            f(x).block_until_ready()

    work()  # it is known how long they take
    caller = threading.current_thread().native_id
    until = time.monotonic() + 250  # where others are at work, the queue's own thread may be faster for a while
    for attempt in itertools.count():
        with jax.profiler.trace(tmp_path / str(attempt)):
            work()
        (file,) = (tmp_path / str(attempt)).rglob("*.trace.json.gz")
        if any(event[0] == "jit__lambda" for event in _ours(file, thread=caller)):
            return
        if time.monotonic() > until:
            pytest.fail("another thread did all calls")


_FORKING = """
import os, sys
import jax, numpy as np
f, x = jax.jit(lambda x: x @ x), np.ones((200, 200), np.float32)
wanted = np.asarray(f(x))
jax.profiler.start_trace(sys.argv[1] + "/parent")
f(x).block_until_ready()
child = os.fork()
if child == 0:
    jax.profiler.stop_trace()
    jax.profiler.start_trace(sys.argv[1] + "/child")
    np.testing.assert_array_equal(f(x), wanted)
    jax.profiler.stop_trace()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
f(x).block_until_ready()
jax.profiler.stop_trace()
"""


def test_a_forked_child_records_its_own_calls(tmp_path):
    environment = {**os.environ, "JAX_PLATFORMS": "lamina"}
    command = [sys.executable, "-c", _FORKING, str(tmp_path)]
    subprocess.run(command, env=environment, check=True, timeout=600)
    *of_child, of_parent = sorted((tmp_path / "parent").rglob("*.trace.json.gz"))  # by their seconds
    assert not any(map(_ours, of_child))
    _check_kernels(_ours(of_parent), 2)
    (file,) = (tmp_path / "child").rglob("*.trace.json.gz")
    _check_kernels(_ours(file), 1)
