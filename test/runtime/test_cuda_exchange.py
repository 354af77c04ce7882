"""Memory and streams of GPUs between lamina and other libraries, which cuda.core stands for.

The driver is made of Python (`fake_driver`): its streams do their work as late as they may, so that what
is not ordered reads what was in memory before.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.driver import FakeDriver

import lamina
import lamina.numpy as jnp
from lamina.runtime import gpus

_X = np.arange(12, dtype=np.float32)


@pytest.fixture
def cuda() -> Iterator[FakeDriver]:
    with fake_driver.installed(FakeDriver(gpus=2)) as driver:
        Device(0).set_current()
        yield driver
        gc.collect()


def _gpu(number: int = 0) -> Any:
    return lamina.devices("cuda")[number]


def _on_gpu(values: Any = _X) -> Any:
    return lamina.device_put(values, _gpu())


def _copied(address: int, size: int, stream: Any) -> Any:
    """What another library reads at an address in the order of its stream."""
    made = Device(0).allocate(size, stream=stream)
    Buffer.from_handle(address, size).copy_to(made, stream=stream)
    return made


def _read(cuda: FakeDriver, buffer: Any, stream: Any) -> np.ndarray:
    stream.sync()
    return cuda.at(int(buffer.handle), buffer.size).view(np.float32).copy()


class _Producer:
    """An array of another library that is filled on a stream of its own, in DLPack's way."""

    def __init__(self, value: int, stream: Any) -> None:
        self.memory, self.stream = Device(0).allocate(48, stream=stream), stream
        self.memory.fill(value, stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.__dlpack_device__()

    def __dlpack__(self, *, stream: int, max_version: Any = None) -> Any:
        Device(0).create_stream(_Handle(stream)).wait(self.stream)
        return self.memory.__dlpack__(stream=-1, max_version=max_version)


class _Interface:
    """The same with `__cuda_array_interface__`."""

    def __init__(self, memory: Any, stream: int | None, **others: Any) -> None:
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": (12,), "typestr": "<f4", "data": (int(memory.handle), False), "version": 3,
            "strides": None, "stream": stream, **others,
        }  # fmt: skip


class _Handle:
    def __init__(self, handle: Any, version: Any = 0) -> None:
        self.answer = (version, handle)

    def __cuda_stream__(self) -> Any:
        return self.answer


# ---- devices and contexts --------------------------------------------------------------------------
def test_cuda_core_says_what_devices_are(cuda: FakeDriver) -> None:
    assert lamina.device_count("cuda") == len(Device.get_all_devices()) == 2
    held = jnp.zeros(1000, device=_gpu())
    stats = _gpu().memory_stats()
    assert stats["bytes_limit"] == 1 << 30 and stats["bytes_in_use"] >= held.nbytes
    assert (_gpu(1).device_kind, _gpu(1).compute_capability) == (Device(1).name, "9.0")
    cuda.fail("cuMemGetInfo_v2", 719)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
        _gpu().memory_stats()


def test_contexts_are_shared_and_given_back(cuda: FakeDriver) -> None:
    """A thread's context, by which other libraries know its device, is the primary one or stays."""
    theirs = Device(0).context.handle
    Device(1).set_current()
    other = bindings.cuCtxGetCurrent()[1]
    y = lamina.jit(lambda x: jnp.cumsum(x * 2))(_on_gpu())
    np.asarray(y)
    _gpu().memory_stats()
    y.copy().block_until_ready()
    del y
    assert int(bindings.cuCtxGetCurrent()[1]) == int(other) != int(theirs)
    with gpus.in_context(0):
        assert int(bindings.cuCtxGetCurrent()[1]) == int(theirs)
    assert cuda.contexts == [int(other)]
    assert cuda.count("cuCtxPushCurrent_v2") == cuda.count("cuCtxPopCurrent_v2")


def test_without_cuda_python_it_says_what_to_install(
    cuda: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.cuda_core.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(RuntimeError, match=r"needs cuda-python.*pip install 'lamina\[cuda\]'"):
        lamina.devices("cuda")


# ---- arrays for others -----------------------------------------------------------------------------
def test_the_consumer_s_stream_waits(cuda: FakeDriver) -> None:
    theirs = Device(0).create_stream()
    step = lamina.jit(lambda x, y: jnp.tanh(x) + y)
    for number, stream in enumerate((theirs, theirs, None)):
        y = step(_on_gpu(), number)
        if number == 1:
            view = StridedMemoryView.from_dlpack(y, int(theirs.handle))
            address = view.ptr
        else:
            held = y.__dlpack__(stream=None if stream is None else int(stream.handle))
            address = y.unsafe_buffer_pointer()
            assert held is not None
        stream = stream or Device(0).create_stream(_Handle(fake_driver.LEGACY_STREAM))
        np.testing.assert_allclose(
            _read(cuda, _copied(address, y.nbytes, stream), stream), np.tanh(_X) + number, rtol=1e-6
        )


def test_minus_one_asks_for_no_order(cuda: FakeDriver) -> None:
    y = lamina.jit(lambda x: x + 1)(_on_gpu())
    before = cuda.count("cuStreamWaitEvent")
    assert y.__dlpack__(stream=-1) is not None
    assert cuda.count("cuStreamWaitEvent") == before and not y.is_ready()


@pytest.mark.parametrize("stream", [0, -2, True, "1", 1.5, 1 << 64])
def test_what_is_no_stream_of_dlpack(cuda: FakeDriver, stream: Any) -> None:
    with pytest.raises(BufferError, match="stream must be None, -1"):
        _on_gpu().__dlpack__(stream=stream)


def test_an_array_whose_computation_failed_is_not_exported(cuda: FakeDriver) -> None:
    y = lamina.jit(lambda x: x + 1)(_on_gpu())
    cuda.fail("cuEventQuery", 719)
    with pytest.raises(RuntimeError):
        y.block_until_ready()
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
        y.__dlpack__(stream=1)


def test_cuda_array_interface(cuda: FakeDriver) -> None:
    y = lamina.jit(lambda x: (x * 2).reshape(3, 4))(_on_gpu())
    found = y.__cuda_array_interface__
    assert found == {
        "shape": (3, 4), "typestr": "<f4", "data": (y.unsafe_buffer_pointer(), True), "strides": None,
        "version": 3, "stream": lamina.cuda.current_stream().handle,
    }  # fmt: skip
    theirs = Device(0).create_stream()
    view = StridedMemoryView.from_cuda_array_interface(y, int(theirs.handle))
    assert (view.shape, view.dtype, view.device_id, view.readonly) == ((3, 4), np.float32, 0, True)
    np.testing.assert_array_equal(_read(cuda, _copied(view.ptr, y.nbytes, theirs), theirs), 2 * _X)
    assert jnp.zeros((0, 3), device=_gpu()).__cuda_array_interface__["data"] == (0, True)
    for none in (jnp.arange(3), jnp.zeros(3, jnp.bfloat16, device=_gpu())):
        assert not hasattr(none, "__cuda_array_interface__")
    y.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        y.__cuda_array_interface__  # noqa: B018


# ---- arrays of others ------------------------------------------------------------------------------
def test_our_stream_waits_for_the_producer(cuda: FakeDriver) -> None:
    theirs = Device(0).create_stream()
    made = _Producer(7, theirs)
    x = jnp.from_dlpack(made)
    assert x.unsafe_buffer_pointer() == int(made.memory.handle) and x.dtype == np.int8
    np.testing.assert_array_equal(x + 1, np.full(48, 8))
    made.memory.fill(9, stream=theirs)
    np.testing.assert_array_equal(jnp.asarray(made), np.full(48, 9))  # on another stream of ours
    made.memory.fill(1, stream=theirs)
    shown = _Interface(made.memory, int(theirs.handle))
    y = jnp.asarray(shown)
    assert y.unsafe_buffer_pointer() == int(made.memory.handle) and y.device == _gpu()
    np.testing.assert_array_equal(np.asarray(y).view(np.uint8), np.full(48, 1))


def test_views_and_buffers_of_cuda_core(cuda: FakeDriver) -> None:
    stream = Device(0).create_stream()
    with lamina.cuda.stream(stream):
        memory = Device(0).allocate(48, stream=stream)
        memory.fill(0, stream=stream)
        view = StridedMemoryView.from_buffer(memory, (3, 4), dtype=np.dtype(np.float32))
        for x in (jnp.from_dlpack(view), jnp.asarray(view)):
            assert (x.shape, x.dtype, x.device) == ((3, 4), np.float32, _gpu())
            assert x.unsafe_buffer_pointer() == int(memory.handle)
            np.testing.assert_array_equal(x + 1, np.ones((3, 4)))
        copied = jnp.array(view)
        assert copied.unsafe_buffer_pointer() != int(memory.handle)
        assert jnp.asarray(memory).shape == (48,)
        converted = jnp.asarray(view, dtype=jnp.int32)
        assert converted.dtype == np.int32 and converted.device == _gpu()
        columns = StridedMemoryView.from_buffer(memory, (3, 4), (1, 3), dtype=np.dtype(np.float32))
        with pytest.raises(BufferError, match="must be dense and row-major"):
            jnp.asarray(columns)


def test_memory_of_others_stays_until_it_is_no_longer_used(cuda: FakeDriver) -> None:
    shown = _Interface(Device(0).allocate(48, stream=Device(0).create_stream()), None)
    gone = weakref.ref(shown)
    x = jnp.asarray(shown)
    del shown, x
    gc.collect()
    assert gone() is None  # nobody used it

    shown = _Interface(Device(0).allocate(48, stream=Device(0).create_stream()), None)
    gone = weakref.ref(shown)
    x = jnp.asarray(shown)
    y = lamina.jit(lambda x: x * 2)(x)
    del shown, x
    gc.collect()
    assert gone() is not None
    cuda.drain()
    y.block_until_ready()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("others", [{"version": 2}, {"typestr": "<M8"}, {"strides": (8,)}])
def test_interfaces_that_arrays_can_t_have(cuda: FakeDriver, others: dict[str, Any]) -> None:
    memory = Device(0).allocate(96, stream=Device(0).create_stream())
    with pytest.raises((BufferError, TypeError)):
        jnp.asarray(_Interface(memory, None, **others))


# ---- streams ---------------------------------------------------------------------------------------
def test_a_user_s_stream_is_lamina_s(cuda: FakeDriver) -> None:
    own = lamina.cuda.current_stream()
    assert own.device == _gpu() and own.__cuda_stream__() == (0, own.handle)
    assert int(Device(0).create_stream(own).handle) == own.handle
    theirs, second = Device(0).create_stream(), Device(0).create_stream()
    x = _on_gpu()
    double = lamina.jit(lambda x: x * 2)
    with lamina.cuda.stream(theirs) as entered:
        assert entered.handle == int(theirs.handle) == lamina.cuda.current_stream().handle
        y = double(x)
        with lamina.cuda.stream(second):
            y = double(y)
        with lamina.cuda.stream(second, _gpu(1)):  # of another device
            assert lamina.cuda.current_stream().handle == int(theirs.handle)
            assert lamina.cuda.current_stream(_gpu(1)).handle == int(second.handle)
        y = double(y)
        waits = cuda.count("cuStreamWaitEvent")
        read = _copied(y.unsafe_buffer_pointer(), y.nbytes, theirs)  # in its order, without an event
        assert cuda.count("cuStreamWaitEvent") == waits
    assert lamina.cuda.current_stream() == own
    np.testing.assert_array_equal(double(y), 16 * _X)
    np.testing.assert_array_equal(_read(cuda, read, theirs), 8 * _X)


def test_a_device_s_stream(cuda: FakeDriver) -> None:
    own, theirs = lamina.cuda.current_stream(), Device(0).create_stream()
    gone = weakref.ref(theirs)
    handle = int(theirs.handle)
    lamina.cuda.set_stream(theirs)
    del theirs
    found: list[Any] = []

    def work() -> None:
        found.append(lamina.cuda.current_stream().handle)
        found.append(lamina.jit(lambda x: x + 1)(_on_gpu()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert gone() is not None and found[0] == handle
    lamina.cuda.set_stream(None)
    assert lamina.cuda.current_stream() == own
    gc.collect()
    assert gone() is None  # and its handle is the driver's again
    np.testing.assert_array_equal(found[1] + 1, _X + 2)


def test_threads_have_streams_of_their_own(cuda: FakeDriver) -> None:
    shared = _on_gpu()
    step = lamina.jit(lambda x, y: jnp.tanh(x) + y)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            Device(0).set_current()
            with lamina.cuda.stream(Device(0).create_stream()):
                y = shared
                for _ in range(4):
                    y = step(y, shared * number)
                wanted = _X
                for _ in range(4):
                    wanted = np.tanh(wanted) + _X * number
                np.testing.assert_allclose(y, wanted, rtol=1e-5)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_memory_outlives_the_stream_that_it_was_made_on(cuda: FakeDriver) -> None:
    theirs = Device(0).create_stream()
    with lamina.cuda.stream(theirs):
        x = lamina.jit(lambda x: x + 1)(_on_gpu())
        empty = lamina.device_put(np.zeros((0,), np.float32), _gpu())  # is never filled
        held = lamina.jit(lambda x: x * 2)(x)
    theirs.close()
    del x, empty
    gc.collect()
    np.testing.assert_array_equal(held + 0, 2 * (_X + 1))
    del held
    gc.collect()
    cuda.drain()
    assert cuda.live_bytes < 2000 and not cuda.faults


def test_donation_and_graphs_on_a_user_s_stream(cuda: FakeDriver) -> None:
    def many(x: Any) -> Any:
        for _ in range(5):
            x = jnp.cumsum(x) * 0.5
        return x

    step = lamina.jit(many, donate_argnums=0)
    wanted = np.asarray(_X)
    state = _on_gpu()
    for number in range(6):
        with lamina.cuda.stream(Device(0).create_stream()):
            state = step(state)
            if number % 2:
                state.copy_to_host_async()
        for _ in range(5):
            wanted = np.cumsum(wanted) * np.float32(0.5)
    assert cuda.count("cuGraphLaunch") > 0
    np.testing.assert_allclose(state, wanted, rtol=1e-4)


def test_callbacks_may_use_other_streams(cuda: FakeDriver) -> None:
    def inner(x: Any) -> Any:
        with lamina.cuda.stream(Device(0).create_stream()):
            return np.asarray(lamina.jit(lambda x: x + 1)(lamina.device_put(np.asarray(x), _gpu())))

    def outer(x: Any) -> Any:
        return lamina.pure_callback(inner, lamina.ShapeDtypeStruct((12,), np.float32), x * 2) * 3

    with lamina.cuda.stream(Device(0).create_stream()):
        np.testing.assert_array_equal(lamina.jit(outer)(_on_gpu()), (2 * _X + 1) * 3)


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        ("s", TypeError, "expected a stream, which has __cuda_stream__"),
        (None, TypeError, "expected a stream"),
        (True, TypeError, "expected a stream"),
        (_Handle("s"), TypeError, r"must return \(version, handle\) as ints"),
        (_Handle(5, version=9), ValueError, "has version 9"),
        (-1, ValueError, "-1 is no handle"),
        (2, ValueError, "per-thread default stream"),
    ],
)
def test_what_is_no_stream(
    cuda: FakeDriver, stream: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        with lamina.cuda.stream(stream):
            pass
    if stream is not None:
        with pytest.raises(error, match=message):
            lamina.cuda.set_stream(stream)


def test_streams_are_of_gpus(cuda: FakeDriver) -> None:
    with pytest.raises(ValueError, match=r"CpuDevice\(id=0\) is no GPU"):
        lamina.cuda.current_stream(lamina.devices("cpu")[0])
    with pytest.raises(TypeError, match="must be a GPU of lamina.devices"):
        lamina.cuda.current_stream(0)  # type: ignore[arg-type]
    with lamina.cuda.stream(0) as legacy:
        assert legacy.handle == fake_driver.LEGACY_STREAM
        np.testing.assert_array_equal(lamina.jit(lambda x: x + 1)(_on_gpu()), _X + 1)


@pytest.mark.parametrize("name, count", [("cuda.md", 2), ("cuda-sharing.md", 3)])
def test_a_page_s_programs_run_one_after_the_other(
    name: str, count: int, cuda: FakeDriver
) -> None:
    page = Path(__file__).parents[2] / "docs" / name
    programs = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for program in programs:
        exec(compile(program, str(page), "exec"), names)
    assert len(programs) == count
