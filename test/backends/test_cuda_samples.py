"""Every sample of a primitive compiles to cubins and gives the CPU's values in the emulator of PTX, for sm_80 and
sm_90a. A few rows are tried by default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.cuda_program import Program
from support.samples.primitives import ROWS
from support.samples.sample import Sample

import lamina
from lamina import lax

_LOOPS = ("betainc_grad", "igamma", "random_gamma_grad", "regularized_incomplete_beta")
"""The emulator does kernels; loops around them are the runtime's."""
_UP_TO_PHASE = ("eigh(", "svd(")
_IN_ANY_ORDER = ("eig(", "schur(")
"""What else is true of them, `test_cuda_ops.py` checks."""

_ROUNDED_OFTEN = {2: 3e-2}  # narrow floats are rounded at each step, elsewhere than on the CPU


_ALL = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))
_TRIED = [
    (row, arch)
    for n, row in enumerate(ROWS)
    for m, arch in enumerate(("sm_80", "sm_90a"))
    if _ALL or (n % 17 == 0 and n % 2 == m and not str(row).startswith(_LOOPS))
]


def _eigenvalues(x: np.ndarray) -> np.ndarray:
    """Their real parts in order, of eigenvalues or of a triangle."""
    return np.sort((np.diagonal(x, 0, -2, -1) if x.ndim > 1 else x).real)


@pytest.mark.parametrize("sample, arch", _TRIED, ids=[f"{row} {arch}" for row, arch in _TRIED])
def test_sample(sample: Sample, arch: str) -> None:
    def function(*arrays):
        return sample.function(lax, *arrays)

    arrays = sample.arrays()
    if str(sample).startswith(_LOOPS):
        compiled = lamina.jit(function).lower(*arrays).compile(target=f"cuda:{arch}")
        assert any(name.endswith(".cubin") for name in compiled.artifact.objects)
        return
    program = Program(function, *arrays, arch=arch)
    if not program.kernels:  # the result is an argument
        return
    for kernel in program.kernels.values():
        code, used = kernel.cubin(program.target)
        assert code.startswith(b"\x7fELF")
        assert all(one.spill_loads == one.stack_bytes == 0 for one in used.values())
    wanted = lamina.tree.leaves(lamina.jit(function)(*arrays))
    results = program.run()
    if str(sample).startswith(_IN_ANY_ORDER):
        found, value = (_eigenvalues(np.asarray(x[0])) for x in (results, wanted))
        np.testing.assert_allclose(found, value, atol=1e-5, rtol=1e-4)
        return
    for found, value in zip(results, wanted, strict=True):
        value = np.asarray(value)
        small = value.dtype.itemsize == 2 and value.dtype.kind not in "iu"
        wide = np.float32 if small else value.dtype
        if str(sample).startswith(_UP_TO_PHASE):
            few = min(arrays[0].shape[-2:])  # what completes a basis is free
            found, value = np.abs(found)[..., :few], np.abs(value)[..., :few]
        np.testing.assert_allclose(
            found.astype(wide), value.astype(wide), atol=1e-5,
            rtol=_ROUNDED_OFTEN.get(value.dtype.itemsize, max(sample.rtol, 1e-4)),
        )  # fmt: skip
