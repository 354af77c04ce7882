"""A kernel as its text, and the symbol that names its code.

The symbol is the hash of the text, the target and everything that decides the code, so that equal
kernels are compiled once, cached and shared.
"""

from __future__ import annotations

import functools
import hashlib
import re

from lamina.backends.llvm_codegen import CodegenOptions
from lamina.backends.pipelines import ALL_PIPELINES, CPU_KERNEL_PREPARE
from lamina.backends.target import Target
from lamina.dialects.vendors import ir

_SYMBOL_DIGITS = 16


def symbol_of(source: str, target: Target) -> str:
    """`k_` and 16 hex digits that name the code of a kernel whose `text_without_name` this is.

    Equal for functions that differ only in name, value names, locations and the recorded reason.
    """
    digest = _digest_of_rest(target).copy()
    digest.update(source.encode())
    return f"k_{digest.hexdigest()[:_SYMBOL_DIGITS]}"


def module_of(kernel: ir.Operation, symbol: str) -> ir.Module:
    """A module with a copy of the kernel under this name."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = kernel.operation.clone()
    function.attributes["sym_name"] = ir.StringAttr.get(symbol)
    if "sym_visibility" in function.attributes:
        del function.attributes["sym_visibility"]
    return module


def text_without_name(kernel: ir.Operation) -> str:
    """A kernel's text, without what does not decide its code."""
    text = kernel.operation.get_asm(
        enable_debug_info=False, use_local_scope=True, assume_verified=True
    )
    name = ir.StringAttr(kernel.operation.attributes["sym_name"]).value
    text = text.replace(f"@{name}", "@kernel", 1)
    text = re.sub(r'(, )?lamina\.reason = "[^"]*"', "", text, count=1)
    return text.replace("{, lamina.", "{lamina.", 1).replace(" attributes {} {", " {", 1)


@functools.cache
def _digest_of_rest(target: Target) -> hashlib._Hash:
    """Of what else decides the code: the target, the pipelines and the versions of MLIR and LLVM."""
    from importlib.metadata import version

    versions = version("torch-mlir"), version("llvmlite")
    rest = repr((target, ALL_PIPELINES, CPU_KERNEL_PREPARE, CodegenOptions(), versions))
    return hashlib.sha256(rest.encode() + b"\0")
