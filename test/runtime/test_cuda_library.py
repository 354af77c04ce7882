"""Products that cuBLASLt may do, with a library and a driver made of Python: the runtime is the real
one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cuda import pathfinder
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.cublaslt import FakeCublasLt
from support.fake_cuda.driver import FakeDriver

import lamina
import lamina.numpy as jnp
from lamina.passes.kernels.gpu.gemm import library as product_library
from lamina.runtime import cuda

_RANDOM = np.random.default_rng(0)


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


_BF16 = ml_dtypes.bfloat16
_W = _x(24, 24)


def _several(x, w, b, y, h):
    """Layouts and types that the library takes, and products it is not asked for."""
    first = x @ w + b
    return {
        "bias": first,
        "transposed": (x.T @ first, first @ w.T),
        "batches": jnp.einsum("bij,bkj->bik", y, y),
        "narrow": h @ h.T,
        "relu": lamina.nn.relu(first @ w),
        "heads": jnp.einsum("bqhd,bkhd->bhqk", y.reshape(3, 9, 2, 8), y.reshape(3, 9, 2, 8)),
        "high": lamina.lax.dot(x, w, precision="high"),
    }


_ARGUMENTS = (_x(16, 24), _W, _x(24), _x(3, 9, 16), _x(16, 16, dtype=_BF16))


_BY_LIBRARY = {"matrix_products": "library"}


def _check(found: Any, wanted: Any) -> None:
    for mine, theirs in zip(lamina.tree.leaves(found), lamina.tree.leaves(wanted), strict=True):
        mine, theirs = (np.asarray(value, np.float32) for value in (mine, theirs))
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=1e-3)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every product is worth a call of a library."""
    monkeypatch.setattr(product_library, "LIBRARY_CALL_CYCLES", 0)
    yield


def test_library_does_what_it_can() -> None:
    wanted = lamina.jit(_several)(*_ARGUMENTS)
    library = FakeCublasLt()
    with fake_driver.installed(FakeDriver(libraries=library.calls())) as cuda:
        jitted = lamina.jit(_several, device=lamina.devices("cuda")[0], compiler_options=_BY_LIBRARY)
        for scale in (1, 1, 2):  # step by step, as a graph, and at other addresses
            given = [np.asarray(a * scale, a.dtype) for a in _ARGUMENTS]
            if scale == 2:
                wanted = lamina.jit(_several)(*given)
            _check(jitted(*given), wanted)
        assert cuda.count("cuGraphAddChildGraphNode") == 6 * cuda.count("cuGraphInstantiateWithFlags")
        kept = [jitted(*given) for _ in range(6)]  # more sets of addresses than there are graphs
        _check(kept[-1], wanted)
        assert cuda.count("cuGraphExecChildGraphNodeSetParams")
    assert [asked["epilogue"] for asked in library.asked].count(4) == len(library.asked) // 6
    assert {asked["compute"] for asked in library.asked} == {68, 77}


@pytest.mark.parametrize("milliseconds", [0.5, 2.0])
def test_the_faster_is_taken_and_remembered(
    large: None, tmp_path: Path, milliseconds: float
) -> None:
    cache = str(tmp_path)
    kernels: dict[str, Any] = {}
    for attempt in range(2):
        library = FakeCublasLt(milliseconds)
        with fake_driver.installed(FakeDriver(libraries=library.calls()), cache) as cuda:
            cuda.kernels |= kernels
            jitted = lamina.jit(lambda x, w: x @ w, device=lamina.devices("cuda")[0])
            np.testing.assert_allclose(jitted(_ARGUMENTS[0], _W), _ARGUMENTS[0] @ _W, 1e-4, 1e-5)
            kernels = cuda.kernels
        timed, runs = (6, 1) if attempt == 0 else (0, 1)
        taken = milliseconds < 1
        assert len(library.asked) == timed + (runs if taken else 0)
        assert cuda.count("cuLaunchKernel") == timed + (0 if taken else runs)
        assert cuda.live_bytes < 64 << 20


def test_without_the_library_there_is_our_kernel(large: None) -> None:
    def run(driver: FakeDriver, **options: str) -> int:
        with fake_driver.installed(driver) as cuda:
            jitted = lamina.jit(
                lambda x, w: x @ w, device=lamina.devices("cuda")[0], compiler_options=options
            )
            np.testing.assert_allclose(jitted(_ARGUMENTS[0], _W), _ARGUMENTS[0] @ _W, 1e-4, 1e-5)
        return cuda.count("cuLaunchKernel")

    assert run(FakeDriver()) == 1
    refuses = FakeCublasLt(has_algorithms=False)
    assert run(FakeDriver(libraries=refuses.calls())) == 1
    # There is no room to find out which is faster.
    assert run(FakeDriver(libraries=FakeCublasLt().calls(), memory=1 << 20)) == 1
    assert run(FakeDriver(libraries=FakeCublasLt().calls()), matrix_products="kernel") == 1
    assert run(FakeDriver(libraries=FakeCublasLt().calls()), matrix_products="library") == 0


def test_a_call_that_fails_says_which(large: None) -> None:
    with fake_driver.installed(FakeDriver(libraries=FakeCublasLt().calls())) as cuda:
        jitted = lamina.jit(
            lambda x, w: x @ w, device=lamina.devices("cuda")[0], compiler_options=_BY_LIBRARY
        )
        cuda.fail("cublasLtMatmul", 13)
        with pytest.raises(
            lamina.errors.JaxRuntimeError,
            match=r"(?s)cublasLtMatmul failed of kernel \w*dot_general\w* at .*test_cuda_library.py.*status 13",
        ):
            jitted(_ARGUMENTS[0], _W).block_until_ready()


def test_the_library_is_where_cuda_python_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise pathfinder.DynamicLibNotFoundError(f"no {name}")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", nowhere)
    assert cuda._cublaslt.__wrapped__() == "libcublasLt.so.13"
    found = SimpleNamespace(abs_path="/opt/libcublasLt.so.13")
    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", {"cublasLt": found}.__getitem__)
    assert cuda._cublaslt.__wrapped__() == found.abs_path
