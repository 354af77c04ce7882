"""A kernel as its text, and the symbol that names its code.

The symbol is the hash of the text, the target and everything that decides the code, so that equal
kernels are compiled once, cached and shared. Equal are also those whose ops stand in another order
(layers of a model differ in that where one of them is a little earlier in a gradient).
"""

from __future__ import annotations

import functools
import hashlib
import re

from lamina.backends.llvm_codegen import CodegenOptions
from lamina.backends.pipelines import ALL_PIPELINES, CPU_KERNEL_PREPARE
from lamina.backends.target import Target
from lamina.backends.versions import versions
from lamina.dialects.vendors import ir

_SYMBOL_DIGITS = 16
_HAVE_EFFECTS = ("stablehlo.custom_call", "stablehlo.rng")


def symbol_of(kernel: ir.Operation, target: Target) -> str:
    """`k_` and 16 hex digits that name the code of a kernel.

    Equal for functions that differ only in name, value names, locations, the recorded reason and
    the order of ops.
    """
    digest = _digest_of_rest(target).copy()
    digest.update(text_without_name(_in_order(kernel)).encode())
    return f"k_{digest.hexdigest()[:_SYMBOL_DIGITS]}"


def _in_order(kernel: ir.Operation) -> ir.Operation:
    """A copy of a kernel with its ops in an order that follows from what they compute: each behind
    its operands', for one result after the other. The kernel itself where that may not be."""
    copy = kernel.operation.clone(ip=False)
    block = copy.regions[0].blocks[0]
    *ops, end = (view.operation for view in block.operations)
    if any(op.name in _HAVE_EFFECTS or not op.name.startswith("stablehlo.") for op in ops):
        return kernel
    placed: set[ir.Operation] = set()
    pending = [(end, iter(_makers(end, block)))]
    while pending:  # depth first
        op, makers = pending[-1]
        maker = next((maker for maker in makers if maker not in placed), None)
        if maker is not None:
            pending.append((maker, iter(_makers(maker, block))))
            continue
        pending.pop()
        if pending and op not in placed:
            op.move_before(end)
            placed.add(op)
    for op in reversed(ops):
        if op not in placed:  # nothing needs it
            op.erase()
    return copy


def _makers(op: ir.Operation, block: ir.Block) -> list[ir.Operation]:
    """The ops of a block that make what an op uses, in its regions, too."""
    makers: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        owners = [value.owner for value in inner.operands]
        makers.extend(owner.operation for owner in owners if not isinstance(owner, ir.Block))
        return ir.WalkResult.ADVANCE

    if not len(op.regions):
        visit(op)
        return makers
    op.walk(visit)
    return [maker for maker in makers if maker.block == block]


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
    known = versions()
    of_mlir_and_llvm = known["torch-mlir"], known["llvmlite"]
    rest = repr((target, ALL_PIPELINES, CPU_KERNEL_PREPARE, CodegenOptions(), of_mlir_and_llvm))
    return hashlib.sha256(rest.encode() + b"\0")
