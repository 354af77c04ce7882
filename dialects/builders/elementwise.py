"""Builders of element-wise ops: arithmetic, bits, types, comparison, choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.dialects.builders.creation import Value, create, i32, tensor
from lamina.dialects.types import element_type, tensor_type
from lamina.dialects.vendors import ir, stablehlo_ext

_Unary = Callable[[Value], Value]
_Binary = Callable[[Value, Value], Value]


def _elementwise_unary(name: str) -> _Unary:
    def build(x: Value) -> Value:
        return create(name, results=[x.type], operands=[x]).result

    return build


def _elementwise_binary(name: str) -> _Binary:
    def build(lhs: Value, rhs: Value) -> Value:
        return create(name, results=[lhs.type], operands=[lhs, rhs]).result

    return build


def _inferred_unary(name: str) -> _Unary:
    def build(x: Value) -> Value:
        return create(name, operands=[x], infer_type=True).result

    return build


add = _elementwise_binary("stablehlo.add")
subtract = _elementwise_binary("stablehlo.subtract")
multiply = _elementwise_binary("stablehlo.multiply")
divide = _elementwise_binary("stablehlo.divide")
maximum = _elementwise_binary("stablehlo.maximum")
minimum = _elementwise_binary("stablehlo.minimum")
power = _elementwise_binary("stablehlo.power")
remainder = _elementwise_binary("stablehlo.remainder")
atan2 = _elementwise_binary("stablehlo.atan2")
and_ = _elementwise_binary("stablehlo.and")
or_ = _elementwise_binary("stablehlo.or")
xor = _elementwise_binary("stablehlo.xor")
shift_left = _elementwise_binary("stablehlo.shift_left")
shift_right_arithmetic = _elementwise_binary("stablehlo.shift_right_arithmetic")
shift_right_logical = _elementwise_binary("stablehlo.shift_right_logical")

not_ = _elementwise_unary("stablehlo.not")
negate = _elementwise_unary("stablehlo.negate")
sign = _elementwise_unary("stablehlo.sign")
floor = _elementwise_unary("stablehlo.floor")
ceil = _elementwise_unary("stablehlo.ceil")
round_nearest_even = _elementwise_unary("stablehlo.round_nearest_even")
round_nearest_afz = _elementwise_unary("stablehlo.round_nearest_afz")
exponential = _elementwise_unary("stablehlo.exponential")
exponential_minus_one = _elementwise_unary("stablehlo.exponential_minus_one")
log = _elementwise_unary("stablehlo.log")
log_plus_one = _elementwise_unary("stablehlo.log_plus_one")
sine = _elementwise_unary("stablehlo.sine")
cosine = _elementwise_unary("stablehlo.cosine")
tan = _elementwise_unary("stablehlo.tan")
tanh = _elementwise_unary("stablehlo.tanh")
logistic = _elementwise_unary("stablehlo.logistic")
sqrt = _elementwise_unary("stablehlo.sqrt")
rsqrt = _elementwise_unary("stablehlo.rsqrt")
cbrt = _elementwise_unary("stablehlo.cbrt")
popcnt = _elementwise_unary("stablehlo.popcnt")
count_leading_zeros = _elementwise_unary("stablehlo.count_leading_zeros")

abs = _inferred_unary("stablehlo.abs")  # of complex numbers: real
real = _inferred_unary("stablehlo.real")
imag = _inferred_unary("stablehlo.imag")
is_finite = _inferred_unary("stablehlo.is_finite")


def complex(real: Value, imag: Value) -> Value:
    """The complex numbers with these parts."""
    return create("stablehlo.complex", operands=[real, imag], infer_type=True).result


# Types


def convert(x: Value, dtype: Any) -> Value:
    """The elements as another dtype."""
    result = tensor(x.type.shape, element_type(dtype))
    return create("stablehlo.convert", results=[result], operands=[x]).result


def bitcast_convert(x: Value, shape: Sequence[int], dtype: Any) -> Value:
    """The same bits as another dtype; shape is the result's, with the last dimension adapted."""
    result = tensor_type(shape, dtype)
    return create("stablehlo.bitcast_convert", results=[result], operands=[x]).result


def reduce_precision(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """The elements rounded to a float format with these widths."""
    attributes = {"exponent_bits": i32(exponent_bits), "mantissa_bits": i32(mantissa_bits)}
    return create(
        "stablehlo.reduce_precision", results=[x.type], operands=[x], attributes=attributes
    ).result


# Comparison and choice


def compare(lhs: Value, rhs: Value, direction: str, compare_type: str | None = None) -> Value:
    """lhs `direction` rhs with direction EQ NE LT LE GT GE; order by element type if not given."""
    of = lhs.type
    attributes = {
        "comparison_direction": stablehlo_ext.ComparisonDirectionAttr.get(direction),
        "compare_type": stablehlo_ext.ComparisonTypeAttr.get(
            compare_type or _compare_type(of.element_type)
        ),
    }
    result = tensor(of.shape, ir.IntegerType.get_signless(1))
    return create(
        "stablehlo.compare", results=[result], operands=[lhs, rhs], attributes=attributes
    ).result


def _compare_type(element: ir.Type) -> str:
    if not isinstance(element, ir.IntegerType):
        return "FLOAT"
    return "UNSIGNED" if element.is_unsigned or element.width == 1 else "SIGNED"


def select(predicate: Value, on_true: Value, on_false: Value) -> Value:
    """on_true where predicate (same shape, or a scalar), else on_false."""
    return create(
        "stablehlo.select", results=[on_true.type], operands=[predicate, on_true, on_false]
    ).result


def clamp(low: Value, x: Value, high: Value) -> Value:
    """x kept between low and high, which have x's shape or are scalars."""
    return create("stablehlo.clamp", results=[x.type], operands=[low, x, high]).result
