"""Programs that Triton compiled give NumPy's results in the emulator of PTX: it reads PTX as GPUs do. Some are run by
default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os

import pytest
from counted_programs import COUNTED
from kept_ptx import assert_right, kept, run_triton
from triton_programs import PROGRAMS, Program

_ALL = [(program, arch) for program in PROGRAMS for arch in program.architectures]
_STEP = 1 if os.environ.get("LAMINA_TEST_EXAMPLES") else 6
_TRIED = [pair for n, pair in enumerate(_ALL) if n % _STEP == 0]


def test_every_program_is_kept() -> None:
    counted = {p.file(arch) for one in COUNTED for p in one.triton for arch in p.architectures}
    files = {program.file(arch) for program, arch in _ALL} | counted
    assert set(kept("triton")) == files | {"launches.json", "triton"}


@pytest.mark.parametrize("program, arch", _TRIED, ids=[f"{p.name} sm_{a}" for p, a in _TRIED])
def test_program(program: Program, arch: int) -> None:
    found, wanted = run_triton(program, arch)
    assert_right(found, wanted, program.tolerance)
