"""Programs on a GPU that is made of Python (`fake_driver`): the runtime is the real one."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.driver import FakeDriver

import lamina
import lamina.numpy as jnp
from lamina.backends.target import Target
from lamina.errors import JaxRuntimeError
from lamina.passes.stablehlo.fusion import outline_control
from lamina.passes.stablehlo.loops.step_cost import Refusal

_X = np.arange(12, dtype=np.float32).reshape(3, 4)


def _gpu(number: int = 0) -> Any:
    return lamina.devices("cuda")[number]


def _loops(x, n):
    """Every kind of control flow, nested."""
    def step(i, x):
        x = lamina.lax.cond(i % 2 == 0, lambda x: x + i, lambda x: x * 2, x)
        return lamina.lax.while_loop(lambda y: y.sum() < 100, lambda y: y + 5, x)

    looped = lamina.lax.fori_loop(0, n, step, x)
    carry, rows = lamina.lax.scan(lambda c, row: (c + row, c * 2), jnp.zeros(4), looped)
    index = carry[0].astype(int)
    picked = [
        lamina.lax.switch(i, [lambda x: x + 1, lambda x: x * 3, lambda x: -x], carry)
        for i in (index % 3, index * 0 - 5, index * 0 + 9)
    ]
    never = lamina.lax.while_loop(lambda y: y.sum() > 1e9, lambda y: y * 0, carry)
    return looped, carry, rows, picked, never, jnp.full((60, 30), 7, jnp.int16)


def _check_equal(found: Any, wanted: Any) -> None:
    lamina.tree_util.tree_map(
        lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6), found, wanted
    )


def _not_one_kernel(op: Any) -> str:
    raise Refusal("in this test")


@pytest.mark.parametrize("driver", [{}, {"version": 12020}, {"version": 11080}])
def test_control_flow(driver: dict[str, Any], monkeypatch) -> None:
    """As of steps that are too large for one kernel."""
    monkeypatch.setattr(outline_control, "form_of", _not_one_kernel)
    wanted = lamina.jit(_loops)(_X, 3)
    with fake_driver.installed(FakeDriver(**driver)) as cuda:
        on_gpu = lamina.jit(_loops, device=_gpu())
        for _ in range(3):
            _check_equal(on_gpu(_X, 3), wanted)
        if driver:  # what decides is copied to the host
            assert cuda.count("cuGraphLaunch") == 0
        else:
            assert cuda.count("cuGraphLaunch") == 3
            assert cuda.count("cuLaunchKernel") == 0


def test_loops_of_small_steps_are_kernels() -> None:
    wanted = lamina.jit(_loops)(_X, 3)
    with fake_driver.installed(FakeDriver()) as cuda:
        run = lamina.jit(_loops, device=_gpu())
        found = run(_X, 3)
        assert cuda.count("cuLaunchKernel") < 12 and cuda.count("cuMemcpyDtoHAsync_v2") == 0
        _check_equal(found, wanted)
        _check_equal(run(_X, 3), wanted)
        assert cuda.count("cuGraphLaunch") == 1 and cuda.count("cuGraphAddNode") == 0  # no condition


def test_arrays_know_where_they_are() -> None:
    with fake_driver.installed(FakeDriver(gpus=2)):
        cpu, (first, second) = lamina.devices("cpu")[0], lamina.devices("cuda")
        assert (str(first), repr(second), first.device_kind) == ("cuda:0", "CudaDevice(id=1)", "Emulated GPU")
        assert first.compute_capability == "9.0" and first.memory_stats()["bytes_limit"] == 1 << 30
        assert lamina.device_count("gpu") == 2 and lamina.devices()[0] == cpu
        x = lamina.device_put(_X, first)
        assert x.device == first and x.devices() == {first} and x.committed
        y = lamina.jit(lambda x: jnp.tanh(x) + 1)(x)
        assert y.device == first and y.committed
        assert (x + y).sum().device == first  # op by op
        compiled = lamina.jit(lambda x: x * 2).lower(x).compile()  # for where a call would run
        assert ".entry" in compiled.as_text("ptx") and compiled(x).device == first
        with lamina.default_device(first):
            assert lamina.jit(jnp.cos).lower(_X).compile()(_X).device == first
        assert lamina.device_put(y, cpu).device == cpu
        there = lamina.device_put(y, second)
        assert (there * 2).device == second
        np.testing.assert_array_equal(np.asarray(there), np.tanh(_X) + 1)
        with pytest.raises(ValueError, match=r"incompatible devices.*argument x of <lambda>.*ids \[1\]"):
            lamina.jit(lambda x, y: x + y)(x, there)
        with pytest.raises(ValueError, match="incompatible devices"):
            lamina.jit(lambda x, y: x + y)(x, lamina.device_put(_X, cpu))
        mixed = lamina.jit(lambda x, y, z: x + y * z)(x, _X, 2)  # what is nowhere comes along
        np.testing.assert_array_equal(mixed, 3 * _X)
        assert x.copy().device == first and [row.device for row in x] == [first] * 3
        assert lamina.device_get({"x": x})["x"].tolist() == _X.tolist() == x.tolist()
        assert float(x[1, 2]) == 6 and repr(x).startswith("Array([[ 0.,")
        assert {a.device for a in lamina.live_arrays("cuda")} == {first, second}


def test_default_device_and_platforms(monkeypatch) -> None:
    with fake_driver.installed(FakeDriver()):
        with lamina.default_device(_gpu()):
            x = jnp.arange(5.0)
            made = jnp.array([1.0, 2.0]) + 1
            assert x.device == made.device == _gpu() and not x.committed
            assert lamina.random.normal(lamina.random.key(0), (3,)).device == _gpu()
        assert jnp.ones(3).device.platform == "cpu"
        assert (x + 1).device == _gpu()  # runs where its argument is
        assert lamina.jit(lambda x: x + 1, backend="cpu")(x).device.platform == "cpu"
        assert lamina.jit(lambda x: x + 1, backend="cuda")(_X).device == _gpu()
        assert lamina.jit(lambda x: x + 1, target="cuda:sm_90a")(_X).device == _gpu()
        lamina.config.update("platforms", ("cuda", "cpu"))
        try:
            assert lamina.devices() == [_gpu()] and lamina.default_backend() == "cuda"
            assert lamina.jit(lambda: jnp.zeros(3))().device == _gpu()
        finally:
            lamina.config.update("platforms", ("cpu", "cuda"))


def test_donation_takes_memory_over() -> None:
    step = lamina.jit(lambda state, x: (state * 0.5 + x, x.sum()), donate_argnums=0)
    with fake_driver.installed(FakeDriver()) as cuda:
        state = lamina.device_put(_X, _gpu())
        address = state.unsafe_buffer_pointer()
        new, _ = step(state, _X)
        assert state.is_deleted() and new.unsafe_buffer_pointer() == address
        view, held = np.asarray(new), new.__dlpack__()  # somebody else has the memory
        newer, _ = step(new, _X)
        assert newer.unsafe_buffer_pointer() != address
        np.testing.assert_allclose(view, _X * 1.5)
        np.testing.assert_allclose(newer, _X * 1.75)
        newer.copy_to_host_async()  # and is overwritten after that copy
        last, _ = step(newer, _X)
        np.testing.assert_allclose(last, _X * 1.875)
        assert held is not None
        wanted = np.asarray(last)
        for _ in range(4):  # graphs: the addresses repeat
            last, _ = step(last, _X)
            wanted = wanted * 0.5 + _X
        np.testing.assert_allclose(last, wanted, rtol=1e-6)
        del state, new, newer, last, held, view
        gc.collect()
        cuda.drain()
        assert cuda.live_bytes < 2000  # the arena and nothing else


def test_graphs_of_many_kernels() -> None:
    def many(x, w):
        for _ in range(4):
            x = lamina.nn.softmax(x @ w) + x.sum(axis=0)
        return x, jnp.zeros((70, 20))

    w = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    wanted = lamina.jit(many)(_X, w)
    with fake_driver.installed(FakeDriver()) as cuda:
        run = lamina.jit(many, device=_gpu())
        kept = []  # so that each call has other addresses
        for number in range(8):
            kept.append(run(_X, w))
            _check_equal(kept[-1], wanted)
            assert cuda.count("cuGraphLaunch") == number
        assert cuda.count("cuGraphInstantiateWithFlags") == 4
        assert cuda.count("cuGraphExecKernelNodeSetParams_v2") > 0
        cuda.fail("cuGraphExecKernelNodeSetParams_v2")  # is not said: a new graph does as well
        _check_equal(run(_X, w), wanted)
        assert cuda.count("cuGraphInstantiateWithFlags") == 5


def test_large_copies_are_staged() -> None:
    x = np.arange(3 << 20, dtype=np.float32)
    with fake_driver.installed(FakeDriver()) as cuda:
        y = lamina.device_put(x, _gpu())
        x_before = x.copy()
        x[:] = 0  # it has been read
        y.copy_to_host_async()
        assert y.device == _gpu() and not y.is_ready()
        np.testing.assert_array_equal(np.asarray(y), x_before)
        assert cuda.count("cuMemcpyDtoHAsync_v2") == 1  # asked for twice, copied once
        assert np.asarray(y).ctypes.data == np.asarray(y).ctypes.data


def test_dlpack() -> None:
    with fake_driver.installed(FakeDriver()):
        x = lamina.device_put(_X, _gpu())
        assert x.__dlpack_device__() == (2, 0)
        again = lamina.dlpack.from_dlpack(x)
        assert again.device == _gpu() and again.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        np.testing.assert_array_equal(again + 1, _X + 1)
        np.testing.assert_array_equal(np.from_dlpack(_Capsule(x)), _X)
        with pytest.raises(BufferError, match="on cuda:0 cannot go to device"):
            x.__dlpack__(dl_device=(2, 1))


class _Capsule:
    """An array that hands itself out on the CPU."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__(dl_device=(1, 0))


def test_memory_runs_out_and_work_goes_on() -> None:
    with fake_driver.installed(FakeDriver(memory=1_250_000)):
        x = lamina.device_put(np.ones(100_000, np.float32), _gpu())
        grow = lamina.jit(lambda x: jnp.concatenate([x, x, x]))
        with pytest.raises(MemoryError, match=r"1200000 bytes for float32\[300000\] on cuda:0"):
            grow(x)
        with pytest.raises(MemoryError, match="out of memory: 1200000 bytes"):
            lamina.device_put(np.ones(300_000, np.float32), _gpu())
        assert float((x + 1)[7]) == 2
        sums = lamina.jit(lambda x: (x * 2, jnp.cumsum(x[:9])))
        for _ in range(5):  # what the last call left is freed in time for the next
            doubled, _ = sums(x)
        assert float(doubled[5]) == 2


_UNHEARD = ("cuGetError", "cuDriverGetVersion", "cuMemPoolTrim", "cuDeviceTotal")  # of their failures


def _failing(x):
    x = lamina.lax.fori_loop(0, 1, lambda i, x: jnp.tanh(x) + i, x)
    return x, x @ x.T


def test_each_call_may_fail(monkeypatch, tmp_path) -> None:
    """Injected failures are errors that name the call, or are made up for; then all works again."""
    tmp_path.chmod(0o700)
    wanted = lamina.jit(_failing)(_X)
    texts: dict[str, dict[str, str]] = {}
    messages = {}
    for symbol in ["", *sorted(s for s in fake_driver.CALLS if not s.startswith(_UNHEARD))]:
        monkeypatch.setenv("LAMINA_CUDA_GRAPHS", str(int("Graph" in symbol)))
        with fake_driver.installed(FakeDriver(), str(tmp_path)) as cuda:
            cuda.kernels |= texts
            cuda.fail(symbol, 719)
            for _ in range(2):
                try:
                    x = lamina.device_put(_X, _gpu())
                    _check_equal(lamina.jit(_failing)(x), wanted)
                    break
                except RuntimeError as error:
                    messages[symbol] = str(error)
            else:
                raise AssertionError(f"{symbol} failed once, its caller twice: {messages[symbol]}")
            texts |= cuda.kernels
    assert len(messages) > 15
    for symbol, message in messages.items():
        assert "CUDA_ERROR_LAUNCH_FAILED" in message, (symbol, message)
    launch = messages["cuLaunchKernel"]
    assert "cuLaunchKernel failed of kernel" in launch and "test_cuda.py:" in launch


def test_errors_on_the_way_are_the_array_s() -> None:
    with fake_driver.installed(FakeDriver()) as cuda:
        x = lamina.device_put(_X, _gpu())
        y = lamina.jit(lambda x: x + 1)(x)
        cuda.fail("cuEventQuery", 719)
        with pytest.raises(JaxRuntimeError, match=r"\[jit__lambda_\] the GPU's work failed: CUDA_ERROR_LAUNCH"):
            y.block_until_ready()
        with pytest.raises(JaxRuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
            np.asarray(y)
        with pytest.raises(JaxRuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
            y + 1  # noqa: B018
        np.testing.assert_array_equal(x + 1, _X + 1)


def test_compiled_ahead_of_time() -> None:
    compiled = lamina.jit(lambda x: jnp.exp(x) * 2).lower(_X).compile(target="cuda:sm_90a")
    older = lamina.jit(lambda x: x + 1, target="cuda:sm_100a").lower(_X).compile()
    assert older.artifact.manifest["target"]["cpu"] == "sm_100a"
    with fake_driver.installed(FakeDriver()) as cuda:
        texts = {stage: compiled.as_text(stage).split("\n", 1)[1] for stage in ("gpu", "ptx")}
        for row in compiled.artifact.manifest["device_kernels"].values():
            for launch in row["launches"]:
                cuda.kernels[launch["name"]] = texts
        np.testing.assert_allclose(compiled(_X), np.exp(_X) * 2, rtol=1e-6)
        with pytest.raises(RuntimeError, match="compiled for sm_100a, .*has compute capability 9.0"):
            older(_X)


def test_what_is_missing_is_said() -> None:
    for driver, message in [
        (FakeDriver(gpus=0), "the NVIDIA driver finds no GPU on this machine"),
        (FakeDriver(without=("cuMemAllocAsync",)), "driver is too old: it has no cuMemAllocAsync"),
    ]:
        with fake_driver.installed(driver):
            with pytest.raises(RuntimeError, match=message):
                lamina.devices("cuda")
    no_start = FakeDriver()
    no_start.fail("cuInit", 999)
    with fake_driver.installed(no_start):
        with pytest.raises(RuntimeError, match="does not start .cuInit: CUDA_ERROR_UNKNOWN"):
            lamina.devices("gpu")


def test_targets_of_capabilities() -> None:
    found = [str(Target.of_capability(*c)) for c in ((7, 5), (8, 7), (9, 0), (10, 1), (12, 0), (13, 0))]
    assert found == ["cuda:sm_75", "cuda:sm_87", "cuda:sm_90a", "cuda:sm_100", "cuda:sm_120a", "cuda:sm_121"]
    with pytest.raises(ValueError, match="too old: 7.5 is the least"):
        Target.of_capability(7, 0)


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX, imported by other tests, warns
def test_a_forked_child_is_told() -> None:
    with fake_driver.installed(FakeDriver()):
        x = lamina.device_put(_X, _gpu())
        x.block_until_ready()
        child = os.fork()
        if child == 0:
            try:
                lamina.device_put(_X, _gpu())
                os._exit(1)
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 2)
        assert os.waitpid(child, 0)[1] == 0


def test_many_threads_compile_and_run(monkeypatch) -> None:
    """Whoever waits for another thread, in the driver or out of it, must not hold the GIL."""
    problems: list[BaseException] = []
    with fake_driver.installed(FakeDriver()):
        shared = lamina.jit(lambda x: jnp.tanh(x) * 2, device=_gpu())

        def work(number: int) -> None:
            try:
                f = lamina.jit(lambda x: (jnp.sin(x) * number + shared(x)).sum())
                for _ in range(2):
                    found = lamina.grad(f)(lamina.device_put(_X, _gpu()))
                    wanted = np.cos(_X) * number + 2 * (1 - np.tanh(_X) ** 2)
                    np.testing.assert_allclose(found, wanted, atol=1e-4)
                    assert _gpu().memory_stats()["bytes_limit"] == 1 << 30
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
