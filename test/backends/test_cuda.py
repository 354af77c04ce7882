"""Kernels for GPUs, without one: run in the emulator of PTX against the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp
from lamina.backends.cuda import cubin
from lamina.backends.cuda.cubin import CudaUnavailable, assemble, resources
from lamina.backends.target import Target, TargetError
from lamina.passes.framework.base import CompileError
from lamina.scipy.special import logsumexp

_RANDOM = np.random.default_rng(0)


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype) if dtype != np.int32 else (
        _RANDOM.integers(-100, 100, shape, dtype))  # fmt: skip


_LABELS = np.arange(9, dtype=np.int32) * 17 - 60


def _label_losses(x, labels):
    return logsumexp(x, 1) - x[jnp.arange(x.shape[0]), labels]


def _layernorm(x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


# name -> (function, arguments)
KERNELS: dict[str, tuple[Callable, tuple]] = {
    "loop": (lambda x, y: jnp.tanh(x) * y + 1, (_x(17, 12), _x(17, 12))),
    "loop_rows": (lambda x, b: jnp.exp(x + b), (_x(9, 8), _x(8))),
    "loop_large": (lambda x: x * 2, (_x(75, 7001),)),  # more than a thread does at once
    "loop_odd": (lambda x: jnp.where(x[1:, ::2] > 0, x[:-1, ::2], 0), (_x(6, 11),)),
    "loop_f64": (lambda x: jnp.sqrt(jnp.abs(x)), (_x(5, 7, dtype=np.float64),)),
    "loop_int": (lambda x: (x * 3) ^ (x >> 1), (_x(33, dtype=np.int32),)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x]), (_x(3, 5), _x(4, 5))),
    "scalar": (lambda x, y: jnp.exp(x) * y + 1, (_x(), _x())),
    "softmax": (lambda x: lamina.nn.softmax(2 * x, axis=-1), (_x(5, 300),)),
    "softmax_narrow": (lambda x: lamina.nn.softmax(x, axis=-1), (_x(7, 10),)),
    "layernorm": (_layernorm, (_x(2, 6, 130),)),
    "row_sum": (lambda x: jnp.sum(x * x, axis=1), (_x(6, 1000),)),
    "row_max": (lambda x: jnp.max(x, axis=1), (_x(6, 77, dtype=np.int32),)),
    "row_all": (lambda x: jnp.all(x > -3, axis=1), (_x(6, 77),)),
    "row_sum_f64": (lambda x: jnp.sum(x, axis=1), (_x(3, 500, dtype=np.float64),)),
    "whole_sum": (lambda x: jnp.sum(jnp.exp(x)), (_x(20, 30),)),
    "whole_large": (lambda x: jnp.sum(x * x), (_x(64, 513),)),
    "rows_few_long": (lambda x: jnp.sum(x, axis=1), (_x(2, 1 << 14),)),
    "rows_short": (_layernorm, (_x(40, 12),)),
    "mean": (lambda x: jnp.mean(x) * 2 + 1, (_x(7, 30),)),
    "argmax_whole": (jnp.argmax, (_x(20, 1001),)),
    "argmin_columns": (lambda x: jnp.argmin(x, axis=0), (_x(300, 45),)),
    "label_losses": (_label_losses, (_x(9, 140), _LABELS)),
    "label_gradient": (lamina.grad(lambda x, i: _label_losses(x, i).mean()), (_x(9, 140), _LABELS)),
    "complex_rows": (lambda x: jnp.prod(1 + x, axis=1), (_x(5, 70) * np.complex64(0.1j),)),
    "columns_long": (lambda x: jnp.max(x, axis=0), (_x(300, 45),)),
    "columns": (lambda x: jnp.sum(x, axis=0), (_x(37, 45),)),
    "columns_min": (lambda x: jnp.min(x, axis=1), (_x(2, 37, 45),)),
    "serial": (lambda x: jnp.argmax(x, axis=1), (_x(40, 23),)),
    "columns_vectors": (lambda x: jnp.sum(x, axis=0), (_x(8210, 130, dtype=np.int32),)),
    "softmax_odd": (lambda x: lamina.nn.softmax(x, axis=1), (_x(9, 1001),)),
    "softmax_f16": (lambda x: lamina.nn.softmax(x, axis=1), (_x(1030, 264, dtype=np.float16),)),
    "softmax_wide": (lambda x: lamina.nn.softmax(x, axis=1), (_x(40, 4104),)),
    "transpose_squares": (lambda x, y: jnp.swapaxes(x, 1, 2) * y, (
        _x(2, 72, 136, dtype=np.float16), _x(2, 136, 72, dtype=np.float16))),
    "transpose_bytes": (lambda x: x.T, (_x(40, 72, dtype=np.int32).astype(np.int8),)),
    "transpose": (lambda x: x.T + 1, (_x(40, 70),)),
    "transpose_batch": (lambda x, y: jnp.swapaxes(x, 1, 2) * y, (_x(2, 9, 33), _x(2, 33, 9))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_emulated(name: str) -> None:
    function, arguments = KERNELS[name]
    with lamina.enable_x64(any(a.dtype.itemsize == 8 for a in arguments)):
        wanted = np.asarray(lamina.jit(function)(*arguments))
        program = Program(function, *arguments)
    assert len(program.kernels) == 1
    (found,) = program.run()
    found, wanted = (x.astype(np.result_type(x, np.int8)) for x in (found, wanted))
    exact = 3e-5 if found.dtype.itemsize > 2 else 2e-3
    np.testing.assert_allclose(found, wanted, rtol=exact, atol=2e-6)


def test_compiled_for_a_gpu() -> None:
    x = np.ones((8, 64), np.float32)
    jitted = lamina.jit(lambda x: (lamina.nn.softmax(x + 1), x.T * 2))
    compiled = jitted.lower(x).compile(target="cuda:sm_80")
    assert compiled.artifact.manifest["target"]["kind"] == "cuda"
    rows = compiled.artifact.manifest["device_kernels"]
    for symbol, row in rows.items():
        assert row["launches"][0]["name"] == f"{symbol}_0"
        assert compiled.artifact.objects[f"{symbol}.cubin"].startswith(b"\x7fELF")
        assert b".target sm_80" in compiled.artifact.objects[f"{symbol}.ptx"]
    assert len(rows) == 2
    assert compiled.as_text("ptx").count(".entry") == 2
    assert "gpu.shuffle" in compiled.as_text("gpu")
    with pytest.raises(ValueError, match="no stage 'asm'; there are .* ptx"):
        compiled.as_text("asm")
    with pytest.raises(RuntimeError, match="can't be run: .*compiled.artifact.objects"):
        compiled(x)
    again = jitted.lower(x).compile(target=Target("cuda", "sm_80"))
    assert again.artifact.objects == compiled.artifact.objects


def test_what_a_gpu_can_t_do_names_its_line() -> None:
    x = lamina.ShapeDtypeStruct((1 << 33, 1000), np.float32)

    def called(x):
        return x.sum(1)

    with pytest.raises(CompileError, match=r"(?s)blocks, more than a GPU can.*test_cuda.py:.*called"):
        lamina.jit(called).lower(x).compile(target="cuda")


def test_there_is_no_cuda_device() -> None:
    missing = r"no libcuda.so.1\): beside pip install 'lamina\[cuda\]', .*driver"
    with pytest.raises(RuntimeError, match=f"(?s)backend: 'cuda' .*{missing}.*compile.target='cuda:sm_90a'"):
        lamina.devices("cuda")


def test_what_the_assembler_refuses_it_says() -> None:
    wrong = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { add.s32 %r0, %r1, 1; ret; }"
    with pytest.raises(ValueError, match=r"(?s)refuses the generated PTX.*line 4.*instruction 'add'"):
        assemble(wrong, "sm_80")
    for unknown in ("sm_999", "sm_70", "90a", ""):  # of which nvJitLink may die
        with pytest.raises(TargetError, match=f"unknown GPU architecture {unknown!r}"):
            assemble(wrong, unknown)


def test_without_the_assembler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(CudaUnavailable, match=r"pip install 'lamina\[cuda\]'"):
        cubin._nvjitlink.__wrapped__()


def test_the_assembler_s_log_is_read() -> None:
    log = """ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 4068 bytes smem"""
    used = resources(log)["k"]
    assert (used.registers, used.shared_bytes, used.stack_bytes) == (32, 4068, 8)
    assert (used.spill_stores, used.spill_loads) == (4, 12)
