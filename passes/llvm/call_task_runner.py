"""Give each parallel call site its body: a call of `lamina_parallel_for` with packed arguments.

A declaration `@k_parallel_0(ptr, ...)` with `lamina.task = @k_task_0` and `lamina.range =
array<i64: n, grain>` becomes a function that stores its arguments in an array on the stack and
calls `lamina_parallel_for(@k_task_0_unpack, array, n, grain)`; `@k_task_0_unpack(ctx, low, high)`
loads them again and calls `@k_task_0`. Runs on the llvm dialect, after `memref-outline-tasks` and
the conversion of functions.

Both the caller and the task are to be inlined: each function that code generation visits takes half a
millisecond, however short it is. What the task says of its pointers, LLVM keeps.

example: test/passes/llvm/call_task_runner.mlir
"""

from __future__ import annotations

from typing import Any

from lamina.dialects.attributes import RANGE, TASK
from lamina.dialects.context import kept_with
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

RUNNER = "lamina_parallel_for"



class CallTaskRunner(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        first = ir.InsertionPoint.at_block_begin(module.body)
        functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
        by_name = {ir.StringAttr(function.attributes["sym_name"]).value: function for function in functions}
        is_declared = False
        for caller in functions:
            if TASK not in caller.attributes:
                continue
            kept = _functions(module.context, _argument_count(caller))
            runner, *pair = list(kept.body.operations)[:3]
            with first:
                if not is_declared:
                    runner.operation.clone()
                    is_declared = True
                copy, unpacker = (function.operation.clone() for function in pair)
            _name(copy, unpacker, caller)
            task = by_name[ir.FlatSymbolRefAttr(caller.attributes[TASK]).value]
            for function in (copy, task):
                function.attributes["always_inline"] = ir.UnitAttr.get()
            caller.erase()


def _argument_count(function: ir.Operation) -> int:
    text = str(ir.TypeAttr(function.attributes["function_type"]).value)
    return text.count("ptr")


def _name(caller: ir.Operation, unpacker: ir.Operation, declared: ir.Operation) -> None:
    """Give copies of the two functions the names and the range of a call site."""
    task = ir.FlatSymbolRefAttr(declared.attributes[TASK]).value
    unpacker_name = f"{task}_unpack"
    caller.attributes["sym_name"] = declared.attributes["sym_name"]
    unpacker.attributes["sym_name"] = ir.StringAttr.get(unpacker_name)
    (address,) = find_ops(caller, "llvm.mlir.addressof")
    address.attributes["global_name"] = ir.FlatSymbolRefAttr.get(unpacker_name)
    word = ir.IntegerType.get_signless(64)
    *_, iterations, grain = find_ops(caller, "llvm.mlir.constant")
    for constant, value in zip(
        (iterations, grain), ir.DenseI64ArrayAttr(declared.attributes[RANGE]), strict=True
    ):
        constant.attributes["value"] = ir.IntegerAttr.get(word, value)
    (call,) = find_ops(unpacker, "llvm.call")
    call.attributes["callee"] = declared.attributes[TASK]


def _functions(context: ir.Context, arguments: int) -> ir.Module:
    """A module of the runner and the two functions for so many arguments, parsed once: copies take a
    quarter of the time."""
    kept: dict[Any, ir.Module] = kept_with(context)
    found = kept.get((CallTaskRunner, arguments))
    if found is None:
        text = f"{_RUNNER}{_caller(arguments)}\n{_unpacker(arguments)}"
        found = kept[CallTaskRunner, arguments] = ir.Module.parse(text, context)
    return found


_RUNNER = f"llvm.func @{RUNNER}(!llvm.ptr, !llvm.ptr, i64, i64)\n"


def _caller(arguments: int) -> str:
    parameters = ", ".join(f"%p{i}: !llvm.ptr" for i in range(arguments))
    stores = "\n".join(
        f"  %s{i} = llvm.getelementptr %ctx[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"  llvm.store %p{i}, %s{i} : !llvm.ptr, !llvm.ptr"
        for i in range(arguments)
    )
    return f"""llvm.func internal @caller({parameters}) {{
  %size = llvm.mlir.constant({max(arguments, 1)} : i64) : i64
  %ctx = llvm.alloca %size x !llvm.ptr : (i64) -> !llvm.ptr
{stores}
  %task = llvm.mlir.addressof @unpack : !llvm.ptr
  %n = llvm.mlir.constant(0 : i64) : i64
  %grain = llvm.mlir.constant(0 : i64) : i64
  llvm.call @{RUNNER}(%task, %ctx, %n, %grain) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}}"""


def _unpacker(arguments: int) -> str:
    loads = "\n".join(
        f"  %s{i} = llvm.getelementptr %ctx[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"  %p{i} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr"
        for i in range(arguments)
    )
    operands = "".join(f"%p{i}, " for i in range(arguments))
    types = "!llvm.ptr, " * arguments
    return f"""llvm.func internal @unpack(%ctx: !llvm.ptr, %low: i64, %high: i64) {{
{loads}
  llvm.call @task({operands}%low, %high) : ({types}i64, i64) -> ()
  llvm.return
}}
llvm.func @task({types}i64, i64)"""
