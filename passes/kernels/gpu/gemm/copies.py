"""How a factor's elements get into shared memory for tensor cores: copied as they lie, or by way of
registers; and in what order they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import if_else, index, store
from lamina.passes.kernels.gpu.device.padding import place_in_source
from lamina.passes.kernels.gpu.device.threads import gpu_id, strided, when, zero_of
from lamina.passes.kernels.gpu.gemm.operand import (
    Operand,
    modulo,
    over,
    padded_source,
    plus,
    times,
)
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.linalg.schedule.padding import Padding
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_AT_ONCE = 32  # copies, or elements in registers, of a thread
_TOGETHER = 8  # elements in registers where there are many others
_CHUNK = 16  # bytes that keep together in shared memory


class TileShape(Record):
    """A tile of `edge` rows by `depth` in shared memory: by rows, or transposed, by depth."""

    edge: int
    depth: int
    bytes: int
    by_depth: bool
    copied: int
    """Elements that one asynchronous copy moves; 0 where none can."""

    @classmethod
    def of(
        cls, product: Product, factor: Factor, edge: int, depth: int, element: ir.Type,
        ops: Sequence[ir.Operation], any_order: bool = False,
    ) -> TileShape:  # fmt: skip
        """By depth where the factor is contiguous along its rows and `ldmatrix` can transpose, or
        elements are read one by one, in any order."""
        size = element_bytes(element)
        found = copy_elements(product, factor, element, ops, padded_source(product, factor), any_order)
        if found is not None:
            return cls(edge, depth, size, *found)
        rows = bool(factor.along) and factor.stride(factor.along[-1]) == 1
        return cls(edge, depth, size, rows and (size == 2 or any_order), 0)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.depth, self.edge) if self.by_depth else (self.edge, self.depth)

    def place(self, line: ir.Value, at: ir.Value, further: int = 0) -> list[ir.Value]:
        """Where element `at` of a line is, or the one so much further: the line's chunks are in an
        order of its own. `further` is of whole chunks, and has no bit that `at` may have: so places
        that differ in it alone differ by one `xor`, and need few registers."""
        chunk = _CHUNK // self.bytes
        chunks = self.shape[1] // chunk
        if chunks >= 8:
            key = modulo(line, 8)
        else:
            key = modulo(over(line, 8 // chunks), chunks)
        moved = arith.XOrIOp(over(at, chunk), key).result
        swapped = further // chunk % min(8, chunks)
        if swapped:
            moved = arith.XOrIOp(moved, index(swapped)).result
        place = plus(times(moved, chunk), modulo(at, chunk))
        return [line, plus(place, further - swapped * chunk)]


def copy_elements(
    product: Product, factor: Factor, element: ir.Type, ops: Sequence[ir.Operation],
    padding: Padding | None, any_order: bool = False,
) -> tuple[bool, int] | None:  # fmt: skip
    """(by depth, elements) of the largest asynchronous copies that can move a factor's elements as
    they lie; None if none can."""
    if ops or (padding is not None and not padding.is_zero):
        return None
    source = factor.buffer if padding is None else padding.source
    type_ = ir.MemRefType(source.type)
    size = element_bytes(element)
    if type_.element_type != element:
        return None
    best = None
    rows_lie_apart = not factor.along or factor.stride(factor.along[-1]) != 1
    orders = [(False, product.reduced), (True, factor.along)]
    for by_depth, order in orders if rows_lie_apart else reversed(orders):
        if by_depth and size != 2 and not any_order:
            continue
        run, places = _run(product, factor, order, type_, padding)
        counts = [bytes_ // size for bytes_ in (16, 8, 4) if bytes_ >= size]
        fits = (n for n in counts if run % n == 0 and _is_aligned(type_, places, n))
        count = next(fits, 0)
        if count > (best[1] if best is not None else 0):
            best = by_depth, count
    return best


def _run(
    product: Product, factor: Factor, order: Sequence[int], type_: ir.MemRefType,
    padding: Padding | None,
) -> tuple[int, set[int]]:  # fmt: skip
    """How many elements that follow each other in this order of dimensions are neighbours in memory,
    and along which of the buffer's dimensions."""
    strides, _ = type_.get_strides_and_offset()
    padded = ir.MemRefType(factor.buffer.type).shape
    size, places = 1, set()
    for dimension in reversed(order):
        extent = product.generic.extents[dimension]
        used = [
            place
            for place in range(len(factor.map.results))
            if factor.uses(place, dimension)
        ]
        if extent == 1:
            continue
        if len(used) != 1 or not isinstance(factor.map.results[used[0]], ir.AffineDimExpr):
            break
        (place,) = used
        if strides[place] != size or type_.shape[place] != padded[place]:
            break
        size *= extent
        places.add(place)
    return size, places


def _is_aligned(type_: ir.MemRefType, places: set[int], count: int) -> bool:
    strides, offset = type_.get_strides_and_offset()
    if offset < 0 or offset % count:
        return False
    return all(
        stride % count == 0
        for place, (stride, extent) in enumerate(zip(strides, type_.shape, strict=True))
        if place not in places and extent > 1
    )


class AsyncCopies:
    """Copies that go on while the threads compute. Beyond k and in padding they write zeros."""

    def __init__(
        self, operand: Operand, shape: TileShape, buffer: ir.Value, threads: int,
        thread: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """`thread` is the number among so many, where those are not all of the block's."""
        self.operand, self.shape, self.buffer, self.threads = operand, shape, buffer, threads
        self.thread = thread
        rows = operand.factor.along
        self.by_line = (
            shape.copied == 1 and not shape.by_depth
            and bool(rows) and operand.factor.stride(rows[-1]) == 1
        )  # fmt: skip
        """Whether neighbouring threads copy from neighbouring rows: those are neighbours in memory."""
        self.token: ir.Value | None = None
        """Of a copy."""

    def read(self, stage: ir.Value, first_depth: ir.Value) -> list[ir.Value]:
        """Start the copies of the step that begins at a depth."""
        shape, thread = self.shape, gpu_id("thread_id") if self.thread is None else self.thread
        lines, length = shape.shape
        pieces = length // shape.copied

        def copy(item: ir.Value) -> ir.Value:
            if self.by_line:
                line, at = modulo(item, lines), times(over(item, lines), shape.copied)
            else:
                line, at = over(item, pieces), times(modulo(item, pieces), shape.copied)
            return self._copy(stage, line, at, first_depth)

        self.token = copy(thread)
        count = lines * pieces // self.threads
        if count <= _AT_ONCE:
            for number in range(1, count):
                copy(plus(thread, number * self.threads))
        else:
            end = index(count * self.threads)
            _repeat(plus(thread, self.threads), end, self.threads, copy)
        return []

    def fill(self, stage: ir.Value, first_depth: ir.Value) -> None:
        """`read` and `put`."""
        self.read(stage, first_depth)

    def read_if(self, more: ir.Value, stage: ir.Value, first_depth: ir.Value) -> list[ir.Value]:
        """The same where there is such a step."""
        when(more, lambda: _nothing(self.read(stage, first_depth)))
        return []

    def put(self, stage: ir.Value, values: Sequence[ir.Value]) -> None:
        """Nothing is left to do."""

    def _copy(
        self, stage: ir.Value, line: ir.Value, at: ir.Value, first_depth: ir.Value
    ) -> ir.Value:
        operand, shape = self.operand, self.shape
        row, k = (at, line) if shape.by_depth else (line, at)
        places, there = operand.position(
            row, plus(k, first_depth), shape.copied if shape.by_depth else 1
        )
        if operand.padding is not None:
            places, inside = place_in_source(operand.padding, places)
            there = inside if there is None else arith.AndIOp(there, inside).result
        operands = [self.buffer, stage, *shape.place(line, at), operand.buffer, *places]
        segments = [1, 3, 1, len(places), 0]
        if there is not None:
            all_, none = index(shape.copied), index(0)
            operands.append(arith.SelectOp(there, all_, none).result)
            segments[-1] = 1
        attributes = {
            "dstElements": ir.IntegerAttr.get(ir.IndexType.get(), shape.copied),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
        }
        if shape.copied * shape.bytes == _CHUNK:
            attributes["bypassL1"] = ir.UnitAttr.get()
        return ir.Operation.create(
            "nvgpu.device_async_copy",
            results=[ir.Type.parse("!nvgpu.device.async.token")],
            operands=operands,
            attributes=attributes,
        ).result


class RegisterCopies:
    """Elements that are read, and finished, in registers; and stored once the tile is free."""

    def __init__(self, operand: Operand, shape: TileShape, buffer: ir.Value, threads: int) -> None:
        self.operand, self.shape, self.buffer = operand, shape, buffer
        element = ir.MemRefType(buffer.type).element_type
        self.element = element
        thread = gpu_id("thread_id")
        # Neighbouring threads along the dimension in which the factor is contiguous.
        along_depth = not shape.by_depth and abs(
            operand.factor.stride(operand.product.reduced[-1])
        ) == 1 or not operand.factor.along  # fmt: skip
        fast, slow = (shape.depth, shape.edge) if along_depth else (shape.edge, shape.depth)
        self.count = max(1, fast * slow // threads)

        def place(number: ir.Value | int) -> tuple[ir.Value, ir.Value]:
            if threads % fast == 0 and isinstance(number, int):
                quick, late = modulo(thread, fast), plus(over(thread, fast), number * threads // fast)
            else:
                before = times(number, threads) if isinstance(number, ir.Value) else number * threads
                item = plus(thread, before)
                quick, late = modulo(item, fast), over(item, fast)
            return (late, quick) if along_depth else (quick, late)

        self.place = place
        self.places = [place(number) for number in range(self.count)] if self.count <= _AT_ONCE else []

    def read(self, stage: ir.Value, first_depth: ir.Value) -> list[ir.Value]:
        """This thread's elements of the step that begins at a depth."""
        return [self.operand.element(row, plus(k, first_depth)) for row, k in self.places]

    def read_if(self, more: ir.Value, stage: ir.Value, first_depth: ir.Value) -> list[ir.Value]:
        """The same where there is such a step."""
        types = [self.element] * len(self.places)
        return if_else(
            more, lambda: self.read(stage, first_depth), lambda: [zero_of(t) for t in types], types
        )

    def put(self, stage: ir.Value, values: Sequence[ir.Value]) -> None:
        """Store them."""
        for (row, k), value in zip(self.places, values, strict=True):
            self._put(stage, row, k, value)

    def fill(self, stage: ir.Value, first_depth: ir.Value) -> None:
        """`read` and `put`, not more elements at a time than there are registers for."""
        together = min(self.count, _TOGETHER)

        def some(first: ir.Value) -> None:
            places = [self.place(plus(first, n)) for n in range(together)]
            values = [self.operand.element(row, plus(k, first_depth)) for row, k in places]
            for (row, k), value in zip(places, values, strict=True):
                self._put(stage, row, k, value)

        _repeat(index(0), index(self.count), together, some)

    def _put(self, stage: ir.Value, row: ir.Value, k: ir.Value, value: ir.Value) -> None:
        at = (k, row) if self.shape.by_depth else (row, k)
        store(value, self.buffer, [stage, *self.shape.place(*at)])


def _repeat(low: ir.Value, high: ir.Value, step: int, body: Callable[[ir.Value], object]) -> None:
    def once(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        body(number)
        return []

    strided(low, high, step, [], once)


def _nothing(values: Sequence[ir.Value]) -> None:
    assert not values
