"""One kernel function in StableHLO to one object file.

A kernel's symbol is the hash of its text, the target and everything that decides the code, so that
equal kernels are compiled once, cached and shared. ABI of the compiled function: bare pointers to
dense row-major data, the inputs, then the results that no input's buffer holds, then the scratch
region; it returns nothing.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass, field

from lamina.backends.cpu.libraries import library_kernel
from lamina.backends.llvm_codegen import CodegenOptions, Machine, emit
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

_SYMBOL_DIGITS = 16
_CONTRACTIONS = ("stablehlo.dot_general", "stablehlo.convolution")


@dataclass(frozen=True)
class KernelObject:
    """A compiled kernel. `imports` are the runtime symbols it calls; `texts` holds the stages that
    were asked for."""

    symbol: str
    object: bytes
    scratch_bytes: int
    imports: tuple[str, ...]
    texts: dict[str, str] = field(default_factory=dict)


def kernel_symbol(kernel: ir.Operation, target: Target) -> str:
    """`k_` and 16 hex digits that name the code `compile_kernel` would make of this function.

    Equal for functions that differ only in name, value names, locations and the recorded reason.
    """
    return _symbol(_text_without_name(kernel), target)


def compile_kernel(kernel: ir.Operation, target: Target, keep_texts: bool = False) -> KernelObject:
    """The object file of a `func.func` of StableHLO ops on static tensors, exporting its
    `kernel_symbol`.

    The function is left as it is. Raises CompileError naming the op that can't be compiled.
    With `keep_texts`, `texts` has the stages "linalg", "llvm" and "asm".
    """
    return emit_kernel(lower_kernel(kernel, target, keep_texts), target, keep_texts)


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel in LLVM IR: MLIR has done its part, LLVM has not."""

    symbol: str
    llvm_ir: str
    scratch_bytes: int
    codegen: CodegenOptions
    texts: dict[str, str]


def lower_kernel(kernel: ir.Operation, target: Target, keep_texts: bool = False) -> LoweredKernel:
    """MLIR's half of `compile_kernel`."""
    source = _text_without_name(kernel)
    symbol = _symbol(source, target)
    texts: dict[str, str] = {}
    with kernel.context, ir.Location.unknown():
        module = _module_of(kernel, symbol)
        written = library_kernel(module.body.operations[0].operation, symbol, target)
        if written is None:
            written = _generate(module, source, symbol, target, texts if keep_texts else None)
        elif keep_texts:
            texts["linalg"] = str(module)
        text, scratch = written
    # Small contractions live by unrolling, unless they are blocked by now; for all else it only
    # makes more code to compile.
    unroll = any(word in source for word in _CONTRACTIONS) and "@llvm.fmuladd.v" not in text
    codegen = CodegenOptions(level=2, unroll=unroll)
    return LoweredKernel(symbol, text, scratch, codegen, texts)


def emit_kernel(lowered: LoweredKernel, target: Target, keep_texts: bool = False) -> KernelObject:
    """LLVM's half of `compile_kernel`. Touches no MLIR and holds no Python lock while LLVM works,
    so
    that it can run beside the lowering of another kernel."""
    code = emit(
        lowered.llvm_ir,
        Machine(target.triple, target.cpu, target.features),
        lowered.codegen,
        keep_texts=keep_texts,
    )
    texts = dict(lowered.texts)
    if keep_texts:
        texts |= {"llvm": code.optimised or "", "asm": code.assembly or ""}
    return KernelObject(
        lowered.symbol, code.object, lowered.scratch_bytes, _imports(lowered.llvm_ir), texts
    )


def _generate(
    module: ir.Module, source: str, symbol: str, target: Target, texts: dict[str, str] | None
) -> tuple[str, int]:
    """LLVM IR of the kernel in a module, and the bytes of scratch it needs."""
    _check_shapes(module)
    _pipeline(_preparing(source) + CPU_KERNEL_LINALG).run(module)
    _check_lowered(module, ("stablehlo.", "chlo."))
    if texts is not None:
        texts["linalg"] = str(module)
    _pipeline(_for_target(CPU_KERNEL_LOOPS, target)).run(module)
    scratch = _scratch_bytes(module, symbol)
    _pipeline(CPU_KERNEL_LLVM).run(module)
    FinishKernel(target.vector_bits, symbol).run(module)
    _check_only_llvm(module)
    return llvm.translate_module_to_llvmir(module.operation), scratch


def _symbol(source: str, target: Target) -> str:
    digest = hashlib.sha256("\0".join((source, repr(target), _code_version())).encode())
    return f"k_{digest.hexdigest()[:_SYMBOL_DIGITS]}"


def _preparing(source: str) -> tuple[str, ...]:
    return tuple(stage for word, stage in CPU_KERNEL_PREPARE if word in source)


def _for_target(stages: tuple[str, ...], target: Target) -> tuple[str, ...]:
    return tuple(stage.replace("VECTOR_BITS", str(target.vector_bits)) for stage in stages)


def _module_of(kernel: ir.Operation, symbol: str) -> ir.Module:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = kernel.operation.clone()
    function.attributes["sym_name"] = ir.StringAttr.get(symbol)
    if "sym_visibility" in function.attributes:
        del function.attributes["sym_visibility"]
    return module


def _check_shapes(module: ir.Module) -> None:
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


def _check_lowered(module: ir.Module, dialects: tuple[str, ...]) -> None:
    left = _ops(module, lambda name: name.startswith(dialects) and name != "stablehlo.return")
    if left:
        raise CompileError.at(left[0], "the CPU backend has no lowering for this op here")


def _check_only_llvm(module: ir.Module) -> None:
    """Translation to LLVM IR crashes on other dialects, so none may be left."""
    left = _ops(module, lambda name: not name.startswith("llvm.") and name != "builtin.module")
    if left:
        raise CompileError.at(left[0], "not lowered to the llvm dialect")


def _ops(module: ir.Module, wanted) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op.name):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _scratch_bytes(module: ir.Module, symbol: str) -> int:
    for op in module.body.operations:
        if (
            op.operation.name == "func.func"
            and ir.StringAttr(op.attributes["sym_name"]).value == symbol
        ):
            arguments = op.regions[0].blocks[0].arguments
            return ir.MemRefType(arguments[len(arguments) - 1].type).shape[0]
    raise AssertionError("the kernel function is gone")


def _imports(text: str) -> tuple[str, ...]:
    declared = re.findall(r"^declare [^@]*@([\w.$]+)\(", text, re.MULTILINE)
    return tuple(sorted(name for name in declared if not name.startswith("llvm.")))


def _text_without_name(kernel: ir.Operation) -> str:
    text = kernel.operation.get_asm(
        enable_debug_info=False, use_local_scope=True, assume_verified=True
    )
    name = ir.StringAttr(kernel.operation.attributes["sym_name"]).value
    text = text.replace(f"@{name}", "@kernel", 1)
    text = re.sub(r'(, )?lamina\.reason = "[^"]*"', "", text, count=1)
    return text.replace("{, lamina.", "{lamina.", 1).replace(" attributes {} {", " {", 1)


@functools.cache
def _code_version() -> str:
    """What else decides the code: the pipelines and the versions of MLIR and LLVM."""
    from importlib.metadata import version

    pipelines = (CPU_KERNEL_PREPARE, CPU_KERNEL_LINALG, CPU_KERNEL_LOOPS, CPU_KERNEL_LLVM)
    return repr((pipelines, CodegenOptions(), version("torch-mlir"), version("llvmlite")))


@functools.cache
def _pipeline(stages: tuple[str, ...]) -> Pipeline:
    return Pipeline.of(*stages)
