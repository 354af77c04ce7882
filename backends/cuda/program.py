"""A planned program for a GPU: PTX and a cubin for each kernel, and the plan of what to launch."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from lamina.backends.built import BuiltProgram
from lamina.backends.cuda.kernel import CudaKernel, compile_kernel
from lamina.backends.cuda.launch_plan import is_callback, is_collective, launch_plan
from lamina.backends.planned import kernels_of, main_of
from lamina.backends.target import Target
from lamina.dialects.attributes import ARENA_BYTES
from lamina.dialects.context import context, parse
from lamina.dialects.types import tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.product_choice import implementation_of
from lamina.runtime.cuda import CONSTANTS


def build_program(planned: ir.Module, target: Target) -> BuiltProgram:
    """PTX and cubins for a planned module.

    Raises CompileError naming the op that can't be compiled, CudaUnavailable without nvJitLink.
    """
    kernels: dict[str, CudaKernel] = {}
    symbols: dict[str, str] = {}
    for name, function in kernels_of(planned).items():
        if is_callback(function) or is_collective(function):
            continue
        kernel = compile_kernel(function, target)
        kernels[kernel.symbol] = kernel
        symbols[name] = kernel.symbol

    def fill_kernel(element: np.ndarray, count: int) -> str:
        made = _fill_kernel(element, count, target)
        kernels[made.symbol] = made
        return made.symbol

    with planned.context:
        plan = launch_plan(planned, symbols, fill_kernel)
    products = implementation_of(planned.operation)
    chosen = {"choose": products} if products in ("kernel", "library") else {}  # packed products are CPUs'
    objects: dict[str, bytes] = {CONSTANTS: plan.constants} if plan.constants else {}
    described = {}
    for symbol, kernel in kernels.items():
        code, resources = kernel.cubin(target)
        objects[f"{symbol}.ptx"] = kernel.ptx.encode()
        objects[f"{symbol}.cubin"] = code
        described[symbol] = {
            "scratch_bytes": kernel.scratch_bytes,
            "launches": [
                one.describe() | asdict(resources[one.name]) for one in kernel.launches
            ],
        }
        if kernel.library is not None:
            described[symbol]["library"] = kernel.library | chosen
    scratch = max((kernel.scratch_bytes for kernel in kernels.values()), default=0)
    main = main_of(planned)
    manifest = {
        "device_kernels": described,
        "launch_plan": plan.steps,
        "scratch": main.attributes[ARENA_BYTES].value,
    }
    return BuiltProgram(objects, symbols, scratch, manifest)


def _fill_kernel(element: np.ndarray, count: int, target: Target) -> CudaKernel:
    """The kernel that writes an element `count` times."""
    with context(), ir.Location.unknown():
        of = tensor_type((count,), element.dtype)
    parts = element.view(element.real.dtype) if element.dtype.kind == "c" else element
    written = [
        f"0x{part.tobytes()[::-1].hex().upper()}" if part.dtype.kind == "f" else str(int(part))
        for part in parts
    ]
    value = f"({', '.join(written)})" if len(written) > 1 else written[0]
    text = f"""func.func @fill() -> {of} attributes {{lamina.kind = "loop", lamina.reason = ""}} {{
      %0 = stablehlo.constant dense<{value}> : {of}
      return %0 : {of}
    }}"""
    module = parse(text)
    return compile_kernel(module.body.operations[0].operation, target)
