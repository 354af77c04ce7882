"""The values of a scan as LLVM text: elements in memory, inside a vector, and carried along.

What came before is carried with more digits than the elements have: in f64 for f32, with the
rounding errors of its sum for f64. So each result is rounded about once, however long the row.
Source of the carried error: Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
"""

from __future__ import annotations

import numpy as np

from lamina.passes.kernels.cpu.emit.llvm_text import Text
from lamina.passes.stablehlo.analysis.scan_order import Scan, identity
from lamina.records import Record

FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
_LLVM = {**FLOATS, "i1": "i8"}
_FLOAT_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8}


class Types(Record):
    """Element types: in memory, inside a vector, and of what is carried from vector to vector."""

    memory: str
    local: str
    carried: str
    signed: bool

    @classmethod
    def of(cls, scan: Scan) -> Types:
        memory = _LLVM.get(scan.element, scan.element.removeprefix("u"))
        if memory not in _FLOAT_BYTES:
            signed = scan.element != "i1" and not scan.element.startswith("u")
            return cls(memory, memory, memory, signed)
        if memory in ("half", "bfloat"):
            return cls(memory, "float", "float", True)
        if scan.combiner in ("maximum", "minimum"):
            return cls(memory, memory, memory, True)
        # A vector of f32 does not leave the range of f64, so zeros stay zeros under products.
        return cls(memory, memory if scan.combiner == "add" else "double", "double", True)

    @property
    def is_float(self) -> bool:
        return self.memory in _FLOAT_BYTES

    @property
    def bytes(self) -> int:
        return bytes_of(self.memory)


def bytes_of(of: str) -> int:
    return _FLOAT_BYTES.get(of) or int(of[1:]) // 8


def vector_of(element: str, lanes: int) -> str:
    """The LLVM type of so many, or of one scalar for none."""
    return f"<{lanes} x {element}>" if lanes else element


def converted(t: Text, value: str, of: str, to: str, lanes: int) -> str:
    """A value of one type as one of another; between 16 bits and 64 by way of 32."""
    if of == to:
        return value
    if {bytes_of(of), bytes_of(to)} == {2, 8}:
        value, of = converted(t, value, of, "float", lanes), "float"
    how = "fpext" if bytes_of(of) < bytes_of(to) else "fptrunc"
    return t.emit(f"{how} {vector_of(of, lanes)} {value} to {vector_of(to, lanes)}")


def two_sum(t: Text, a: str, b: str, lanes: int) -> tuple[str, str]:
    """The sum of two values in f64, and what its rounding lost."""
    of = vector_of("double", lanes)
    value = t.emit(f"fadd {of} {a}, {b}")
    from_b = t.emit(f"fsub {of} {value}, {a}")
    from_a = t.emit(f"fsub {of} {value}, {from_b}")
    lost = t.emit(f"fsub {of} {b}, {from_b}")
    lost_of_a = t.emit(f"fsub {of} {a}, {from_a}")
    return value, t.emit(f"fadd {of} {lost_of_a}, {lost}")


def finite_or_none(t: Text, error: str, lanes: int) -> str:
    """An error in f64; none where it is undefined: infinities lose nothing."""
    of = vector_of("double", lanes)
    undefined = t.emit(f"fcmp uno {of} {error}, zeroinitializer")
    none = "zeroinitializer" if lanes else "0.0"
    return t.emit(f"select {vector_of('i1', lanes)} {undefined}, {of} {none}, {of} {error}")


class Carried(Record):
    """What came before, and in sums of f64 the error of it."""

    value: str
    error: str | None = None


class ScanValues:
    """How a scan's values are read, written, combined and carried."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        self.scan = scan
        self.types = Types.of(scan)
        self.lanes = max(2, vector_bits // 8 // bytes_of(self.types.local))
        self.compensated = scan.combiner == "add" and scan.element == "f64"
        self.intrinsics: set[str] = set()

    # ---- what is carried
    def variables(self, t: Text, lanes: int) -> list[str]:
        """Places for what is carried, of which LLVM makes registers."""
        of = vector_of(self.types.carried, lanes)
        return [t.emit(f"alloca {of}") for _ in range(1 + self.compensated)]

    def set(self, t: Text, variables: list[str], carried: Carried, lanes: int) -> None:
        for name, value in zip(variables, (carried.value, carried.error), strict=False):
            assert value is not None
            t.store(vector_of(self.types.carried, lanes), value, name, 8)

    def get(self, t: Text, variables: list[str], lanes: int) -> Carried:
        of = vector_of(self.types.carried, lanes)
        return Carried(*(t.load(of, name, 8) for name in variables))

    def neutral(self, lanes: int) -> Carried:
        of = self.types.carried
        value = self._constant(of)
        return Carried(
            f"splat ({of} {value})" if lanes else value,
            "zeroinitializer" if self.compensated else None,
        )

    def _constant(self, of: str) -> str:
        """The combiner's identity as an LLVM constant of a type."""
        combiner = self.scan.combiner
        if of in _FLOAT_BYTES:
            return Text("double", 1).number(float(identity(combiner, np.dtype(np.float64))))
        kind = "i" if self.types.signed else "u"
        return str(int(identity(combiner, np.dtype(f"{kind}{bytes_of(of)}"))))

    def shifted_in(self, of: str) -> str:
        """The same in lanes of a vector that has moved. A sum's has bits that are not zero: LLVM
        moves zeros in by an expansion, which takes two steps."""
        if self.scan.combiner == "add" and of in _FLOAT_BYTES:
            return Text("double", 1).number(-0.0)
        return self._constant(of)

    def advanced(self, t: Text, before: Carried, total: str, lanes: int) -> Carried:
        """What came before, and `total` of the carried type after it."""
        if before.error is None:
            return Carried(self.combined(t, self.types.carried, lanes, before.value, total))
        value, lost = two_sum(t, before.value, total, lanes)
        error = t.emit(f"fadd {vector_of('double', lanes)} {before.error}, {lost}")
        return Carried(value, finite_or_none(t, error, lanes))

    # ---- values
    def combined(self, t: Text, element: str, lanes: int, a: str, b: str) -> str:
        of, combiner = vector_of(element, lanes), self.scan.combiner
        is_float = element in _FLOAT_BYTES
        if combiner in ("add", "multiply"):
            name = ("f" if is_float else "") + combiner[:3]
            return t.emit(f"{name} {of} {a}, {b}")
        name = combiner if is_float else ("s" if self.types.signed else "u") + combiner[:3]
        suffix = (f"v{lanes}" if lanes else "") + (
            f"f{8 * bytes_of(element)}" if is_float else element
        )
        self.intrinsics.add(f"declare {of} @llvm.{name}.{suffix}({of}, {of})")
        return t.emit(f"call {of} @llvm.{name}.{suffix}({of} {a}, {of} {b})")

    def load(self, t: Text, at: str, lanes: int) -> str:
        """Elements as the local type."""
        value = t.load(vector_of(self.types.memory, lanes), at, self.types.bytes)
        return converted(t, value, self.types.memory, self.types.local, lanes)

    def widened(self, t: Text, value: str, lanes: int) -> str:
        """Local values as the carried type."""
        return converted(t, value, self.types.local, self.types.carried, lanes)

    def store(self, t: Text, value: str, at: str, lanes: int) -> None:
        """Values of the carried type as elements."""
        to = self.types.memory
        value = converted(t, value, self.types.carried, to, lanes)
        t.store(vector_of(to, lanes), value, at, self.types.bytes)

    def splat(self, t: Text, scalar: str, lanes: int) -> str:
        if not lanes:
            return scalar
        of = vector_of(self.types.carried, lanes)
        first = t.emit(f"insertelement {of} poison, {self.types.carried} {scalar}, i64 0")
        return t.emit(
            f"shufflevector {of} {first}, {of} poison, <{lanes} x i32> zeroinitializer"
        )

    def store_total(self, t: Text, at: str, total: Carried) -> None:
        t.store(self.types.carried, total.value, at, 8)
        if total.error is not None:
            t.store("double", total.error, t.at(at, 8), 8)

    def load_total(self, t: Text, at: str) -> Carried:
        value = t.load(self.types.carried, at, 8)
        return Carried(value, t.load("double", t.at(at, 8), 8) if self.compensated else None)
