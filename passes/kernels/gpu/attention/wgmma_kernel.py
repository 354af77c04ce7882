"""Attention by Hopper's tensor cores (sm_90a), of f16 and bf16, heads of 40 to 256 columns.

Of a block's 128 (or 64) queries each warpgroup has 64. One thread has boxes of q, k and v copied, the
latter some steps ahead. Scores of a step and sums stay in registers: `wgmma` multiplies q and k^T from
shared memory; exponentials, where they are, and v. It does so with one step's while exponentials of the
next are taken (Shah et al., FlashAttention-3, 2024). What is done to scores is `scores.py`, as
in `kernel.py`.

In shared memory 64 columns of q, k or v are rows of 128 bytes, behind them are the next 64. Zeros lie
where rows or columns end. Barriers say which tiles have come, and which all warps are done with: those
are filled anew one step later, so that no warpgroup waits for the other. There is no warp for copies,
as the assembler that we have would then give no thread more than 168 registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import index
from lamina.passes.kernels.gpu.attention.scores import Rows, Running, Scores
from lamina.passes.kernels.gpu.attention.tiles import blocks_of
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel, TensorMap
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    barrier,
    equals,
    gpu_id,
    positions,
    strided,
    when,
    zero_of,
)
from lamina.passes.kernels.gpu.gemm.block import TILING, Arena
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times
from lamina.passes.kernels.gpu.gemm.wgmma import (
    MOST_DIMENSIONS,
    ROW_BYTES,
    WARPGROUP,
    Barriers,
    SharedMemory,
    begin_products,
    copy_box,
    descriptor,
    end_products,
    fence_barriers,
    further,
    multiply,
    multiply_registers,
    no_sums,
    sum_at,
    wait_for_products,
)
from lamina.passes.kernels.gpu.machine import SHARED_BYTES_SM_90
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape
from lamina.records import Record

_BYTES = 2  # shape: of an element
_BOX = ROW_BYTES // _BYTES  # columns
_KINDS = {"f16": "f16", "bf16": "bf16"}
_LEAST_WIDTH, _MOST_WIDTH = 40, 256  # shape: of heads: of narrower ones most of a box would be empty
_MOST_STAGES = 4  # shape
_BARRIERS = 2  # rows of shared memory
_REGISTERS_FOR = 128  # columns of v beside scores of as many keys; of more, beside half as many


class Tiles(Record):
    """Queries of a block and keys of a step; boxes of q's and k's columns, and of v's; steps of k and
    of v that shared memory holds."""

    queries: int
    keys: int
    boxes: int
    value_boxes: int
    key_stages: int
    value_stages: int

    @classmethod
    def of(cls, shape: AttentionShape) -> Tiles:
        """As many as registers and shared memory have room for."""
        wide = max(shape.width, shape.value_width) > _REGISTERS_FOR
        queries = 64 if shape.queries <= 64 else 128
        keys = 64 if wide or shape.keys <= 64 else 128
        boxes, value_boxes = -(-shape.width // _BOX), -(-shape.value_width // _BOX)
        room = SHARED_BYTES_SM_90 // ROW_BYTES - queries * boxes - _BARRIERS
        stages = min(_MOST_STAGES, room // (keys * (boxes + value_boxes)))
        assert stages > 1
        room -= stages * keys * (boxes + value_boxes)
        more = int(room >= keys * boxes)  # a step's keys are asked for before its values
        return cls(queries, keys, boxes, value_boxes, stages + more, stages)

    def __str__(self) -> str:
        return f"{self.queries}x{self.keys}, {self.key_stages} and {self.value_stages} stages"

    @property
    def threads(self) -> int:
        return self.queries // 64 * WARPGROUP


class _Source(Record):
    """An operand as boxes are copied from it: the scores' dimension, or `rank` for its columns, of each
    of its own, the innermost first; and the map."""

    order: tuple[int, ...]
    map: TensorMap


class WgmmaAttention(Record):
    """How an attention is done so."""

    job: Job
    attention: Attention
    shape: AttentionShape
    tiles: Tiles
    sources: tuple[_Source, _Source, _Source]

    @classmethod
    def of(
        cls, job: Job, attention: Attention, shape: AttentionShape, arch: str
    ) -> WgmmaAttention | None:
        """None where it can't be: on other architectures, for other types and widths, and where boxes
        can't be copied as operands lie."""
        element = str(attention.product.operands[0].type.element_type)
        widths = (shape.width, shape.value_width)
        if arch != "sm_90a" or element not in _KINDS:
            return None
        if any(w % 8 or not _LEAST_WIDTH <= w <= _MOST_WIDTH for w in widths):
            return None
        tiles = Tiles.of(shape)
        rows = _box_of_rows([shape.extents[d] for d in shape.rows], tiles.queries)
        if rows is None:
            return None
        q_at = attention.queries_operand
        q, k = attention.product.operands[q_at], attention.product.operands[1 - q_at]
        v = attention.values.operands[1 - attention.probabilities_operand]
        keys = {shape.keys_dim: tiles.keys}
        sources = (
            _source(job, shape, q, shape.of_q, dict(zip(shape.rows, rows))),
            _source(job, shape, k, shape.of_k, keys),
            _source(job, shape, v, shape.of_v, keys),
        )
        if sources[0] is None or sources[1] is None or sources[2] is None:
            return None
        return cls(job, attention, shape, tiles, (sources[0], sources[1], sources[2]))

    def emit(self) -> None:
        """The kernel."""
        self.job.launch(
            blocks_of(self.shape, self.tiles.queries), self.tiles.threads,
            lambda kernel: _Block(self, kernel).emit(), [source.map for source in self.sources],
        )  # fmt: skip
        self.job.annotate(TILING, f"wgmma.{self.sources[0].map.element} {self.tiles}")


def _box_of_rows(extents: Sequence[int], rows: int) -> list[int] | None:
    """The lengths of a box of so many rows of a space that is walked as one; None where those are no
    box."""
    lengths: list[int] = []
    for place in reversed(range(len(extents))):
        length = rows if place == 0 else min(rows, extents[place])
        if rows % length or (place and extents[place] % length):
            return None
        lengths.append(length)
        rows //= length
    return lengths[::-1]


def _source(
    job: Job, shape: AttentionShape, value: ir.Value, dims: Mapping[int, int], box: Mapping[int, int]
) -> _Source | None:
    sizes, argument = list(value.type.shape), job.argument_of(value)
    order = tuple(dims[d] for d in reversed(range(len(sizes))))
    if argument is None or len(sizes) > MOST_DIMENSIONS or order[0] != shape.rank:
        return None
    strides, size = [], _BYTES
    for extent in reversed(sizes[1:]):
        size *= extent
        strides.append(size)
    lengths = {**box, shape.rank: _BOX}
    return _Source(order, TensorMap(
        argument, 0, value.type.element_type, tuple(reversed(sizes)), tuple(strides),
        tuple(lengths.get(d, 1) for d in order),
    ))  # fmt: skip


class _Ring:
    """An operand's tiles in shared memory from `begin` on, of which each step's takes the next stage."""

    def __init__(
        self, kernel: Kernel, memory: SharedMemory, number: int, source: _Source, begin: int, rows: int,
        boxes: int, stages: int, barriers: tuple[int, int], warps: int,
    ) -> None:  # fmt: skip
        """`warps`: that say when they are done with a tile."""
        self.map, self.source, self.memory = kernel.maps[number], source, memory
        self.begin, self.rows, self.boxes, self.stages = begin, rows, boxes, stages
        self.bytes = rows * boxes * ROW_BYTES
        self.there = Barriers(memory, barriers[0], stages, 1)
        self.free = Barriers(memory, barriers[1], stages, warps)

    @property
    def end(self) -> int:
        """Where its tiles end."""
        return self.begin + self.stages * self.bytes

    def at(self, number: ir.Value) -> ir.Value:
        """The address of a step's tile."""
        return self.memory.at(plus(times(modulo(number, self.stages), self.bytes), self.begin))

    def copy(self, number: ir.Value, at: Mapping[int, ir.Value], columns: int) -> None:
        """One thread has a step's tile copied, from a place on; `columns`: the number of that dimension."""
        arrived = self.there.expect(number, self.bytes)
        target = self.at(number)
        for box in range(self.boxes):
            where = {**at, columns: index(_BOX * box)}
            coordinates = [where[d] for d in self.source.order]
            copy_box(self.map, coordinates, further(target, box * self.rows * ROW_BYTES), arrived)


class _Block:
    """Emits one block's work."""

    def __init__(self, plan: WgmmaAttention, kernel: Kernel) -> None:
        self.shape, self.tiles = plan.shape, plan.tiles
        tiles = self.tiles
        self.scores = Scores(plan.job, kernel, plan.attention, plan.shape, tiles.queries, tiles.keys)
        self.thread, self.lane = gpu_id("thread_id"), self.scores.lane
        barriers = ROW_BYTES * (
            tiles.queries * tiles.boxes
            + tiles.keys * (tiles.key_stages * tiles.boxes + tiles.value_stages * tiles.value_boxes)
        )
        arena = Arena(kernel, barriers + _BARRIERS * ROW_BYTES, dynamic=True)
        memory, warps = SharedMemory(arena), tiles.threads // WARP

        def ring(number: int, begin: int, rows: int, boxes: int, stages: int, at: int) -> _Ring:
            source = plan.sources[number]
            places = barriers + 8 * at, barriers + 8 * (at + stages)
            return _Ring(kernel, memory, number, source, begin, rows, boxes, stages, places, warps)

        self.queries = ring(0, 0, tiles.queries, tiles.boxes, 1, 0)
        self.keys = ring(1, self.queries.end, tiles.keys, tiles.boxes, tiles.key_stages, 1)
        self.values = ring(2, self.keys.end, tiles.keys, tiles.value_boxes, tiles.value_stages,
                           1 + 2 * tiles.key_stages)  # fmt: skip
        self.kind = _KINDS[str(plan.sources[0].map.element)]
        self.element = plan.sources[0].map.element

    # ---- copies ----------------------------------------------------------------------------------
    def _initialise(self) -> None:
        for barriers in (self.queries.there, self.keys.there, self.keys.free,
                         self.values.there, self.values.free):  # fmt: skip
            barriers.initialise()
        fence_barriers()

    def _begin(self) -> None:
        """q, and the first tiles of k and v."""
        shape = self.shape
        extents = [shape.extents[d] for d in shape.rows]
        rows = dict(zip(shape.rows, positions(self.scores.first, extents)))
        self.queries.copy(index(0), {**self.scores.batch, **rows}, shape.rank)
        for number in range(self.keys.stages):
            self._copy_if_any(self.keys, index(number))
            if number < self.values.stages - 1:
                self._copy_if_any(self.values, index(number))

    def _copy_if_any(self, ring: _Ring, number: ir.Value) -> None:
        there = arith.CmpIOp(arith.CmpIPredicate.ult, number, self.steps).result
        when(there, lambda: self._copy(ring, number))

    def _copy(self, ring: _Ring, number: ir.Value) -> None:
        at = {**self.scores.batch, self.shape.keys_dim: times(number, self.tiles.keys)}
        ring.copy(number, at, self.shape.rank)

    def _refill(self, ring: _Ring, number: ir.Value) -> None:
        """The first thread has a step's tile copied, once all warps are done with what is there."""
        there = arith.CmpIOp(arith.CmpIPredicate.ult, number, self.steps).result

        def copy() -> None:
            ring.free.wait(number, before=1)
            self._copy(ring, number)

        when(arith.AndIOp(equals(self.thread, 0), there).result, copy)

    def _release(self, ring: _Ring, number: ir.Value) -> None:
        """A warp is done with a step's tile."""
        when(equals(self.lane, 0), lambda: ring.free.arrive(number))

    # ---- products --------------------------------------------------------------------------------
    def emit(self) -> None:
        """Step after step: its scores, while the values of the one before are added."""
        self.steps = self.scores.steps()
        when(equals(self.thread, 0), self._initialise)
        barrier()
        when(equals(self.thread, 0), self._begin)
        columns, pairs = self.shape.value_width, self.tiles.keys // 4
        first, zero = index(0), zero_of(ir.F32Type.get())
        self.queries.there.wait(first)
        raw = wait_for_products(0, self._scores(first))
        self._release(self.keys, first)
        running = Running()
        _, powers = running.add(self._scored(raw, first), self.scores.exp)

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            running = Running(carried[:4])
            left, totals = carried[4:4 + pairs], carried[4 + pairs:]
            before = arith.SubIOp(number, index(1)).result
            raw = self._scores(number)
            left, totals = self._totals(before, left, totals)
            raw = wait_for_products(1, raw)
            self._release(self.keys, number)
            self._refill(self.keys, plus(before, self.keys.stages))
            self._refill(self.values, plus(before, self.values.stages - 1))
            scaled, powers = running.add(self._scored(raw, number), self.scores.exp)
            totals = wait_for_products(0, [*totals, *left])[:len(totals)]
            self._release(self.values, before)
            totals = [
                arith.MulFOp(total, scaled[place // 2 % 2]).result for place, total in enumerate(totals)
            ]
            return [*running.values, *self._rounded(powers), *totals]

        carried = [*running.values, *self._rounded(powers), *[zero] * (columns // 2)]
        carried = strided(index(1), self.steps, 1, carried, step)
        last = arith.SubIOp(self.steps, index(1)).result
        _, totals = self._totals(last, carried[4:4 + pairs], carried[4 + pairs:])
        totals = wait_for_products(0, totals)
        self.scores.write(
            Running(carried[:4]).sums, lambda n, i, j: totals[4 * n + 2 * i + j], columns, first
        )

    def _scores(self, number: ir.Value) -> list[ir.Value]:
        """Begin the products of q and a step's keys."""
        tiles, f32 = self.tiles, ir.F32Type.get()
        self.keys.there.wait(number)
        begin_products()
        mine = times(over(self.thread, WARPGROUP), 64 * ROW_BYTES)
        left, right = descriptor(self.queries.memory.at(mine)), descriptor(self.keys.at(number))
        sums = no_sums(tiles.keys // 2, f32)
        for k in range(0, self.shape.width, 16):
            box, along = k // _BOX, k % _BOX * _BYTES
            sums = multiply(
                sums, further(left, (box * tiles.queries * ROW_BYTES + along) >> 4),
                further(right, (box * tiles.keys * ROW_BYTES + along) >> 4),
                kind=self.kind, sum_kind="f32", columns=tiles.keys, depth=16, across=(False, False),
            )  # fmt: skip
        end_products()
        return [sum_at(sums, place, f32) for place in range(tiles.keys // 2)]

    def _scored(self, raw: list[ir.Value], number: ir.Value) -> Rows:
        return self.scores.of(
            lambda n, i, j: raw[4 * n + 2 * i + j], times(number, self.tiles.keys)
        )

    def _rounded(self, powers: Rows) -> list[ir.Value]:
        """A left factor's registers, of 16 keys after the other: rows, then halves of the keys."""
        pair = ir.VectorType.get([2], self.element)
        return [
            vector.FromElementsOp(
                pair, [arith.TruncFOp(self.element, p).result for p in powers[i][2 * n + half]]
            ).result
            for n in range(self.tiles.keys // 16)
            for half in range(2)
            for i in range(2)
        ]

    def _totals(
        self, number: ir.Value, left: Sequence[ir.Value], totals: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """Begin to add a step's exponentials times its values; the former, which must stay, and the
        totals."""
        self.values.there.wait(number)
        ready = begin_products([*left, *totals])
        left, sums = ready[:len(left)], ready[len(left):]
        right = descriptor(self.values.at(number), self.tiles.keys * ROW_BYTES)
        for n in range(self.tiles.keys // 16):
            there = further(right, (n * 16 * ROW_BYTES) >> 4)
            sums = multiply_registers(
                sums, left[4 * n:4 * n + 4], there, kind=self.kind, across=True
            )
        end_products()
        return left, sums
