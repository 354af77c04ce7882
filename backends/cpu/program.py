"""A planned program for the CPU: its kernels' objects, and the entry that calls them."""

from __future__ import annotations

from lamina.backends.built import BuiltProgram
from lamina.backends.cpu.entry import ENTRY_SYMBOL, build_entry, entry_imports
from lamina.backends.kernels import compiled_kernels
from lamina.backends.planned import kernels_of, largest_team
from lamina.backends.target import Target
from lamina.dialects.vendors import ir
from lamina.runtime.store import Store


def build_program(planned: ir.Module, target: Target, store: Store | None) -> BuiltProgram:
    """Machine code for a planned module. Raises CompileError naming the op that can't be
    compiled."""
    kernels = compiled_kernels(kernels_of(planned), target, store)
    symbols = {function: kernel.symbol for function, kernel in kernels.items()}
    scratch_bytes = max((kernel.scratch_bytes for kernel in kernels.values()), default=0)
    entry = build_entry(planned, symbols, target, scratch_bytes)
    team = largest_team(planned)
    objects = {f"{kernel.symbol}.o": kernel.object for kernel in kernels.values()}
    objects[f"{ENTRY_SYMBOL}.o"] = entry
    imports = {symbol for kernel in kernels.values() for symbol in kernel.imports}
    return BuiltProgram(
        objects,
        symbols,
        team * scratch_bytes,
        {"entry": ENTRY_SYMBOL, "imports": sorted(imports | entry_imports(imports, team))},
    )
