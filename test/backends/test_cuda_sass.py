"""What the assembler makes of instructions that are not the same on every GPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program
from support.cuda_sass import disassembled

import lamina.numpy as jnp
from lamina.dialects.context import make_context
from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.gemm.mma import mma_unit


@pytest.mark.parametrize("arch, generation", [("sm_89", 89), ("sm_90a", 90), ("sm_100a", 100), ("sm_120a", 120)])
def test_f8_cost_what_the_assembler_makes_of_them(arch: str, generation: int) -> None:
    x = np.zeros((64, 72), ml_dtypes.float8_e4m3fn)  # rows of no multiple of 16 bytes: not by warpgroups
    program = Program(lambda x, y: jnp.matmul(x, y, preferred_element_type=np.float32), x, x.T.copy(), arch=arch)
    (kernel,) = program.kernels.values()
    code, found = kernel.cubin(program.target)
    assert ".e4m3.e4m3." in kernel.ptx
    by_f16 = disassembled(code, set(found)).tensor.startswith("HMMA")
    with make_context():
        f8 = mma_unit("e4m3", ir.Float8E4M3FNType.get(), generation)
        f16 = mma_unit("f16", ir.F16Type.get(), generation)
    assert (f8.rate == f16.rate) == by_f16
