"""Shardy's annotations in programs that JAX hands over, taken out with the MLIR that JAX brings along.

The dialect `sdy` has a binary form that only a library with the dialect reads, and lamina's MLIR is
without. Where a program is for one device its annotations mean nothing, so the program is read by
jaxlib, which gives it back without them.

    sdy.mesh @mesh = <["x"=1]>                                     ->  nothing
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]>               ->  %0
    %1 = sdy.manual_computation(%0) ... (%a) { sdy.return %b }     ->  the body with %0 for %a
    stablehlo.custom_call @f(%0) {sdy.sharding_rule = ...}         ->  stablehlo.custom_call @f(%0)
"""

from __future__ import annotations

import functools
from typing import Any

_DIALECT = "sdy."
_SAME = ("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier", "sdy.data_flow_edge")
"""Ops that give their first operand back on one device."""


def mentions_shardings(code: bytes) -> bool:
    """Whether a program may have annotations: its bytes say the dialect's name."""
    return b"sdy" in code


def is_portable(code: bytes) -> bool:
    """Whether bytecode is an artifact that any later StableHLO reads."""
    return code[5:14] == b"StableHLO"


def without_shardings(code: bytes, version: str) -> bytes:
    """A program in MLIR bytecode, of any form, as a portable artifact without annotations.

    version  of StableHLO, the newest that the artifact may be of: it is of jaxlib's where that is older.

    Raises ParseError for bytes that jaxlib does not read.
    """
    from lamina.dialects.parse_error import ParseError

    ir, stablehlo, context = _jaxlib()
    with context, ir.Location.unknown():
        try:
            if is_portable(code):
                module = stablehlo.deserialize_portable_artifact(context, code)
            else:
                module = ir.Module.parse(code)
        except Exception as error:
            raise ParseError("<program>", f"jaxlib does not read it: {error}") from None
        _strip(module.operation, ir)
        older = min(version, stablehlo.get_current_version(), key=_numbers)
        return bytes(stablehlo.serialize_portable_artifact(module, older))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@functools.cache
def _jaxlib() -> tuple[Any, Any, Any]:
    """jaxlib's bindings of MLIR, of StableHLO, and a context with the dialects that JAX writes."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    context = ir.Context()
    context.enable_multithreading(False)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    return ir, stablehlo, context


def _strip(module: Any, ir: Any) -> None:
    ops: list[Any] = []

    def visit(op: Any) -> Any:
        op = op.operation
        for attribute in list(op.attributes):
            name = attribute if isinstance(attribute, str) else attribute.name
            if name.startswith(_DIALECT):
                del op.attributes[name]
        _strip_of_values(op, ir)
        if op.name.startswith(_DIALECT):
            ops.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)  # inner ops first
    for op in ops:
        if op.name in _SAME:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        elif op.name == "sdy.mesh":
            op.erase()
        elif op.name == "sdy.manual_computation":
            _inline(op)


def _strip_of_values(op: Any, ir: Any) -> None:
    """Take annotations off the arguments and results of a function."""
    for which in ("arg_attrs", "res_attrs"):
        if which not in op.attributes:
            continue
        rows = [
            {entry.name: entry.attr for entry in row if not entry.name.startswith(_DIALECT)}
            for row in op.attributes[which]
        ]
        op.attributes[which] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])


def _inline(op: Any) -> None:
    block = op.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, last = [inner.operation for inner in block.operations]
    for inner in body:
        inner.move_before(op)
    for result, value in zip(op.results, list(last.operands), strict=True):
        result.replace_all_uses_with(value)
    op.erase()
