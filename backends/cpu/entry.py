"""The entry function of a planned program: one object that calls the kernels in order.

    void lamina_entry(ptr* arguments, ptr* results, ptr arena)

Kernels take their buffers as bare pointers and, last, scratch memory, which begins where the
planned part of the arena ends. Little in it is left to optimise, so it is compiled fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from lamina.backends.cpu.program_text import ProgramText
from lamina.backends.llvm_codegen import CodegenOptions, Machine, emit
from lamina.backends.target import Target
from lamina.dialects.attributes import ARENA_BYTES, ARGUMENTS
from lamina.dialects.vendors import ir

ENTRY_SYMBOL = "lamina_entry"

_FAILED = "failed:\n  ret void\n"  # after a callback that raised: its results are not there


def emit_entry(text: str, target: Target) -> bytes:
    """The object file of an entry function."""
    machine = Machine(target.triple, target.cpu, target.features)
    # Calls and copies gain nothing from optimisation, and programs may have thousands. Scalars' products
    # are fused with sums, as in kernels.
    fuses = " contract " in text
    return emit(text, machine, CodegenOptions(level=0, passes=(), select_fast=not fuses)).object


def entry_imports(kernel_imports: Set[str], team: int) -> set[str]:
    """The runtime's functions that the entry calls itself, where kernels call these, and up to
    `team` of them at a time."""
    found = {"lamina_failed"} if "lamina_python_callback" in kernel_imports else set()
    return found | ({"lamina_parallel_for"} if team > 1 else set())


def entry_text(planned: ir.Module, symbols: Mapping[str, str], scratch_bytes: int) -> str:
    """The entry function of a planned module as LLVM text; `symbols` maps its kernels to theirs.
    Where calls run at the same time, no kernel needs more than `scratch_bytes`."""
    program = ProgramText(planned, symbols, scratch_bytes)
    count = program.main.attributes[ARGUMENTS].value
    buffers = len(program.main.regions[0].blocks[0].arguments) - 1
    pointers, loads = [], []
    for number in range(buffers):
        array, index = ("arguments", number) if number < count else ("results", number - count)
        pointers.append(f"%p{number}")
        loads += [
            f"  %place{number} = getelementptr ptr, ptr %{array}, i64 {index}",
            f"  %p{number} = load ptr, ptr %place{number}",
        ]
    planned_bytes = program.main.attributes[ARENA_BYTES].value
    loads.append(f"  %scratch = getelementptr i8, ptr %arena, i64 {planned_bytes}")
    steps = program.steps(pointers, "%scratch", "%arena")
    head, body = "\n".join(loads), "\n".join(program.header)
    return (
        f"{body}\n"
        f"define void @{ENTRY_SYMBOL}(ptr %arguments, ptr %results, ptr %arena) nounwind {{\n"
        f"{head}\n{steps}\n  ret void\n{_FAILED if program.may_fail else ''}}}\n"
    )
