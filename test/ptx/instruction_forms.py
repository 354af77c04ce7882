"""Writes docs/cuda-instructions.md: which forms of instructions lamina's kernels have, and whose programs prove what
the emulator makes of them.

    .venv/bin/python test/ptx/instruction_forms.py

Takes some minutes: it runs every program of other compilers, and compiles every class of kernel and every sample.
"""

from __future__ import annotations

import re
import sys
import unittest.mock
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import cuda_programs
import test_cuda_samples
import triton_programs
from kept_ptx import run_cuda, run_triton
from support import cuda_classes
from support.cuda_program import Program
from support.ptx.launch import Program as Emulated
from support.ptx.syntax import Instruction, Scope, parse
from support.samples.primitives import ROWS

from lamina import lax

_PAGE = Path(__file__).parents[2] / "docs" / "cuda-instructions.md"
_HEAD = """# Instructions of the kernels, and who proves them

The tests run lamina's kernels as they are assembled in an emulator of PTX (`test/support/ptx`). What that emulator
makes of an instruction was read, not seen. It is proven where a program that another compiler made, and that is
known to run on GPUs, gives NumPy's results in it: `test/ptx` has {others} such programs, {triton} of Triton's and
{cuda} in CUDA C++ by NVRTC, with CUB's primitives, for sm_80 and sm_90.

Of {forms} forms of instructions in the kernels of the tests, for sm_80 and sm_90a, {proven} are executed by such
programs and {unproven} by lamina's kernels only. The page is written by `test/ptx/instruction_forms.py`.
"""


def forms_in(text: str) -> set[str]:
    """The forms of instructions that stand in a text."""
    return {name for function in parse(text).functions.values() for name in _names(function.body)}


def _names(scope: Scope | None) -> Iterator[str]:
    for item in scope.body if scope is not None else ():
        if isinstance(item, Scope):
            yield from _names(item)
        elif isinstance(item, Instruction):
            yield item.name


def meaning(form: str) -> str:
    """A form as another one that the PTX ISA says is the same: what is left out where it is the default, and bits of
    loads and stores by size, for which only signs matter."""
    form = form.replace("shared::cta", "shared").replace(".tile", "")
    return re.sub(r"^((?:ld|st)\..*)\.[uf](\d+)$", r"\1.b\2", form)


def proofs() -> dict[str, str]:
    """The first program that executes a form, by its meaning."""
    found: dict[str, str] = {}
    whole = Emulated.launch

    def run(compiler: str, name: str, work: object) -> None:
        def launch(self: Emulated, *arguments: object, **options: object) -> Counter[str]:
            counts = whole(self, *arguments, **options)  # type: ignore[arg-type]
            for step in counts:
                found.setdefault(meaning(step.split(": ", 1)[1]), f"{compiler}: {name}")
            return counts

        with unittest.mock.patch.object(Emulated, "launch", launch):
            work()  # type: ignore[operator]

    for arch in (80, 89, 90):
        for triton in triton_programs.PROGRAMS:
            if arch in triton.architectures:
                run("Triton", triton.name, lambda p=triton, a=arch: run_triton(p, a))
        for cuda in cuda_programs.PROGRAMS:
            if arch in cuda.architectures:
                run("NVRTC", cuda.name, lambda p=cuda, a=arch: run_cuda(p, a))
    return found


def own_texts() -> Iterator[str]:
    """PTX of lamina's kernels."""
    for arch in ("sm_80", "sm_90a"):
        for one in cuda_classes.classes():
            if arch == "sm_80" and "wgmma" in one.name:
                continue
            yield from (kernel.ptx for kernel in one.program(arch).kernels.values())
        for row in ROWS:
            if str(row).startswith(test_cuda_samples._LOOPS):
                continue
            program = Program(
                lambda *a, row=row: row.function(lax, *a), *row.arrays(), arch=arch
            )
            yield from (kernel.ptx for kernel in program.kernels.values())


def main() -> None:
    proven = proofs()
    own: set[str] = set()
    for text in own_texts():
        own |= forms_in(text)
    bad = sorted(form for form in own if meaning(form) not in proven)
    good = sorted(form for form in own if meaning(form) in proven)
    triton = sum(len(p.architectures) for p in triton_programs.PROGRAMS)
    cuda = sum(len(p.architectures) for p in cuda_programs.PROGRAMS)
    counts = {"forms": len(own), "proven": len(good), "unproven": len(bad)}
    lines = [_HEAD.format(others=triton + cuda, triton=triton, cuda=cuda, **counts)]
    lines += ["## Unproven\n", *(f"- `{form}`" for form in bad)]
    lines += ["\n## Proven\n", "| form | executed by, for one |", "|---|---|"]
    lines += [f"| `{form}` | {proven[meaning(form)]} |" for form in good]
    _PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
