"""Loading and calling artifacts: checks, asynchrony, errors, donation, arenas, symbols."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from support.llvm_objects import ADD_ONE, Held, artifact, elementwise

from lamina import runtime
from lamina.array import from_dlpack, from_numpy
from lamina.runtime import executable as executable_module
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import LoadError, estimated_seconds, load

F4 = ("float32", ())
V4 = ("float32", (4,))
DOUBLE = "%y = fadd float %x, %x"
SLOW = "call i32 @usleep(i32 20000)\n  %y = fadd float %x, 1.0"
FAILING = "call void @lamina_fail(ptr @message)\n  %y = fadd float %x, 1.0"


def make(ir=ADD_ONE, inputs=(F4,), outputs=(F4,), **options):
    return load(artifact(ir, inputs, outputs, **options))


def vector(*values):
    return from_numpy(np.asarray(values, np.float32))


@pytest.fixture(scope="module")
def slow():
    """Adds 1 to four floats in 80 ms, queued."""
    return make(elementwise(SLOW, 4), [V4], [V4], imports=["usleep", "lamina_fail"], seconds=1)


@pytest.fixture(scope="module")
def failing():
    return make(elementwise(FAILING, 4), [V4], [V4], imports=["usleep", "lamina_fail"], seconds=1)


def test_a_call_gives_new_arrays():
    add_one = make(name="add_one")
    x = from_numpy(np.float32(1))
    (y,) = add_one([x])
    assert y.item() == 2 and x.item() == 1
    assert add_one.name == "add_one" and add_one.calls == 1 and add_one.cheap
    assert add_one.inputs == add_one.outputs == [(np.dtype("float32"), ())]
    assert add_one.manifest["entry"] == "lamina_entry" and add_one.aliases == {}


def test_ndarrays_and_scalars_are_arguments_too():
    add_one = make()
    assert add_one([np.float32(2)])[0].item() == 3
    assert add_one([np.array(3, np.float32)])[0].item() == 4


def test_wrong_arguments_are_named():
    double = make(elementwise(DOUBLE, 4), [V4], [V4], name="double",
                  imports=["usleep", "lamina_fail"])  # fmt: skip
    with pytest.raises(TypeError, match=r"\[double\] takes 1 arrays, got 2"):
        double([vector(1, 2, 3, 4)] * 2)
    with pytest.raises(TypeError, match=r"argument 0: got float32\[3\], expected float32\[4\]"):
        double([vector(1, 2, 3)])
    with pytest.raises(TypeError, match=r"argument 0: got int32\[4\], expected float32\[4\]"):
        double([from_numpy(np.zeros(4, np.int32))])
    with pytest.raises(TypeError, match="argument 0 is a str, not an array"):
        double(["four"])
    with pytest.raises(TypeError, match="expected 1 argument, got 2"):
        double(1, 2)
    with pytest.raises(TypeError, match="one sequence of arrays"):
        double(3)


def test_costly_calls_are_queued_and_in_order():
    held = Held()
    x = vector(0, 0, 0, 0)
    for _ in range(3):
        (x,) = held([x])
    assert not x.is_ready()
    held.let_go(3)
    assert np.asarray(x).tolist() == [3.0] * 4
    assert x.is_ready() and x.block_until_ready() is x


def test_cheap_calls_wait_for_queued_arguments():
    held = Held()
    add_one = make()
    wait = make(elementwise(DOUBLE, 4), [V4], [V4], imports=["usleep", "lamina_fail"])
    (pending,) = held([vector(1, 1, 1, 1)])
    (result,) = wait([pending])
    assert not result.is_ready()
    assert add_one([np.float32(1)])[0].is_ready()  # not behind the queue
    held.let_go()
    assert result.tolist() == [4.0] * 4


def test_dropped_results_and_arguments_do_no_harm(slow):
    x = vector(5, 5, 5, 5)
    (y,) = slow([x])
    del x
    slow([y])
    gc.collect()
    assert y.tolist() == [6.0] * 4
    runtime.wait_all()


def test_ndarrays_may_change_after_a_queued_call(slow):
    values = np.zeros(4, np.float32)
    (y,) = slow([values])
    values[:] = 100
    assert y.tolist() == [1.0] * 4


def test_many_calls_in_flight():
    add_one = make(seconds=1)
    x = from_numpy(np.float32(0))
    for _ in range(1000):
        (x,) = add_one([x])
    assert x.item() == 1000


def test_async_can_be_switched_off(slow):
    assert runtime.set_async(False) is True
    try:
        (y,) = slow([vector(1, 2, 3, 4)])
        assert y.is_ready()
    finally:
        assert runtime.set_async(True) is False


def test_errors_surface_where_the_result_is_waited_for(failing, slow):
    (bad,) = failing([vector(1, 2, 3, 4)])
    (worse,) = slow([bad])
    for array in (bad, worse):
        with pytest.raises(RuntimeError, match="kernel says"):
            array.block_until_ready()
        with pytest.raises(RuntimeError, match="kernel says"):
            np.asarray(array)
    with pytest.raises(RuntimeError, match="kernel says"):
        slow([worse])[0].tolist()
    assert slow([vector(1, 2, 3, 4)])[0].tolist() == [2, 3, 4, 5]


def test_errors_of_cheap_calls_surface_at_once():
    failing = make(elementwise(FAILING, 4), [V4], [V4], imports=["usleep", "lamina_fail"])
    with pytest.raises(RuntimeError, match="kernel says"):
        failing([vector(1, 2, 3, 4)])


def test_a_donated_array_gives_its_memory_up():
    double = make(elementwise(DOUBLE, 4), [V4], [V4], aliases=[0],
                  imports=["usleep", "lamina_fail"])  # fmt: skip
    assert double.aliases == {0: 0}
    x = vector(1, 2, 3, 4)
    pointer = x.unsafe_buffer_pointer()
    (y,) = double([x])
    assert y.unsafe_buffer_pointer() == pointer and y.tolist() == [2, 4, 6, 8]
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]\."):
        double([x])


@pytest.mark.parametrize("seconds", [0, 1])
def test_donated_memory_that_others_see_is_copied(seconds):
    double = make(elementwise(DOUBLE, 4), [V4], [V4], aliases=[0], seconds=seconds,
                  imports=["usleep", "lamina_fail"])  # fmt: skip
    x = vector(1, 2, 3, 4)
    view = np.asarray(x)
    (y,) = double([x])
    assert y.tolist() == [2, 4, 6, 8] and view.tolist() == [1, 2, 3, 4] and x.is_deleted()
    values = np.float32([1, 2, 3, 4])
    assert double([from_dlpack(values)])[0].tolist() == [2, 4, 6, 8]
    assert double([values])[0].tolist() == [2, 4, 6, 8] and values.tolist() == [1, 2, 3, 4]


def test_an_array_donated_and_read_in_one_call():
    add = """
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %a = load ptr, ptr %args
  %slot = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %slot
  %out = load ptr, ptr %results
  store float 7.0, ptr %out
  %x = load float, ptr %b
  %y = fadd float %x, 1.0
  store float %y, ptr %out
  ret void
}
"""
    both = make(add, [F4, F4], [F4], aliases=[0])
    x = from_numpy(np.float32(1))
    (y,) = both([x, x])
    assert y.item() == 2 and x.is_deleted()


def test_donation_of_a_pending_array(slow):
    double = make(elementwise(DOUBLE, 4), [V4], [V4], aliases=[0], seconds=1,
                  imports=["usleep", "lamina_fail"])  # fmt: skip
    (x,) = slow([vector(1, 1, 1, 1)])
    (y,) = double([x])
    assert x.is_deleted() and y.tolist() == [4.0] * 4


def test_an_error_reaches_through_donation(failing):
    double = make(elementwise(DOUBLE, 4), [V4], [V4], aliases=[0], seconds=1,
                  imports=["usleep", "lamina_fail"])  # fmt: skip
    (bad,) = failing([vector(1, 2, 3, 4)])
    with pytest.raises(RuntimeError, match="kernel says"):
        double([bad])[0].block_until_ready()


def test_donation_needs_equal_sizes():
    with pytest.raises(LoadError, match="contradicts itself: output 0 cannot be input 0 in place"):
        make(inputs=[V4], aliases=[0])


def test_a_loop_of_calls_takes_no_new_memory():
    step = make(elementwise(DOUBLE, 4), [V4], [V4], aliases=[0], arena_bytes=1 << 16, seconds=1,
                imports=["usleep", "lamina_fail"])  # fmt: skip
    (x,) = step([vector(0, 0, 0, 0)])
    x.block_until_ready()
    before = runtime.pool_stats()
    for _ in range(100):
        (x,) = step([x])
        x.block_until_ready()
    after = runtime.pool_stats()
    assert after["allocations"] - after["reuses"] == before["allocations"] - before["reuses"]


def test_the_arena_is_given_and_aligned():
    ir = """
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %out = load ptr, ptr %results
  %address = ptrtoint ptr %arena to i64
  store i64 %address, ptr %out
  %last = getelementptr i8, ptr %arena, i64 99999
  store i8 1, ptr %last
  ret void
}
"""
    address = make(ir, [], [("int64", ())], arena_bytes=100_000)([])[0].item()
    assert address != 0 and address % 64 == 0
    assert make(ir.replace("store i8 1, ptr %last", ""), [], [("int64", ())])([])[0].item() == 0


def test_misaligned_memory_is_copied_for_the_entry():
    ir = """
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %in = load ptr, ptr %args
  %out = load ptr, ptr %results
  %address = ptrtoint ptr %in to i64
  %rest = and i64 %address, 3
  store i64 %rest, ptr %out
  ret void
}
"""
    raw = np.zeros(17, np.int8)
    offset = 1 + (-raw.ctypes.data) % 4
    odd = raw[offset % 4 + 1 : offset % 4 + 17 - 4]
    odd = odd[(1 - odd.ctypes.data) % 4 :][:8]
    values = np.ndarray(2, np.float32, odd)
    assert values.ctypes.data % 4 == 1
    for seconds in (0, 1):
        rest = make(ir, [("float32", (2,))], [("int64", ())], seconds=seconds)
        wrapped = runtime.wrap_memory(odd, values.ctypes.data, np.float32, (2,))
        assert rest([wrapped])[0].item() == 0
        assert rest([values])[0].item() == 0


def test_denormals_are_flushed_in_compiled_code_only():
    square = make(ADD_ONE.replace("fadd float %x, 1.0", "fmul float %x, 0.5"))
    tiny = np.float32(1.2e-38)
    assert square([tiny])[0].item() == 0.0
    assert tiny * np.float32(0.5) > 0


def test_results_too_big_for_memory():
    shape = (1 << 20, 1 << 20)
    huge = make(inputs=[F4], outputs=[("float32", shape)])
    text = r"out of memory: 4398046511104 bytes for float32\[1048576,1048576\]"
    with pytest.raises(MemoryError, match=text):
        huge([np.float32(0)])
    with pytest.raises(MemoryError, match="do not fit in 64 bits"):
        make(outputs=[("float32", (1 << 40, 1 << 40))])


def test_temporaries_too_big_for_memory():
    greedy = make(arena_bytes=1 << 45, name="greedy")
    with pytest.raises(RuntimeError, match="35184372088832 bytes for the temporaries of greedy"):
        greedy([np.float32(0)])


def test_unknown_symbols_are_load_errors():
    ir = ADD_ONE.replace("ret void", "call void @nowhere()\n  ret void") + "declare void @nowhere()"
    with pytest.raises(LoadError, match="nowhere, which nothing here provides"):
        make(ir, imports=["nowhere"])
    with pytest.raises(LoadError, match=r"\[test\] does not link: .*lamina_entry"):
        make(ir)
    with pytest.raises(LoadError, match="OpenBLAS has no scipy_cblas_xgemm"):
        make(imports=["scipy_cblas_xgemm"])


def test_symbols_of_the_libraries_link():
    ir = """
declare float @expf(float)
declare void @scipy_cblas_sgemm(i32, i32, i32, i32, i32, i32, float, ptr, i32, ptr, i32, float,
                                ptr, i32)
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %a = load ptr, ptr %args
  %out = load ptr, ptr %results
  call void @scipy_cblas_sgemm(i32 101, i32 111, i32 111, i32 64, i32 64, i32 64, float 1.0,
    ptr %a, i32 64, ptr %a, i32 64, float 0.0, ptr %out, i32 64)
  %x = load float, ptr %out
  %y = call float @expf(float %x)
  store float %y, ptr %out
  ret void
}
"""
    square = ("float32", (64, 64))
    values = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32) / 8
    both = make(ir, [square], [square], imports=["expf", "scipy_cblas_sgemm"])
    expected = values @ values
    expected[0, 0] = np.exp(expected[0, 0])
    np.testing.assert_allclose(np.asarray(both([values])[0]), expected, rtol=1e-4, atol=1e-5)


def test_equal_artifacts_are_loaded_once(monkeypatch):
    data = artifact(ADD_ONE, [F4], [F4])
    assert load(data) is load(Artifact.from_bytes(data.to_bytes()))
    assert load(artifact(ADD_ONE, [F4], [F4], name="other")) is not load(data)
    with monkeypatch.context() as few:
        few.setattr(
            executable_module, "_MOST_LOADED_BYTES", 2 * executable_module._LEAST_LOADED_BYTES
        )
        assert load(artifact(ADD_ONE, [F4], [F4], name="the last")) is load(
            artifact(ADD_ONE, [F4], [F4], name="the last")
        )
        assert len(executable_module._loaded) == 1
    monkeypatch.setattr(executable_module, "_MOST_LOADED_BYTES", 0)
    assert load(artifact(ADD_ONE, [F4], [F4], name="not kept")).name == "not kept"
    assert not executable_module._loaded
    assert load(data) is not load(data)


def test_code_lives_as_long_as_its_executable(monkeypatch):
    monkeypatch.setattr(executable_module, "_MOST_LOADED_BYTES", 0)
    for i in range(3):
        add_one = make(name=f"short-lived {i}")
        (y,) = add_one([np.float32(1)])
        dropped = weakref.ref(add_one)
        del add_one
        gc.collect()
        assert dropped() is None and y.item() == 2


def test_cost_decides_what_is_queued():
    assert estimated_seconds({}) == 0
    assert estimated_seconds({"flops": 1e9, "bytes accessed": 1e9, "transcendentals": 1e9}) > 1
    assert not make(seconds=1).cheap
    assert make(seconds=0).cheap


def test_a_loop_whose_length_is_data_is_queued_when_it_takes_long():
    ir = """
declare i32 @usleep(i32)
define void @lamina_entry(ptr %args, ptr %results, ptr %arena) {
  %in = load ptr, ptr %args
  %out = load ptr, ptr %results
  %time = load i32, ptr %in
  store i32 %time, ptr %out
  %long = icmp sgt i32 %time, 0
  br i1 %long, label %wait, label %done
wait:
  call i32 @usleep(i32 %time)
  br label %done
done:
  ret void
}
"""
    sleep = make(ir, [("int32", ())], [("int32", ())], imports=["usleep"])
    for _ in range(4):  # until it is known how long they take
        sleep([np.int32(0)])
    assert sleep.cheap
    sleep([np.int32(30_000)])
    assert sleep.cheap  # once is no pattern
    sleep([np.int32(30_000)])
    assert not sleep.cheap
    held = Held()
    held([vector(0, 0, 0, 0)])
    behind = sleep([np.int32(0)])[0]
    assert not behind.is_ready()  # it is queued
    held.let_go()
    assert behind.item() == 0


def test_measured_time_corrects_the_estimate():
    quick = make(name="quick", seconds=1)
    for _ in range(4):
        assert not quick.cheap
        quick([np.float32(1)])[0].block_until_ready()
    assert quick.cheap
    slow = make(elementwise(SLOW, 4), [V4], [V4], imports=["usleep", "lamina_fail"])
    for _ in range(4):
        assert slow.cheap
        slow([vector(1, 2, 3, 4)])
    held = Held()
    held([vector(1, 2, 3, 4)])
    assert not slow.cheap and not slow([vector(1, 2, 3, 4)])[0].is_ready()
    held.let_go()


SCRIPT = """
import os, sys, numpy as np
sys.path.insert(0, {tests!r})
from support.llvm_objects import artifact, elementwise
from lamina.runtime.executable import load
slow = load(artifact(elementwise("call i32 @usleep(i32 20000)\\n  %y = fadd float %x, 1.0", 4),
                     [("float32", (4,))], [("float32", (4,))],
                     imports=["usleep", "lamina_fail"], seconds=1))
(x,) = slow([np.zeros(4, np.float32)])
(x,) = slow([x])
"""


@pytest.mark.parametrize(
    "rest",
    [
        "print('ok')",  # leaves while calls are queued
        "child = os.fork()\n"
        "(x,) = slow([x])\n"
        "assert x.tolist() == [3.0] * 4\n"
        "print('ok') if child and os.waitpid(child, 0)[1] == 0 else None",
    ],
)
def test_exit_and_fork_with_calls_in_flight(rest):
    script = SCRIPT.format(tests=os.path.dirname(os.path.dirname(__file__))) + rest
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            timeout=600)  # fmt: skip
    assert result.returncode == 0 and result.stdout.strip() == "ok", result.stderr


@pytest.mark.parametrize("threads", [None, "3"])
def test_openblas_starts_no_threads(threads):
    """They would wait for work by spinning."""
    program = """
import os
import lamina
from lamina.runtime import executable
before = os.listdir("/proc/self/task")
executable._openblas()
print(os.listdir("/proc/self/task") == before, os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if threads is not None:
        environment["OPENBLAS_NUM_THREADS"] = threads
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", str(threads)]
