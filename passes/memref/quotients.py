"""Quotients of vectors by what stays the same in a loop, by multiplications, to the same bits.

    y = 1 / b                        once
    q = x * y                        good to one and a half units in the last place
    q = q + (x - q * b) * y          to one
    q = q + (x - q * b) * y          the nearest

by fused multiplications and additions, where neither a quotient nor what is left of x can be
subnormal or infinite: for numbers far from 1, and -0, the division is done. That takes 10 cycles for
16 numbers, this 5. (P. Markstein, Computation of elementary functions on the IBM RISC System/6000
processor, theorem 8.3: from the reciprocal to the nearest, and a quotient that is good to one unit,
the last line gives the nearest.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lamina.dialects.vendors import arith, ir, math, vector
from lamina.passes.emit.loops import if_else

_LEAST_VECTORS = 16  # code: fewer are not worth a reciprocal, nor the code


class _Format(NamedTuple):
    """Of a type of numbers: its fraction's bits, 1's exponent, and how far exponents may be from that
    of a dividend and a divisor."""

    bits: int
    fraction: int
    one: int
    far: int
    divisor_far: int


_FORMATS = {32: _Format(32, 23, 127, 100, 20), 64: _Format(64, 52, 1023, 900, 100)}


def pays(type_: ir.Type, vectors: int | None) -> bool:
    """Whether so many vectors of such numbers (None: it is not known how many) are worth it."""
    is_known = isinstance(type_, (ir.F32Type, ir.F64Type))
    return is_known and (vectors is None or vectors >= _LEAST_VECTORS)


class Divisor:
    """A scalar, with what dividing vectors by it takes, made at the ambient insertion point."""

    def __init__(self, value: ir.Value, lanes: int) -> None:
        self._format = _FORMATS[value.type.width]
        one = arith.ConstantOp(value.type, ir.FloatAttr.get(value.type, 1.0)).result
        of = ir.VectorType.get([lanes], value.type)
        self._broadcast = vector.BroadcastOp(of, value).result
        self._reciprocal = vector.BroadcastOp(of, arith.DivFOp(one, value).result).result
        self._is_far = self._far(value, self._format.divisor_far)

    def quotients(self, dividends: Sequence[ir.Value]) -> list[ir.Value]:
        """Vectors divided by it."""
        far = [self._must_divide(x) for x in dividends]
        any_far = far[0]
        for other in far[1:]:
            any_far = arith.OrIOp(any_far, other).result
        truth = ir.IntegerType.get_signless(1)
        kind = ir.Attribute.parse("#vector.kind<or>")
        found = ir.Operation.create("vector.reduction", [truth], [any_far], {"kind": kind}).result
        return if_else(
            arith.OrIOp(found, self._is_far).result,
            lambda: [arith.DivFOp(x, self._broadcast).result for x in dividends],
            lambda: [self._nearest(x) for x in dividends],
            [x.type for x in dividends],
        )

    def _nearest(self, x: ir.Value) -> ir.Value:
        quotient = arith.MulFOp(x, self._reciprocal).result
        for _ in range(2):
            negative = arith.NegFOp(quotient).result
            left = math.FmaOp(negative, self._broadcast, x).result
            quotient = math.FmaOp(left, self._reciprocal, quotient).result
        return quotient

    def _must_divide(self, x: ir.Value) -> ir.Value:
        """For each lane whether it is far from 1, and not 0."""
        zero = self._number(self._integers(x.type), 0)
        bits = arith.BitcastOp(zero.type, x).result
        is_not_zero = arith.CmpIOp(arith.CmpIPredicate.ne, bits, zero).result
        return arith.AndIOp(self._far(x, self._format.far), is_not_zero).result

    def _far(self, x: ir.Value, distance: int) -> ir.Value:
        """Whether exponents are farther from 1's, to either side."""
        _, fraction, one, *_ = self._format
        of = self._integers(x.type)
        doubled = arith.ShLIOp(arith.BitcastOp(of, x).result, self._number(of, 1)).result
        least = self._number(of, (one - distance) << (fraction + 1))
        beyond = arith.SubIOp(doubled, least).result
        most = self._number(of, (2 * distance) << (fraction + 1))
        return arith.CmpIOp(arith.CmpIPredicate.ugt, beyond, most).result

    def _integers(self, of: ir.Type) -> ir.Type:
        integer = ir.IntegerType.get_signless(self._format.bits)
        return ir.VectorType.get(of.shape, integer) if isinstance(of, ir.VectorType) else integer

    def _number(self, of: ir.Type, value: int) -> ir.Value:
        bits = self._format.bits
        signed = value - (1 << bits) if value >> (bits - 1) else value
        element = of.element_type if isinstance(of, ir.VectorType) else of
        attribute = ir.IntegerAttr.get(element, signed)
        if isinstance(of, ir.VectorType):
            attribute = ir.DenseElementsAttr.get_splat(of, attribute)
        return arith.ConstantOp(of, attribute).result
