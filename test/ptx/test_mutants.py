"""A kernel of lamina's without one of its barriers, waits or fences is refused in the emulator of PTX, or gives other
results: each is needed, and the emulator sees it."""

from __future__ import annotations

import functools
import os
import re
import unittest.mock

import numpy as np
import pytest
from own_programs import PtxProgram
from support import cuda_classes
from support.ptx import PtxError

_KERNELS = {
    "loops: softmax": "sm_80",
    "ops: sort_long": "sm_80",
    "products: f16_odd": "sm_80",
    "wgmma: fused": "sm_90a",
    "wgmma: tf32_right": "sm_90a",
}
_HOPPER = re.compile(
    r"\s*(bar\.sync \t0;|fence\.proxy|wgmma\.fence|wgmma\.wait_group\.sync\.aligned \t0;)"
)
"""What has an effect in few steps, too: a stage that is let go too early must be used again to show it."""
_NEEDED = re.compile(
    r"\s*(@!?%p\d+\s+)?(bar\.sync|bar\.warp\.sync|cp\.async\.wait_group|cp\.async\.commit_group|fence\.proxy\.async|"
    r"wgmma\.fence|wgmma\.wait_group|mbarrier\.arrive)"
)
_ALL = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))


@functools.cache
def _program(name: str) -> tuple[PtxProgram, list[np.ndarray]]:
    (found,) = [one for one in cuda_classes.classes() if one.name == name]
    with unittest.mock.patch.object(cuda_classes, "Program", PtxProgram):
        program = found.program(_KERNELS[name])
    return program, program.run()


@pytest.mark.parametrize(
    "name", _KERNELS if _ALL else ["loops: softmax", "products: f16_odd", "wgmma: tf32_right"]
)
def test_each_is_needed(name: str) -> None:
    program, right = _program(name)
    missed, tried = [], 0
    for kernel, compiled in program.kernels.items():
        lines = compiled.ptx.splitlines()
        for n, line in enumerate(lines):
            if not (_HOPPER if "wgmma" in name else _NEEDED).match(line):
                continue
            tried += 1
            text = "\n".join([*lines[:n], *lines[n + 1 :]])
            try:
                found = program.run({kernel: text})
            except PtxError:
                continue
            if all(np.array_equal(f, r, equal_nan=True) for f, r in zip(found, right)):
                missed.append(f"{kernel}, line {n + 1}: {line.strip()}")
    assert tried and not missed, missed
