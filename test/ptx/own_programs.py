"""Runs a whole program of lamina's by the PTX of its kernels, as it is assembled."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from support import ptx
from support.simt.program import Program

_ELEMENTS: dict[int, Any] = {0: np.uint8, 6: np.float16, 9: ml_dtypes.bfloat16, 11: np.float32}
"""By the driver's number of a tensor map's type."""
_TF32 = 11


class PtxProgram(Program):
    """A program whose kernels run in the emulator of PTX; `texts` of `run` are PTX."""

    def call(self, name: str, operands: list[np.ndarray], texts: dict[str, str]) -> None:
        kernel = self.kernels[name]
        emulated = ptx.Program(texts.get(name, kernel.ptx))
        scratch = np.full(kernel.scratch_bytes, 0xAB, np.uint8)
        given = [ptx.Pointer(array) for array in operands]
        for launch in kernel.launches:
            maps = [_tensor_map(one, operands) for one in launch.tensor_maps]
            pointers = [*given, ptx.Pointer(scratch), *maps]
            emulated.launch(
                launch.name,
                launch.grid,
                launch.block,
                pointers,
                launch.dynamic_shared_bytes,
                self.seed,
            )

    seed = 0
    """Of the order in which blocks run."""


def _tensor_map(described: dict[str, Any], operands: list[np.ndarray]) -> ptx.TensorMap:
    array = operands[described["parameter"]]
    size = np.dtype(_ELEMENTS[described["type"]]).itemsize
    return ptx.TensorMap(
        ptx.Pointer(array, described["offset"]), size, described["sizes"], described["strides"], described["box"],
        rounds=described["type"] == _TF32,
    )  # fmt: skip
