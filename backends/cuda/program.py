"""A planned program for a GPU: PTX and a cubin for each kernel, and what to launch, in order."""

from __future__ import annotations

from dataclasses import asdict

from lamina.backends.built import BuiltProgram
from lamina.backends.cpu.program_text import kernels_of
from lamina.backends.cuda.kernel import CudaKernel, compile_kernel
from lamina.backends.target import Target
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError
from lamina.runtime.store import Store


def build_program(planned: ir.Module, target: Target, store: Store | None) -> BuiltProgram:
    """PTX and cubins for a planned module.

    Raises CompileError naming the op that can't be compiled, CudaUnavailable without nvJitLink.
    """
    _check_control_flow(planned)
    kernels: dict[str, CudaKernel] = {}
    symbols: dict[str, str] = {}
    for name, function in kernels_of(planned).items():
        kernel = compile_kernel(function, target)
        kernels[kernel.symbol] = kernel
        symbols[name] = kernel.symbol
    objects: dict[str, bytes] = {}
    described = {}
    for symbol, kernel in kernels.items():
        code, resources = kernel.cubin(target)
        objects[f"{symbol}.ptx"] = kernel.ptx.encode()
        objects[f"{symbol}.cubin"] = code
        described[symbol] = {
            "scratch_bytes": kernel.scratch_bytes,
            "launches": [
                {"grid": list(one.grid), "block": list(one.block), "name": one.name}
                | asdict(resources[one.name])
                for one in kernel.launches
            ],
        }
    scratch = max((kernel.scratch_bytes for kernel in kernels.values()), default=0)
    return BuiltProgram(objects, symbols, scratch, {"device_kernels": described})


def _check_control_flow(planned: ir.Module) -> None:
    main = ir.SymbolTable(planned.operation)["main"].operation
    for op in main.regions[0].blocks[0].operations:
        if op.operation.name.startswith("scf."):
            raise CompileError.at(
                op.operation, "the CUDA backend has no control flow yet",
                hint="compile this function for 'cpu'",
            )  # fmt: skip
