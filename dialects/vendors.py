"""The one importer of the MLIR wheel; everyone else takes MLIR's names from here.

Importing it costs 0.1-0.2 s and 100 MB, so callers above import it inside functions.
Upstream dialect modules (`func`, `linalg`, `scf`, ...) load when first asked for.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

# A dialect without a Python module costs a failed import for every op handle made: 30 us each.
for _name in ("stablehlo", "chlo", "vhlo"):
    sys.modules.setdefault(
        f"torch_mlir.dialects.{_name}", types.ModuleType(f"torch_mlir.dialects.{_name}")
    )

from torch_mlir import ir, rewrite  # noqa: E402
from torch_mlir._mlir_libs import _stablehlo as stablehlo_ext  # noqa: E402
from torch_mlir._mlir_libs import _torchMlir as _torch_ext  # noqa: E402
from torch_mlir.passmanager import PassManager  # noqa: E402

stablehlo_ext.register_stablehlo_passes()

DIALECT_MODULES = (
    "arith", "bufferization", "builtin", "cf", "complex", "func", "gpu", "linalg", "llvm", "math",
    "memref", "nvgpu", "nvvm", "scf", "tensor", "transform", "vector",
)  # fmt: skip

__all__ = ["PassManager", "ir", "load_dialects", "rewrite", "stablehlo_ext", *DIALECT_MODULES]


def __getattr__(name: str) -> Any:
    if name not in DIALECT_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"torch_mlir.dialects.{name}")
    globals()[name] = module
    return module


def load_dialects(context: ir.Context) -> None:
    """Load StableHLO and CHLO into a context; upstream dialects load by themselves when met."""
    stablehlo_ext.register_dialect(context)
    # CHLO has no registration call, but a Torch pass depends on it and loads it.
    _torch_ext.register_dialect(context)
    with context, ir.Location.unknown():
        PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))").run(
            ir.Module.create().operation
        )
