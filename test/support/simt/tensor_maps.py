"""Tensor maps of the emulator: how a copy finds the box of a tensor that it is to bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina.dialects.vendors import ir
from support.simt import emulator as simt
from support.simt import mma as simt_mma


@dataclass
class Map:
    """A tensor map: what `cuTensorMapEncodeTiled` was told."""

    data: np.ndarray
    """Bytes from the tensor's beginning on."""
    element: np.dtype
    sizes: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]
    rounds: bool = False
    """Whether f32 are rounded to tf32."""

    def read(self, at: Sequence[int]) -> np.ndarray:
        """The bytes of the box at some coordinates, the innermost first; zeros outside."""
        found = np.zeros(tuple(reversed(self.box)), self.element)
        steps = [self.element.itemsize, *self.strides]
        grid = np.indices(found.shape)[::-1] + np.array(at).reshape(-1, *[1] * found.ndim)
        inside = np.all([(g >= 0) & (g < n) for g, n in zip(grid, self.sizes)], axis=0)
        byte = sum(g[inside] * step for g, step in zip(grid, steps))
        parts = byte[:, None] + np.arange(self.element.itemsize)
        found[inside] = self.data[parts].copy().view(self.element)[:, 0]
        return (simt_mma.round_to_tf32(found) if self.rounds else found).reshape(-1).view(np.uint8)


def maps_of(function: Any, arguments: Sequence[np.ndarray]) -> list[Map]:
    """The maps that a kernel says it is to be given, over its other arguments."""
    if "lamina.tensor_maps" not in function.attributes:
        return []
    found = []
    for each in function.attributes["lamina.tensor_maps"]:
        described = ir.DictAttr(each)
        argument, offset = (described[name].value for name in ("argument", "offset"))
        data = arguments[argument].reshape(-1).view(np.uint8)[offset:]
        element = simt._dtype(described["element"].value)
        sizes, strides, box = (list(described[name]) for name in ("sizes", "strides", "box"))
        rounds = str(described["element"].value) == "tf32"
        found.append(Map(data, element, sizes, strides, box, rounds))
    return found
