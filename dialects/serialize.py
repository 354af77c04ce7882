"""A module as text, as MLIR bytecode, or as a versioned StableHLO portable artifact."""

from __future__ import annotations

import io

from lamina.dialects.vendors import PassManager, ir, stablehlo_ext


def to_text(module: ir.Module, *, debug_info: bool = False, verified: bool = False) -> str:
    """MLIR text that parses again; with source locations if debug_info. Of a module that is not
    known to be `verified`, that is done first."""
    return module.operation.get_asm(enable_debug_info=debug_info, assume_verified=verified)


def to_bytecode(module: ir.Module, *, debug_info: bool = True) -> bytes:
    """MLIR bytecode: compact, readable by the same MLIR version."""
    out = io.BytesIO()
    (module if debug_info else _without_locations(module)).operation.write_bytecode(out)
    return out.getvalue()


def to_portable_artifact(
    module: ir.Module, *, version: str | None = None, debug_info: bool = True
) -> bytes:
    """StableHLO's own format, which any newer version reads, and older ones back to `version`.

    By default that is what was current 12 weeks before this MLIR. The module, which is left as it
    is, must hold only StableHLO, CHLO and func ops.
    """
    if version is None:
        window = stablehlo_ext.StablehloCompatibilityRequirement.WEEK_12
        version = stablehlo_ext.get_version_from_compatibility_requirement(window)
    # Serialising turns the module itself into VHLO, so it is given a copy.
    copy = _clone(module) if debug_info else _without_locations(module)
    with module.context:
        return stablehlo_ext.serialize_portable_artifact(copy, version)


def _clone(module: ir.Module) -> ir.Module:
    with module.context:
        return ir.Module.parse(to_bytecode(module))


def _without_locations(module: ir.Module) -> ir.Module:
    copy = _clone(module)
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(copy.operation)
    return copy
