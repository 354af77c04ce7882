"""MLIR's own passes on a module, with pass managers that are kept."""

from __future__ import annotations

from typing import Any

from lamina.dialects.context import kept_with
from lamina.dialects.vendors import PassManager, ir


def run_upstream(module: ir.Module, text: str, verify: bool = False) -> None:
    """Run the passes of a pipeline in MLIR's notation. No handle on an op of the module is valid
    afterwards."""
    _manager(module.context, text, verify).run(module.operation)


def _manager(context: ir.Context, text: str, verify: bool) -> PassManager:
    """A pass manager for these passes, one for each thread.

    Kept because it is dear to start: each `canonicalize` collects the patterns of all dialects the
    first time it runs, which takes longer than running it on a kernel.
    """
    kept: dict[Any, PassManager] = kept_with(context)
    found = kept.get((PassManager, text, verify))
    if found is None:
        found = PassManager.parse(f"builtin.module({text})", context)
        found.enable_verifier(verify)
        if "stablehlo-refine-arguments" not in text:  # each run of it adds the types once more
            kept[PassManager, text, verify] = found
    return found
