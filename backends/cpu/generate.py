"""Functions of StableHLO ops on static tensors -> LLVM IR that does them in loops on buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from lamina.backends.pipelines import (
    CPU_KERNEL_LINALG,
    CPU_KERNEL_LLVM,
    CPU_KERNEL_LOOPS,
    CPU_KERNEL_PREPARE,
)
from lamina.backends.target import Target
from lamina.dialects.vendors import ir, llvm
from lamina.passes.base import CompileError
from lamina.passes.llvm.finish_kernel import FinishKernel
from lamina.passes.pipeline import Pipeline


@dataclass(frozen=True)
class Generated:
    """LLVM IR of functions that take their buffers and then scratch memory, of which each needs
    so many bytes."""

    llvm_ir: str
    scratch_bytes: dict[str, int]


def generate(
    module: ir.Module,
    source: str,
    target: Target,
    texts: dict[str, str] | None,
    public: str | None = None,
) -> Generated:
    """LLVM IR of the functions of a module, whose text `source` is.

    The function `public` is exported. Without one, all are made to be inlined into code that is
    added to the text. `texts` is given the stage "linalg".
    """
    lower_to_linalg(module, source, "CPU")
    if texts is not None:
        texts["linalg"] = str(module)
    run_pipeline(_for_target(CPU_KERNEL_LOOPS, target), module)
    scratch = _scratch_bytes(module)
    run_pipeline(CPU_KERNEL_LLVM, module)
    FinishKernel(target.vector_bits, public or "", inline=public is None).run(module)
    check_translatable(module, ("llvm.",))
    return Generated(llvm.translate_module_to_llvmir(module.operation), scratch)


def lower_to_linalg(module: ir.Module, source: str, backend: str) -> None:
    """Functions of StableHLO ops -> linalg on tensors, for any backend. `source` is the text."""
    check_shapes(module)
    run_pipeline(preparing(source) + CPU_KERNEL_LINALG, module)
    _check_lowered(module, ("stablehlo.", "chlo."), backend)


def run_pipeline(stages: tuple[str, ...], module: ir.Module) -> None:
    """Run the passes of a pipeline, which is built once."""
    _pipeline(stages).run(module)


@functools.cache
def _pipeline(stages: tuple[str, ...]) -> Pipeline:
    return Pipeline.of(*stages)


def preparing(source: str) -> tuple[str, ...]:
    """What must be done before with a kernel of this text."""
    return tuple(stage for word, stage in CPU_KERNEL_PREPARE if word in source)


def _for_target(stages: tuple[str, ...], target: Target) -> tuple[str, ...]:
    return tuple(stage.replace("VECTOR_BITS", str(target.vector_bits)) for stage in stages)


def check_shapes(module: ir.Module) -> None:
    """Refuse sizes that are not known: nothing below may assume that they are."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                dynamic.append(op)
        return ir.WalkResult.ADVANCE

    dynamic: list[ir.Operation] = []
    module.operation.walk(visit)
    if dynamic:
        raise CompileError.at(dynamic[0], f"a result of dynamic size {dynamic[0].results[0].type}")


def _check_lowered(module: ir.Module, dialects: tuple[str, ...], backend: str) -> None:
    left = _ops(module, lambda name: name.startswith(dialects) and name != "stablehlo.return")
    if left:
        raise CompileError.at(left[0], f"the {backend} backend has no lowering for this op here")


def check_translatable(module: ir.Module, dialects: tuple[str, ...]) -> None:
    """Translation to LLVM IR crashes on other dialects than these, so none may be left."""
    left = _ops(module, lambda name: not name.startswith(dialects) and name != "builtin.module")
    if left:
        raise CompileError.at(left[0], "not lowered to the llvm dialect")


def _ops(module: ir.Module, wanted: Callable[[str], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op.name):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _scratch_bytes(module: ir.Module) -> dict[str, int]:
    """The size of each public function's last argument."""
    found = {}
    for op in module.body.operations:
        if op.operation.name == "func.func" and "sym_visibility" not in op.attributes:
            arguments = op.regions[0].blocks[0].arguments
            name = ir.StringAttr(op.attributes["sym_name"]).value
            found[name] = ir.MemRefType(arguments[len(arguments) - 1].type).shape[0]
    return found
