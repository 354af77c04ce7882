"""Scalars of a kernel in the making with Python's operators, buffers, and control flow as `with`.

    with loop(0, n) as i:
        with when(i < length):
            x[i] = x[i] * 2 + 1
Integers are signed; Python's numbers take the type of the other operand. Each operator emits one op
where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lamina.dialects.vendors import arith, ir, scf, vector
from lamina.dialects.vendors import complex as complex_
from lamina.dialects.vendors import math as math_
from lamina.passes.emit.loops import for_range, if_else, load, store

_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL, _EQUAL, _NOT_EQUAL = range(6)
_INTEGER = ("slt", "sle", "sgt", "sge", "eq", "ne")
_FLOAT = ("OLT", "OLE", "OGT", "OGE", "OEQ", "UNE")


class Scalar:
    """A value of index, integer, float or complex type."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def type(self) -> ir.Type:
        return self.value.type

    @property
    def is_complex(self) -> bool:
        return isinstance(self.type, ir.ComplexType)

    @property
    def is_float(self) -> bool:
        return isinstance(self.type, ir.FloatType)

    def _with(self, other: Any, *ops: Callable[..., Any] | None, swap: bool = False) -> Scalar:
        other = other if isinstance(other, Scalar) else constant(other, self.type)
        assert other.type == self.type, (str(other.type), str(self.type))
        op = ops[2 if self.is_complex else 1 if self.is_float else 0]
        assert op is not None
        pair = (other, self) if swap else (self, other)
        return Scalar(op(*(scalar.value for scalar in pair)).result)

    def __add__(self, other: Any) -> Scalar:
        return self._with(other, arith.AddIOp, arith.AddFOp, complex_.AddOp)

    def __sub__(self, other: Any) -> Scalar:
        return self._with(other, arith.SubIOp, arith.SubFOp, complex_.SubOp)

    def __rsub__(self, other: Any) -> Scalar:
        return self._with(other, arith.SubIOp, arith.SubFOp, complex_.SubOp, swap=True)

    def __mul__(self, other: Any) -> Scalar:
        return self._with(other, arith.MulIOp, arith.MulFOp, complex_.MulOp)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Scalar:
        return self._with(other, None, arith.DivFOp, complex_.DivOp)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._with(other, None, arith.DivFOp, complex_.DivOp, swap=True)

    def __floordiv__(self, other: Any) -> Scalar:
        """Of what is not negative."""
        return self if _is(other, 1) else self._with(other, arith.DivUIOp)

    def __mod__(self, other: Any) -> Scalar:
        """Of what is not negative."""
        return self._with(other, arith.RemUIOp)

    def __and__(self, other: Any) -> Scalar:
        return self._with(other, arith.AndIOp)

    def __or__(self, other: Any) -> Scalar:
        return self._with(other, arith.OrIOp)

    def __xor__(self, other: Any) -> Scalar:
        return self._with(other, arith.XOrIOp)

    def __invert__(self) -> Scalar:
        return self ^ (True if self.type.width == 1 else -1)

    def __neg__(self) -> Scalar:
        if self.is_complex:
            return Scalar(complex_.NegOp(self.value).result)
        return Scalar(arith.NegFOp(self.value).result) if self.is_float else 0 - self

    def _compare(self, other: Any, how: int) -> Scalar:
        if self.is_float:
            predicate = getattr(arith.CmpFPredicate, _FLOAT[how])
            return self._with(other, None, lambda a, b: arith.CmpFOp(predicate, a, b))
        predicate = getattr(arith.CmpIPredicate, _INTEGER[how])
        return self._with(other, lambda a, b: arith.CmpIOp(predicate, a, b))

    def __lt__(self, other: Any) -> Scalar:
        return self._compare(other, _LESS)

    def __le__(self, other: Any) -> Scalar:
        return self._compare(other, _LESS_EQUAL)

    def __gt__(self, other: Any) -> Scalar:
        return self._compare(other, _GREATER)

    def __ge__(self, other: Any) -> Scalar:
        return self._compare(other, _GREATER_EQUAL)

    def equals(self, other: Any) -> Scalar:
        return self._compare(other, _EQUAL)

    def differs(self, other: Any) -> Scalar:
        """For floats also where one is NaN."""
        return self._compare(other, _NOT_EQUAL)

    def to(self, type_: ir.Type) -> Scalar:
        """The value, which is an integer, as another integer type or index; signed."""
        if self.type == type_:
            return self
        if isinstance(type_, ir.IndexType) or isinstance(self.type, ir.IndexType):
            return Scalar(arith.IndexCastOp(type_, self.value).result)
        wider = type_.width > self.type.width
        return Scalar((arith.ExtSIOp if wider else arith.TruncIOp)(type_, self.value).result)

    def bits(self, type_: ir.Type) -> Scalar:
        """The same bits as another type."""
        return Scalar(arith.BitcastOp(type_, self.value).result)

    def shifted(self, count: Any) -> Scalar:
        """An integer shifted to the left."""
        return self._with(count, arith.ShLIOp)

    @property
    def real(self) -> Scalar:
        return Scalar(complex_.ReOp(self.value).result) if self.is_complex else self

    @property
    def imag(self) -> Scalar:
        return Scalar(complex_.ImOp(self.value).result)

    def conjugate(self) -> Scalar:
        """The conjugate of a complex number; a real one as it is."""
        return complex_of(self.real, -self.imag) if self.is_complex else self

    def norm(self) -> Scalar:
        """The square of the absolute value, a real number."""
        if self.is_complex:
            return self.real * self.real + self.imag * self.imag
        return self * self

    def sqrt(self) -> Scalar:
        return Scalar(math_.sqrt(self.value))


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def complex_of(real: Scalar, imag: Scalar) -> Scalar:
    """A complex number of its parts."""
    type_ = ir.ComplexType.get(real.type)
    return Scalar(complex_.CreateOp(type_, real.value, imag.value).result)


def constant(value: Any, type_: ir.Type | None = None) -> Scalar:
    """A number as a constant of a type; of index without one."""
    if type_ is None:
        type_ = ir.IndexType.get()
    if isinstance(type_, ir.ComplexType):
        part = type_.element_type
        number = complex(value)
        return complex_of(constant(number.real, part), constant(number.imag, part))
    if isinstance(type_, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(type_, float(value))
    else:
        attribute = ir.IntegerAttr.get(type_, int(value))
    return Scalar(
        ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).result
    )


def index(value: Any) -> Scalar:
    """A scalar of type index, or a Python number as one."""
    return value if isinstance(value, Scalar) else constant(value)


def true() -> Scalar:
    """The constant that always holds."""
    return constant(True, ir.IntegerType.get_signless(1))


def smaller(a: Scalar, b: Any) -> Scalar:
    """The least of two integers."""
    return a._with(b, arith.MinSIOp)


def greater(a: Scalar, b: Any) -> Scalar:
    """The greatest of two integers."""
    return a._with(b, arith.MaxSIOp)


def choose(condition: Scalar, a: Any, b: Any) -> Scalar:
    """a or b, one of which may be a number; both are computed."""
    if not isinstance(a, Scalar):
        a = constant(a, b.type)
    return a._with(b, *[lambda x, y: arith.SelectOp(condition.value, x, y)] * 3)


def split(flat: Scalar, extents: Sequence[int]) -> list[Scalar]:
    """The row-major position with this number in a space of these extents."""
    found = []
    for place, extent in enumerate(extents):
        inner = math.prod(extents[place + 1 :])
        at = flat // inner
        found.append(at % extent if place else at)
    return found


def flat(at: Sequence[Scalar], extents: Sequence[int]) -> Scalar:
    """The number of a position; undoes `split`."""
    number = index(0)
    for place, extent in zip(at, extents, strict=True):
        number = number * extent + place
    return number


class Array:
    """A buffer whose elements are read and written at positions."""

    def __init__(self, buffer: ir.Value) -> None:
        self.buffer = buffer
        self.type = ir.MemRefType(buffer.type)
        self.shape = list(self.type.shape)
        self.element = self.type.element_type

    def __getitem__(self, at: Any) -> Scalar:
        return Scalar(load(self.buffer, self._at(at)))

    def __setitem__(self, at: Any, value: Scalar) -> None:
        store(value.value, self.buffer, self._at(at))

    def several(self, at: Any, count: int) -> list[Scalar]:
        """Elements that lie side by side, from an aligned place on."""
        if count == 1:
            return [self[at]]
        type_ = ir.VectorType.get([count], self.element)
        found = vector.LoadOp(
            type_, self.buffer, self._at(at), alignment=count * self.element.width // 8
        ).result
        return [Scalar(vector.ExtractOp(found, [], [n]).result) for n in range(count)]

    def set_several(self, at: Any, values: Sequence[Scalar]) -> None:
        """Write elements side by side, from an aligned place on."""
        if len(values) == 1:
            self[at] = values[0]
            return
        type_ = ir.VectorType.get([len(values)], self.element)
        packed = vector.FromElementsOp(type_, [value.value for value in values]).result
        alignment = len(values) * self.element.width // 8
        vector.StoreOp(packed, self.buffer, self._at(at), alignment=alignment)

    def _at(self, at: Any) -> list[ir.Value]:
        return [index(i).value for i in (at if isinstance(at, (tuple, list)) else (at,))]


# ---- control flow --------------------------------------------------------------------------------
@contextmanager
def loop(low: Any, high: Any, step: Any = 1) -> Iterator[Scalar]:
    """A loop over [low, high); what is built inside is its body."""
    op = scf.ForOp(index(low).value, index(high).value, index(step).value, [])
    with ir.InsertionPoint(op.body):
        yield Scalar(op.induction_variable)
        scf.YieldOp([])


@contextmanager
def when(condition: Scalar) -> Iterator[None]:
    """What is built inside is done where the condition holds."""
    branch = ir.Operation.create("scf.if", operands=[condition.value], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        yield
        scf.YieldOp([])


def fold(
    low: Any, high: Any, initial: Sequence[Scalar], body: Callable[..., Sequence[Scalar]],
    step: int = 1,
) -> list[Scalar]:  # fmt: skip
    """What `body(i, *carried)` gives, carried through a loop over [low, high)."""

    def once(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        return [s.value for s in body(Scalar(i), *map(Scalar, carried))]

    values = [scalar.value for scalar in initial]
    return [
        Scalar(v) for v in for_range(index(low).value, index(high).value, values, once, step)
    ]


def select(
    condition: Scalar, then: Callable[[], Sequence[Scalar]], otherwise: Callable[[], Sequence[Scalar]],
    types: Sequence[ir.Type],
) -> list[Scalar]:  # fmt: skip
    """The values of the branch that the condition takes."""

    def values(arm: Callable[[], Sequence[Scalar]]) -> Callable[[], list[ir.Value]]:
        return lambda: [scalar.value for scalar in arm()]

    return [
        Scalar(v) for v in if_else(condition.value, values(then), values(otherwise), types)
    ]


def repeat_while(
    initial: Sequence[Scalar], condition: Callable[..., Scalar],
    body: Callable[..., Sequence[Scalar]],
) -> list[Scalar]:  # fmt: skip
    """What `body(*carried)` gives, carried as long as `condition(*carried)` holds."""
    types = [scalar.type for scalar in initial]
    op = ir.Operation.create(
        "scf.while", results=types, operands=[scalar.value for scalar in initial], regions=2
    )
    blocks = [ir.Block.create_at_start(region, types) for region in op.regions]
    carried = [[Scalar(v) for v in block.arguments] for block in blocks]
    with ir.InsertionPoint(blocks[0]):
        scf.ConditionOp(condition(*carried[0]).value, [s.value for s in carried[0]])
    with ir.InsertionPoint(blocks[1]):
        scf.YieldOp([scalar.value for scalar in body(*carried[1])])
    return [Scalar(v) for v in op.results]
