"""All steps of a small program in one thread, or in a thread for each lane of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from lamina.dialects.attributes import ARGUMENTS
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_each, index, store
from lamina.passes.kernels.gpu.device.threads import gpu_id
from lamina.passes.kernels.gpu.steps.walk import Steps, seen_as

LANE_THREADS = 128  # of a block
_UNROLLED = 64  # elements of a copy


class ThreadSteps(Steps):
    """One thread does everything; buffers are on its stack."""

    def __init__(self, module: ir.Module, function: ir.Operation) -> None:
        super().__init__(module, function)
        self.stack: dict[int, ir.Value] = {}

    def place(self, offset: int, type_: ir.MemRefType) -> ir.Value:
        if offset not in self.stack:
            self.stack[offset] = self.on_stack(type_)
        return seen_as(self.stack[offset], type_)

    def copy(self, source: ir.Value, target: ir.Value) -> None:
        read, written = self.read(source), self.known[target]
        shape = list(source.type.shape)
        if math.prod(shape) <= _UNROLLED:
            for position in product(*map(range, shape)):
                at = [index(i) for i in position]
                store(read(at), written, at)
            return

        def one(at: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            store(read(at), written, at)
            return []

        for_each(shape, [], one)

    def call(self, callee: str, buffers: Sequence[ir.Value]) -> None:
        self.serially(callee, buffers)


class LaneSteps(ThreadSteps):
    """A thread for each of so many lanes: the last two inputs, which are numbers, say which lanes a
    thread does."""

    def __init__(self, module: ir.Module, function: ir.Operation, lanes: int) -> None:
        super().__init__(module, function)
        self.lanes = lanes
        inputs = function.attributes[ARGUMENTS].value
        self.bounds = list(self.entry.arguments)[inputs - 2 : inputs]
        self.parameters = [a for a in self.parameters if a not in self.bounds]

    def begin(self) -> None:
        block = arith.MulIOp(gpu_id("block_id"), index(LANE_THREADS)).result
        lane = arith.AddIOp(block, gpu_id("thread_id")).result
        after = arith.AddIOp(lane, index(1)).result
        limits = [lane, arith.MinUIOp(after, index(self.lanes)).result]
        for argument, limit in zip(self.bounds, limits, strict=True):
            of = ir.MemRefType(argument.type)
            self.known[argument] = place = self.on_stack(of)
            store(arith.IndexCastOp(of.element_type, limit).result, place, [])
