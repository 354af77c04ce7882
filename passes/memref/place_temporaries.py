"""Give each temporary buffer a place: the stack while it lasts, else the caller's scratch region.

Public functions get a trailing argument `memref<Nxi8>`, the scratch region, N being 0 when nothing
needs it. In each function the smallest `memref.alloc`s become `memref.alloca`s in the entry block,
up to `stack_bytes` together (of a task `task_bytes`); the others become views of the scratch region at 64-byte aligned
offsets, those whose lives don't overlap at the same place. A private function (a task) has no
scratch region: ValueError where its temporaries exceed the stack, or where a size is dynamic.

example: test/passes/memref/place_temporaries.mlir
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import arith, ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_ALIGNMENT = 64


class PlaceTemporaries(Pass):
    """See the module's docstring."""

    stack_bytes: int = 65536  # memory
    task_bytes: int = 262144  # memory

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                self._place(op.operation)

    def _place(self, function: ir.Operation) -> None:
        allocations = find_ops(function, "memref.alloc", "memref.alloca")
        entry = function.regions[0].blocks[0]
        is_task = "sym_visibility" in function.attributes
        most = self.task_bytes if is_task else self.stack_bytes
        on_stack: list[ir.Operation] = []
        stack = 0
        for allocation in sorted(allocations, key=_bytes):
            stack += _round_up(_bytes(allocation))
            if stack > most:
                break
            on_stack.append(allocation)
        in_scratch = [allocation for allocation in allocations if allocation not in on_stack]
        if in_scratch and is_task:
            raise ValueError(f"a parallel task's temporaries exceed {most} bytes")
        with ir.InsertionPoint.at_block_begin(entry), function.location:
            for allocation in on_stack:
                type_ = ir.MemRefType(allocation.results[0].type)
                alloca = ir.Operation.create(
                    "memref.alloca",
                    results=[type_],
                    attributes={
                        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                        "alignment": ir.IntegerAttr.get(
                            ir.IntegerType.get_signless(64), _ALIGNMENT
                        ),
                    },
                )
                allocation.results[0].replace_all_uses_with(alloca.result)
        if not is_task:
            self._use_scratch(function, entry, in_scratch)
        for allocation in allocations:
            allocation.erase()

    def _use_scratch(
        self, function: ir.Operation, entry: ir.Block, allocations: list[ir.Operation]
    ) -> None:
        offsets, total = _assign_offsets(entry, allocations)
        byte = ir.IntegerType.get_signless(8)
        region_type = ir.MemRefType.get([total], byte)
        with function.location:
            region = entry.add_argument(region_type, function.location)
            type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            function.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get([*type_.inputs, region_type], type_.results)
            )
            if "arg_attrs" in function.attributes:
                attributes = [*function.attributes["arg_attrs"], ir.DictAttr.get({})]
                function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            with ir.InsertionPoint.at_block_begin(entry):
                for allocation, offset in zip(allocations, offsets, strict=True):
                    place = arith.ConstantOp(ir.IndexType.get(), offset).result
                    view = ir.Operation.create(
                        "memref.view",
                        results=[allocation.results[0].type],
                        operands=[region, place],
                    )
                    allocation.results[0].replace_all_uses_with(view.result)


def _assign_offsets(entry: ir.Block, allocations: list[ir.Operation]) -> tuple[list[int], int]:
    """Offsets in the scratch region, first fit by size over lifetimes counted in the entry block's
    ops."""
    order = {op.operation: position for position, op in enumerate(entry.operations)}
    lives = [_life(allocation.results[0], order, len(order)) for allocation in allocations]
    offsets = [0] * len(allocations)
    placed: list[int] = []
    for i in sorted(range(len(allocations)), key=lambda i: -_bytes(allocations[i])):
        size, offset = _round_up(_bytes(allocations[i])), 0
        busy = sorted(
            (offsets[j], offsets[j] + _round_up(_bytes(allocations[j])))
            for j in placed
            if lives[i][0] <= lives[j][1] and lives[j][0] <= lives[i][1]
        )
        for begin, end in busy:
            if offset + size <= begin:
                break
            offset = max(offset, end)
        offsets[i] = offset
        placed.append(i)
    ends = (offsets[i] + _round_up(_bytes(allocations[i])) for i in range(len(allocations)))
    return offsets, max(ends, default=0)


def _life(buffer: ir.Value, order: dict[ir.Operation, int], end: int) -> tuple[int, int]:
    """First and last op of the entry block that may touch a buffer, through any view of it."""
    first, last = end, 0
    pending, seen = [buffer], set()
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.owner
            pending += [result for result in user.results if result not in seen]
            seen.update(user.results)
            while user not in order:
                user = user.parent
            first, last = min(first, order[user]), max(last, order[user])
    return first, last


def _bytes(allocation: ir.Operation) -> int:
    type_ = ir.MemRefType(allocation.results[0].type)
    if not type_.has_static_shape:
        raise ValueError(f"a temporary of dynamic size: {type_}")
    return math.prod(type_.shape) * element_bytes(type_.element_type)


def element_bytes(type_: ir.Type) -> int:
    """Bytes of one element in memory: booleans and other small integers take one each."""
    if isinstance(type_, ir.ComplexType):
        return 2 * element_bytes(ir.ComplexType(type_).element_type)
    if isinstance(type_, ir.IndexType):
        return 8
    return max(1, getattr(type_, "width", 64) // 8)


def _round_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
