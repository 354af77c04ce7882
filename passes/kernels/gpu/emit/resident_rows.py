"""Kernels of generics that share their leading loops, whose rows threads keep in registers.

What a thread reads or computes of a row, it keeps: each element is read once, by one thread, which does all
that is done to it; loops over a row's elements are written out. A reduction combines lanes by shuffles and warps by
shared memory, with one barrier, and leaves its result in every thread. So buffers between the generics need no
place. As few threads do a row as have registers for it, a warp where that is enough and rows are many: warps do not
wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import if_else, index, load, store
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    Body,
    below,
    equals,
    gpu_id,
    positions,
    when,
)
from lamina.passes.kernels.gpu.emit.elementwise import neighbours, put
from lamina.passes.kernels.gpu.emit.reducer import Reducer, Values
from lamina.passes.kernels.gpu.emit.rows import initial_value
from lamina.passes.kernels.gpu.emit.shapes import vector_length
from lamina.passes.kernels.gpu.machine import FILLING_WARPS, ROW_REGISTERS
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import (
    Access,
    Generic,
    accesses,
    is_buffer,
    loaded_buffers,
    root_buffer,
)
from lamina.records import Record

_MOST_THREADS = 512  # shape: of a block
_MOST_STEPS = 16  # code: of a row's loops, which are written out
_WARPS = 4  # that do rows of their own in a block

Key = tuple[ir.Value, ir.AffineMap]
"""A buffer and how it is read."""


class _Plan(Record):
    """How rows fall to threads. `inner`: the extents of a row's elements; `length`: neighbours that a thread does at
    once; `private`: buffers that nobody else reads."""

    members: tuple[Generic, ...]
    depth: int
    inner: tuple[int, ...]
    length: int
    threads: int
    private: frozenset[ir.Value]

    @property
    def outer(self) -> tuple[int, ...]:
        return self.members[0].extents[: self.depth]

    @property
    def rows(self) -> int:
        return math.prod(self.outer)

    @property
    def items(self) -> int:
        return math.prod(self.inner) // self.length

    @property
    def together(self) -> int:
        """Rows that a block does."""
        return min(_WARPS, self.rows) if self.threads == WARP else 1


def emit_resident_rows(kernels: Kernels, members: Sequence[Generic], depth: int) -> bool:
    """Generics that share their `depth` leading loops; False where this is no way to do them."""
    plan = None if kernels.one_block else _plan(kernels, members, depth)
    if plan is None:
        return False
    fills = [fill for g in members for fill in kernels.fills.get(g.op, ())]

    def emit(kernel: Kernel) -> None:
        kernel.replaced |= dict.fromkeys(plan.private)  # they need no place
        kernel.prepare([*(g.op for g in members), *fills])
        for buffer in plan.private:
            del kernel.replaced[buffer]
        row = gpu_id("block_id")
        if plan.together == 1:
            _Rows(kernel, plan, row).emit()
            return
        line = gpu_id("thread_id", "y")
        row = arith.AddIOp(arith.MulIOp(row, index(plan.together)).result, line).result
        if plan.rows % plan.together:
            when(below(row, plan.rows), lambda: _Rows(kernel, plan, row).emit())
        else:
            _Rows(kernel, plan, row).emit()

    size = [plan.threads] if plan.together == 1 else [plan.threads, plan.together]
    kernels.add([-(-plan.rows // plan.together)], size, members[-1].op, emit)
    return True


# ---- whether and how -----------------------------------------------------------------------------
def _plan(kernels: Kernels, members: Sequence[Generic], depth: int) -> _Plan | None:
    inner = {g.extents[depth:] for g in members if g.rank > depth}
    if len(inner) != 1 or not _keep_to_elements(kernels, members, depth):
        return None
    (extents,) = inner
    private = frozenset(_private(kernels, members))
    length = min(
        (vector_length(g, private) for g in members if g.rank > depth), default=1
    )
    rows, items = math.prod(members[0].extents[:depth]), math.prod(extents) // length
    held = length * _held(members, depth)

    def steps(threads: int) -> int:
        return -(-items // threads)

    threads = WARP
    while steps(threads) * held > ROW_REGISTERS or steps(threads) > _MOST_STEPS:
        threads *= 2
    while threads < _MOST_THREADS and rows * threads // WARP < FILLING_WARPS and 2 * threads <= items:
        threads *= 2
    if threads > _MOST_THREADS:
        return None
    return _Plan(tuple(members), depth, extents, length, threads, private)


def _keep_to_elements(kernels: Kernels, members: Sequence[Generic], depth: int) -> bool:
    """Whether what is written is read only by the thread that wrote it, or is one value for a row; and reductions are
    over all of it."""
    written: dict[ir.Value, ir.AffineMap | None] = {}
    for generic in members:
        whole = all(generic.reductions[depth:])
        if any(generic.reductions) and not (whole and Reducer.of(generic)):
            return False
        for access in accesses(generic):
            if access.writes:
                written[access.buffer] = None
    changed = {root_buffer(buffer) for buffer in written}
    ranks: dict[ir.Value, set[bool]] = {}
    for generic in members:
        if any(root_buffer(buffer) in changed for buffer in loaded_buffers(generic)):
            return False
        for access in accesses(generic):
            if root_buffer(access.buffer) not in changed:
                continue
            if access.buffer not in written:  # a view of what is written
                return False
            places = [len(access.places_of(d)) for d in range(generic.rank)]
            one = generic.rank == depth or any(generic.reductions) and access.writes
            inner = places[depth:]
            by_element = generic.rank > depth and all(count == 1 for count in inner)
            for_row = not any(inner) and len(access.map.results) == sum(places)
            if not by_element and not for_row or one and not for_row:
                return False
            if not one and access.writes and not by_element:
                return False
            ranks.setdefault(access.buffer, set()).add(by_element)
            known = written[access.buffer]
            if by_element:
                if known is not None and known != access.map:
                    return False
                written[access.buffer] = access.map
    of_rows = {buffer for buffer, kinds in ranks.items() if kinds == {False}}
    return all(len(kinds) == 1 for kinds in ranks.values()) and _are_written_first(
        kernels, members, of_rows
    )


def _are_written_first(
    kernels: Kernels, members: Sequence[Generic], of_rows: set[ir.Value]
) -> bool:
    """Whether rows' values are written before they are read: what every thread reads and one writes, others might find
    written already."""
    written: set[ir.Value] = set()
    for generic in members:
        read = set(generic.inputs)
        for output, argument in zip(
            generic.outputs, generic.body.arguments[len(generic.inputs) :], strict=True
        ):
            if len(list(argument.uses)) and generic.op not in kernels.fills:
                read.add(output)
        if (read & of_rows) - written:
            return False
        written.update(generic.outputs)
    return True


def _private(kernels: Kernels, members: Sequence[Generic]) -> Iterator[ir.Value]:
    inside = {g.op for g in members} | {fill for g in members for fill in kernels.fills.get(g.op, ())}
    for buffer in kernels.temporaries:
        users = [use.owner.operation for use in buffer.uses]
        if any(buffer in loaded_buffers(g) for g in members):
            continue
        if all(user in inside or user.name == "memref.dealloc" for user in users):
            first = next((a for g in members for a in accesses(g) if a.buffer == buffer), None)
            if first is not None and first.writes:
                yield buffer


def _held(members: Sequence[Generic], depth: int) -> int:
    """The most registers that an element takes while its row is kept."""
    spans: dict[Key, tuple[int, int]] = {}
    for number, generic in enumerate(members):
        if generic.rank == depth:
            continue
        for access in accesses(generic):
            if access.writes and any(generic.reductions) or not _by_element(access, depth):
                continue
            key = (access.buffer, access.map)
            first, _ = spans.get(key, (number, number))
            spans[key] = (first, number)
    most = 1
    for number in range(len(members) - 1):
        across = [key for key, (first, last) in spans.items() if first <= number < last]
        most = max(most, sum(_registers(buffer) for buffer, _ in across))
    return most


def _registers(buffer: ir.Value) -> int:
    element = ir.MemRefType(buffer.type).element_type
    if isinstance(element, ir.ComplexType):
        return 2 * -(-element.element_type.width // 32)
    return -(-getattr(element, "width", 64) // 32)


def _by_element(access: Access, depth: int) -> bool:
    return any(not _is_outer(expression, depth) for expression in access.map.results)


def _is_outer(expression: ir.AffineExpr, depth: int) -> bool:
    """Whether an index is the same for all of a row."""
    if isinstance(expression, ir.AffineConstantExpr):
        return True
    return isinstance(expression, ir.AffineDimExpr) and (
        ir.AffineDimExpr(expression).position < depth
    )


# ---- the kernel ----------------------------------------------------------------------------------
class _Rows:
    """What a thread does of one row."""

    def __init__(self, kernel: Kernel, plan: _Plan, row: ir.Value) -> None:
        self.kernel, self.plan = kernel, plan
        self.thread = gpu_id("thread_id")
        self.row = dict(enumerate(positions(row, plan.outer)))
        self.elements: dict[Key, list[Values]] = {}
        """By step, those that a thread has of a buffer."""
        self.values: dict[ir.Value, ir.Value] = {}
        """Those that a row has one of."""
        self.written = {a.buffer for g in plan.members for a in accesses(g) if a.writes}
        threads = plan.threads
        self.steps = [
            arith.AddIOp(self.thread, index(step * threads)).result
            for step in range(-(-plan.items // threads))
        ]
        self.partial = plan.items % threads != 0
        """Whether the last step is done by some of the threads."""

    def emit(self) -> None:
        for generic in self.plan.members:
            body = Body(generic, self.kernel.replaced)
            with generic.op.location:
                if generic.rank == self.plan.depth:
                    self._once(body)
                elif any(generic.reductions):
                    self._reduce(body)
                else:
                    self._element_wise(body)

    def _once(self, body: Body) -> None:
        """A generic that does one thing for a row: every thread does it."""
        generic = body.generic
        operands = zip(
            (*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps),
            generic.body.arguments, strict=True,
        )  # fmt: skip
        given = [
            self._value(body, operand, map_) if len(list(argument.uses)) else None
            for operand, map_, argument in operands
        ]
        count = len(generic.inputs)
        self._write_values(body, body.run(self.row, given[:count], given[count:]))

    def _value(self, body: Body, operand: ir.Value, map_: ir.AffineMap) -> ir.Value:
        if operand in self.values:
            return self.values[operand]
        value = body.value_of(operand)
        return load(value, indices(map_, self.row)) if is_buffer(value) else value

    def _write_values(self, body: Body, values: Values) -> None:
        """A row's values: every thread knows them, one writes them for others."""
        generic = body.generic
        self.values |= dict(zip(generic.outputs, values, strict=True))
        public = [
            (value, output, map_)
            for value, output, map_ in zip(values, generic.outputs, generic.output_maps, strict=True)
            if output not in self.plan.private
        ]

        def write() -> None:
            for value, output, map_ in public:
                store(value, body.value_of(output), indices(map_, self.row))

        if public:
            when(equals(self.thread, 0), write)

    def _at(self, step: int) -> list[dict[int, ir.Value]]:
        """The positions of a step's elements."""
        plan = self.plan
        extents = [*plan.inner[:-1], plan.inner[-1] // plan.length]
        found = positions(self.steps[step], extents)
        at = {**self.row, **{plan.depth + n: place for n, place in enumerate(found)}}
        if plan.length == 1:
            return [at]
        last = plan.depth + len(plan.inner) - 1
        at[last] = arith.MulIOp(at[last], index(plan.length)).result
        return [
            at,
            *(
                {**at, last: arith.AddIOp(at[last], index(n)).result}
                for n in range(1, plan.length)
            ),
        ]

    def _in_step(
        self, step: int, types: Sequence[ir.Type], work: Callable[[int], Values], otherwise: Callable[[], Values]
    ) -> Values:  # fmt: skip
        """What the threads that have elements in a step do, and what the others have then."""
        if not self.partial or step < len(self.steps) - 1:
            return work(step)
        inside = below(self.steps[step], self.plan.items)
        return if_else(inside, lambda: work(step), otherwise, types)

    def _operands(self, body: Body, step: int) -> list[list[ir.Value | None]]:
        """For each operand of a body its elements in a step, from registers or from memory."""
        generic, plan = body.generic, self.plan
        at = self._at(step)[0]
        last = plan.depth + len(plan.inner) - 1
        found: list[list[ir.Value | None]] = []
        operands = zip(
            (*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps),
            generic.body.arguments, strict=True,
        )  # fmt: skip
        for operand, map_, argument in operands:
            is_result = any(generic.reductions) and operand in generic.outputs
            if not len(list(argument.uses)) or is_result:
                found.append([None] * plan.length)
            elif operand in self.values:
                found.append([self.values[operand]] * plan.length)
            elif (operand, map_) in self.elements:
                found.append(list(self.elements[operand, map_][step]))
            else:
                value = body.value_of(operand)
                found.append(neighbours(value, map_, argument, at, last, plan.length))
        return found

    def _load(self, body: Body) -> None:
        """Read what bodies read more than once, for all of the row."""
        generic, plan = body.generic, self.plan
        following = plan.members[plan.members.index(generic) + 1 :]
        for operand, map_, argument in zip(
            generic.inputs, generic.input_maps, generic.body.arguments, strict=False
        ):
            again = any(
                (operand, map_) in zip(g.inputs, g.input_maps, strict=True) for g in following
            )
            key = (operand, map_)
            if not is_buffer(operand) or key in self.elements or operand in self.values:
                continue
            if not again or not len(list(argument.uses)):
                continue
            if all(_is_outer(e, plan.depth) for e in map_.results):
                continue
            self.elements[key] = self._read(body.value_of(operand), map_, argument)

    def _read(self, buffer: ir.Value, map_: ir.AffineMap, argument: ir.Value) -> list[Values]:
        """By step, the elements of a buffer."""
        plan = self.plan
        types = [ir.MemRefType(buffer.type).element_type] * plan.length
        last = plan.depth + len(plan.inner) - 1

        def read(step: int) -> Values:
            at = self._at(step)[0]
            found = neighbours(buffer, map_, argument, at, last, plan.length)
            return [value for value in found if value is not None]

        def nothing() -> Values:
            return [_nothing(type_) for type_ in types]

        return [self._in_step(step, types, read, nothing) for step in range(len(self.steps))]

    def _element_wise(self, body: Body) -> None:
        generic, plan = body.generic, self.plan
        self._load(body)
        public = [output not in plan.private for output in generic.outputs]
        following = plan.members[plan.members.index(generic) + 1 :]
        read = {value for g in following for value in (*g.inputs, *g.outputs)}
        kept = [output in read for output in generic.outputs]
        types = [ir.MemRefType(output.type).element_type for output in generic.outputs]
        wanted = [type_ for type_, keep in zip(types, kept) if keep for _ in range(plan.length)]

        def work(step: int) -> Values:
            columns = self._operands(body, step)
            count = len(generic.inputs)
            places = self._at(step)
            rows = [
                body.run(at, [c[n] for c in columns[:count]], [c[n] for c in columns[count:]])
                for n, at in enumerate(places)
            ]
            found: Values = []
            for number, (output, map_) in enumerate(
                zip(generic.outputs, generic.output_maps, strict=True)
            ):
                values = [row[number] for row in rows]
                if public[number]:
                    put(body.value_of(output), map_, places[0], values)
                if kept[number]:
                    found += values
            return found

        def nothing() -> Values:
            return [_nothing(type_) for type_ in wanted]

        results = [
            self._in_step(step, wanted, work, nothing) for step in range(len(self.steps))
        ]
        at = 0
        for output, map_, keep in zip(generic.outputs, generic.output_maps, kept, strict=True):
            for key in [key for key in self.elements if key[0] == output]:
                del self.elements[key]
            if keep:
                self.elements[output, map_] = [found[at : at + plan.length] for found in results]
                at += plan.length

    def _reduce(self, body: Body) -> None:
        generic, plan = body.generic, self.plan
        reducer = Reducer.of(generic)
        assert reducer is not None
        reducer.replaced = self.kernel.replaced
        self._load(body)
        count = len(generic.inputs)
        # As many partial results as neighbours: their sums do not wait for each other.
        sums: list[Values] = []

        def work(step: int) -> Values:
            columns = self._operands(body, step)[:count]
            found: Values = []
            for n, at in enumerate(self._at(step)):
                element = reducer.element(body, at, [column[n] for column in columns])
                found += reducer(sums[n], element) if sums else element
            return found

        def before() -> Values:
            parts = sums or [reducer.neutral() for _ in range(plan.length)]
            return [value for part in parts for value in part]

        width = len(reducer.types)
        for step in range(len(self.steps)):
            found = self._in_step(step, list(reducer.types) * plan.length, work, before)
            sums = [found[n * width : (n + 1) * width] for n in range(plan.length)]
        while len(sums) > 1:  # neighbours stay apart: two of 16 bits are in one register
            half = len(sums) // 2
            sums = [reducer(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
        total = reducer.in_every_thread(
            sums[0], self.thread, plan.threads,
            lambda element, count: self.kernel.shared([count], element),
        )  # fmt: skip
        fills = self.kernel.kernels.fills.get(generic.op)
        if fills is not None:
            initial = [
                body.value_of(value) for value in map(initial_value, fills) if value is not None
            ]
        else:
            initial = [
                self._value(body, output, map_)
                for output, map_ in zip(generic.outputs, generic.output_maps, strict=True)
            ]
        self._write_values(body, reducer.result(total, initial))


def _nothing(type_: ir.Type) -> ir.Value:
    """What stands for an element that a thread doesn't have: nobody looks at it."""
    return ir.Operation.create("ub.poison", results=[type_]).result
