"""Refuse what no backend compiles, naming the op and the user's line.

    stablehlo.custom_call @my_library(...)   ->   error: [custom_call] calls @my_library, ...

Expects calls of the program's own functions to be inlined. Refused are ops that talk to the
host (Python callbacks are fine), calls of code that is not here, and values that are no tensors of
known size, since nothing behind this pass would know what to do. Changes nothing.
example: test/passes/stablehlo/legalize/check_supported.mlir
"""

from __future__ import annotations

from lamina.dialects.types import DYNAMIC, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.stablehlo.analysis.facts import PYTHON_CALLBACK, callback_index
from lamina.passes.stablehlo.analysis.lapack import problem_of_call, routine_of

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


class CheckSupported(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            operation = function.operation
            if operation.name == "func.func":
                for of in operation.attributes["function_type"].value.inputs:
                    _check_type(of, operation)
        self._inside(module.operation, set(), set())

    def _inside(self, op: ir.Operation, types: set[ir.Type], names: set[str]) -> None:
        """Check the ops in an op, outer ones first. `types` and `names` are those known to be fine."""
        for region in op.regions:
            for block in region.blocks:
                for view in block.operations:
                    inner = view.operation
                    name = inner.name
                    if name not in names:
                        _check_op(inner)
                        if name != "stablehlo.custom_call":
                            names.add(name)
                    if name not in _NOT_COMPUTING and not _is_callback(inner, name):
                        for value in inner.results:
                            of = value.type
                            if of not in types:
                                _check_type(of, inner)
                                types.add(of)
                    if len(inner.regions):
                        self._inside(inner, types, names)


def _check_op(op: ir.Operation) -> None:
    name = op.name
    if name in _REFUSED:
        raise CompileError.at(op, _REFUSED[name])
    if name == "func.call":  # all others have been inlined
        raise CompileError.at(
            op,
            f"calls @{op.attributes['callee'].value}, which is recursive",
            "write the recursion as a loop (stablehlo.while)",
        )
    if name == "stablehlo.custom_call":
        _check_custom_call(op)
    if not name.startswith(("stablehlo.", "chlo.", "func.", "builtin.")):
        raise CompileError.at(op, "is no StableHLO operation")


def _check_custom_call(op: ir.Operation) -> None:
    target = op.attributes["call_target_name"].value
    routine = routine_of(op)
    if routine is not None:
        problem = problem_of_call(op, routine)
        if problem is not None:
            raise CompileError.at(op, f"calls @{target}, which {problem}")
    elif target != PYTHON_CALLBACK:
        raise CompileError.at(op, f"calls @{target}, and this build has no function of that name")
    elif callback_index(op) is None:
        raise CompileError.at(op, f"calls @{target} without the number of a Python function")


def _is_callback(op: ir.Operation, name: str) -> bool:
    """Whether an op of this name calls a function of the user's, which may give tokens."""
    return (
        name == "stablehlo.custom_call"
        and op.attributes["call_target_name"].value == PYTHON_CALLBACK
    )


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
