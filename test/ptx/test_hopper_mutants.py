"""What copies and products of sm_90a are told, spoiled: the emulator of PTX refuses it, or gives other results. So it
is read as the kernel means it, and each part matters."""

from __future__ import annotations

import functools
import os
import re
import unittest.mock
from collections.abc import Callable
from typing import Any

import numpy as np
import own_programs
import pytest
from own_programs import PtxProgram
from support import cuda_classes
from support.ptx import PtxError

_DESCRIPTOR = re.compile(r"(or\.b64\s+%rd\d+, %rd\d+, )(46116\d{14});")
_SWIZZLE, _FROM_ROWS = 62, 32
_KERNELS = ["wgmma: fused", "wgmma: tf32_right"][: 2 if os.environ.get("LAMINA_TEST_EXAMPLES") else 1]


@functools.cache
def _program(name: str) -> tuple[PtxProgram, list[np.ndarray]]:
    (found,) = [one for one in cuda_classes.classes() if one.name == name]
    with unittest.mock.patch.object(cuda_classes, "Program", PtxProgram):
        program = found.program("sm_90a")
    return program, program.run()


def _is_seen(name: str, texts: dict[str, str]) -> bool:
    program, right = _program(name)
    try:
        found = program.run(texts)
    except PtxError:
        return True
    return not all(np.array_equal(f, r, equal_nan=True) for f, r in zip(found, right, strict=True))


def _spoiled(descriptor: int) -> dict[str, int]:
    """Other descriptors, by what is wrong with them. Neither factor of these products has a second block."""
    return {
        "no swizzle": descriptor & ~(3 << _SWIZZLE),
        "swizzle of 64 bytes": descriptor & ~(3 << _SWIZZLE) | 2 << _SWIZZLE,
        "swizzle of 32 bytes": descriptor | 3 << _SWIZZLE,
        "groups of rows too near": descriptor - (1 << _FROM_ROWS),
        "groups of rows too far": descriptor + (8 << _FROM_ROWS),
    }


@pytest.mark.parametrize("name", _KERNELS)
def test_descriptors(name: str) -> None:
    program, _ = _program(name)
    missed, tried = [], 0
    for kernel, compiled in program.kernels.items():
        for constant in dict.fromkeys(m[2] for m in _DESCRIPTOR.finditer(compiled.ptx)):
            for what, other in _spoiled(int(constant)).items():
                text = re.sub(rf"(?<= ){constant};", f"{other};", compiled.ptx, count=1)
                tried += 1
                if not _is_seen(name, {kernel: text}):
                    missed.append((kernel, constant, what))
    assert tried and not missed, missed


def _changed(part: str, numbers: list[int], place: int) -> list[int]:
    """Half a number; of strides, which are multiples of 16, the next."""
    other = numbers[place] + 16 if part == "strides" else numbers[place] // 2
    return [other if n == place else number for n, number in enumerate(numbers)]


def _spoiled_map(
    whole: Callable[..., Any], number: int, part: str, place: int, described: dict[str, Any],
    operands: list[np.ndarray],
) -> Any:  # fmt: skip
    """What `_tensor_map` would give of a map with another number in it."""
    if described["parameter"] == number:
        described = {**described, part: _changed(part, list(described[part]), place)}
    return whole(described, operands)


@pytest.mark.parametrize("name", _KERNELS)
def test_tensor_maps(name: str) -> None:
    program, _ = _program(name)
    whole = own_programs._tensor_map
    count = max(len(launch.tensor_maps) for k in program.kernels.values() for launch in k.launches)
    missed = []
    for number in range(count):
        for part, place in (("box", 0), ("box", 1), ("strides", 0), ("sizes", 1)):
            spoiled = functools.partial(_spoiled_map, whole, number, part, place)
            with unittest.mock.patch.object(own_programs, "_tensor_map", spoiled):
                if not _is_seen(name, {}):
                    missed.append((number, part, place))
    assert count and not missed, missed


@pytest.mark.parametrize("name", _KERNELS)
def test_bytes_that_are_waited_for(name: str) -> None:
    program, _ = _program(name)
    for kernel, compiled in program.kernels.items():
        spoiled, count = re.subn(
            r"(mbarrier\.arrive\.expect_tx\S* %rd\d+, \[\S+\], )%r\d+;", r"\g<1>128;", compiled.ptx, count=1
        )
        if count:
            assert _is_seen(name, {kernel: spoiled})
