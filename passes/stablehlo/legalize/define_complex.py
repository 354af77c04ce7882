"""Spell out what StableHLO says of complex numbers and upstream's lowering does not do.

- A constant becomes `complex(real part, imaginary part)`: complex elements can't be printed for
  LLVM.
- `maximum` and `minimum` compare lexicographically, real parts first; a NaN part counts as NaN.
- `bitcast_convert` between complex<f32> and complex<f64> goes part by part.
- `cbrt` is the principal third root, by logarithm and exponential.
- `abs` is the root of the sum of squares of both parts, first divided by the power of two in the larger one,
  so that no square overflows: upstream's divides by the larger part, which takes as long as the root.

Leaves all other ops, and real numbers, alone.
example: test/passes/stablehlo/legalize/define_complex.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.rewriting import rewrite


class DefineComplex(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        rules = {
            "stablehlo.abs": (_abs,),
            "stablehlo.constant": (_constant,),
            "stablehlo.maximum": (_maximum,),
            "stablehlo.minimum": (_minimum,),
            "stablehlo.bitcast_convert": (_bitcast,),
            "stablehlo.cbrt": (_cbrt,),
        }
        for name, times in rewrite(module, rules).items():
            self.count(name, times)


def _constant(op: ir.Operation) -> ir.Value | None:
    if not _is_complex(op.results[0]):
        return None
    value = array_of(op)
    if value.size and is_splat(op):
        one = value[(0,) * value.ndim]
        return hlo.complex(
            *(hlo.full(part, value.shape, part.dtype) for part in (one.real, one.imag))
        )
    return hlo.complex(
        *(hlo.constant(np.ascontiguousarray(p).reshape(p.shape)) for p in (value.real, value.imag))
    )


def _abs(op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    if not _is_complex(x):
        return None
    shape = list(x.type.shape)
    parts = hlo.abs(hlo.real(x)), hlo.abs(hlo.imag(x))
    part = dtype_of(parts[0].type)
    integer, info = np.dtype(f"i{part.itemsize}"), np.finfo(part)
    largest_exponent = 2 * info.maxexp - 1  # biased, of infinities

    def full(value: int) -> ir.Value:
        return hlo.full(integer.type(value << info.nmant), shape, integer)

    larger = hlo.bitcast_convert(hlo.maximum(*parts), shape, integer)
    exponent = hlo.minimum(hlo.and_(larger, full(largest_exponent)), full(largest_exponent - 2))
    power = hlo.bitcast_convert(exponent, shape, part)
    inverse = hlo.bitcast_convert(hlo.subtract(full(largest_exponent - 1), exponent), shape, part)
    a, b = (hlo.multiply(size, inverse) for size in parts)
    root = hlo.multiply(hlo.sqrt(hlo.add(hlo.multiply(a, a), hlo.multiply(b, b))), power)
    infinity = hlo.full(part.type("inf"), shape, part)  # beside a NaN, too
    is_infinite = hlo.or_(*(hlo.compare(size, infinity, "EQ") for size in parts))
    return hlo.select(is_infinite, infinity, root)


def _maximum(op: ir.Operation) -> ir.Value | None:
    return _extreme(op, "GT") if _is_complex(op.results[0]) else None


def _minimum(op: ir.Operation) -> ir.Value | None:
    return _extreme(op, "LT") if _is_complex(op.results[0]) else None


def _extreme(op: ir.Operation, direction: str) -> ir.Value:
    lhs, rhs = op.operands
    of_lhs, of_rhs = (hlo.real(lhs), hlo.imag(lhs)), (hlo.real(rhs), hlo.imag(rhs))
    real_wins = hlo.compare(of_lhs[0], of_rhs[0], direction)
    real_ties = hlo.compare(of_lhs[0], of_rhs[0], "EQ")
    imag_wins = hlo.compare(of_lhs[1], of_rhs[1], direction)
    lhs_wins = hlo.or_(hlo.or_(real_wins, hlo.and_(real_ties, imag_wins)), _has_nan(of_lhs))
    return hlo.select(lhs_wins, lhs, rhs)


def _has_nan(parts: Sequence[ir.Value]) -> ir.Value:
    return hlo.or_(*(hlo.compare(part, part, "NE") for part in parts))


def _bitcast(op: ir.Operation) -> ir.Value | None:
    (operand,), (result,) = op.operands, op.results
    if not _is_complex(operand):
        return None
    if operand.type == result.type:
        return operand
    shape, wanted = list(operand.type.shape), list(result.type.shape)
    if len(wanted) > len(shape):  # each f64 part becomes the two f32 parts of one number
        numbers = []
        for part in (hlo.real(operand), hlo.imag(operand)):
            halves = hlo.bitcast_convert(part, wanted, np.float32)
            numbers.append(hlo.complex(_last(halves, 0), _last(halves, 1)))
        return hlo.concatenate(numbers, len(shape))
    parts = []
    for number in range(2):
        one = _last(operand, number)
        halves = hlo.concatenate([hlo.real(one), hlo.imag(one)], len(shape) - 1)
        parts.append(hlo.bitcast_convert(halves, wanted, np.float64))
    return hlo.complex(*parts)


def _last(x: ir.Value, position: int) -> ir.Value:
    """The slice of size 1 at a position of the last dimension."""
    shape = list(x.type.shape)
    start, limit = [0] * len(shape), list(shape)
    start[-1], limit[-1] = position, position + 1
    return hlo.slice(x, start, limit, [1] * len(shape))


def _cbrt(op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    if not _is_complex(x):
        return None
    part = np.float32 if "f32" in str(x.type.element_type) else np.float64
    shape = list(x.type.shape)

    def full(value: float) -> ir.Value:
        return hlo.full(part(value), shape, part)

    zero = full(0.0)
    third = hlo.complex(full(1.0 / 3.0), zero)
    root = hlo.exponential(hlo.multiply(hlo.log(x), third))
    is_zero = hlo.compare(x, hlo.complex(zero, zero), "EQ")
    return hlo.select(is_zero, x, root)


def _is_complex(value: ir.Value) -> bool:
    return isinstance(ir.ShapedType(value.type).element_type, ir.ComplexType)
