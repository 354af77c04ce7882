"""Turn each bufferised `linalg.generic` into the loop nest recorded on it (see `loop_nest`).

Reductions that are innermost accumulate in loop-carried values, so that LLVM keeps them in
registers; others accumulate in the output. A `linalg.fill` that does nothing but initialise a
reduction's output becomes the accumulator's initial value. The leading loops marked as tasks become
one `scf.forall` that carries `lamina.grain`, for `memref-outline-tasks`. Remaining fills and copies
become generics first: run `linalg-generalize-named-ops` before. Ops on tensors are left alone.

Ops that share loops (`linalg-share-loops`) are emitted inside them one after the other; a temporary
that only they use shrinks to the part that one iteration needs.

example: test/passes/linalg/lower_to_loops.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.base import Pass
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.loop_nest import Loop, LoopNest, read_nest, read_shared
from lamina.passes.linalg.structure import (
    Generic,
    accesses,
    generics_on_buffers,
    is_temporary,
    read_generic,
    sole_fill,
)
from lamina.passes.linalg.transposes import emit_transposed_block, is_transposing_copy
from lamina.passes.loops import add, for_range, for_tasks, index, load, store
from lamina.passes.memref.place_temporaries import element_bytes

_LOCAL_BYTES = 32768  # the largest part of a temporary that one iteration keeps for itself


class LowerToLoops(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        generics = [read_generic(op) for op in generics_on_buffers(module)]
        fills = {g.op: [sole_fill(g, output) for output in g.outputs] for g in generics}
        absorbed = {fill for of_one in fills.values() for fill in of_one if fill is not None}
        groups: dict[object, list[Generic]] = {}
        for generic in generics:
            if generic.op not in absorbed and 0 not in generic.extents:
                shared = read_shared(generic.op)
                key = generic.op if shared is None else (generic.op.parent, shared[0])
                groups.setdefault(key, []).append(generic)
        for members in groups.values():
            _emit_group(members, fills)
        buffers = {buffer for generic in generics for buffer in generic.outputs}
        for generic in generics:
            generic.op.erase()
        for buffer in buffers:
            _erase_if_unused(buffer)


def _emit_group(
    generics: Sequence[Generic], fills: Mapping[ir.Operation, Sequence[ir.Operation | None]]
) -> None:
    """Emit generics inside the loops they share, in front of the last of them."""
    nests = [read_nest(generic.op, generic.rank) for generic in generics]
    first, last = generics[0], generics[-1].op
    absorbed = {fill for g in generics for fill in fills[g.op] if fill is not None}
    shared = read_shared(first.op)
    depth = nests[0].tasks if shared is None else shared[1]

    def inside(inductions: list[ir.Value]) -> None:
        members = (
            generics if shared is None else _with_local_buffers(generics, nests, depth, absorbed)
        )
        for generic, nest in zip(members, nests, strict=True):
            emitter = _Emitter(generic, nest, fills[generic.op])
            with generic.op.location:
                emitter.emit(inductions)

    with ir.InsertionPoint(last), last.location:
        loops = nests[0].loops[:depth]
        extents = [first.extents[loop.dimension] for loop in loops]
        steps = [loop.step for loop in loops]
        for_tasks(extents, nests[0].tasks, nests[0].grain, inside, steps=steps)


def _walks_reductions(generic: Generic, map_: ir.AffineMap) -> bool:
    """Whether an output has an element for each step of a reduction that is done beside it."""
    return any(
        isinstance(e, ir.AffineDimExpr) and generic.reductions[ir.AffineDimExpr(e).position]
        for e in map_.results
    )


def _with_local_buffers(
    generics: Sequence[Generic],
    nests: Sequence[LoopNest],
    depth: int,
    absorbed: set[ir.Operation],
) -> list[Generic]:
    """The generics with each buffer that only they use replaced by one iteration's part of it."""
    members = {generic.op for generic in generics} | absorbed
    places: dict[ir.Value, set[frozenset[int]]] = {}
    for generic, nest in zip(generics, nests, strict=True):
        for access in accesses(generic):
            outer = nest.loops[:depth]
            at = [access.places_of(loop.dimension) for loop in outer if loop.step == 1]
            whole = len(at) == depth and all(len(one) == 1 for one in at)
            alike = frozenset().union(*at) if whole else frozenset((-1,))
            places.setdefault(access.buffer, set()).add(alike)
    local: dict[ir.Value, tuple[ir.Value, frozenset[int]]] = {}
    for buffer, found in places.items():
        (dropped, *others) = found
        if others or -1 in dropped or len(dropped) != depth or not _is_private(buffer, members):
            continue
        type_ = ir.MemRefType(buffer.type)
        shape = [size for place, size in enumerate(type_.shape) if place not in dropped]
        if math.prod(shape) * element_bytes(type_.element_type) <= _LOCAL_BYTES:
            local[buffer] = (_allocate(shape, type_.element_type), dropped)

    def localise(
        values: Sequence[ir.Value], maps: Sequence[ir.AffineMap]
    ) -> tuple[tuple[ir.Value, ...], tuple[ir.AffineMap, ...]]:
        new_values, new_maps = [], []
        for value, map_ in zip(values, maps, strict=True):
            if value in local:
                value, dropped = local[value]
                kept = [e for place, e in enumerate(map_.results) if place not in dropped]
                map_ = ir.AffineMap.get(map_.n_dims, 0, kept)
            new_values.append(value)
            new_maps.append(map_)
        return tuple(new_values), tuple(new_maps)

    result = []
    for generic in generics:
        inputs, input_maps = localise(generic.inputs, generic.input_maps)
        outputs, output_maps = localise(generic.outputs, generic.output_maps)
        result.append(
            generic._replace(
                inputs=inputs,
                input_maps=input_maps,
                outputs=outputs,
                output_maps=output_maps,
            )
        )
    return result


def _is_private(buffer: ir.Value, members: set[ir.Operation]) -> bool:
    """Whether a buffer is a temporary that only these ops use."""
    if not is_temporary(buffer):
        return False
    return all(use.owner.operation in members for use in buffer.uses)


def _allocate(shape: Sequence[int], element: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "memref.alloc",
        results=[ir.MemRefType.get(list(shape), element)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
    ).result


def _erase_if_unused(buffer: ir.Value) -> None:
    if is_temporary(buffer) and not list(buffer.uses):
        buffer.owner.operation.erase()


class _Emitter:
    """Emits one generic as loops at the insertion point and moves its body inside."""

    def __init__(
        self, generic: Generic, nest: LoopNest, fills: Sequence[ir.Operation | None]
    ) -> None:
        self._generic = generic
        self._nest = nest
        self._position: dict[int, ir.Value] = {}  # dimension -> induction variable
        self._block_end: dict[int, ir.Value] = {}  # dimension -> end of the block being walked
        self._whole_block: dict[int, int] = {}  # dimension -> its size, where all blocks have it
        self._first_reduction = next(
            (level for level, loop in enumerate(nest.loops) if generic.reductions[loop.dimension]),
            len(nest.loops),
        )
        tail = nest.loops[self._first_reduction :]
        self._in_registers = (
            bool(tail)
            and all(generic.reductions[loop.dimension] for loop in tail)
            and not any(_walks_reductions(generic, map_) for map_ in generic.output_maps)
        )
        self._fills = fills if tail else ()

    def emit(self, outer: Sequence[ir.Value]) -> None:
        """Emit the loops inside those that stand around already and have these variables."""
        for loop, induction in zip(self._nest.loops, outer, strict=False):
            self._enter(loop, induction)
        self._emit_level(len(outer))

    def _emit_level(self, level: int) -> None:
        loops = self._nest.loops
        if level == self._first_reduction and self._fills:
            if self._in_registers:
                outputs = self._generic.outputs
                places = [self._indices(map_) for map_ in self._generic.output_maps]
                initial = [
                    load(output, place) if fill is None else fill.operands[0]
                    for output, place, fill in zip(outputs, places, self._fills, strict=True)
                ]
                for value, output, place in zip(
                    self._accumulate(level, initial), outputs, places, strict=True
                ):
                    store(value, output, place)
                return
            self._initialise(level)
        if level == len(loops):
            places = [self._indices(map_) for map_ in self._generic.output_maps]
            arguments = self._generic.body.arguments[len(self._generic.inputs) :]
            accumulators = [
                load(output, place) if len(list(argument.uses)) else None
                for output, place, argument in zip(
                    self._generic.outputs, places, arguments, strict=True
                )
            ]
            for value, output, place in zip(
                self._inline_body(accumulators), self._generic.outputs, places, strict=True
            ):
                store(value, output, place)
            return
        if level == len(loops) - 2 and self._is_transposed_block(level):
            pair = (loops[level].dimension, loops[level + 1].dimension)
            emit_transposed_block(
                self._generic, self._position, self._block_end, pair, self._indices
            )
            return
        self._loop(loops[level], [], lambda _: self._inner(level + 1))

    def _is_transposed_block(self, level: int) -> bool:
        outer, inner = (loop.dimension for loop in self._nest.loops[level:])
        if outer not in self._block_end or inner not in self._block_end:
            return False
        return is_transposing_copy(self._generic, outer, inner)

    def _inner(self, level: int) -> list[ir.Value]:
        self._emit_level(level)
        return []

    def _accumulate(self, level: int, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        if level == len(self._nest.loops):
            return self._inline_body(accumulators)
        return self._loop(
            self._nest.loops[level], accumulators, lambda inner: self._accumulate(level + 1, inner)
        )

    def _initialise(self, level: int) -> None:
        """Write the initial values over all parallel dimensions that are still open."""
        filled = [
            (o, m, f)
            for o, m, f in zip(
                self._generic.outputs, self._generic.output_maps, self._fills, strict=True
            )
            if f
        ]
        if not filled:
            return
        inner = [
            loop
            for loop in self._nest.loops[level:]
            if not self._generic.reductions[loop.dimension]
        ]

        def walk(depth: int) -> list[ir.Value]:
            if depth == len(inner):
                for output, map_, fill in filled:
                    store(fill.operands[0], output, self._indices(map_))
            else:
                self._loop(inner[depth], [], lambda _: walk(depth + 1))
            return []

        position, block_end = dict(self._position), dict(self._block_end)
        walk(0)
        self._position, self._block_end = position, block_end

    def _loop(
        self,
        loop: Loop,
        carried: Sequence[ir.Value],
        body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        outer_position, outer_end = (
            self._position.get(loop.dimension),
            self._block_end.get(loop.dimension),
        )
        size = self._whole_block.get(loop.dimension) if outer_end is not None else None
        if size is not None:  # counted from 0, so that LLVM knows how often
            low, high = index(0), index(size)
        elif outer_end is not None:
            low, high = outer_position, outer_end
        else:
            low, high = index(0), index(self._generic.extents[loop.dimension])

        def iteration(at: ir.Value, values: list[ir.Value]) -> Sequence[ir.Value]:
            self._enter(loop, at if size is None else add(outer_position, at))
            return body(values)

        results = for_range(low, high, carried, iteration, loop.step)
        if outer_position is not None:
            self._position[loop.dimension] = outer_position
        if outer_end is not None:
            self._block_end[loop.dimension] = outer_end
        else:
            self._block_end.pop(loop.dimension, None)
        return results

    def _enter(self, loop: Loop, induction: ir.Value) -> None:
        self._position[loop.dimension] = induction
        if loop.step > 1:
            extent = self._generic.extents[loop.dimension]
            end = add(induction, index(loop.step))
            if extent % loop.step == 0:
                self._whole_block[loop.dimension] = loop.step
            else:
                end = arith.MinSIOp(end, index(extent)).result
            self._block_end[loop.dimension] = end

    def _inline_body(self, accumulators: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Move the body here, on the inputs at the current position; the values it yields."""
        generic, block = self._generic, self._generic.body
        for argument, operand, map_ in zip(
            block.arguments, generic.inputs, generic.input_maps, strict=False
        ):
            if len(list(argument.uses)):
                value = (
                    operand
                    if not isinstance(operand.type, ir.MemRefType)
                    else load(operand, self._indices(map_))
                )
                argument.replace_all_uses_with(value)
        for argument, value in zip(
            block.arguments[len(generic.inputs) :], accumulators, strict=True
        ):
            if value is not None:
                argument.replace_all_uses_with(value)
        # an op to move in front of, since ops only move relative to ops
        anchor = ir.Operation.create(
            "arith.constant",
            results=[ir.IndexType.get()],
            attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)},
        )
        operations = list(block.operations)
        for op in operations[:-1]:
            op.operation.move_before(anchor)
        for op in operations[:-1]:
            self._replace_indices(op.operation)
        anchor.erase()
        return list(operations[-1].operands)

    def _replace_indices(self, op: ir.Operation) -> None:
        if op.name == "linalg.index":
            op.results[0].replace_all_uses_with(
                self._position[ir.IntegerAttr(op.attributes["dim"]).value]
            )
            op.erase()
            return
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations):
                    self._replace_indices(inner.operation)

    def _indices(self, map_: ir.AffineMap) -> list[ir.Value]:
        return indices(map_, self._position)
