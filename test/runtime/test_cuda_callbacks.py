"""Python functions that programs on a GPU call: values, order, errors, what else runs meanwhile."""

from __future__ import annotations

import gc
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.driver import FakeDriver

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.errors import JaxRuntimeError
from lamina.experimental import io_callback

_X = np.arange(6, dtype=np.float32)
_F32 = lamina.ShapeDtypeStruct((), np.float32)


def _on_gpu(f: Any, **options: Any) -> Any:
    return lamina.jit(f, device=lamina.devices("cuda")[0], **options)


def test_values_of_every_kind_go_both_ways() -> None:
    arrays = [
        np.array([1.5, np.nan, -0.0, np.inf], np.float32), np.zeros((0, 3), np.int8),
        np.arange(6, dtype=np.int64).reshape(2, 3).astype(np.int32), np.array(True),
        np.array([1 + 2j], np.complex64), np.array([1, -2], ml_dtypes.bfloat16),
    ]  # fmt: skip
    shapes = [lamina.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]

    def host(*given: np.ndarray) -> Any:
        assert not any(a.flags.writeable for a in given)
        return [a.copy() for a in given]

    with fake_driver.installed(FakeDriver()):
        found = _on_gpu(lambda *xs: lamina.pure_callback(host, shapes, *xs))(*arrays)
        for a, b in zip(found, arrays, strict=True):
            assert a.device.platform == "cuda" and a.dtype == b.dtype
            assert np.asarray(a).tobytes() == b.tobytes()
        last = _on_gpu(lambda *xs: lamina.pure_callback(host, shapes, *xs)[0])(*arrays)
        np.testing.assert_array_equal(last, arrays[0])  # nobody reads the others


@pytest.mark.parametrize("version", [13000, 11080])
def test_order_in_loops_and_branches(version: int, capsys) -> None:
    seen: list[Any] = []

    def body(carry, x):
        y = lamina.pure_callback(lambda a, b: np.float32(a * b), _F32, carry, x)
        lamina.debug.callback(lambda v: seen.append(float(v)), y, ordered=True)
        return carry + y, y

    def f(flag, xs):
        carry, ys = lax.scan(body, jnp.float32(1), xs)

        def step(c):
            io_callback(lambda v: seen.append(("w", float(v))), None, c, ordered=True)
            return c + 4

        carry = lax.while_loop(lambda c: c < 30, step, carry)

        def taken(v):
            io_callback(lambda v: seen.append(("t", float(v))), None, v, ordered=True)
            return v * 2

        lamina.debug.print("at the end: {}", carry)
        return ys, lax.cond(flag, taken, lambda v: v, carry)

    with fake_driver.installed(FakeDriver(version=version)) as cuda:
        run = _on_gpu(f)
        for _ in range(3):  # no graph of it the second time either
            ys, last = run(True, np.arange(4, dtype=np.float32))
            np.testing.assert_array_equal(ys, [0, 1, 4, 18])
            assert float(last) == 64
            assert seen == [0, 1, 4, 18, ("w", 24), ("w", 28), ("t", 32)]
            assert capsys.readouterr().out == "at the end: 32.0\n"
            seen.clear()
        assert float(run(False, np.arange(1, dtype=np.float32))[1]) == 33
        assert seen == [0, *[("w", float(v)) for v in range(1, 30, 4)]]
        assert cuda.count("cuGraphLaunch") == 0


def test_an_exception_ends_the_program_and_names_the_line() -> None:
    calls = []

    def fail(x: np.ndarray) -> Any:
        calls.append(float(x))
        raise KeyError("boo")

    def loop(x):
        return lax.while_loop(lambda c: c < 10, lambda c: lamina.pure_callback(fail, _F32, c), x)

    with fake_driver.installed(FakeDriver()) as cuda:
        with pytest.raises(JaxRuntimeError, match=r"\[jit_loop\] a Python callback raised KeyError: 'boo' "
                           r"\(called at .*test_cuda_callbacks.py:\d+:\d+ in .*loop") as caught:  # fmt: skip
            _on_gpu(loop)(1.0)
        assert isinstance(caught.value.__cause__, KeyError)
        assert calls == [1.0]
        with pytest.raises(JaxRuntimeError, match=r"has type f32\[4\], .* says f32\[\]"):
            _on_gpu(lambda x: lamina.pure_callback(lambda a: np.ones(4, np.float32), _F32, x))(1.0)

        def interrupted(x: np.ndarray) -> Any:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            _on_gpu(lambda x: lamina.pure_callback(interrupted, _F32, x))(1.0)
        assert float(_on_gpu(lambda x: x + 1)(1.0)) == 2  # the device is as before
        for symbol in ("cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2"):
            twice = _on_gpu(lambda x: lamina.pure_callback(lambda a: a * 2, _F32, x))
            x = lamina.device_put(np.float32(4), lamina.devices("cuda")[0])
            cuda.fail(symbol, 719)
            with pytest.raises(JaxRuntimeError, match=r"of callback.*CUDA_ERROR_LAUNCH_FAILED"):
                twice(x)
            assert float(twice(x)) == 8
        gc.collect()
        cuda.drain()
        assert cuda.live_bytes < 2000


def test_a_callback_runs_programs_on_the_same_gpu() -> None:
    """Even itself, while its own temporaries are kept."""
    with fake_driver.installed(FakeDriver()):
        inner = _on_gpu(lambda x: (lamina.nn.softmax(jnp.sort(x) + 1) * x.sum()).sum())

        def host(depth: np.ndarray, x: np.ndarray) -> np.ndarray:
            below = float(run(int(depth) - 1, x)) if depth else 0.0
            return np.float32(below + float(inner(x)))

        def f(depth, x):
            before = jnp.sort(x)[::-1]  # temporaries from before the call, read after it
            sums = jnp.cumsum(before)
            made = lamina.pure_callback(host, _F32, depth, x)
            return made + (jnp.cumsum(before * sums) * before).sum() * 0 + sums[-1]

        run = _on_gpu(f)
        total = _X.sum()
        np.testing.assert_allclose(run(2, _X), 3 * total + 3 * total, rtol=1e-5)


def test_threads_call_and_donate() -> None:
    with fake_driver.installed(FakeDriver()):
        step = _on_gpu(
            lambda s, x: (s + lamina.pure_callback(lambda a: a.sum(), _F32, x), x * 2), donate_argnums=0
        )
        wrong: list[Any] = []

        def work(number: int) -> None:
            try:
                state = lamina.device_put(_X * 0, lamina.devices("cuda")[0])
                for _ in range(3):
                    old, (state, doubled) = state, step(state, _X + number)
                    assert old.is_deleted()
                    np.testing.assert_array_equal(doubled, (_X + number) * 2)
                np.testing.assert_array_equal(state, np.full(6, 3 * (_X + number).sum()))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_compiled_ahead_of_time_and_described() -> None:
    def f(x):
        lamina.debug.callback(lambda a: seen.append(a.tolist()), x)
        return lamina.pure_callback(np.sum, _F32, x)

    seen: list[Any] = []
    compiled = lamina.jit(f).lower(_X).compile(target="cuda:sm_90a")
    calls = [step for step in compiled.artifact.manifest["launch_plan"] if "call" in step]
    assert [[bytes_ for _, bytes_ in step["inputs"]] for step in calls] == [[24], [24]]
    assert all("test_cuda_callbacks.py" in step["at"] for step in calls)
    with fake_driver.installed(FakeDriver()):
        for _ in range(2):
            assert float(compiled(_X)) == 15
    assert seen == [_X.tolist()] * 2
