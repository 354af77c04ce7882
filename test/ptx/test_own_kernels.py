"""lamina's kernels of older GPUs as they are assembled, run in the emulator of PTX, against the CPU: the classes that
the tests of backends run for sm_90a. Some are run by default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from support import cuda_classes

import lamina

_SPREAD = ("loops: softmax", "loops: columns", "ops: radix_sort", "products: f16_odd", "attention: f16_odd")
_CLASSES = [
    one
    for one in cuda_classes.classes()
    if not one.name.startswith("benchmarks") and "wgmma" not in one.name  # benchmarks have no values
    and (os.environ.get("LAMINA_TEST_EXAMPLES") or one.name in _SPREAD)
]  # fmt: skip


def _assert_close(found: np.ndarray, wanted: Any, tolerance: float, least: float) -> None:
    wanted = np.asarray(wanted)
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.float32 if wanted.dtype.itemsize <= 2 else wanted.dtype
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=tolerance, atol=least)


@pytest.mark.parametrize("kernel", _CLASSES, ids=lambda one: one.name)
def test_class(kernel: cuda_classes.Class) -> None:
    program = kernel.program("sm_80")
    with lamina.enable_x64("f64" in kernel.name):
        wanted = lamina.tree.leaves(lamina.jit(kernel.function)(*kernel.arguments))
    for found, value in zip(program.run(), wanted, strict=True):
        value = np.asarray(value)
        wide = value.astype(np.float64) if value.dtype.kind != "c" else value
        largest = np.abs(wide)[np.isfinite(wide)].max(initial=1e-3)
        _assert_close(found, value, 2e-2, 2e-2 * float(largest))
