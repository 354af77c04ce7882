"""LLVM IR text of loops over vectors, for kernels that are written straight in LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from lamina.passes.emit.transposition import LANE_BYTES, transposed

Integer: TypeAlias = int | str
"""A number known now, or the name of an i64."""


class Text:
    """The body of one function, being written. Values are names; integers are folded where they are
    known. `element` is "float" or "double" and `lanes` the length of every vector. `stack` is what a
    function begins with."""

    def __init__(self, element: str, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        self.bytes = 4 if element == "float" else 8
        self.vector = f"<{lanes} x {element}>"
        self.lines: list[str] = []
        self.stack: list[str] = []
        self._names = 0
        self._block = "entry"

    # ---- lines
    def emit(self, instruction: str) -> str:
        """A line that makes a value; its name."""
        name = self._name()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """A line that makes none."""
        self.lines.append(f"  {instruction}")

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self._block = label

    @contextmanager
    def loop(self, stop: Integer, start: Integer = 0, step: int = 1) -> Iterator[Integer]:
        """What is written inside is done for start, start + step, ... below stop."""
        if isinstance(start, int) and isinstance(stop, int) and stop - start <= step:
            if start < stop:
                yield start
                return
            raise ValueError("a loop that never runs")
        self._names += 1
        head, body, latch, done = (
            f"{kind}{self._names}" for kind in ("head", "body", "latch", "done")
        )
        index, following = self._name(), self._name()
        self.do(f"br label %{head}")
        before = self._block
        self.begin(head)
        self.lines.append(
            f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]"
        )  # fmt: skip
        more = self.emit(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{done}")
        self.begin(body)
        yield index
        self.do(f"br label %{latch}")
        self.begin(latch)
        self.lines.append(f"  {following} = add nsw i64 {index}, {step}")
        self.do(f"br label %{head}")
        self.begin(done)

    @contextmanager
    def branches(self, condition: str) -> Iterator[tuple[str, str, str]]:
        """Labels (then, else, after) of a branch: begin each, and end it by `goto(after)`."""
        self._names += 1
        then, other, after = (f"{kind}{self._names}" for kind in ("then", "else", "after"))
        self.do(f"br i1 {condition}, label %{then}, label %{other}")
        yield then, other, after
        self.begin(after)

    def goto(self, label: str) -> None:
        """End a basic block."""
        self.do(f"br label %{label}")

    # ---- integers
    def add(self, a: Integer, b: Integer) -> Integer:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.emit(f"add nsw i64 {a}, {b}")

    def difference(self, a: Integer, b: Integer) -> Integer:
        """a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.emit(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Integer, b: Integer) -> Integer:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a in (0, 1) or b in (0, 1):
            return 0 if 0 in (a, b) else (b if a == 1 else a)
        return self.emit(f"mul nsw i64 {a}, {b}")

    def minimum(self, a: Integer, b: Integer) -> Integer:
        """The smaller."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.emit(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def divmod(self, a: Integer, b: int) -> tuple[Integer, Integer]:
        """Quotient and remainder of what is not negative."""
        if isinstance(a, int):
            return divmod(a, b)
        if b == 1:
            return a, 0
        return self.emit(f"udiv i64 {a}, {b}"), self.emit(f"urem i64 {a}, {b}")

    # ---- places on the stack
    def allocate(self, bytes_: int) -> str:
        """Stack memory of the function."""
        self._names += 1
        name = f"%s{self._names}"
        self.stack.append(f"  {name} = alloca [{max(bytes_, 1)} x i8], align 64")
        return name

    def variable(self, of: str, value: str) -> str:
        """A place for a value that changes, by `now` and `set`."""
        self._names += 1
        name = f"%s{self._names}"
        self.stack.append(f"  {name} = alloca {of}")
        self.set(of, value, name)
        return name

    def now(self, of: str, variable: str) -> str:
        """A variable's value."""
        return self.emit(f"load {of}, ptr {variable}")

    def set(self, of: str, value: str, variable: str) -> None:
        """Give a variable another value."""
        self.do(f"store {of} {value}, ptr {variable}")

    # ---- memory
    def at(self, base: str, offset: Integer) -> str:
        """The address `offset` bytes behind another."""
        if offset == 0:
            return base
        return self.emit(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def load(self, of: str, place: str, align: int | None = None) -> str:
        """A value of an LLVM type, at least as aligned as an element."""
        return self.emit(f"load {of}, ptr {place}, align {align or self.bytes}")

    def store(self, of: str, value: str, place: str, align: int | None = None) -> None:
        """The inverse of `load`."""
        self.do(f"store {of} {value}, ptr {place}, align {align or self.bytes}")

    # ---- vectors
    def fadd(self, a: str, b: str) -> str:
        """a + b; may become part of a fused multiply-add, as `fsub` and `fmul` may."""
        return self.emit(f"fadd contract {self.vector} {a}, {b}")

    def fsub(self, a: str, b: str) -> str:
        """a - b."""
        return self.emit(f"fsub contract {self.vector} {a}, {b}")

    def fmul(self, a: str, b: str) -> str:
        """a * b."""
        return self.emit(f"fmul contract {self.vector} {a}, {b}")

    def fneg(self, a: str) -> str:
        """-a."""
        return self.emit(f"fneg {self.vector} {a}")

    def splat(self, value: float) -> str:
        """A constant in all lanes."""
        return f"splat ({self.element} {self.number(value)})"

    def number(self, value: float) -> str:
        """A constant, rounded to the element type."""
        rounded = float(np.float32(value)) if self.element == "float" else value
        return f"0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X}"

    def broadcast(self, place: str) -> str:
        """The element at an address, in all lanes."""
        one = self.load(self.element, place)
        first = self.emit(f"insertelement {self.vector} poison, {self.element} {one}, i64 0")
        return self.shuffle(first, "poison", [0] * self.lanes)

    def shuffle(self, a: str, b: str, picks: Sequence[int], lanes: int = 0) -> str:
        """Lanes of a and b by their numbers; a and b have `lanes` of them."""
        of = f"<{lanes or self.lanes} x {self.element}>"
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        return self.emit(
            f"shufflevector {of} {a}, {of} {b}, <{len(picks)} x i32> <{mask}>"
        )  # fmt: skip

    def transpose(self, rows: list[str]) -> list[str]:
        """The columns of a square block."""
        return transposed(rows, LANE_BYTES // self.bytes, self.shuffle, self.fence)

    def fence(self, a: str) -> str:
        """The same vector, which LLVM does not look through; it takes no instruction."""
        return self.emit(f"call {self.vector} @llvm.arithmetic.fence({self.vector} {a})")

    def transpose_in_place(self, block: str) -> None:
        """The same of rows in memory, by loops: log2(lanes) rounds of exchanges between rows, a fraction of the
        code."""
        half = self.lanes // 2
        step = self.lanes * self.bytes
        while half:
            with self.loop(self.lanes // (2 * half)) as pairs, self.loop(half) as row:
                first = self.at(block, self.mul(self.add(self.mul(pairs, 2 * half), row), step))
                second = self.at(first, half * step)
                a, b = (self.load(self.vector, place, step) for place in (first, second))
                for value, place in zip(self._exchange(a, b, half), (first, second)):
                    self.store(self.vector, value, place, step)
            half //= 2

    def _exchange(self, a: str, b: str, half: int) -> tuple[str, str]:
        """Rows i and i + half exchange the blocks off the diagonal."""
        n = self.lanes
        low = [(lane - half + n) if lane & half else lane for lane in range(n)]
        high = [lane + n if lane & half else lane + half for lane in range(n)]
        return self.shuffle(a, b, low), self.shuffle(a, b, high)


def byte_string(data: bytes) -> str:
    """Bytes as the initial value of an LLVM array of i8."""
    return 'c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
