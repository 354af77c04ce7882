"""Products on Hopper's tensor cores: emulated against the CPU, with descriptors, barriers and copies that
are spoiled one by one; and launched by the runtime."""

from __future__ import annotations

import contextlib
import functools
import re
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import fake_driver
import ml_dtypes
import numpy as np
import pytest
import simt
from simt_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.passes.gpu import product_choice
from lamina.passes.gpu.product_tiling import Tiling, choose_tiling

_RANDOM = np.random.default_rng(0)
_BF16, _E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def _x(*shape: int, dtype: Any = _BF16) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return _RANDOM.integers(-100, 100, shape, dtype)
    return _RANDOM.normal(size=shape).astype(dtype)


def _wide(of: Any) -> Callable[..., Any]:
    return lambda x, w: lax.dot(x, w.T, preferred_element_type=of)


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
}


@contextlib.contextmanager
def small_tiles() -> Iterator[None]:
    """Few stages, so that they come round soon; and deep sums in parts."""

    def chosen(sizes: Any, unit: Any, arch: str, largest: int = 128) -> Tiling:
        if not unit.is_warpgroup:
            return Tiling(unit, 32, 32, 64 // unit.bytes, 3, 1, 1)
        columns = next((c for _, a, c in PRODUCTS.values() if _is(sizes, a)), 64)
        stages, parts = (2 if columns == 64 else 3), (2 if sizes[3] > 300 else 1)
        return Tiling(unit, 128, columns, 128 // unit.bytes, stages, parts)

    with unittest.mock.patch.object(product_choice, "choose_tiling", chosen):
        yield


@pytest.fixture(autouse=True)
def _small_products_too() -> Iterator[None]:
    with small_tiles():
        yield


def _is(sizes: tuple[int, ...], arguments: tuple) -> bool:
    return sizes[3] in arguments[0].shape and set(sizes[1:3]) <= {n for a in arguments for n in a.shape}


_programs: dict[str, Program] = {}


def _program(name: str) -> Program:
    if name not in _programs:
        _programs[name] = Program(PRODUCTS[name][0], *PRODUCTS[name][1])
    return _programs[name]


@functools.cache
def _text(name: str) -> tuple[str, str]:
    ((symbol, kernel),) = _program(name).kernels.items()
    return symbol, kernel.texts["gpu"]


def _close(found: Any, wanted: Any) -> bool:
    found, wanted = (np.asarray(x, np.float32) for x in (found, wanted))
    return np.allclose(found, wanted, rtol=1e-2, atol=1e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("name", PRODUCTS)
def test_emulated(name: str) -> None:
    function, arguments, columns = PRODUCTS[name]
    program = _program(name)
    assert re.search(rf'lamina.tiling = "wgmma.\w+ 128x{columns}x', _text(name)[1])
    assert _close(program.run()[0], lamina.jit(function)(*arguments))
    (kernel,) = program.kernels.values()
    ptx = kernel.ptx
    assert f"wgmma.mma_async.sync.aligned.m64n{columns}k" in ptx
    assert "cp.async.bulk.tensor." in ptx and ".extern .shared .align 1024" in ptx


def _without_one(text: str, op: str, count: int) -> Iterator[str]:
    lines = text.split("\n")
    places = [n for n, line in enumerate(lines) if f" {op}" in line]
    assert len(places) == count, (op, len(places))
    for place in places:
        yield "\n".join(lines[:place] + lines[place + 1 :])


@pytest.mark.parametrize("op, count, what", [
    ("gpu.barrier", 1, "race"),
    ("nvvm.barrier", 2, "race"),
    ("nvvm.mbarrier.try_wait.parity", 2, "race|deadlock|expected"),
    ("nvvm.fence.mbarrier.init", 1, "race"),
    ("nvvm.wgmma.fence", 1, "race"),
    ("nvvm.wgmma.wait.group", 2, "race|deadlock"),
    ("nvvm.mbarrier.arrive.expect_tx", 1, "deadlock|expected"),
])  # fmt: skip
def test_nothing_that_orders_is_needless(op: str, count: int, what: str) -> None:
    symbol, text = _text("plain")
    for broken in _without_one(text, op, count):
        with pytest.raises(simt.SimtError, match=what):
            _program("plain").run({symbol: broken})


def test_wrong_descriptors_give_wrong_sums() -> None:
    """Offsets between blocks or between 8 rows, the swizzle, a step along k, a layout."""
    symbol, text = _text("plain")
    wanted = lamina.jit(jnp.matmul)(*PRODUCTS["plain"][1])
    bits = [int(n) for n in re.findall(r"arith.constant (\d{15,}) : i64", text)]
    assert len(set(bits)) == 2  # of rows along k, and of the other ones
    broken = [text.replace(str(n), str(n ^ change)) for n in bits for change in (1 << 33, 3 << 62)]
    broken.append(text.replace("layoutB = #nvvm.mma_layout<row>", "layoutB = #nvvm.mma_layout<col>")
                  .replace("<one>, <row>] :", "<one>, <col>] :"))  # fmt: skip
    broken.append(text.replace("arith.constant 32 : i64", "arith.constant 64 : i64"))
    for each in broken:
        assert each != text
        try:
            assert not _close(_program("plain").run({symbol: each})[0], wanted)
        except simt.SimtError:
            pass


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


def test_large_products_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_choice, "choose_tiling", choose_tiling)
    for inner, arch, wanted in [
        (8192, "sm_90a", "wgmma.bf16 128x256x64"),
        (8192, "sm_90", "mma.bf16"),
        (8190, "sm_90a", "mma.bf16"),  # rows are not aligned
    ]:
        arrays = [lamina.ShapeDtypeStruct(s, _BF16) for s in ((8192, inner), (inner, 8192))]
        program = Program(jnp.matmul, *arrays, arch=arch)
        (kernel,) = program.kernels.values()
        assert f'lamina.tiling = "{wanted}' in kernel.texts["gpu"]
