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
import pytest
from support import cuda_classes, cuda_program
from support.cuda_program import Program
from support.ptx import PtxError

_DESCRIPTOR = re.compile(r"(or\.b64\s+%rd\d+, %rd\d+, )(46116\d{14});")
_SWIZZLE, _FROM_ROWS = 62, 32
_ALL = [
    "wgmma: fused", "wgmma: conv", "wgmma: tf32_right", "wgmma: tf32_turned", "wgmma: f8", "wgmma: f8_turned",
    "wgmma: tokens", "wgmma: conv_weights", "attention wgmma: causal", "attention wgmma: f16_wide",
]  # fmt: skip
_EACH = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))
_KERNELS = _ALL if _EACH else _ALL[:2]
_FLAGS = re.compile(r"(?<=p, 1, 1, )(\d(?:, \d)?)(?=;)")


@functools.cache
def _program(name: str) -> tuple[Program, list[np.ndarray]]:
    (found,) = [one for one in cuda_classes.classes() if one.name == name]
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
        "a step further along k": descriptor + 2,
    }


@pytest.mark.parametrize("name", _KERNELS if _EACH else _ALL[:1])
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


@pytest.mark.parametrize("name", _KERNELS)
def test_layouts(name: str) -> None:
    """Which way factors of 16 bits lie, for each product."""
    program, _ = _program(name)
    missed = []
    for kernel, compiled in program.kernels.items():
        for found in _FLAGS.finditer(compiled.ptx):
            flags = found[1].split(", ")
            for n, flag in enumerate(flags):
                other = ", ".join([*flags[:n], str(1 - int(flag)), *flags[n + 1 :]])
                text = compiled.ptx[: found.start()] + other + compiled.ptx[found.end() :]
                if not _is_seen(name, {kernel: text}):
                    missed.append((kernel, compiled.ptx[: found.start()].count("\n") + 1, n))
    assert not missed, missed


@pytest.mark.parametrize("name", [name for name in _KERNELS if "conv" in name or "turned" in name])
def test_swizzles_by_threads(name: str) -> None:
    """Of what threads copy to where products read."""
    program, _ = _program(name)
    for kernel, compiled in program.kernels.items():
        if "wgmma" in compiled.ptx:
            text, count = re.subn(r"\bxor\.b(32|64)", r"add.s\1", compiled.ptx)
            assert count and _is_seen(name, {kernel: text})


def _changed(part: str, numbers: list[int], place: int) -> list[int]:
    """Half a number; of strides, which are multiples of 16, the next."""
    other = numbers[place] + 16 if part == "strides" else numbers[place] // 2
    return [other if n == place else number for n, number in enumerate(numbers)]


def _spoiled_map(
    whole: Callable[..., Any], number: int, part: str, place: int, described: dict[str, Any],
    operands: list[np.ndarray],
) -> Any:  # fmt: skip
    """What `tensor_map` would give of a map with another number in it."""
    if described["parameter"] == number:
        described = {**described, part: _changed(part, list(described[part]), place)}
    return whole(described, operands)


@pytest.mark.parametrize("name", _KERNELS)
def test_tensor_maps(name: str) -> None:
    program, _ = _program(name)
    whole = cuda_program.tensor_map
    launches = [launch for k in program.kernels.values() for launch in k.launches]
    described = {one["parameter"] for launch in launches for one in launch.tensor_maps}
    missed = []
    for number in described:
        for part, place in (("box", 0), ("box", 1), ("strides", 0), ("sizes", 1)):
            spoiled = functools.partial(_spoiled_map, whole, number, part, place)
            with unittest.mock.patch.object(cuda_program, "tensor_map", spoiled):
                if not _is_seen(name, {}):
                    missed.append((number, part, place))
    assert described and not missed, missed


@pytest.mark.parametrize("name", _KERNELS)
def test_bytes_that_are_waited_for(name: str) -> None:
    program, _ = _program(name)
    for kernel, compiled in program.kernels.items():
        spoiled, count = re.subn(
            r"(mbarrier\.arrive\.expect_tx\S* %rd\d+, \[\S+\], )%r\d+;", r"\g<1>128;", compiled.ptx, count=1
        )
        if count:
            assert _is_seen(name, {kernel: spoiled})
