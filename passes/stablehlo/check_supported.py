"""Refuse what no backend compiles, naming the op and the user's line.

    stablehlo.custom_call @my_library(...)   ->   error: [custom_call] calls @my_library, ...

Expects calls of the program's own functions to be inlined. Refused are ops that talk to the
host (Python callbacks are fine), calls of code that is not here, and values that are no tensors of
known size, since nothing behind this pass would know what to do. Changes nothing.
example: test/passes/stablehlo/check_supported.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.types import DYNAMIC, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError, Pass
from lamina.passes.stablehlo.facts import PYTHON_CALLBACK
from lamina.passes.stablehlo.lapack import routine_of

_DEPRECATED = "is not supported: use the collective itself (stablehlo.all_reduce, ...)"
_NO_HOST = "compiled programs can't talk to the host while they run"
_REFUSED = {
    **dict.fromkeys(
        (
            "stablehlo.infeed",
            "stablehlo.outfeed",
            "stablehlo.send",
            "stablehlo.recv",
        ),
        _NO_HOST,
    ),
    **dict.fromkeys(
        ("stablehlo.async_start", "stablehlo.async_done", "stablehlo.cross-replica-sum"),
        _DEPRECATED,
    ),
}
_NOT_COMPUTING = frozenset(("builtin.module", "func.func", "func.return", "stablehlo.return"))


@dataclass(frozen=True)
class CheckSupported(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        known: set[ir.Type] = set()

        def visit(op: ir.Operation) -> ir.WalkResult:
            name = op.name
            if name in _REFUSED:
                raise CompileError.at(op, _REFUSED[name])
            if name == "func.call":  # all others have been inlined
                raise CompileError.at(
                    op,
                    f"calls @{op.attributes['callee'].value}, which is recursive",
                    "write the recursion as a loop (stablehlo.while)",
                )
            if name == "stablehlo.custom_call" and routine_of(op) is None:
                target = op.attributes["call_target_name"].value
                if target == PYTHON_CALLBACK:
                    return ir.WalkResult.ADVANCE
                raise CompileError.at(
                    op, f"calls @{target}, and this build has no function of that name"
                )
            if not name.startswith(("stablehlo.", "chlo.", "func.", "builtin.")):
                raise CompileError.at(op, "is no StableHLO operation")
            if name not in _NOT_COMPUTING:
                for value in op.results:
                    of = value.type
                    if of not in known:
                        _check_type(of, op)
                        known.add(of)
            return ir.WalkResult.ADVANCE

        for function in module.body.operations:
            operation = function.operation
            if operation.name == "func.func":
                for of in operation.attributes["function_type"].value.inputs:
                    _check_type(of, operation)
        _walk(module, visit)


def _walk(module: ir.Module, visit) -> None:
    """Walk, and let an exception of the visitor through as it is."""
    raised: list[Exception] = []

    def guarded(op: ir.Operation) -> ir.WalkResult:
        try:
            return visit(op)
        except CompileError as error:
            raised.append(error)
            return ir.WalkResult.INTERRUPT

    module.operation.walk(guarded, ir.WalkOrder.PRE_ORDER)
    if raised:
        raise raised[0]


def _check_type(of: ir.Type, op: ir.Operation) -> None:
    if str(of) == "!stablehlo.token":
        raise CompileError.at(op, f"orders side effects, and {_NO_HOST}")
    if not isinstance(of, ir.RankedTensorType):
        raise CompileError.at(op, f"has a value of type {of}; only arrays are supported")
    if DYNAMIC in of.shape:
        raise CompileError.at(
            op,
            f"has a value of type {of}, whose size depends on values",
            "give the program arguments of fixed shapes; sizes that the data decide are not "
            "supported",
        )
    if not str(of.element_type).startswith("!quant"):
        try:
            dtype_of(of)
        except TypeError:
            raise CompileError.at(
                op, f"has a value of type {of}, and there are no arrays of {of.element_type}"
            ) from None
