"""Arithmetic on MLIR values with Python's operators: how the formulas of this level are written.

A `Term` is an SSA value of a float, integer or truth kind; scalars and vectors read the same. Each
operator emits one `arith` or `math` op at the ambient insertion point. Python numbers become
constants of the other operand's kind. Nothing is ever reassociated or contracted: `fma` is
explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from lamina.dialects.vendors import ir
from lamina.records import Record

Kind = Literal["float", "int", "bool"]
Operand: TypeAlias = "Term | float | int"

_ORDERED = {"==": 1, ">": 2, ">=": 3, "<": 4, "<=": 5, "uno": 14, "!=": 13}
_SIGNED = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5, "u<": 6}


class Lane(Record):
    """A float width and the vector shape around it (none for scalars), with its companion types."""

    width: int
    shape: tuple[int, ...] | None
    float: ir.Type
    int: ir.Type
    bool: ir.Type

    @staticmethod
    def of(type_: ir.Type) -> Lane:
        """The lane of a float type (f16, f32, f64) or of a vector of one."""
        element, shape = type_, None
        if isinstance(type_, ir.VectorType):
            element, shape = type_.element_type, tuple(type_.shape)
        return Lane.make(ir.FloatType(element).width, shape)

    @staticmethod
    def make(width: int, shape: tuple[int, ...] | None) -> Lane:
        """The lane of the IEEE format of a width, as a scalar or as vectors of a shape."""
        floats = {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}
        elements = (
            floats[width].get(),
            ir.IntegerType.get_signless(width),
            ir.IntegerType.get_signless(1),
        )
        if shape is not None:
            elements = tuple(ir.VectorType.get(shape, element) for element in elements)
        return Lane(width, shape, *elements)

    def resized(self, width: int) -> Lane:
        """The same shape with floats of another width."""
        return Lane.make(width, self.shape)

    def type_of(self, kind: Kind) -> ir.Type:
        return getattr(self, kind)

    def constant(self, number: float | int | bool, kind: Kind) -> Term:
        """A number in every lane; integers are taken modulo two to the width."""
        type_ = self.type_of(kind)
        element = type_.element_type if self.shape is not None else type_
        if kind == "float":
            attribute: ir.Attribute = ir.FloatAttr.get(element, float(number))
        elif kind == "int":
            wrapped = (int(number) + (1 << self.width - 1)) % (1 << self.width)
            attribute = ir.IntegerAttr.get(element, wrapped - (1 << self.width - 1))
        else:
            attribute = ir.BoolAttr.get(bool(number))
        if self.shape is not None:
            attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
        op = ir.Operation.create("arith.constant", [type_], attributes={"value": attribute})
        return Term(op.result, self, kind)


class Term(Record, eq=False):
    """A value being computed with; see the module's docstring for what operators mean."""

    value: ir.Value
    lane: Lane
    kind: Kind

    @staticmethod
    def of(value: ir.Value) -> Term:
        """A float value as a term."""
        return Term(value, Lane.of(value.type), "float")

    def _emit(self, name: str, *others: Operand, kind: Kind | None = None) -> Term:
        operands = [self.value, *(self._term(other).value for other in others)]
        kind = kind or self.kind
        op = ir.Operation.create(name, [self.lane.type_of(kind)], operands)
        return Term(op.result, self.lane, kind)

    def _term(self, operand: Operand) -> Term:
        return operand if isinstance(operand, Term) else self.like(operand)

    def like(self, number: float | int) -> Term:
        """A constant of this term's lane and kind."""
        return self.lane.constant(number, self.kind)

    def _by_kind(self, float_op: str, int_op: str, other: Operand) -> Term:
        return self._emit(float_op if self.kind == "float" else int_op, other)

    def __add__(self, other: Operand) -> Term:
        return self._by_kind("arith.addf", "arith.addi", other)

    def __sub__(self, other: Operand) -> Term:
        return self._by_kind("arith.subf", "arith.subi", other)

    def __rsub__(self, other: Operand) -> Term:
        return self._term(other) - self

    def __mul__(self, other: Operand) -> Term:
        return self._by_kind("arith.mulf", "arith.muli", other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Term:
        return self._emit("arith.divf", other)

    def __rtruediv__(self, other: Operand) -> Term:
        return self._term(other) / self

    def __floordiv__(self, other: Operand) -> Term:
        """Unsigned integer division."""
        return self._emit("arith.divui", other)

    def __neg__(self) -> Term:
        return self._emit("arith.negf") if self.kind == "float" else 0 - self

    def __and__(self, other: Operand) -> Term:
        return self._emit("arith.andi", other)

    def __or__(self, other: Operand) -> Term:
        return self._emit("arith.ori", other)

    def __xor__(self, other: Operand) -> Term:
        return self._emit("arith.xori", other)

    def __lshift__(self, other: Operand) -> Term:
        return self._emit("arith.shli", other)

    def __rshift__(self, other: Operand) -> Term:
        """The shift that fills with the sign."""
        return self._emit("arith.shrsi", other)

    def logical_right(self, other: Operand) -> Term:
        """The shift that fills with zeros."""
        return self._emit("arith.shrui", other)

    def compare(self, how: str, other: Operand) -> Term:
        """Floats: ordered (false on NaN), but for "uno" and "!="; integers: signed, or "u<"."""
        is_float = self.kind == "float"
        predicate = (_ORDERED if is_float else _SIGNED)[how]
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        op = ir.Operation.create(
            "arith.cmpf" if is_float else "arith.cmpi",
            [self.lane.bool],
            [self.value, self._term(other).value],
            attributes={"predicate": number},
        )
        return Term(op.result, self.lane, "bool")

    def __lt__(self, other: Operand) -> Term:
        return self.compare("<", other)

    def __le__(self, other: Operand) -> Term:
        return self.compare("<=", other)

    def __gt__(self, other: Operand) -> Term:
        return self.compare(">", other)

    def __ge__(self, other: Operand) -> Term:
        return self.compare(">=", other)

    def equals(self, other: Operand) -> Term:
        return self.compare("==", other)

    def is_nan(self) -> Term:
        return self.compare("uno", self)

    def bits(self) -> Term:
        """The bits of a float as an integer."""
        return self._emit("arith.bitcast", kind="int")

    def as_float(self) -> Term:
        """The float that has the bits of this integer."""
        return self._emit("arith.bitcast", kind="float")

    def to_float(self) -> Term:
        """The signed integer, rounded to a float."""
        return self._emit("arith.sitofp", kind="float")

    def root(self) -> Term:
        return self._emit("math.sqrt")

    def magnitude(self) -> Term:
        return self._emit("math.absf")

    def with_sign_of(self, other: Term) -> Term:
        return self._emit("math.copysign", other)

    def rounded_down(self) -> Term:
        return self._emit("math.floor")

    def rounded_up(self) -> Term:
        return self._emit("math.ceil")

    def rounded(self) -> Term:
        """The nearest integer, as a float; ties to even."""
        return self._emit("math.roundeven")

    def resized(self, width: int) -> Term:
        """Floats and integers of another width: floats rounded, integers sign-extended or cut."""
        if width == self.lane.width:
            return self
        grows = width > self.lane.width
        names = {"float": ("arith.truncf", "arith.extf"), "int": ("arith.trunci", "arith.extsi")}
        lane = self.lane.resized(width)
        op = ir.Operation.create(names[self.kind][grows], [lane.type_of(self.kind)], [self.value])
        return Term(op.result, lane, self.kind)

    def select(self, chosen: Operand, otherwise: Operand) -> Term:
        """Where this truth holds `chosen`, elsewhere `otherwise`; one of them must be a term."""
        like = chosen if isinstance(chosen, Term) else otherwise
        if not isinstance(like, Term):
            raise TypeError("select between two numbers: make one of them a term")
        operands = [self.value, like._term(chosen).value, like._term(otherwise).value]
        op = ir.Operation.create("arith.select", [like.value.type], operands)
        return Term(op.result, like.lane, like.kind)


def fma(a: Term, b: Operand, c: Operand) -> Term:
    """a * b + c, rounded once."""
    return a._emit("math.fma", b, c)


def two_sum(a: Term, b: Term) -> tuple[Term, Term]:
    """a + b rounded, and exactly what the rounding left out, whichever is larger."""
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def fast_two_sum(a: Term, b: Term) -> tuple[Term, Term]:
    """a + b rounded, and exactly what the rounding left out, where a is zero or its exponent at least b's (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Term, b: Operand) -> tuple[Term, Term]:
    """a * b rounded, and exactly what the rounding left out."""
    product = a * b
    return product, fma(a, b, -product)


_TWO_CHAINS = 8  # coefficients; with fewer, the power that joins two chains costs as much as they save


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """c0 + c1 x + c2 x^2 + ..., with fused steps; coefficients from c0 upwards.

    By Horner's rule; longer ones by Horner's rule of second order (Knuth, TAOCP 2, 4.6.4), even and odd powers
    apart: of two chains of half the length, one is computed while the processor waits for the other.
    """
    if len(coefficients) < _TWO_CHAINS:
        return _horner(x, coefficients)
    square = x * x
    return fma(_horner(square, coefficients[1::2]), x, _horner(square, coefficients[::2]))


def _horner(x: Term, coefficients: Sequence[float]) -> Term:
    *rest, last = coefficients
    total: Operand = last
    for coefficient in reversed(rest):
        total = fma(x, total, coefficient)
    return x._term(total)


def table(name: str, rows: Sequence[Sequence[float]], row: Term, width: int) -> list[Term]:
    """The entries of one row of a constant table, as floats of a width; `row` is in range.

    The table becomes a private constant of the module, once per name.
    """
    lane = row.lane.resized(width)
    columns = len(rows[0])
    element = Lane.make(width, None).float
    type_ = ir.MemRefType.get([len(rows) * columns], element)
    symbol = f"lamina_table_{name}"
    _define_table(symbol, type_, np.array(rows, dtype=np.dtype(f"f{width // 8}")))
    attributes = {"name": ir.FlatSymbolRefAttr.get(symbol)}
    memref = ir.Operation.create("memref.get_global", [type_], attributes=attributes).result
    first = row * columns
    return [_entry(memref, first + column, lane) for column in range(columns)]


def _define_table(symbol: str, type_: ir.Type, values: np.ndarray) -> None:
    body = enclosing_module().regions[0].blocks[0]
    if any(is_named(op, symbol) for op in body.operations):
        return
    with ir.InsertionPoint.at_block_begin(body):
        ir.Operation.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(type_),
                "initial_value": ir.DenseElementsAttr.get(values.reshape(-1)),
                "constant": ir.UnitAttr.get(),
            },
        )


def _entry(memref: ir.Value, at: Term, lane: Lane) -> Term:
    index = ir.IndexType.get()
    if lane.shape is None:
        place = ir.Operation.create("arith.index_cast", [index], [at.value]).result
        loaded = ir.Operation.create("memref.load", [lane.float], [memref, place])
        return Term(loaded.result, lane, "float")
    attributes = {"value": ir.IntegerAttr.get(index, 0)}
    base = ir.Operation.create("arith.constant", [index], attributes=attributes).result
    everywhere, nothing = lane.constant(True, "bool"), lane.constant(0.0, "float")
    operands = [memref, base, at.value, everywhere.value, nothing.value]
    gathered = ir.Operation.create("vector.gather", [lane.float], operands)
    return Term(gathered.result, lane, "float")


def enclosing_module() -> ir.Operation:
    """The module around the ambient insertion point."""
    module = ir.InsertionPoint.current.block.owner
    while module.name != "builtin.module":
        module = module.parent
    return module


def is_named(op: ir.OpView, symbol: str) -> bool:
    """Whether this op defines that symbol."""
    attributes = op.operation.attributes
    return "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == symbol
