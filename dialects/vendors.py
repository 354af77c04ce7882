"""The one importer of the MLIR wheel; everyone else takes MLIR's names from here.

Importing it costs 0.1-0.2 s and 100 MB, so callers above import it inside functions.
Upstream dialect modules (`func`, `scf`, ...) load when something of theirs is first asked for.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import types
from typing import Any

from lamina.dialects.interrupts import uninterrupted

with uninterrupted():
    from torch_mlir import ir, rewrite
    from torch_mlir._mlir_libs import _mlir
    from torch_mlir._mlir_libs import _stablehlo as stablehlo_ext
    from torch_mlir._mlir_libs import _torchMlir as _torch_ext
    from torch_mlir.passmanager import PassManager

stablehlo_ext.register_stablehlo_passes()


def _c_function(name: str, result: Any, *arguments: Any) -> Any:
    library = os.path.join(os.path.dirname(_mlir.__file__), "libTorchMLIRAggregateCAPI.so")
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.PyDLL(library)))


_POINTER = ctypes.c_void_p
_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.argtypes, _pointer_in.restype = [ctypes.py_object, ctypes.c_char_p], _POINTER
_new_context = _c_function("LLVMContextCreate", _POINTER)
_translated = _c_function("mlirTranslateModuleToLLVMIR", _POINTER, _POINTER, _POINTER)
_text_of_module = _c_function("LLVMPrintModuleToString", _POINTER, _POINTER)
_free_text = _c_function("LLVMDisposeMessage", None, _POINTER)
_free_module = _c_function("LLVMDisposeModule", None, _POINTER)
_free_context = _c_function("LLVMContextDispose", None, _POINTER)


def translate_to_llvm_ir(module: ir.Operation) -> str:
    """LLVM's text of a module in its dialects. Raises RuntimeError where an op has no translation, which
    MLIR says on standard error.

    (The wheel's own function never frees the text, and ends the process instead of raising.)
    """
    context = _new_context()
    try:
        found = _translated(_pointer_in(module._CAPIPtr, b"torch_mlir.ir.Operation._CAPIPtr"), context)
        if not found:
            raise RuntimeError("the module can't be translated to LLVM IR")
        text = _text_of_module(found)
        _free_module(found)
        try:
            return ctypes.string_at(text).decode()
        finally:
            _free_text(text)
    finally:
        _free_context(context)


def _without_classes(dialect: str) -> None:
    """Let handles on a dialect's ops be plain ones. A dialect without a Python module costs a failed
    import for every handle, 30 us each; those of the others are megabytes that nobody uses."""
    name = f"torch_mlir.dialects.{dialect}"
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        _mlir.globals._check_dialect_module_loaded(dialect)
        del sys.modules[name]  # whoever wants the classes after all gets them


with uninterrupted():
    for _dialect in ("stablehlo", "chlo", "vhlo", "linalg", "llvm", "nvvm"):
        _without_classes(_dialect)

DIALECT_MODULES = (
    "arith", "bufferization", "builtin", "cf", "complex", "func", "gpu", "math", "memref",
    "nvgpu", "scf", "tensor", "vector",
)  # fmt: skip

_MADE = (*DIALECT_MODULES, "affine", "linalg", "llvm", "nvvm", "ub")

__all__ = [
    "PassManager", "ir", "load_dialects", "rewrite", "stablehlo_ext", "translate_to_llvm_ir",
    *DIALECT_MODULES,
]  # fmt: skip


class _Dialect(types.ModuleType):
    """The classes of a dialect's ops, imported when one of them is asked for: some two milliseconds each."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._classes(), name)

    def __dir__(self) -> list[str]:
        return dir(self._classes())

    def _classes(self) -> types.ModuleType:
        with uninterrupted():
            module = importlib.import_module(f"torch_mlir.dialects.{self.__name__}")
        vars(self).update((name, value) for name, value in vars(module).items() if name[:2] != "__")
        return module


def __getattr__(name: str) -> Any:
    if name not in DIALECT_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _Dialect(name))


def load_dialects(context: ir.Context) -> None:
    """Load StableHLO, CHLO and those of upstream's dialects whose ops passes make; others load by
    themselves when they are met in a text."""
    for name in _MADE:
        context.get_dialect_descriptor(name)
    stablehlo_ext.register_dialect(context)
    # CHLO has no registration call, but a Torch pass depends on it and loads it.
    _torch_ext.register_dialect(context)
    with context, ir.Location.unknown():
        PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))").run(
            ir.Module.create().operation
        )
