"""Programs in CUDA C++ that NVRTC compiled, many of them of CUB, give NumPy's results in the emulator of PTX."""

from __future__ import annotations

import os

import pytest
from cuda_programs import PROGRAMS, Program
from kept_ptx import assert_right, kept, run_cuda

_ALL = [(program, arch) for program in PROGRAMS for arch in program.architectures]
_STEP = 1 if os.environ.get("LAMINA_TEST_EXAMPLES") else 6
_TRIED = [pair for n, pair in enumerate(_ALL) if n % _STEP == 0]


def test_every_program_is_kept() -> None:
    assert set(kept("cuda")) == {program.file(arch) for program, arch in _ALL}


@pytest.mark.parametrize("program, arch", _TRIED, ids=[f"{p.name} sm_{a}" for p, a in _TRIED])
def test_program(program: Program, arch: int) -> None:
    found, wanted = run_cuda(program, arch)
    assert_right(found, wanted, program.tolerance)
