"""Kernels of complex Fourier transforms, generated for their lengths.

Each axis is one step or two. A step takes blocks of as many transforms as a vector has lanes, one
in each lane (fft_lanes.py), and blocks are the tasks of a parallel loop.

- Along any axis but the last, neighbouring transforms lie side by side: rows of vectors.
- Along the last, transforms lie one behind the other: blocks are transposed on their way in and
  out, where there are transforms enough; else
- a transform of length a * b is a step over columns of the matrix [a, b], whose results are turned
  by roots of unity and written transposed, and a step over columns of [b, a]. This is also how long
  transforms stay in cache (Bailey, FFTs in external or hierarchical memory, 1990).

The first step goes from the operand to the result, all others are done where they are: a block is
read whole before any of it is written.

The last lanes of a block that is not full do the same as the last one that has work.
"""

from __future__ import annotations

from math import prod

import numpy as np

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.kernels.cpu.fft.lanes import (
    LaneTransform,
    Numbers,
    constant,
    pairs,
    roots_of_unity,
)
from lamina.passes.kernels.cpu.fft.real import RealTask
from lamina.passes.kernels.cpu.fft.rows import (
    complex_in,
    complex_out,
    masked_declarations,
    row_addresses,
)
from lamina.passes.stablehlo.analysis.fourier import (
    LARGEST_PRIME,
    LONGEST_LANE,
    is_generated,
    is_short,
    two_factors,
)
from lamina.records import Record

_CACHED_LANE = REFERENCE.l2_bytes // 512  # longer transforms in eight lanes leave the second cache; for all machines


class _Layout(Record):
    """Where number `i` of lane `l` of outer position `o` lies, counted in complex numbers."""

    outer: int
    along: int
    lane: int


class _Step(Record):
    """Transforms of one length: for `outer` positions, `lanes` each."""

    length: int
    outer: int
    lanes: int
    source: _Layout
    target: _Layout
    turn: int = 0
    """Where not 0: result k of lane l is multiplied by exp(-2 pi i k l / turn)."""
    scale: float = 1.0


def fft_kernel(op: ir.Operation, symbol: str, vector_bits: int) -> tuple[str, int]:
    """LLVM IR of `void @symbol(ptr operand, ptr result, ptr scratch)` for a stablehlo.fft, and the
    bytes of scratch it needs. Raises CompileError for what stablehlo-expand-fft would expand."""
    kind = str(op.attributes["fft_type"])
    of = op.operands[0].type if "IRFFT" in kind else op.results[0].type
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    is_real = "RFFT" in kind
    fits = all(is_generated(n, LARGEST_PRIME) for n in lengths)
    if not fits or (is_real and not is_short(lengths[-1])):
        raise CompileError.at(op, f"no generated transform of lengths {lengths}")
    inverse = "IFFT" in kind or "IRFFT" in kind
    element = "float" if "f32" in str(of.element_type) else "double"
    bytes_ = 4 if element == "float" else 8
    numbers = Numbers(element, max(2, vector_bits // 8 // bytes_))
    shape = list(of.shape)  # of the complex numbers
    last = len(shape) - 1
    chain: list[_Step | RealTask] = []
    axes = range(last, last - len(lengths), -1)
    for axis in reversed(axes) if is_real and inverse else axes:
        if is_real and axis == last:
            chain.append(RealTask("real", lengths[-1], prod(shape[:-1]), numbers, inverse))
        elif shape[axis] > 1:
            chain += _steps(shape, axis, numbers.lanes, inverse, in_place=bool(chain))
    return _kernel(chain, symbol, numbers, inverse, prod(shape), vector_bits)


# ---- which steps -------------------------------------------------------------------------------
def _steps(
    shape: list[int], axis: int, lanes: int, inverse: bool, *, in_place: bool
) -> list[_Step]:
    length, outer, inner = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
    scale = 1.0 / length if inverse else 1.0
    factors = two_factors(length)

    def in_lanes() -> _Step:
        if inner == 1:
            rows = _Layout(0, 1, length)
            return _Step(length, 1, outer, rows, rows, scale=scale)
        columns = _Layout(length * inner, inner, 1)
        return _Step(length, outer, inner, columns, columns, scale=scale)

    if factors is None or ((inner > 1 or in_place) and length <= LONGEST_LANE):
        return [in_lanes()]
    a, b = factors
    # What a step costs is how many lanes it keeps busy, idle ones counted.
    one = _padded(outer, lanes) * (1.0 if length <= _CACHED_LANE else 2.0)
    two = outer * (_padded(b, lanes) / b + _padded(a, lanes) / a) * 0.7
    if one <= two and length <= LONGEST_LANE:
        return [in_lanes()]
    if inner > 1:
        raise AssertionError("stablehlo-expand-fft splits long transforms along other axes")
    return [
        _Step(a, outer, b, _Layout(length, b, 1), _Layout(length, 1, a), turn=length),
        _Step(b, outer, a, _Layout(length, a, 1), _Layout(length, a, 1), scale=scale),
    ]


def _padded(count: int, lanes: int) -> int:
    return -(-count // lanes) * lanes


# ---- the kernel --------------------------------------------------------------------------------
def _kernel(
    chain: list[_Step | RealTask],
    symbol: str,
    numbers: Numbers,
    inverse: bool,
    size: int,
    vector_bits: int,
) -> tuple[str, int]:
    total = size * 2 * numbers.bytes
    tasks = [
        step if isinstance(step, RealTask) else _Task(f"step{number}", step, numbers, inverse)
        for number, step in enumerate(chain)
    ]
    # What comes before transforms to real numbers does not fit into their result.
    in_scratch = inverse and len(chain) > 1 and isinstance(tasks[-1], RealTask)
    between = "%scratch" if in_scratch else "%result"
    parts = [
        DECLARATION,
        "declare i64 @llvm.smin.i64(i64, i64)",
        *masked_declarations(Text(numbers.element, numbers.lanes)),
        *(task.text() for task in tasks),
    ]
    calls: list[str] = []
    for number, task in enumerate(tasks):
        places = (
            "%operand" if number == 0 else between,
            "%result" if number == len(tasks) - 1 else between,
        )
        grain = REFERENCE.grain(2 * REFERENCE.apart_ps * task.length * numbers.lanes)
        array = f"%ctx{number}"
        calls += [*pack(places, array), run(task.name, task.blocks, grain, array)]
    if not chain:
        parts.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        calls.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %result, ptr %operand, i64 {total}, i1 false)"
        )
    body = "\n".join(calls)
    parts.append(
        f"define void @{symbol}(ptr %operand, ptr %result, ptr %scratch) {{\n"
        f"{body}\n  ret void\n}}"
    )
    parts.append(f'attributes #0 = {{ "prefer-vector-width"="{vector_bits}" }}')
    return "\n".join(parts) + "\n", total * in_scratch


class _Task(Record):
    """`void @name(ptr ctx, i64 low, i64 high)`: the blocks [low, high) of a step, from the array at
    ctx[0] to that at ctx[1]."""

    name: str
    step: _Step
    numbers: Numbers
    inverse: bool

    @property
    def length(self) -> int:
        """Of a transform."""
        return self.step.length

    @property
    def blocks(self) -> int:
        """How many there are."""
        return self._side_by_side * self.step.outer

    @property
    def _side_by_side(self) -> int:
        """How many of each outer position."""
        return -(-self.step.lanes // self.numbers.lanes)

    @property
    def _complex(self) -> int:
        return 2 * self.numbers.bytes

    def text(self) -> str:
        """The task function, and the transform that it calls."""
        step, numbers = self.step, self.numbers
        side_by_side = step.source.lane == 1, step.target.lane == 1
        lane = LaneTransform(
            f"{self.name}_lanes", numbers, step.length, self.inverse, *side_by_side,
            turns=bool(step.turn), scale=step.scale,
        )  # fmt: skip
        t = Text(numbers.element, numbers.lanes)
        n, row = step.length, numbers.row_bytes
        for buffer in "ab":
            t.do(f"%{buffer} = alloca [{n * row} x i8], align 64")
        partial = step.lanes % numbers.lanes
        if partial and any(side_by_side):
            t.do(f"%tile = alloca [{n * row} x i8], align 64")
        radix = lane.radices[-1]
        if step.turn:
            t.do(f"%turn = alloca [{(lane.stride + radix) * row} x i8], align 64")
        t.lines += unpack(("%source", "%target"))
        with t.loop("%high", "%low") as block:
            outer, number = t.divmod(block, self._side_by_side)
            first = t.mul(number, numbers.lanes)
            source = t.at("%source", t.mul(outer, step.source.outer * self._complex))
            target = t.at("%target", t.mul(outer, step.target.outer * self._complex))
            if step.turn:
                self._turns(t, lane.stride, radix, first)
            if not partial:
                self._block(t, lane, source, target, first)
            elif self._side_by_side == 1:
                self._block(t, lane, source, target, first, valid=partial)
            else:
                full = t.emit(f"icmp slt i64 {number}, {self._side_by_side - 1}")
                with t.branches(full) as (then, other, after):
                    t.begin(then)
                    self._block(t, lane, source, target, first)
                    t.goto(after)
                    t.begin(other)
                    self._block(t, lane, source, target, first, valid=partial)
                    t.goto(after)
        body = "\n".join(t.lines)
        tables = self._turn_tables() if step.turn else ""
        return (
            f"{tables}{lane.text()}"
            f"define internal void @{self.name}(ptr %ctx, i64 %low, i64 %high) #0 {{\n"
            f"entry:\n{body}\n  ret void\n}}"
        )

    def _block(
        self,
        t: Text,
        lane: LaneTransform,
        source: str,
        target: str,
        first: Integer,
        valid: int = 0,
    ) -> None:
        """One block, of which only `valid` lanes have work (0: all)."""
        step, size = self.step, self._complex
        used = valid or self.numbers.lanes
        read, read_apart = "null", 0
        write, write_apart = "null", 0
        if lane.reads:
            read = t.at(source, t.mul(first, size))
            read_apart = step.source.along * size
            if valid:
                self._copy(t, read, read_apart, "%tile", self.numbers.row_bytes, used, fill=True)
                read, read_apart = "%tile", self.numbers.row_bytes
        else:
            rows = self._rows(t, source, step.source, first)
            complex_in(t, self.numbers, rows, step.length, "%a", swapped=self.inverse)
        if lane.writes:
            write = place = t.at(target, t.mul(first, size))
            write_apart = step.target.along * size
            if valid:
                write, write_apart = "%tile", self.numbers.row_bytes
        turn = "%turn" if step.turn else "null"
        t.do(
            f"call void @{lane.name}(ptr {read}, i64 {read_apart}, ptr {write}, i64 {write_apart}, "
            f"ptr %a, ptr %b, ptr {turn})"
        )
        if not lane.writes:
            rows = self._rows(t, target, step.target, first)
            result = f"%{lane.result}"
            complex_out(t, self.numbers, rows, step.length, result, swapped=self.inverse)
        elif valid:
            apart = step.target.along * size
            self._copy(t, "%tile", self.numbers.row_bytes, place, apart, used, fill=False)

    def _copy(
        self, t: Text, source: str, source_apart: int, target: str, target_apart: int, used: int,
        *, fill: bool,
    ) -> None:  # fmt: skip
        """Rows of `used` complex numbers; with `fill`, lanes without work get the last one's."""
        word = f"i{8 * self._complex}"
        with t.loop(self.step.length) as row:
            read = t.at(source, t.mul(row, source_apart))
            write = t.at(target, t.mul(row, target_apart))
            for lane in range(self.numbers.lanes if fill else used):
                value = t.load(word, t.at(read, min(lane, used - 1) * self._complex))
                t.store(word, value, t.at(write, lane * self._complex))

    def _rows(self, t: Text, base: str, layout: _Layout, first: Integer) -> list[str]:
        """The address of each lane's transform."""
        apart = layout.lane * self._complex
        return row_addresses(t, base, first, self.numbers, self.step.lanes - 1, apart)

    # ---- roots of unity between the two steps of a long transform
    #
    # exp(-2 pi i e / turn) for all e would be a table as large as the array: it is the product of
    # two of a fine and a coarse one, formed in double precision, and rows of it again products.
    def _fine_bits(self) -> int:
        return (self.step.turn - 1).bit_length() // 2

    def _turn_tables(self) -> str:
        bits, order = self._fine_bits(), self.step.turn
        doubles = Numbers("double", 1)
        fine = pairs(roots_of_unity(order, np.arange(1 << bits)), doubles)
        coarse = pairs(roots_of_unity(order, np.arange(0, order, 1 << bits)), doubles)
        return (
            constant(f"@{self.name}_fine", fine)
            + "\n"
            + constant(f"@{self.name}_coarse", coarse)
            + "\n"
        )

    def _turns(self, t: Text, stride: int, radix: int, first: Integer) -> None:
        """Rows q < stride, then rows stride * k with k < radix, of the powers of each lane's
        root."""
        row = self.numbers.row_bytes
        for count, factor, start in ((stride, 1, 0), (radix, stride, stride)):
            with t.loop(count) as number:
                place = t.at("%turn", t.mul(t.add(number, start), row))
                exponent = t.mul(number, factor)
                with t.loop(self.numbers.lanes) as lane:
                    self._turn(t, place, exponent, t.add(first, lane), lane)

    def _turn(self, t: Text, place: str, exponent: Integer, column: Integer, lane: Integer) -> None:
        bits = self._fine_bits()
        column = t.minimum(column, self.step.lanes - 1)
        power = t.mul(exponent, column)
        fine, coarse = (
            (power & ((1 << bits) - 1), power >> bits)
            if isinstance(power, int)
            else (
                t.emit(f"and i64 {power}, {(1 << bits) - 1}"),
                t.emit(f"lshr i64 {power}, {bits}"),
            )
        )
        loaded = []
        for table, index in (("fine", fine), ("coarse", coarse)):
            at = t.at(f"@{self.name}_{table}", t.mul(index, 16))
            loaded += [t.load("double", at, 8), t.load("double", t.at(at, 8), 8)]
        (a, b, c, d) = loaded
        products = [t.emit(f"fmul double {x}, {y}") for x, y in ((a, c), (b, d), (a, d), (b, c))]
        parts = (
            t.emit(f"fsub double {products[0]}, {products[1]}"),
            t.emit(f"fadd double {products[2]}, {products[3]}"),
        )
        for number, part in enumerate(parts):
            if t.element == "float":
                part = t.emit(f"fptrunc double {part} to float")
            at = t.at(place, t.mul(t.add(lane, number * t.lanes), t.bytes))
            t.store(t.element, part, at)
