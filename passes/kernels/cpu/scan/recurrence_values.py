"""The values of a recurrence as LLVM text: elements, real or complex, and what is carried along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.scan.values import (
    FLOATS,
    bytes_of,
    converted,
    finite_or_none,
    two_sum,
    vector_of,
)
from lamina.passes.stablehlo.analysis.scan_order import Scan

Parts: TypeAlias = tuple[str, ...]
"""A real value, or the real and the imaginary part of one; vectors of them, or scalars."""
WIDE = "double"


class RecurrenceValues:
    """How values are read, written, combined and carried: in f64, for elements of f64 with the errors
    of their sums."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        inner = scan.element.removeprefix("complex<").removesuffix(">")
        self.parts = 1 if inner == scan.element else 2
        self.memory = FLOATS[inner]
        self.bytes = bytes_of(self.memory) * self.parts
        self.compensated = self.memory == "double"
        self.local = "double" if self.compensated else "float"
        self.lanes = max(2, vector_bits // 8 // bytes_of(self.local))
        self.reverse = scan.reverse
        self.intrinsics: set[str] = set()

    # ---- arithmetic
    def product(self, t: Text, of: str, lanes: int, a: Parts, b: Parts) -> Parts:
        """a b."""
        if self.parts == 1:
            return (t.emit(f"fmul {vector_of(of, lanes)} {a[0]}, {b[0]}"),)
        none = "splat (" + of + " -0.0)" if lanes else "-0.0"
        return self.applied(t, of, lanes, a, b, (none, none))

    def applied(self, t: Text, of: str, lanes: int, a: Parts, h: Parts, b: Parts) -> Parts:
        """a h + b."""
        if self.parts == 1:
            return (self._added(t, of, lanes, a[0], h[0], b[0]),)
        minus = t.emit(f"fneg {vector_of(of, lanes)} {a[1]}")
        return (
            self._added(t, of, lanes, a[0], h[0], self._added(t, of, lanes, minus, h[1], b[0])),
            self._added(t, of, lanes, a[0], h[1], self._added(t, of, lanes, a[1], h[0], b[1])),
        )

    def _added(self, t: Text, element: str, lanes: int, a: str, b: str, c: str) -> str:
        of = vector_of(element, lanes)
        suffix = (f"v{lanes}" if lanes else "") + f"f{8 * bytes_of(element)}"
        self.intrinsics.add(f"declare {of} @llvm.fmuladd.{suffix}({of}, {of}, {of})")
        return t.emit(f"call {of} @llvm.fmuladd.{suffix}({of} {a}, {of} {b}, {of} {c})")

    # ---- memory
    def loaded(self, t: Text, base: str, place: Integer, lanes: int) -> Parts:
        """Elements as the local type."""
        at = t.at(base, t.mul(place, self.bytes))
        size = bytes_of(self.memory)
        if self.parts == 1:
            given: Parts = (t.load(vector_of(self.memory, lanes), at, size),)
        elif not lanes:
            given = tuple(t.load(self.memory, t.at(at, offset), size) for offset in (0, size))
        else:
            both = t.load(vector_of(self.memory, 2 * lanes), at, size)
            given = tuple(
                self._picked(t, self.memory, 2 * lanes, both, range(part, 2 * lanes, 2)) for part in (0, 1)
            )
        return self._converted(t, given, self.memory, self.local, lanes)

    def wide(self, t: Text, base: str, place: Integer, lanes: int) -> Parts:
        """The same in f64."""
        return self._converted(t, self.loaded(t, base, place, lanes), self.local, WIDE, lanes)

    def put(self, t: Text, value: Parts, of: str, place: Integer, lanes: int) -> None:
        """Write elements of the result, given in a type."""
        at, size = t.at("%out", t.mul(place, self.bytes)), bytes_of(self.memory)
        narrow = self._converted(t, value, of, self.memory, lanes)
        if self.parts == 1 or not lanes:
            for number, part in enumerate(narrow):
                t.store(vector_of(self.memory, lanes), part, t.at(at, number * size), size)
            return
        order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
        both = self._picked(t, self.memory, lanes, narrow[0], order, narrow[1])
        t.store(vector_of(self.memory, 2 * lanes), both, at, size)

    def fill(self, t: Text, at: str) -> Parts:
        """A value in f64 from scratch memory."""
        return tuple(t.load(WIDE, t.at(at, 8 * part), 8) for part in range(self.parts))

    def spill(self, t: Text, value: Sequence[str], at: str) -> None:
        """The inverse."""
        for number, part in enumerate(value):
            t.store(WIDE, part, t.at(at, 8 * number), 8)

    # ---- vectors
    def prefixes(self, t: Text, place: Integer) -> tuple[Parts, Parts]:
        """The pairs of the runs of a vector's elements that end at each lane."""
        lanes, local = self.lanes, self.local
        a, b = self.loaded(t, "%a", place, lanes), self.loaded(t, "%b", place, lanes)
        constants = [f"splat ({local} {value})" for value in ("1.0", "0.0")[: self.parts]]
        apart = 1
        while apart < lanes:
            sources = [lane + (apart if self.reverse else -apart) for lane in range(lanes)]
            moves = [0 <= source < lanes for source in sources]
            picks = [source if moved else lanes for source, moved in zip(sources, moves, strict=True)]
            moved_a, moved_b = (
                tuple(self._picked(t, local, lanes, v, picks, c) for v, c in zip(value, constants, strict=True))
                for value in (a, b)
            )
            after = self.applied(t, local, lanes, a, moved_b, b)
            which = f"<{lanes} x i1> <{', '.join(f'i1 {str(moved).lower()}' for moved in moves)}>"
            b = self.chosen(t, which, vector_of(local, lanes), after, b)
            a = self.product(t, local, lanes, moved_a, a)
            apart *= 2
        return a, b

    @staticmethod
    def _picked(
        t: Text, element: str, lanes: int, a: str, picks: Sequence[int], b: str = "poison"
    ) -> str:
        """Lanes of a and b by their numbers."""
        of, mask = vector_of(element, lanes), ", ".join(f"i32 {pick}" for pick in picks)
        return t.emit(f"shufflevector {of} {a}, {of} {b}, <{len(picks)} x i32> <{mask}>")

    @staticmethod
    def chosen(t: Text, condition: str, of: str, yes: Parts, no: Parts) -> Parts:
        """One of two values of an LLVM type."""
        return tuple(
            t.emit(f"select {condition}, {of} {a}, {of} {b}") for a, b in zip(yes, no, strict=True)
        )

    def last(self, t: Text, runs: Parts) -> Parts:
        """What is of a whole vector, in f64."""
        lane = 0 if self.reverse else self.lanes - 1
        of = vector_of(self.local, self.lanes)
        found = tuple(t.emit(f"extractelement {of} {part}, i64 {lane}") for part in runs)
        return self._converted(t, found, self.local, WIDE, 0)

    def everywhere(self, t: Text, value: Parts) -> Parts:
        """A scalar of f64 in all lanes of the local type."""
        local, lanes = self.local, self.lanes
        firsts = (
            t.emit(f"insertelement {vector_of(local, lanes)} poison, {local} {part}, i64 0")
            for part in self._converted(t, value, WIDE, local, 0)
        )
        return tuple(self._picked(t, local, lanes, first, [0] * lanes) for first in firsts)

    @staticmethod
    def _converted(t: Text, value: Parts, of: str, to: str, lanes: int) -> Parts:
        return tuple(converted(t, part, of, to, lanes) for part in value)

    # ---- what came before
    def variables(self, t: Text, lanes: int) -> list[str]:
        """Places for it, of which LLVM makes registers: its parts, then the errors of their sums."""
        of = vector_of(WIDE, lanes)
        return [t.emit(f"alloca {of}") for _ in range(self.parts * (1 + self.compensated))]

    def begun(self, t: Text, variables: Sequence[str], value: Parts, lanes: int) -> Parts:
        """It is this value."""
        errors = ["zeroinitializer" if lanes else "0.0"] * self.parts
        self._set(t, variables, (*value, *errors), lanes)
        return value

    def _set(self, t: Text, variables: Sequence[str], values: Sequence[str], lanes: int) -> None:
        for variable, value in zip(variables, values):
            t.store(vector_of(WIDE, lanes), value, variable, 8)

    def _get(self, t: Text, variables: Sequence[str], lanes: int) -> tuple[Parts, Parts]:
        values = tuple(t.load(vector_of(WIDE, lanes), variable, 8) for variable in variables)
        return values[: self.parts], values[self.parts :]

    def now(self, t: Text, variables: Sequence[str], lanes: int) -> Parts:
        """What it is."""
        value, errors = self._get(t, variables, lanes)
        if not self.compensated:
            return value
        of = vector_of(WIDE, lanes)
        return tuple(t.emit(f"fadd {of} {a}, {b}") for a, b in zip(value, errors, strict=True))

    def advanced(self, t: Text, variables: Sequence[str], a: Parts, b: Parts, lanes: int) -> Parts:
        """It times a, and b on top; what it is then."""
        h, errors = self._get(t, variables, lanes)
        if not self.compensated:
            after = self.applied(t, WIDE, lanes, a, h, b)
            self._set(t, variables, after, lanes)
            return after
        scaled = self.product(t, WIDE, lanes, a, h)
        sums = [two_sum(t, x, y, lanes) for x, y in zip(scaled, b, strict=True)]
        errors = self.applied(t, WIDE, lanes, a, errors, tuple(lost for _, lost in sums))
        kept = (finite_or_none(t, error, lanes) for error in errors)
        self._set(t, variables, (*(value for value, _ in sums), *kept), lanes)
        return self.now(t, variables, lanes)
