"""Write the kernels of ops that loops over their results don't describe: scatter, sort, and the like.

    func @f(%x: tensor<9xf32>) { %y = stablehlo.sort %x ...; return %y }
        ->  gpu.module @f_gpu { gpu.func @f_0(%x, %y, %scratch) kernel { ... } ... }
A function of one such op becomes kernels as `gpu-map-to-threads` makes them; constants and reshapes
may stand around the op. The op's regions are inlined as StableHLO on scalars, which later passes
lower. A function of kind attention becomes one kernel, its gradient two. All other functions are left alone.

example: test/passes/kernels/gpu/device/write_kernels.mlir
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.attributes import KIND, string_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.kernels.gpu.attention.gradient import write_attention_gradient
from lamina.passes.kernels.gpu.attention.kernel import write_attention
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.factorisations.eigenvectors import write_eig
from lamina.passes.kernels.gpu.factorisations.eigh import write_eigh
from lamina.passes.kernels.gpu.factorisations.factorisations import (
    write_hessenberg,
    write_lu,
    write_permutation,
    write_qr,
    write_reflected,
    write_reflectors,
)
from lamina.passes.kernels.gpu.factorisations.reflections import write_pivoted_qr, write_tridiagonal
from lamina.passes.kernels.gpu.factorisations.schur import write_schur
from lamina.passes.kernels.gpu.factorisations.singular_values import write_svd
from lamina.passes.kernels.gpu.factorisations.solvers import (
    write_cholesky,
    write_cholesky_update,
    write_triangular_solve,
    write_tridiagonal_solve,
)
from lamina.passes.kernels.gpu.fft import write_fft
from lamina.passes.kernels.gpu.scan.scan import write_scan
from lamina.passes.kernels.gpu.scatter.scatter import write_scatter
from lamina.passes.kernels.gpu.scatter.select_and_scatter import write_select_and_scatter
from lamina.passes.kernels.gpu.sort.merge_sort import write_sort, write_top_k
from lamina.passes.stablehlo.analysis.lapack import routine_of
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.passes.stablehlo.attention.outline_attention import ATTENTION
from lamina.passes.stablehlo.attention.outline_attention_gradient import GRADIENT

WRITERS: dict[str, Callable[[Job], None]] = {
    "stablehlo.scatter": write_scatter,
    "stablehlo.select_and_scatter": write_select_and_scatter,
    "stablehlo.sort": write_sort,
    "chlo.top_k": write_top_k,
    "stablehlo.fft": write_fft,
    "stablehlo.cholesky": write_cholesky,
    "stablehlo.triangular_solve": write_triangular_solve,
}

ROUTINES: dict[str, Callable[[Job], None]] = {
    "getrf": write_lu,
    "permutation": write_permutation,
    "geqrf": write_qr,
    "geqp3": write_pivoted_qr,
    "orgqr": write_reflectors,
    "ormqr": write_reflected,
    "gehrd": write_hessenberg,
    "gees": write_schur,
    "geev": write_eig,
    "sytrd": write_tridiagonal,
    "syevd": write_eigh,
    "gesdd": write_svd,
    "gesvd": write_svd,
    "gtsv": write_tridiagonal_solve,
    "cholesky_update": write_cholesky_update,
}
"""Custom calls of LAPACK's routines, by name."""


class WriteKernels(Pass):
    """See the module's docstring. `arch` is the GPU's architecture."""

    arch: str = "sm_90a"

    def run(self, module: ir.Module) -> None:
        for view in list(module.body.operations):
            op = written_op(view.operation)
            if op is not None:
                kind = string_of(view.operation, KIND)
                with view.operation.location:
                    job = Job(module, view.operation, op, whole=kind == GRADIENT)
                    if kind == ATTENTION:
                        write_attention(job, self.arch)
                    elif kind == GRADIENT:
                        write_attention_gradient(job)
                    else:
                        write = _writer(op)
                        assert write is not None
                        write(job)
                    job.finish()
                self.count(op.name)


def written_op(function: ir.Operation) -> ir.Operation | None:
    """The one op of a function that `gpu-write-kernels` writes kernels for, if it is such a one."""
    if function.name != "func.func" or not function.regions[0].blocks:
        return None
    if is_attention(function):
        block = function.regions[0].blocks[0]
        return block.operations[len(block.operations) - 1].operands[0].owner.operation
    found = None
    for view in function.regions[0].blocks[0].operations:
        op = view.operation
        if _writer(op) is not None and found is None and all(map(_has_elements, op.results)):
            found = op
        elif op.name not in ("stablehlo.constant", "stablehlo.reshape", "func.return"):
            return None
    return found


def is_attention(function: ir.Operation) -> bool:
    """Whether a function is attention that was outlined, or its gradient."""
    return string_of(function, KIND) in (ATTENTION, GRADIENT)


def is_exact(function: ir.Operation) -> bool:
    """Whether it is attention on f32, which every GPU can do by threads."""
    queries = function.regions[0].blocks[0].arguments[0].type
    return string_of(function, KIND) == ATTENTION and str(queries.element_type) == "f32"


def _writer(op: ir.Operation) -> Callable[[Job], None] | None:
    if op.name == "stablehlo.custom_call":
        return ROUTINES.get(routine_of(op) or "")
    if op.name == "stablehlo.reduce_window":
        return None if Scan.of(op, in_kernel=True) is None else write_scan
    return WRITERS.get(op.name)


def _has_elements(value: ir.Value) -> bool:
    return 0 not in value.type.shape
