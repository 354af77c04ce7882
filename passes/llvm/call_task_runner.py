"""Give each parallel call site its body: a call of `lamina_parallel_for` with packed arguments.

A declaration `@k_parallel_0(ptr, ...)` with `lamina.task = @k_task_0` and `lamina.range =
array<i64: n, grain>` becomes a function that stores its arguments in an array on the stack and
calls `lamina_parallel_for(@k_task_0_unpack, array, n, grain)`; `@k_task_0_unpack(ctx, low, high)`
loads them again and calls `@k_task_0`. Runs on the llvm dialect, after `memref-outline-tasks` and
the conversion of functions.

example: test/passes/llvm/call_task_runner.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass

TASK = "lamina.task"
RANGE = "lamina.range"
RUNNER = "lamina_parallel_for"


@dataclass(frozen=True)
class CallTaskRunner(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        callers = [
            op.operation
            for op in module.body.operations
            if op.operation.name == "llvm.func" and TASK in op.attributes
        ]
        if not callers:
            return
        texts = [f"llvm.func @{RUNNER}(!llvm.ptr, !llvm.ptr, i64, i64)"]
        for caller in callers:
            name = ir.StringAttr(caller.attributes["sym_name"]).value
            task = ir.FlatSymbolRefAttr(caller.attributes[TASK]).value
            arguments = _argument_count(caller)
            iterations, grain = ir.DenseI64ArrayAttr(caller.attributes[RANGE])
            texts += [_caller(name, task, arguments, iterations, grain), _unpacker(task, arguments)]
            caller.erase()
        declarations = "\n".join(
            f"llvm.func @{ir.StringAttr(op.attributes['sym_name']).value}{_signature(op)}"
            for op in (o.operation for o in module.body.operations)
            if op.name == "llvm.func"
            and any(f"@{ir.StringAttr(op.attributes['sym_name']).value}(" in t for t in texts)
        )
        added = ir.Module.parse(declarations + "\n" + "\n".join(texts))
        existing = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in module.body.operations
            if "sym_name" in op.attributes
        }
        with ir.InsertionPoint.at_block_begin(module.body):
            for op in added.body.operations:
                if ir.StringAttr(op.attributes["sym_name"]).value not in existing:
                    op.operation.clone()


def _argument_count(function: ir.Operation) -> int:
    text = str(ir.TypeAttr(function.attributes["function_type"]).value)
    return text.count("ptr")


def _signature(function: ir.Operation) -> str:
    text = str(ir.TypeAttr(function.attributes["function_type"]).value)
    inside = text[text.index("(") + 1 : text.rindex(")")]
    return (
        "("
        + ", ".join(
            f"!llvm.{part.strip()}" if part.strip() == "ptr" else part.strip()
            for part in inside.split(",")
        )
        + ")"
    )


def _caller(name: str, task: str, arguments: int, iterations: int, grain: int) -> str:
    parameters = ", ".join(f"%p{i}: !llvm.ptr" for i in range(arguments))
    stores = "\n".join(
        f"  %s{i} = llvm.getelementptr %ctx[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"  llvm.store %p{i}, %s{i} : !llvm.ptr, !llvm.ptr"
        for i in range(arguments)
    )
    return f"""llvm.func internal @{name}({parameters}) {{
  %size = llvm.mlir.constant({max(arguments, 1)} : i64) : i64
  %ctx = llvm.alloca %size x !llvm.ptr : (i64) -> !llvm.ptr
{stores}
  %task = llvm.mlir.addressof @{task}_unpack : !llvm.ptr
  %n = llvm.mlir.constant({iterations} : i64) : i64
  %grain = llvm.mlir.constant({grain} : i64) : i64
  llvm.call @{RUNNER}(%task, %ctx, %n, %grain) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}}"""


def _unpacker(task: str, arguments: int) -> str:
    loads = "\n".join(
        f"  %s{i} = llvm.getelementptr %ctx[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"  %p{i} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr"
        for i in range(arguments)
    )
    operands = "".join(f"%p{i}, " for i in range(arguments))
    types = "!llvm.ptr, " * arguments
    return f"""llvm.func internal @{task}_unpack(%ctx: !llvm.ptr, %low: i64, %high: i64) {{
{loads}
  llvm.call @{task}({operands}%low, %high) : ({types}i64, i64) -> ()
  llvm.return
}}"""
