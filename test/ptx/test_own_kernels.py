"""lamina's kernels as they are assembled, run in the emulator of PTX, against the CPU. Some are run by
default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os
import unittest.mock
from typing import Any

import numpy as np
import pytest
import test_cuda_samples
from own_programs import PtxProgram
from support import cuda_classes
from support.samples.primitives import ROWS
from support.samples.sample import Sample

import lamina
from lamina import lax

_ALL = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))
_ARCHITECTURES = ("sm_80", "sm_90a")
_SAMPLES = [
    (row, arch)
    for n, row in enumerate(ROWS)
    for m, arch in enumerate(_ARCHITECTURES)
    if not str(row).startswith(test_cuda_samples._LOOPS) and (_ALL or n % 60 == 17 + 30 * m)
]
_OTHERWISE = ("control: map", "ops: look_back", "ops: look_back_reverse")
"""Chaotic: the last bit of a sine decides the result. And blocks that wait for each other without a pause,
for which the emulator takes minutes. Benchmarks have no values."""
_SPREAD = {
    "sm_80": ("loops: softmax", "loops: columns", "ops: radix_sort", "products: f16_odd", "attention: f16_odd"),
    "sm_90a": ("wgmma: fused", "wgmma: conv_int8", "attention wgmma: widest"),
}


def _classes() -> list[tuple[cuda_classes.Class, str]]:
    found = []
    for one in cuda_classes.classes():
        if one.name.startswith("benchmarks") or one.name in _OTHERWISE:
            continue
        for arch in _ARCHITECTURES:
            if "wgmma" in one.name and arch == "sm_80":
                continue
            if _ALL or one.name in _SPREAD[arch]:
                found.append((one, arch))
    return found


_CLASSES = _classes()


def _assert_close(found: np.ndarray, wanted: Any, tolerance: float, least: float) -> None:
    wanted = np.asarray(wanted)
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.float32 if wanted.dtype.itemsize <= 2 else wanted.dtype
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=tolerance, atol=least)


@pytest.mark.parametrize("sample, arch", _SAMPLES, ids=[f"{row} {arch}" for row, arch in _SAMPLES])
def test_sample(sample: Sample, arch: str) -> None:
    def function(*arrays):
        return sample.function(lax, *arrays)

    arrays = sample.arrays()
    program = PtxProgram(function, *arrays, arch=arch)
    if not program.kernels:  # the result is an argument
        return
    wanted = lamina.tree.leaves(lamina.jit(function)(*arrays))
    results = program.run()
    if str(sample).startswith(test_cuda_samples._IN_ANY_ORDER):
        found, value = (test_cuda_samples._eigenvalues(np.asarray(x[0])) for x in (results, wanted))
        np.testing.assert_allclose(found, value, atol=1e-5, rtol=1e-4)
        return
    for found, value in zip(results, wanted, strict=True):
        value = np.asarray(value)
        if str(sample).startswith(test_cuda_samples._UP_TO_PHASE):
            few = min(arrays[0].shape[-2:])  # what completes a basis is free
            found, value = np.abs(found)[..., :few], np.abs(value)[..., :few]
        tolerance = test_cuda_samples._ROUNDED_OFTEN.get(
            value.dtype.itemsize, max(sample.rtol, 1e-4)
        )
        _assert_close(found, value, tolerance, 1e-5)


@pytest.mark.parametrize(
    "kernel, arch", _CLASSES, ids=[f"{one.name} {arch}" for one, arch in _CLASSES]
)
def test_class(kernel: cuda_classes.Class, arch: str) -> None:
    with unittest.mock.patch.object(cuda_classes, "Program", PtxProgram):
        program = kernel.program(arch)
    with lamina.enable_x64("f64" in kernel.name):
        wanted = lamina.tree.leaves(lamina.jit(kernel.function)(*kernel.arguments))
    for found, value in zip(program.run(), wanted, strict=True):
        wide = (
            np.asarray(value).astype(np.float64) if np.asarray(value).dtype.kind != "c" else value
        )
        largest = np.abs(wide)[np.isfinite(wide)].max(initial=1e-3)
        _assert_close(found, value, 2e-2, 2e-2 * float(largest))
