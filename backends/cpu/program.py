"""A planned program for the CPU: its kernels' objects, and the entry that calls them."""

from __future__ import annotations

from concurrent.futures import Future

from lamina.backends import llvm_thread
from lamina.backends.built import BuiltProgram
from lamina.backends.cpu.entry import ENTRY_SYMBOL, emit_entry, entry_imports, entry_text
from lamina.backends.kernels import Kernels
from lamina.backends.planned import kernels_of, largest_team
from lamina.backends.target import Target
from lamina.dialects.vendors import ir


def build_program(planned: ir.Module, target: Target, program: Kernels) -> BuiltProgram:
    """Machine code for a planned module, of whose kernels some may have been offered already. Raises
    CompileError naming the op that can't be compiled."""
    kernels = program.distinct(kernels_of(planned))
    symbols = {name: kernel.symbol for name, kernel in kernels.items()}
    team = largest_team(planned)

    def entry(scratch_bytes: int) -> tuple[str, Future[bytes]]:
        text = entry_text(planned, symbols, scratch_bytes)
        return text, llvm_thread.submit(emit_entry, text, target)

    # Without calls at the same time the entry needs nothing of the kernels: LLVM makes it while the
    # first of them is lowered.
    early = entry(0) if team == 1 else None
    compiled = program.compiled(kernels.values()).values()
    scratch_bytes = max((kernel.scratch_bytes for kernel in compiled), default=0)
    text, code = early or entry(scratch_bytes)
    objects = {f"{kernel.symbol}.o": kernel.object for kernel in compiled}
    objects[f"{ENTRY_SYMBOL}.o"] = code.result()
    own = {kernel.symbol for kernel in compiled}  # with functions that kernels share
    imports = {symbol for kernel in compiled for symbol in kernel.imports} - own
    return BuiltProgram(
        objects,
        symbols,
        team * scratch_bytes,
        {"entry": ENTRY_SYMBOL, "imports": sorted(imports | entry_imports(text))},
    )
