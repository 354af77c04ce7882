"""All steps of a small program in one block of threads, with barriers between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.attributes import ARENA_BYTES, DYNAMIC_SHARED_BYTES, SCRATCH_BYTES, TENSOR_MAPS
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import for_range, index, store
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.threads import (
    barrier,
    equals,
    gpu_id,
    positions,
    strided,
    when,
)
from lamina.passes.kernels.gpu.machine import STATIC_SHARED_BYTES
from lamina.passes.kernels.gpu.steps.walk import Steps, keep_space
from lamina.passes.linalg.analysis.structure import root_buffer
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

BLOCK_THREADS = 256
_SHARED_BYTES = STATIC_SHARED_BYTES - (2 << 10)  # the rest is for what steps need themselves
_ALIGNMENT = 16
_STORES = ("memref.store", "vector.store", "memref.atomic_rmw")
_IDS = ("gpu.thread_id", "gpu.block_id", "memref.get_global")


class _Touch(Record):
    """Bytes of the arena or of an argument that a step reads or writes."""

    space: object
    start: int
    end: int
    writes: bool
    alone: bool  # by the first thread

    def meets(self, other: _Touch) -> bool:
        """Whether one must be done before the other begins."""
        overlap = self.start < other.end and other.start < self.end
        writes = self.writes or other.writes
        return self.space == other.space and overlap and writes and not (self.alone and other.alone)


_Since = frozenset[_Touch]


class _Callee(Record):
    """The kernels of a step, none where the first thread does it: the arguments they write, whether
    they use scratch memory, and where each of their shared buffers lies behind the arena."""

    kernels: list[ir.Operation]
    written: frozenset[int]
    scratch_bytes: int
    has_scratch: bool
    shared: Mapping[str, int]
    shared_bytes: int

    @staticmethod
    def of(device: ir.Operation) -> _Callee:
        operations = [op.operation for op in device.regions[0].blocks[0].operations]
        if device.name == "func.func":
            return _Callee([], _written(device), 0, False, {}, 0)
        kernels = [op for op in operations if op.name == "gpu.func"]
        written: frozenset[int] = frozenset()
        most = 0
        shared: dict[str, int] = {}
        for kernel in kernels:
            assert not {DYNAMIC_SHARED_BYTES, TENSOR_MAPS} & {name for name in kernel.attributes}
            written |= _written(kernel)
            end = 0
            for op in find_ops(kernel, "memref.get_global"):
                name, of = op.attributes["name"].value, ir.MemRefType(op.results[0].type)
                if of.memory_space is not None and name not in shared:
                    shared[name], end = end, end + _padded(_bytes(of))
            most = max(most, end)
        scratch = device.attributes[SCRATCH_BYTES].value
        has_scratch = any(len(list(k.regions[0].blocks[0].arguments[-1].uses)) for k in kernels)
        return _Callee(kernels, written, scratch, has_scratch, shared, most)


class BlockSteps(Steps):
    """One block does everything."""

    def __init__(self, module: ir.Module, function: ir.Operation) -> None:
        super().__init__(module, function)
        self.kernels_of = {
            name.removesuffix("_gpu"): _Callee.of(device) for name, device in self.callees.items()
        }
        self.barriers: set[ir.Operation] = set()
        """Before which steps there is one."""
        self._flow(self.entry, frozenset())
        self.constants: dict[tuple[str, str], str] = {}

    def begin(self) -> None:
        arena = self.function.attributes[ARENA_BYTES].value
        shared = max((callee.shared_bytes for callee in self.kernels_of.values()), default=0)
        in_shared = arena + shared <= _SHARED_BYTES
        self.behind = _padded(arena) if in_shared else 0
        byte = ir.IntegerType.get_signless(8)
        self.thread = gpu_id("thread_id")
        if self.behind + shared:
            self.shared = self.kernel.shared([self.behind + shared], byte)
        self.arena = self.shared if in_shared and arena else self.kernel.scratch
        if not in_shared:
            assert self.kernels.scratch([arena], byte).offset == 0
        scratch = max((callee.scratch_bytes for callee in self.kernels_of.values()), default=0)
        self.scratch = self.kernels.scratch([scratch], byte).offset

    # ---- what touches what
    def _flow(self, block: ir.Block, since: _Since) -> _Since:
        """Finds before which steps of a block there must be a barrier, given what was touched since
        the last one before it; what was touched at its end."""
        for view in block.operations:
            op = view.operation
            if op.name == "arith.constant":
                self.offsets[op.results[0]] = op.attributes["value"].value
            elif op.name == "scf.while":
                condition, body = (region.blocks[0] for region in op.regions)
                entered = since
                while True:
                    decided = self._flow(condition, entered)
                    again = entered | self._flow(body, decided)
                    if again == entered:
                        break
                    entered = again
                since = decided
            elif op.name in ("scf.if", "scf.index_switch"):
                ends = [
                    self._flow(region.blocks[0], since) if region.blocks else since
                    for region in op.regions
                ]
                since = frozenset().union(*ends)
            else:
                touches = self._touches(op)
                if any(touch.meets(other) for touch in touches for other in since):
                    self.barriers.add(op)
                since = touches if op in self.barriers else since | touches
        return since

    def _touches(self, op: ir.Operation) -> _Since:
        if op.name == "memref.load":
            return frozenset(self._touch(op.operands[0], False))
        if op.name == "memref.copy":
            source, target = op.operands
            alone = _bytes(source.type) == element_bytes(source.type.element_type)
            return frozenset(
                [*self._touch(source, False, alone), *self._touch(target, True, alone)]
            )
        if op.name != "func.call":
            return frozenset()
        callee = self.kernels_of[op.attributes["callee"].value]
        found = [
            touch
            for number, buffer in enumerate(op.operands)
            for touch in self._touch(buffer, number in callee.written, not callee.kernels)
        ]
        if callee.shared_bytes:
            found.append(_Touch("shared", 0, 1, True, False))
        if callee.has_scratch:
            found.append(_Touch("scratch", 0, 1, True, False))
        return frozenset(found)

    def _touch(self, buffer: ir.Value, writes: bool, alone: bool = False) -> list[_Touch]:
        size = _bytes(ir.MemRefType(buffer.type))
        while not isinstance(buffer.owner, ir.Block):
            op = buffer.owner.operation
            if op.name == "memref.get_global":
                return []
            if op.name == "memref.view":
                start = self.offsets[op.operands[1]]
                return [_Touch("arena", start, start + size, writes, alone)]
            buffer = op.operands[0]
        return [_Touch(buffer, 0, 1, writes, alone)]

    def before(self, op: ir.Operation) -> None:
        if op in self.barriers and not (op.name == "func.call" and self._waits_first(op)):
            barrier()

    def _waits_first(self, call: ir.Operation) -> bool:
        kernels = self.kernels_of[call.attributes["callee"].value].kernels
        return bool(kernels) and _takes_turns(kernels[0])

    # ---- steps
    def place(self, offset: int, type_: ir.MemRefType) -> ir.Value:
        return self._view(self.arena, offset, type_)

    def _view(self, base: ir.Value, offset: int, type_: ir.MemRefType) -> ir.Value:
        space = ir.MemRefType(base.type).memory_space
        of = ir.MemRefType.get(type_.shape, type_.element_type, memory_space=space)
        return ir.Operation.create(
            "memref.view", results=[of], operands=[base, index(offset)]
        ).result

    def copy(self, source: ir.Value, target: ir.Value) -> None:
        read, written, shape = self.read(source), self.known[target], list(source.type.shape)

        def one(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = positions(number, shape)
            store(read(at), written, at)
            return []

        strided(self.thread, math.prod(shape), BLOCK_THREADS, [], one)

    def call(self, callee: str, buffers: Sequence[ir.Value]) -> None:
        kernels = self.kernels_of[callee]
        if not kernels.kernels:
            when(equals(self.thread, 0), lambda: self.serially(callee, buffers))
            return
        given = [self.known[buffer] for buffer in buffers]
        if kernels.has_scratch:
            byte = ir.IntegerType.get_signless(8)
            of = ir.MemRefType.get([kernels.scratch_bytes], byte)
            given.append(self._view(self.kernel.scratch, self.scratch, of))
        for number, kernel in enumerate(kernels.kernels):
            if number and not _takes_turns(kernel):
                barrier()
            self._kernel(callee, kernel, given)

    def _kernel(self, callee: str, kernel: ir.Operation, given: Sequence[ir.Value]) -> None:
        """What all blocks of a kernel do: several at once where they are smaller than this one."""
        grid, block = (list(kernel.attributes[f"known_{n}_size"]) for n in ("grid", "block"))
        blocks, threads = math.prod(grid), math.prod(block)
        waits = _waits(kernel)
        once = threads == BLOCK_THREADS
        assert once or (not waits and BLOCK_THREADS % threads == 0)

        def do(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if _takes_turns(kernel):
                barrier()
            self._inline(callee, kernel, given, positions(number, grid[::-1])[::-1], block)
            return []

        if once and blocks == 1:
            do(index(0), [])
        elif once:
            for_range(index(0), index(blocks), [], do)
        else:
            mine = arith.DivUIOp(self.thread, index(threads)).result
            strided(mine, blocks, BLOCK_THREADS // threads, [], do)

    def _inline(
        self, callee: str, kernel: ir.Operation, given: Sequence[ir.Value],
        at: Sequence[ir.Value], block: Sequence[int],
    ) -> None:  # fmt: skip
        inside = self.thread
        if math.prod(block) != BLOCK_THREADS:
            inside = arith.RemUIOp(self.thread, index(math.prod(block))).result
        threads = positions(inside, list(block)[::-1])[::-1]
        entry = kernel.regions[0].blocks[0]
        known: dict[ir.Value, ir.Value] = dict(zip(entry.arguments, given))

        def value_of(op: ir.Operation) -> ir.Value:
            if op.name == "memref.get_global":
                return self._global(callee, op)
            axis = "xyz".index(str(op.attributes["dimension"]).rstrip(">")[-1])
            return (threads if op.name == "gpu.thread_id" else at)[axis]

        for view in entry.operations:
            op = view.operation
            if op.name in _IDS:
                known[op.results[0]] = value_of(op)
            elif op.name != "gpu.return":
                copy = copied(op, known)
                for inner in find_ops(copy, *_IDS) if len(copy.regions) else ():
                    with ir.InsertionPoint(inner):
                        inner.results[0].replace_all_uses_with(value_of(inner))
                    inner.erase()
                copy.walk(keep_space, ir.WalkOrder.PRE_ORDER)

    def _global(self, callee: str, op: ir.Operation) -> ir.Value:
        name, of = op.attributes["name"].value, ir.MemRefType(op.results[0].type)
        shared = self.kernels_of[callee].shared
        if name in shared:
            return self._view(self.shared, self.behind + shared[name], of)
        if (callee, name) not in self.constants:
            found = next(
                one.operation
                for one in self.callees[f"{callee}_gpu"].regions[0].blocks[0].operations
                if one.operation.name == "memref.global"
                and one.operation.attributes["sym_name"].value == name
            )
            with ir.InsertionPoint.at_block_begin(self.kernels.body):
                copy = found.clone().operation
            copy.attributes["sym_name"] = ir.StringAttr.get(f"{callee}_{name}")
            self.constants[callee, name] = f"{callee}_{name}"
        own = ir.FlatSymbolRefAttr.get(self.constants[callee, name])
        return ir.Operation.create(
            "memref.get_global", results=[of], attributes={"name": own}
        ).result


def _written(function: ir.Operation) -> frozenset[int]:
    """Which arguments a function writes."""
    roots = {root_buffer(op.operands[1]) for op in find_ops(function, *_STORES)}
    arguments = function.regions[0].blocks[0].arguments
    return frozenset(number for number, value in enumerate(arguments) if value in roots)


def _waits(kernel: ir.Operation) -> bool:
    return bool(find_ops(kernel, "gpu.barrier"))


def _takes_turns(kernel: ir.Operation) -> bool:
    """Whether it is several blocks that use the same shared memory: each begins with a barrier."""
    return _waits(kernel) and math.prod(kernel.attributes["known_grid_size"]) > 1


def _bytes(of: ir.MemRefType) -> int:
    return math.prod(of.shape) * element_bytes(of.element_type)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
