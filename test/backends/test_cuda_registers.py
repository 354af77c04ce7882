"""What docs/cuda-registers.md says of each class of kernel for GPUs holds: registers, shared memory, no
spills, and the instructions that make it fast, in PTX and as the machine has them."""

from __future__ import annotations

import os

import cuda_registers
import pytest
from cuda_registers import ARCHITECTURES, INSTRUCTIONS
from support.cuda_classes import Class, classes

_CLASSES = classes()
_EACH = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))
_TABLE = cuda_registers.read()
_MARGIN = 8
_LOOKED_AT = 5  # one class of so many is disassembled by default


def test_every_class_is_in_the_table() -> None:
    assert list(_TABLE) == [one.name for one in _CLASSES], "`make gpu-registers` writes it anew"


def test_every_instruction_is_somewhere_in_the_table() -> None:
    said = " ".join(each.instructions for row in _TABLE.values() for each in row.values()).split()
    assert set(INSTRUCTIONS) <= set(said)


@pytest.mark.parametrize("number", range(len(_CLASSES)), ids=lambda n: _CLASSES[n].name)
def test_what_kernels_take(number: int) -> None:
    """For one architecture in turn (benchmarks: sm_90a), for each where examples are asked for. What the machine's
    code has, of some."""
    one: Class = _CLASSES[number]
    default = "sm_90a" if one.name.startswith("benchmarks") else ARCHITECTURES[number % 3]
    looks = _EACH or number % _LOOKED_AT == _LOOKED_AT - 1
    for arch in ARCHITECTURES if _EACH else (default,):
        found, said = cuda_registers.taken(one, arch, looks), _TABLE[one.name][arch]
        assert found.registers <= min(said.registers + _MARGIN, 255 + _MARGIN // 8), arch
        assert found.shared <= said.shared, arch
        assert found.instructions == said.instructions, arch
        if looks:
            assert found.code <= 1.1 * said.code + 16, arch
            assert _shapes(found.tensor) == _shapes(said.tensor), arch


def _shapes(tensor: str) -> set[str]:
    """Without calls, which are the assembler's choice."""
    return {*tensor.split()} - {"CALL"}
