"""The entry function of a planned program: one object that calls the kernels in order.

    void lamina_entry(ptr* arguments, ptr* results, ptr arena)

Kernels take their buffers as bare pointers and, last, scratch memory, which begins where the
planned part of the arena ends. Little in it is left to optimise, so it is compiled fast.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lamina.backends.cpu.program_text import FAILED, ProgramText
from lamina.backends.llvm_codegen import CodegenOptions, TargetMachine, emit
from lamina.backends.target import Target
from lamina.dialects.attributes import ARENA_BYTES, ARGUMENTS
from lamina.dialects.vendors import ir

ENTRY_SYMBOL = "lamina_entry"

_PARAMETERS = "ptr %arguments, ptr %results, ptr %arena"
_LONGEST = 1024  # code
"""Lines of a function, after which it ends at the next step."""
_RUNTIME = re.compile(r"^declare [^@]*@(lamina_\w+)\(", re.MULTILINE)


def emit_entry(text: str, target: Target) -> bytes:
    """The object file of an entry function."""
    machine = TargetMachine(target.triple, target.cpu, target.features)
    # Calls and copies gain nothing from optimisation, and programs may have thousands. Scalars' products
    # are fused with sums, as in kernels.
    fuses = " fmul contract " in text
    return emit(text, machine, CodegenOptions(level=0, passes=(), select_fast=not fuses)).object


def entry_imports(text: str) -> set[str]:
    """The runtime's functions that the text of an entry calls itself."""
    return set(_RUNTIME.findall(text))


class _EntryText(ProgramText):
    """The steps of a program in functions of bounded length: LLVM takes more than twice the time for a
    function of twice the length."""

    def __init__(
        self, planned: ir.Module, symbols: Mapping[str, str], scratch_bytes: int
    ) -> None:
        super().__init__(planned, symbols, scratch_bytes)
        self._arguments = self.main.attributes[ARGUMENTS].value
        self._planned_bytes = self.main.attributes[ARENA_BYTES].value
        self._depth = 0
        self._functions: list[str] = []
        self._calls: list[str] = []

    def text(self) -> str:
        """The module with the entry."""
        buffers = len(self.main.regions[0].blocks[0].arguments) - 1
        self.places.append(self._scratch())
        self.steps([f"%p{number}" for number in range(buffers)], "%scratch", "%arena")
        if self._functions:
            self._cut()
            for name in self._calls:
                self.lines.append(f"  call void @{name}({_PARAMETERS})")
                if self.may_leave:
                    self._leave_if("lamina_failed")
        self._functions.append(self._function(ENTRY_SYMBOL, ""))
        return "\n".join([*self.header, *self._functions])

    def _scratch(self) -> str:
        return f"  %scratch = getelementptr i8, ptr %arena, i64 {self._planned_bytes}"

    def _block(self, block: ir.Block) -> None:
        self._depth += 1
        super()._block(block)
        self._depth -= 1

    def _base(self, pointer: str) -> str:
        number = int(pointer.removeprefix("%p"))
        array, index = "arguments", number
        if number >= self._arguments:
            array, index = "results", number - self._arguments
        self.places += (
            f"  %place{number} = getelementptr ptr, ptr %{array}, i64 {index}",
            f"  {pointer} = load ptr, ptr %place{number}",
        )
        return pointer

    def _between_steps(self) -> None:
        is_between = self._depth == 1 and not self.scalars and not self.asked_of_moving
        if len(self.lines) >= _LONGEST and is_between:
            self._cut()

    def _cut(self) -> None:
        """Make what is written so far a function of its own."""
        name = f"{ENTRY_SYMBOL}_{len(self._functions)}"
        self._functions.append(self._function(name, "internal "))
        self._calls.append(name)
        self.places = [self._scratch()]
        self.lines.clear()
        self.addresses.clear()

    def _function(self, name: str, linkage: str) -> str:
        failed = FAILED if self.may_leave else ""
        head = f"define {linkage}void @{name}({_PARAMETERS}) nounwind {{"
        return f"{head}\n{self._written()}\n  ret void\n{failed}}}\n"


def entry_text(planned: ir.Module, symbols: Mapping[str, str], scratch_bytes: int) -> str:
    """The entry function of a planned module as LLVM text; `symbols` maps its kernels to theirs.
    Where calls run at the same time, no kernel needs more than `scratch_bytes`."""
    return _EntryText(planned, symbols, scratch_bytes).text()
