"""Products on Hopper's tensor cores: emulated against the CPU, and launched by the runtime. What they are told is
spoiled one by one in `test/ptx/test_hopper_mutants.py`."""

from __future__ import annotations

import contextlib
import functools
import re
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import cuda_program
from support.cuda_program import Program
from support.fake_cuda import driver as fake_driver

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.passes.kernels.gpu.gemm import choice as product_choice
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, choose_tiling

_RANDOM = np.random.default_rng(0)
_BF16, _E4M3, _E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
_F32 = np.dtype(np.float32)


def _x(*shape: int, dtype: Any = _BF16) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return _RANDOM.integers(-100, 100, shape, dtype)
    return _RANDOM.normal(size=shape).astype(dtype)


def _wide(of: Any) -> Callable[..., Any]:
    return lambda x, w: lax.dot(x, w.T, preferred_element_type=of)


def tf32(x, w):
    return lax.dot(x, w, precision="tensorfloat32")


def convolved(x, w, strides=(1, 1), **options):
    layouts = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=layouts, **options)


def _gradient(which: int, **options: Any) -> Callable[..., Any]:
    """Of a convolution, with respect to its input or its weights."""
    return lambda x, w, y: lamina.vjp(lambda x, w: convolved(x, w, **options), x, w)[1](y)[which]


def _heads(q, k):
    return jnp.einsum("bqhd,bkhd->bhqk", q, k)


# name -> (function, arguments, columns of a tile)
PRODUCTS: dict[str, tuple[Callable, tuple, int]] = {
    "plain": (jnp.matmul, (_x(40, 200), _x(200, 56)), 64),
    "fused": (lambda x, w, b: lamina.nn.relu(x.T @ w.T + b), (_x(72, 136), _x(136, 72), _x(136)), 128),
    "heads": (_heads, (_x(2, 40, 2, 64), _x(2, 72, 2, 64)), 64),
    "gram_parts": (lambda x: x @ x.T, (_x(40, 320),), 64),
    "f8": (_wide(np.float32), (_x(40, 160, dtype=_E4M3), _x(72, 160, dtype=_E4M3)), 64),
    "int8": (_wide(np.int32), (_x(40, 160, dtype=np.int8), _x(264, 160, dtype=np.int8)), 256),
    # Several dimensions that lie in memory as one.
    "tokens": (lambda x, w: jnp.einsum("bsd,dhk->bshk", x, w), (_x(2, 20, 72), _x(72, 3, 24)), 64),
    "outer": (lambda x, y: jnp.einsum("bsd,bsn->dn", x, y), (_x(3, 40, 72), _x(3, 40, 136)), 128),
    # Factors that threads copy: of 8 and 32 bits, which do not lie along k, and windows.
    "tf32": (lambda x, w, b: jnp.tanh(tf32(x, w.T) / 9 + b),
             (_x(40, 100, dtype=_F32), _x(72, 100, dtype=_F32), _x(72, dtype=_F32)), 64),
    "tf32_turned": (lambda x, w: tf32(x.T, w), (_x(104, 140, dtype=_F32), _x(104, 136, dtype=_F32)), 128),
    "tf32_right": (tf32, (_x(40, 100, dtype=_F32), _x(100, 260, dtype=_F32)), 256),
    "f8_turned": (lambda x, w: lax.dot(x, w, preferred_element_type=np.float32),
                  (_x(40, 160, dtype=_E5M2), _x(160, 136, dtype=_E5M2)), 128),
    "int8_turned": (lambda x, w: lax.dot(x.T, w, preferred_element_type=np.int32),
                    (_x(272, 140, dtype=np.int8), _x(272, 72, dtype=np.int8)), 64),
    "conv": (lambda x, w, b: lamina.nn.relu(convolved(x, w, (2, 2)) + b),
             (_x(2, 9, 9, 24), _x(3, 3, 24, 136), _x(136)), 128),
    "conv_dilated": (functools.partial(convolved, rhs_dilation=(2, 1)), (_x(2, 7, 6, 16), _x(3, 2, 16, 72)), 64),
    "conv_input": (_gradient(0, strides=(2, 2)), (_x(2, 6, 6, 24), _x(3, 3, 24, 16), _x(2, 3, 3, 16)), 64),
    "conv_weights": (_gradient(1), (_x(2, 6, 7, 24), _x(3, 3, 24, 16), _x(2, 6, 7, 16)), 64),
    "conv_tf32": (functools.partial(convolved, precision="tensorfloat32"),
                  (_x(2, 7, 6, 12, dtype=_F32), _x(3, 2, 12, 136, dtype=_F32)), 128),
    "conv_int8": (functools.partial(convolved, preferred_element_type=np.int32),
                  (_x(2, 5, 6, 32, dtype=np.int8), _x(3, 3, 32, 72, dtype=np.int8)), 64),
}


# Of those, the factors that are copied as boxes, where that is not both.
BOXES = {"tf32_turned": 0, "tf32_right": 1, "f8_turned": 1, "int8_turned": 0, "conv": 1, "conv_dilated": 1,
         "conv_input": 0, "conv_weights": 1, "conv_tf32": 0, "conv_int8": 0}  # fmt: skip


@contextlib.contextmanager
def small_tiles() -> Iterator[None]:
    """Few stages, so that they come round soon; and deep sums in parts."""

    def chosen(sizes: Any, unit: Any, arch: str, largest: int = 128) -> Tiling:
        if not unit.is_warpgroup:
            return Tiling(unit, 32, 32, 64 // unit.bytes, 3, 1, 1)
        columns = max((edge for edge in (64, 128, 256) if edge <= sizes[2]), default=64)
        stages, parts = (2 if columns == 64 else 3), (2 if sizes[3] > 300 else 1)
        return Tiling(unit, 128, columns, 128 // unit.bytes, stages, parts)

    with unittest.mock.patch.object(product_choice, "choose_tiling", chosen):
        yield


@pytest.fixture(autouse=True)
def _small_products_too() -> Iterator[None]:
    with small_tiles():
        yield


_programs: dict[str, Program] = {}


def _program(name: str) -> Program:
    if name not in _programs:
        _programs[name] = Program(PRODUCTS[name][0], *PRODUCTS[name][1])
    return _programs[name]


@functools.cache
def _text(name: str) -> tuple[str, str]:
    kernels = _program(name).kernels.items()
    ((symbol, kernel),) = [each for each in kernels if "wgmma" in each[1].ptx]
    return symbol, kernel.texts["gpu"]


def _close(found: Any, wanted: Any) -> bool:
    found, wanted = (np.asarray(x, np.float32) for x in (found, wanted))
    return np.allclose(found, wanted, rtol=1e-2, atol=1e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("name", PRODUCTS)
def test_emulated(name: str) -> None:
    function, arguments, columns = PRODUCTS[name]
    program = _program(name)
    text, ptx = _text(name)[1], program.kernels[_text(name)[0]].ptx
    assert re.search(rf'lamina.tiling = "wgmma.\w+ 128x{columns}x', text)
    assert _close(program.run()[0], lamina.jit(function)(*arguments))
    assert f"wgmma.mma_async.sync.aligned.m64n{columns}k" in ptx and ".extern .shared .align 1024" in ptx
    boxes = BOXES.get(name, 2)
    assert text.count("box = ") == boxes and ("cp.async.bulk.tensor." in ptx) == (boxes > 0)
    assert ("fence.proxy.async.shared::cta" in ptx) == (boxes < 2)


def test_tf32_is_rounded_not_cut() -> None:
    """By the accelerator, whose boxes say so, and by threads."""

    def rounded(x):
        bits = np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)

    (x, w), (y, z) = PRODUCTS["tf32_right"][1], PRODUCTS["tf32_turned"][1]
    wanted = rounded(x) @ rounded(w)
    tight = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(_program("tf32_right").run()[0], wanted, **tight)
    np.testing.assert_allclose(_program("tf32_turned").run()[0], rounded(y.T) @ rounded(z), **tight)
    with unittest.mock.patch.object(cuda_program, "TF32", None):  # whose boxes are of f32
        (cut,) = _program("tf32_right").run()
    assert not np.allclose(cut, wanted, **tight)


@pytest.mark.parametrize("spec, shapes, dtype, options", [
    ("klms,lnk->smn", ((64, 4, 24, 2), (4, 24, 64)), _E4M3, {"preferred_element_type": np.float32}),
    ("hkmlb,knhbl->bhmn", ((2, 104, 24, 4, 1), (104, 72, 2, 1, 4)), _F32, {"precision": "tensorfloat32"}),
    ("bmk,bnk->bmn", ((1, 24, 64), (1, 72, 64)), _BF16, {}),
])  # fmt: skip
def test_runs_over_several_dimensions(spec: str, shapes: Any, dtype: Any, options: Any) -> None:
    """Which boxes take, but vectors of 16 bytes don't; and axes of one."""

    def product(x, w):
        return jnp.einsum(spec, x, w, **options)

    arguments = tuple(_x(*shape, dtype=dtype) for shape in shapes)
    assert _close(Program(product, *arguments).run()[0], lamina.jit(product)(*arguments))


@pytest.mark.parametrize("name", ["conv", "conv_weights", "conv_int8"])
def test_threads_copy_without_conflicts(name: str) -> None:
    program = _program(name)
    program.run(measures=True)
    assert not program.conflicts("cp.async")


@pytest.mark.parametrize("name", ["tokens", "tf32", "tf32_right", "f8_turned", "conv"])
def test_the_runtime_launches_them(name: str) -> None:
    function, arguments, _ = PRODUCTS[name]
    with fake_driver.installed(fake_driver.FakeDriver()) as driver:
        gpu = lamina.devices("cuda")[0]
        found = lamina.jit(function)(*(lamina.device_put(x, gpu) for x in arguments))
        assert _close(found, lamina.jit(function)(*arguments))
        assert driver.count("cuTensorMapEncodeTiled") == BOXES.get(name, 2)


def test_launched_by_the_runtime() -> None:
    """Maps of arguments and of temporaries, one by one and as a graph, whose addresses change."""

    def chain(x, w):
        y = x @ w
        return jnp.sum(y, axis=1), jnp.sum(y, axis=0), jnp.tanh(y) @ w

    with fake_driver.installed(fake_driver.FakeDriver()) as driver:
        gpu = lamina.devices("cuda")[0]
        run = lamina.jit(chain)
        for _ in range(3):
            arguments = _x(40, 72), _x(72, 72)
            found = run(*(lamina.device_put(x, gpu) for x in arguments))
            for got, wanted in zip(found, lamina.jit(chain)(*arguments), strict=True):
                assert _close(got, wanted)
        assert driver.count("cuTensorMapEncodeTiled") >= 12 and driver.count("cuGraphLaunch") == 2


def test_a_driver_without_tensor_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_driver.FakeDriver(version=11080, without=("cuTensorMapEncodeTiled",))
    with fake_driver.installed(old):
        x = lamina.device_put(_x(72, 72), lamina.devices("cuda")[0])
        with pytest.raises(RuntimeError, match="needs an NVIDIA driver of CUDA 12.0.*LAMINA_CUDA_ARCH"):
            lamina.jit(lambda x: x @ x)(x)
        monkeypatch.setenv("LAMINA_CUDA_ARCH", "sm_90")
        found = lamina.jit(lambda x: x @ x + 1)(x)
        assert _close(found, lamina.jit(lambda x: x @ x + 1)(np.asarray(x)))


def _of(*shape: int, dtype: Any = _BF16) -> Any:
    return lamina.ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize("function", [
    jnp.sqrt, lambda y: jnp.arctan2(y, 3), lambda y: (y.astype(jnp.float16) / 3 / y).astype(jnp.float32),
])  # fmt: skip
def test_nothing_after_products_makes_them_wait(function: Callable) -> None:
    """As a call of a function would, which divisions and roots are to the assembler."""
    x = _of(40, 100, dtype=_F32)
    with small_tiles():
        program = Program(lambda x, w: function(tf32(x, w.T)), x, x)
    (kernel,) = program.kernels.values()
    assert "wgmma.mma_async" in kernel.ptx
    (resources,) = kernel.cubin(program.target)[1].values()
    assert not resources.serialized and not resources.spill_stores


@pytest.mark.parametrize("function, arrays, arch, wanted", [
    (jnp.matmul, (_of(8192, 8192),) * 2, "sm_90a", "wgmma.bf16 128x256x64"),
    (jnp.matmul, (_of(8192, 8192),) * 2, "sm_90", "mma.bf16"),
    (jnp.matmul, (_of(8192, 8190), _of(8190, 8192)), "sm_90a", "mma.bf16"),  # rows are not aligned
    (tf32, (_of(4096, 4096, dtype=_F32),) * 2, "sm_90a", "wgmma.tf32 128x256x32"),
    (tf32, (_of(4096, 4096, dtype=_F32),) * 2, "sm_80", "mma.tf32"),
    (tf32, (_of(4096, 4096, dtype=_F32),) * 2, "sm_100a", "mma.tf32"),
    (tf32, (_of(4096, 4094, dtype=_F32), _of(4094, 4096, dtype=_F32)), "sm_90a", "mma.tf32"),
    (jnp.matmul, (_of(4096, 4096, dtype=_F32),) * 2, "sm_90a", "fma32"),  # which did not ask for it
    (jnp.matmul, (_of(4096, 4096, dtype=_E4M3),) * 2, "sm_90a", "wgmma.e4m3 128x256x128"),
    (jnp.matmul, (_of(4096, 4096, dtype=_E4M3),) * 2, "sm_100a", "mma.e4m3"),
    (convolved, (_of(32, 56, 56, 64), _of(3, 3, 64, 256)), "sm_90a", "wgmma.bf16 128x256x64"),
    (convolved, (_of(32, 56, 56, 3), _of(3, 3, 3, 256)), "sm_90a", "mma.bf16"),  # 6 bytes lie together
    (convolved, (_of(32, 56, 56, 64), _of(3, 3, 64, 256)), "sm_80", "mma.bf16"),
])  # fmt: skip
def test_large_products_use_it(
    monkeypatch: pytest.MonkeyPatch, function: Callable, arrays: tuple, arch: str, wanted: str
) -> None:
    monkeypatch.setattr(product_choice, "choose_tiling", choose_tiling)
    (kernel,) = Program(function, *arrays, arch=arch).kernels.values()
    assert f'lamina.tiling = "{wanted}' in kernel.texts["gpu"]
