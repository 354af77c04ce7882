"""Attention on Hopper's tensor cores: emulated against NumPy, and launched by the runtime. What it is told is spoiled
one by one in `test/ptx/test_hopper_mutants.py`."""

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
from support.attention_programs import heads, kernel_of, masked, some_see_nothing_at_first, x
from support.cuda_program import Program
from support.fake_cuda import driver as fake_driver

import lamina
import lamina.numpy as jnp
from lamina.backends.cuda.cubin import assemble
from lamina.passes.kernels.gpu.attention.wgmma_kernel import Tiles

_RANDOM = np.random.default_rng(0)
_BF16 = ml_dtypes.bfloat16


def _plain(q, k, v):
    return lamina.nn.softmax(q @ k.T) @ v


def _rows_of_two_dimensions(q, k, v):
    scores = jnp.einsum("ijd,kd->ijk", q, k) * _BF16(0.2)
    return jnp.einsum("ijk,kd->ijd", lamina.nn.softmax(scores), v)


# name -> (function, arguments)
PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "causal": (heads(is_causal=True), tuple(x(1, 200, 2, 64) for _ in range(3))),
    "f16_wide": (heads(scale=0.1), (x(1, 70, 1, 128, dtype=np.float16), x(1, 330, 1, 128, dtype=np.float16),
                                     x(1, 330, 1, 128, dtype=np.float16))),
    "widest": (heads(), (x(1, 40, 1, 256), x(1, 140, 1, 256), x(1, 140, 1, 256))),
    "groups_bias": (heads(scale=0.3), (x(2, 20, 4, 64), x(2, 70, 2, 64), x(2, 70, 2, 64),
                                        x(1, 4, 20, 70))),
}  # fmt: skip

# With small tiles, so that stages come round soon.
SMALL: dict[str, tuple[Callable, tuple]] = {
    "long": (heads(), (x(1, 100, 1, 64), x(1, 150, 1, 64), x(1, 150, 1, 64))),
    "causal_f16": (heads(is_causal=True), tuple(x(1, 140, 2, 64, dtype=np.float16) for _ in range(3))),
    "mask": (masked, (x(1, 9, 2, 72), x(1, 130, 2, 72), x(1, 130, 2, 72),
                       _RANDOM.random((1, 2, 9, 130)) > 0.3)),
    "odd": (_plain, (x(33, 48, dtype=np.float16), x(65, 48, dtype=np.float16),
                     x(65, 72, dtype=np.float16))),
    "infinite": (some_see_nothing_at_first, tuple(x(130, 40) for _ in range(3))),
    "one_query": (_plain, (x(1, 64), x(8, 64), x(8, 64))),
    "rows": (_rows_of_two_dimensions, (x(40, 8, 64), x(50, 64), x(50, 64))),
}  # fmt: skip


def _small(shape: Any) -> Tiles:
    boxes, value_boxes = -(-shape.width // 64), -(-shape.value_width // 64)
    return Tiles(64 if shape.queries <= 64 else 128, 32, boxes, value_boxes, 3, 2)


@contextlib.contextmanager
def _small_tiles() -> Iterator[None]:
    with unittest.mock.patch.object(Tiles, "of", _small):
        yield


@functools.cache
def _program(name: str) -> Program:
    if name in PROGRAMS:
        return Program(*_flat(PROGRAMS[name]))
    with _small_tiles():
        return Program(*_flat(SMALL[name]))


def _flat(row: tuple[Callable, tuple]) -> tuple[Any, ...]:
    return row[0], *row[1]


def _wanted(row: tuple[Callable, tuple]) -> np.ndarray:
    """In f32, by what keeps all scores."""
    function, arguments = row
    wide = [a.astype(np.float32) if a.dtype != bool else a for a in arguments]
    return np.asarray(lamina.jit(function)(*wide), np.float32)


@pytest.mark.parametrize("name", [*PROGRAMS, *SMALL])
def test_emulated(name: str) -> None:
    program, row = _program(name), {**PROGRAMS, **SMALL}[name]
    _, kernel = kernel_of(program)
    (launch,) = kernel.launches
    assert kernel.scratch_bytes == 0 and len(launch.tensor_maps) == 3
    found = program.run()[0].astype(np.float32)
    np.testing.assert_allclose(found, _wanted(row), rtol=2e-2, atol=2e-2)
    for what in ("wgmma.mma_async.sync.aligned.m64n", "cp.async.bulk.tensor.", "ex2.approx.ftz.f32"):
        assert what in kernel.ptx
    assert "mma.sync" not in kernel.ptx and "div.rn" not in kernel.ptx


def test_products_overlap() -> None:
    """The assembler says where they don't, as with a division, which is a call."""
    kernel, target = kernel_of(_program("long"))[1], _program("long").target
    (used,) = kernel.cubin(target)[1].values()
    assert not used.serialized
    ptx = re.sub(r"rcp.approx.ftz.f32\s+(%\w+), (%\w+);", r"div.rn.f32 \1, \2, \2;", kernel.ptx)
    (used,) = assemble(ptx, "sm_90a").kernels.values()
    assert used.serialized


def test_keys_that_no_query_sees_are_left_out() -> None:
    q, k, v = SMALL["causal_f16"][1]
    v = v.copy()
    v[:, 128:] = np.nan  # zero times that would be NaN
    with _small_tiles():
        (found,) = Program(SMALL["causal_f16"][0], q, k, v).run()
    seen = np.isfinite(found.astype(np.float32)).all((0, 2, 3))
    np.testing.assert_array_equal(seen, np.arange(140) < 128)


def test_launched_by_the_runtime() -> None:
    function, arguments = PROGRAMS["groups_bias"]
    with fake_driver.installed(fake_driver.FakeDriver()) as driver:
        gpu = lamina.devices("cuda")[0]
        found = lamina.jit(function)(*(lamina.device_put(x, gpu) for x in arguments))
        np.testing.assert_allclose(
            np.asarray(found, np.float32), _wanted(PROGRAMS["groups_bias"]), rtol=2e-2, atol=2e-2
        )
        assert driver.count("cuTensorMapEncodeTiled") == 3


@pytest.mark.parametrize("shape, dtype, arch, is_used", [
    ((2, 512, 4, 64), _BF16, "sm_90a", True),
    ((2, 512, 4, 256), np.float16, "sm_90a", True),
    ((2, 512, 4, 128), _BF16, "sm_90", False),
    ((2, 512, 4, 128), _BF16, "sm_80", False),
    ((2, 512, 4, 128), _BF16, "sm_100a", False),
    ((2, 512, 4, 32), _BF16, "sm_90a", False),  # most of a box would be empty
    ((2, 512, 4, 68), _BF16, "sm_90a", False),  # rows are not aligned
    ((2, 512, 4, 64), np.float32, "sm_90a", False),
])  # fmt: skip
def test_where_it_is_used(shape: tuple[int, ...], dtype: Any, arch: str, is_used: bool) -> None:
    arrays = [lamina.ShapeDtypeStruct(shape, dtype)] * 3
    _, kernel = kernel_of(Program(heads(is_causal=True), *arrays, arch=arch))
    assert ("wgmma" in kernel.ptx) == is_used
