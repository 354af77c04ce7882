"""One kernel function in StableHLO to PTX and a cubin.

A kernel becomes one or more GPU kernels, launched in order, `<symbol>_0`, `<symbol>_1`, ...: each
takes bare pointers to dense row-major data, aligned to 16 bytes: the inputs, the results that no
input's buffer holds, then scratch memory.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from lamina.backends.cuda.control import lower_control
from lamina.backends.cuda.cubin import Resources, assemble
from lamina.backends.kernel_source import module_of, symbol_of, text_without_name
from lamina.backends.llvm_codegen import CodegenOptions, TargetMachine, emit_assembly
from lamina.backends.lowering import (
    check_shapes,
    check_translatable,
    lower_to_linalg,
    preparing,
    run_pipeline,
    stages_for,
)
from lamina.backends.pipelines import (
    CUDA_KERNEL_GPU,
    CUDA_KERNEL_LLVM,
    CUDA_KERNEL_PREPARE,
    CUDA_KERNEL_WRITTEN,
    CUDA_NOT_BEFORE_WRITTEN,
)
from lamina.backends.target import Target
from lamina.dialects.attributes import (
    DYNAMIC_SHARED_BYTES,
    FORM,
    KIND,
    LIBRARY,
    SCRATCH_BYTES,
    TENSOR_MAPS,
    string_of,
)
from lamina.dialects.vendors import ir, translate_to_llvm_ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.write_kernels import is_attention, is_exact, written_op
from lamina.passes.kernels.gpu.gemm.library import plain
from lamina.passes.kernels.gpu.gemm.tiling import generation
from lamina.records import Record

_CODEGEN = CodegenOptions(level=3, passes=3, vectorise=False, in_order=True)  # ptxas orders anew
_HINT = "compile this function for 'cpu'"
_NOT_YET = "the CUDA backend has no lowering for this op yet"

_WITHOUT_LOWERING = (
    "chlo.top_k", "stablehlo.cholesky", "stablehlo.scatter", "stablehlo.select_and_scatter",
    "stablehlo.sort", "stablehlo.triangular_solve",
)  # fmt: skip
"""Ops that become serial loops on a CPU, whose names those would hide in errors."""


_MAP_TYPES = {"i8": 0, "f8E4M3FN": 0, "f8E5M2": 0, "f16": 6, "bf16": 9, "tf32": 11}


class Launch(Record):
    """One GPU kernel and the blocks and threads it is launched with."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_shared_bytes: int = 0
    """Of shared memory that the launch must ask for."""
    tensor_maps: tuple[dict[str, Any], ...] = ()
    """Further parameters, after the addresses: see `_tensor_map`."""

    def describe(self) -> dict[str, Any]:
        """For an artifact's manifest."""
        found: dict[str, Any] = {
            "grid": list(self.grid), "block": list(self.block), "name": self.name
        }  # fmt: skip
        if self.dynamic_shared_bytes:
            found["dynamic_shared_bytes"] = self.dynamic_shared_bytes
        if self.tensor_maps:
            found["tensor_maps"] = list(self.tensor_maps)
        return found


class CudaKernel(Record):
    """A compiled kernel; `texts` holds the stages linalg, gpu, llvm and ptx."""

    symbol: str
    launches: tuple[Launch, ...]
    scratch_bytes: int
    ptx: str
    texts: dict[str, str] = field(default_factory=dict)
    library: dict[str, Any] | None = None
    """What a library would be asked to do instead of all launches (`passes/kernels/gpu/gemm/library.py`)."""

    def cubin(self, target: Target) -> tuple[bytes, dict[str, Resources]]:
        """TargetMachine code, and what each launch takes. Raises CudaUnavailable without nvJitLink."""
        made = assemble(self.ptx, target.cpu)
        return made.code, made.kernels


def compile_kernel(kernel: ir.Operation, target: Target) -> CudaKernel:
    """PTX for a `func.func` of StableHLO ops on static tensors, which is left as it is.

    Raises CompileError naming the op that can't be compiled.
    """
    source = text_without_name(kernel)
    symbol = symbol_of(kernel, target)
    _check_supported(kernel)
    with kernel.context, ir.Location.unknown():
        module = module_of(kernel, symbol)
        if FORM in kernel.attributes:
            module, linalg = lower_control(module, symbol)
            texts = {"linalg": linalg, "gpu": str(module)}
        else:
            texts = _to_gpu(module, source, target)
        launches, scratch = _launches(module)
        device = module.body.operations[0].operation.attributes
        library = plain(device[LIBRARY]) if LIBRARY in device else None
        run_pipeline(_for_processor(target), module)
        check_translatable(module, ("llvm", "nvvm"))
        text = translate_to_llvm_ir(module.operation)
    _check_declared(text, kernel)
    machine = TargetMachine(target.triple, target.cpu, target.features)
    texts["llvm"], texts["ptx"] = emit_assembly(text, machine, _CODEGEN)
    return CudaKernel(symbol, launches, scratch, texts["ptx"], texts, library)


def _to_gpu(module: ir.Module, source: str, target: Target) -> dict[str, str]:
    """A function of StableHLO ops -> a gpu.module; the texts of the stages on the way."""
    (function,) = [op.operation for op in module.body.operations]
    if is_attention(function) and (is_exact(function) or generation(target.cpu) >= 80):
        texts = {"linalg": str(module)}
        run_pipeline(_for_target(CUDA_KERNEL_WRITTEN, target), module)
    elif written_op(function) is not None and not is_attention(function):
        check_shapes(module)
        before = [stage for stage in preparing(source, "CUDA") if stage not in CUDA_NOT_BEFORE_WRITTEN]
        run_pipeline(tuple(before), module)
        texts = {"linalg": str(module)}
        run_pipeline(_for_target(CUDA_KERNEL_WRITTEN, target), module)
    else:
        run_pipeline(stages_for(source, CUDA_KERNEL_PREPARE), module)
        lower_to_linalg(module, source, "CUDA")
        texts = {"linalg": str(module)}
        run_pipeline(_for_target(CUDA_KERNEL_GPU, target), module)
    return texts | {"gpu": str(module)}


def _for_processor(target: Target) -> tuple[str, ...]:
    """The pipeline to the llvm dialect: from sm_80 on, f32 is rounded to bf16 by one instruction."""
    native = "{native=bf16}" if generation(target.cpu) >= 80 else ""
    expand = "math-expand-small-floats"
    return tuple(stage + native if stage == expand else stage for stage in CUDA_KERNEL_LLVM)


def _for_target(stages: tuple[str, ...], target: Target) -> tuple[str, ...]:
    return tuple(stage.replace("ARCH", target.cpu) for stage in stages)


def _check_supported(kernel: ir.Operation) -> None:
    if written_op(kernel) is not None:
        return
    kind = string_of(kernel, KIND)
    if kind == "control":
        return
    if kind == "library":
        operations = [op.operation for op in kernel.regions[0].blocks[0].operations]
        first = next((op for op in operations if op.name != "stablehlo.constant"), kernel)
        raise CompileError.at(first, _NOT_YET, hint=_HINT)
    for op in find_ops(kernel, *_WITHOUT_LOWERING):
        if all(0 in result.type.shape for result in op.results):
            continue
        raise CompileError.at(op, _NOT_YET, hint=_HINT)


def _launches(module: ir.Module) -> tuple[tuple[Launch, ...], int]:
    found = []
    (device,) = [op.operation for op in module.body.operations]
    for op in device.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.func":
            attributes = op.operation.attributes
            dynamic, maps = DYNAMIC_SHARED_BYTES in attributes, TENSOR_MAPS in attributes
            found.append(
                Launch(
                    attributes["sym_name"].value,
                    tuple(attributes["known_grid_size"]),
                    tuple(attributes["known_block_size"]),
                    attributes[DYNAMIC_SHARED_BYTES].value if dynamic else 0,
                    tuple(map(_tensor_map, attributes[TENSOR_MAPS])) if maps else (),
                )
            )
    return tuple(found), device.attributes[SCRATCH_BYTES].value


def _tensor_map(described: ir.Attribute) -> dict[str, Any]:
    """A tensor map in numbers, for the driver: the parameter it lies in, bytes from there on, the
    element's number in CUtensorMapDataType, and for each dimension, the innermost first, size, stride
    in bytes (but for the innermost) and the box's length."""
    given = ir.DictAttr(described)
    return {
        "parameter": given["argument"].value,
        "offset": given["offset"].value,
        "type": _MAP_TYPES[str(given["element"].value)],
        **{name: list(given[name]) for name in ("sizes", "strides", "box")},
    }


def _check_declared(text: str, kernel: ir.Operation) -> None:
    """Refuse calls of functions that are on no GPU, such as those of the C library."""
    declared = re.findall(r"^declare [^@]*@([\w.$]+)\(", text, re.MULTILINE)
    missing = [name for name in declared if not name.startswith("llvm.")]
    if missing:
        raise CompileError.at(kernel, f"needs {missing[0]}, which the CUDA backend has not yet")
