"""Rules of `stablehlo-simplify` for element-wise ops.

On floats only what gives the same bits for every input, NaN payloads aside: `x + 0` is not `x`
for -0, `x * 0` is not 0 for NaN, and nothing is reassociated. (Powers that are roots are rounded
better than before.)
"""

from __future__ import annotations

import math

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, is_float, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import defining, ints, made_by, reducer_of, splat_of
from lamina.passes.stablehlo.canonicalize.rewriting import (
    Rule,
    decided_by_constants,
    needs_operand_of,
)
from lamina.passes.stablehlo.canonicalize.rules.reshaped import reduced


@decided_by_constants
def _neutral_operand(op: ir.Operation) -> ir.Value | None:
    """`x + 0`, `x * 1`, `x and true`, `max(x, -inf)`, ... -> x, with the neutral element on the right or left."""
    lhs, rhs = op.operands
    if _is_neutral(op.name, rhs):
        return lhs
    if op.name not in _ONE_SIDED and _is_neutral(op.name, lhs):
        return rhs
    return None


_ONE_SIDED = frozenset(
    f"stablehlo.{name}"
    for name in (
        "subtract divide shift_left shift_right_logical shift_right_arithmetic power".split()
    )
)


def _is_neutral(name: str, value: ir.Value) -> bool:
    splat = splat_of(value)
    if splat is None:
        return False
    dtype = dtype_of(value.type)
    name = name.removeprefix("stablehlo.")
    if name in ("maximum", "minimum"):
        return _is_extreme(splat, dtype, least=name == "maximum")
    if name in ("multiply", "divide", "power"):
        # A complex one also has the wrong sign of zero for some operands.
        return dtype.kind != "c" and bool(splat == 1)
    if name == "add" and is_float(dtype):
        return bool(splat == 0) and bool(np.signbit(splat))  # x + -0 is x; -0 + 0 is not -0
    if name == "subtract" and is_float(dtype):
        return bool(splat == 0) and not np.signbit(splat)
    if name in ("add", "subtract", "or", "xor") or name.startswith("shift"):
        return dtype.kind != "c" and bool(splat == 0)
    return name == "and" and _is_all_ones(splat, dtype)


def _is_extreme(splat: np.generic, dtype: np.dtype, *, least: bool) -> bool:
    """Whether nothing of a type is less, or nothing is more. (What has no infinity has NaN instead.)"""
    if is_float(dtype):
        return bool(splat == (-np.inf if least else np.inf))
    if dtype.kind not in "iu":
        return False
    info = np.iinfo(dtype)
    return bool(splat == (info.min if least else info.max))


@decided_by_constants
def _absorbing_operand(op: ir.Operation) -> ir.Value | None:
    """`x * 0` on integers, `x and false`, `x or true` -> the constant."""
    for operand in op.operands:
        splat = splat_of(operand)
        if splat is None:
            continue
        dtype = dtype_of(operand.type)
        if is_float(dtype) or dtype.kind == "c":
            return None
        if op.name == "stablehlo.or":
            if _is_all_ones(splat, dtype):
                return operand
        elif splat == 0:
            return operand
    return None


def _same_operands(op: ir.Operation) -> ir.Value | None:
    """`max(x, x)`, `x and x` -> x; on integers `x - x`, `x xor x` -> 0."""
    lhs, rhs = op.operands
    if lhs != rhs:
        return None
    if op.name in ("stablehlo.subtract", "stablehlo.xor"):
        dtype = dtype_of(lhs.type)
        if is_float(dtype) or dtype.kind == "c":
            return None
        return hlo.full(0, shape_of(lhs.type), dtype)
    return lhs


@needs_operand_of("negate")
def _negated_operand(op: ir.Operation) -> ir.Value | None:
    """`a + -b` -> `a - b`, `a - -b` -> `a + b`, `-a * -b` -> `a * b`, also for divide."""
    lhs, rhs = op.operands
    left, right = made_by(lhs, "stablehlo.negate"), made_by(rhs, "stablehlo.negate")
    if op.name == "stablehlo.add":
        if right is not None:
            return hlo.subtract(lhs, right.operands[0])
        if left is not None:
            return hlo.subtract(rhs, left.operands[0])
    elif op.name == "stablehlo.subtract":
        if right is not None:
            return hlo.add(lhs, right.operands[0])
    elif left is not None and right is not None and is_float(dtype_of(lhs.type)):
        build = hlo.multiply if op.name == "stablehlo.multiply" else hlo.divide
        return build(left.operands[0], right.operands[0])
    return None


@needs_operand_of("negate")
def _sum_of_negated(op: ir.Operation) -> ir.Value | None:
    """`sum(-x)` from 0 -> `0 - sum(x)`, which has the same bits: rounding knows no sign, and a sum from 0 is
    never -0. (So the transpose of a broadcast that is subtracted comes.)"""
    negated = made_by(op.operands[0], "stablehlo.negate")
    if negated is None or len(op.results) != 1 or reducer_of(op) != "stablehlo.add":
        return None
    start, of = splat_of(op.operands[1]), op.results[0].type
    if start is None or start != 0 or negated.result.type.element_type != of.element_type:
        return None
    if dtype_of(of).kind not in "iu" and np.signbit(complex(start).real):
        return None
    total = reduced(op, negated.operands[0], ints(op, "dimensions"))
    return hlo.subtract(hlo.full(0, shape_of(of), dtype_of(of)), total)


@needs_operand_of("add", "subtract")
def _integer_constants(op: ir.Operation) -> ir.Value | None:
    """`(x + 1) - 1` of integers -> `x + 0`, `(9 - x) - 1` -> `8 - x`: they wrap around alike."""
    if dtype_of(op.result.type).kind not in "iu" or (outer := _and_constant(op)) is None:
        return None
    sum_, sign, last = outer
    inner_op = defining(sum_)
    if inner_op is None or inner_op.name not in _SUMS or (inner := _and_constant(inner_op)) is None:
        return None
    value, inner_sign, first = inner
    dtype, shape = dtype_of(value.type), shape_of(value.type)
    bits = np.iinfo(dtype).bits
    total = (sign * first + last) % (1 << bits)
    if dtype.kind == "i" and total >> (bits - 1):
        total -= 1 << bits
    constant = hlo.full(total, shape, dtype)
    return hlo.add(value, constant) if sign * inner_sign > 0 else hlo.subtract(constant, value)


def _and_constant(op: ir.Operation) -> tuple[ir.Value, int, int] | None:
    """(x, sign, constant) of a sum or difference that is the constant and x, or minus x."""
    lhs, rhs = op.operands
    left, right = splat_of(lhs), splat_of(rhs)
    if (left is None) == (right is None):
        return None
    sign = -1 if op.name == "stablehlo.subtract" else 1
    if right is not None:
        return lhs, 1, sign * int(right)
    assert left is not None
    return rhs, sign, int(left)


_SUMS = ("stablehlo.add", "stablehlo.subtract")


@decided_by_constants
def _minus_one(op: ir.Operation) -> ir.Value | None:
    """`x * -1` -> `-x`."""
    for value, other in (op.operands, reversed(list(op.operands))):
        splat = splat_of(value)
        if splat is not None and splat == -1 and dtype_of(value.type).kind != "c":
            return hlo.negate(other)
    return None


@decided_by_constants
def _divide_by_power_of_two(op: ir.Operation) -> ir.Value | None:
    """`x / c` -> `x * (1/c)` where both c and 1/c are normal powers of two, so that it is exact."""
    splat = splat_of(op.operands[1])
    if splat is None:
        return None
    dtype = dtype_of(op.operands[1].type)
    if dtype.kind != "f":
        return None
    value = float(splat)
    tiny = float(np.finfo(dtype).tiny)
    if not math.isfinite(value) or abs(value) < tiny or abs(math.frexp(value)[0]) != 0.5:
        return None
    if not tiny <= abs(1 / value) <= float(np.finfo(dtype).max):
        return None
    return hlo.multiply(op.operands[0], hlo.full(1 / value, shape_of(op.result.type), dtype))


@needs_operand_of("constant")
def _integer_by_one(op: ir.Operation) -> ir.Value | None:
    """`x rem 1` -> 0 on integers."""
    dtype = dtype_of(op.result.type)
    splat = splat_of(op.operands[1])
    if splat is None or is_float(dtype) or splat != 1:
        return None
    return hlo.full(0, shape_of(op.result.type), dtype)


@needs_operand_of("constant")
def _small_power(op: ir.Operation) -> ir.Value | None:
    """`x ** 2` -> `x * x`, `x ** 0` -> 1, `x ** -1` -> `1 / x` for floats, all exact; `x ** 0.5` ->
    `sqrt(x)`, `x ** -0.5` -> `rsqrt(x)`, but for what they give for -0 and -inf."""
    base, exponent = op.operands
    splat = splat_of(exponent)
    dtype = dtype_of(base.type)
    if splat is None or dtype.kind == "c":
        return None
    if splat == 0:
        return hlo.full(1, shape_of(base.type), dtype)
    if splat == 2:
        return hlo.multiply(base, base)
    if splat == -1 and is_float(dtype):
        return hlo.divide(hlo.full(1, shape_of(base.type), dtype), base)
    if splat in (0.5, -0.5) and dtype.name in ("float32", "float64"):
        shape = shape_of(base.type)
        infinity, zero = (hlo.full(value, shape, dtype) for value in (math.inf, 0.0))
        root, of_infinity = (hlo.sqrt, infinity) if splat == 0.5 else (hlo.rsqrt, zero)
        below_all = hlo.compare(base, hlo.negate(infinity), "EQ")
        return hlo.select(below_all, of_infinity, root(hlo.add(base, zero)))
    return None


@needs_operand_of("negate", "not")
def _involution(op: ir.Operation) -> ir.Value | None:
    """`--x` and `not not x` -> x."""
    inner = made_by(op.operands[0], op.name)
    return None if inner is None else inner.operands[0]


def _idempotent(op: ir.Operation) -> ir.Value | None:
    """`abs(abs(x))`, `floor(floor(x))`, ... -> once; `abs(-x)` -> `abs(x)`."""
    operand = op.operands[0]
    producer = defining(operand)
    if producer is None:
        return None
    if producer.name == op.name and operand.type == producer.operands[0].type:
        return operand
    if op.name == "stablehlo.abs" and producer.name == "stablehlo.negate":
        return hlo.abs(producer.operands[0])
    return None


def _parts_of_complex(op: ir.Operation) -> ir.Value | None:
    """`real(complex(a, b))` -> a, `imag(complex(a, b))` -> b; of a real number: itself."""
    made = made_by(op.operands[0], "stablehlo.complex")
    if made is not None:
        return made.operands[0 if op.name == "stablehlo.real" else 1]
    if op.name == "stablehlo.real" and op.operands[0].type == op.result.type:
        return op.operands[0]
    return None


@needs_operand_of("real")
def _complex_of_parts(op: ir.Operation) -> ir.Value | None:
    """`complex(real(z), imag(z))` -> z."""
    real = made_by(op.operands[0], "stablehlo.real")
    imag = made_by(op.operands[1], "stablehlo.imag")
    if real is None or imag is None or real.operands[0] != imag.operands[0]:
        return None
    return real.operands[0] if real.operands[0].type == op.result.type else None


def _select(op: ir.Operation) -> ir.Value | None:
    """A choice that is known, or between equals; a choice by `not p` swapped."""
    predicate, on_true, on_false = op.operands
    if on_true == on_false:
        return on_true
    splat = splat_of(predicate)
    if splat is not None:
        return on_true if splat else on_false
    inverted = made_by(predicate, "stablehlo.not")
    if inverted is not None:
        return hlo.select(inverted.operands[0], on_false, on_true)
    if dtype_of(on_true.type) == np.bool_ and predicate.type == on_true.type:
        true, false = splat_of(on_true), splat_of(on_false)
        if true is not None and false is not None and true and not false:
            return predicate
    return None


_WHEN_EQUAL = {"EQ": True, "LE": True, "GE": True, "NE": False, "LT": False, "GT": False}
_OPPOSITE = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}


def _compare_with_itself(op: ir.Operation) -> ir.Value | None:
    """`x == x` and the like on integers; a NaN is not equal to itself."""
    lhs, rhs = op.operands
    if lhs != rhs or not isinstance(lhs.type.element_type, ir.IntegerType):
        return None
    return hlo.full(_WHEN_EQUAL[_direction(op)], shape_of(lhs.type), np.bool_)


@needs_operand_of("constant")
def _compare_of_boolean(op: ir.Operation) -> ir.Value | None:
    """`p != false`, also with p converted to numbers -> p; `p == false` -> `not p`."""
    lhs, rhs = op.operands
    direction = _direction(op)
    splat = splat_of(rhs)
    if splat is None or splat != 0 or direction not in ("EQ", "NE"):
        return None
    converted = made_by(lhs, "stablehlo.convert")
    source = lhs if converted is None else converted.operands[0]
    if dtype_of(source.type) != np.bool_:
        return None
    return source if direction == "NE" else hlo.not_(source)


@needs_operand_of("constant")
def _compare_of_rectified(op: ir.Operation) -> ir.Value | None:
    """`x > 0` where `max(x, 0)` is known -> `max(x, 0) > 0`, and x is needed no longer: what made it
    may write the maximum at once."""
    lhs, rhs = op.operands
    if splat_of(rhs) != 0 or _direction(op) != "GT" or "TOTALORDER" in str(op.attributes):
        return None
    known = None
    for use in lhs.uses:
        user = use.owner.operation
        if user.name == "stablehlo.maximum" and user.block == op.block:
            other = user.operands[1 - use.operand_number]
            if splat_of(other) == 0 and user.is_before_in_block(op):
                known = user.results[0]
                continue
        if user != op:
            return None
    return None if known is None or known == lhs else hlo.compare(known, rhs, "GT")


@needs_operand_of("compare")
def _not_of_compare(op: ir.Operation) -> ir.Value | None:
    """`not (a < b)` -> `a >= b` on integers, and `not (a == b)` on anything."""
    compared = made_by(op.operands[0], "stablehlo.compare")
    if compared is None:
        return None
    direction = _direction(compared)
    lhs, rhs = compared.operands
    if direction not in ("EQ", "NE") and not isinstance(lhs.type.element_type, ir.IntegerType):
        return None
    return hlo.compare(lhs, rhs, _OPPOSITE[direction])


def _direction(compare: ir.Operation) -> str:
    return stablehlo_ext.ComparisonDirectionAttr(compare.attributes["comparison_direction"]).value


def _is_all_ones(splat: np.generic, dtype: np.dtype) -> bool:
    return bool(splat) if dtype == np.bool_ else bool(splat == np.asarray(-1).astype(dtype))


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.add": (_neutral_operand, _negated_operand, _integer_constants),
    "stablehlo.subtract": (_neutral_operand, _same_operands, _negated_operand, _integer_constants),
    "stablehlo.multiply": (_neutral_operand, _absorbing_operand, _minus_one, _negated_operand),
    "stablehlo.divide": (_neutral_operand, _divide_by_power_of_two, _negated_operand),
    "stablehlo.remainder": (_integer_by_one,),
    "stablehlo.power": (_neutral_operand, _small_power),
    "stablehlo.maximum": (_same_operands, _neutral_operand),
    "stablehlo.minimum": (_same_operands, _neutral_operand),
    "stablehlo.and": (_neutral_operand, _absorbing_operand, _same_operands),
    "stablehlo.or": (_neutral_operand, _absorbing_operand, _same_operands),
    "stablehlo.xor": (_neutral_operand, _same_operands),
    "stablehlo.shift_left": (_neutral_operand,),
    "stablehlo.shift_right_logical": (_neutral_operand,),
    "stablehlo.shift_right_arithmetic": (_neutral_operand,),
    "stablehlo.negate": (_involution,),
    "stablehlo.reduce": (_sum_of_negated,),
    "stablehlo.not": (_involution, _not_of_compare),
    "stablehlo.abs": (_idempotent,),
    "stablehlo.floor": (_idempotent,),
    "stablehlo.ceil": (_idempotent,),
    "stablehlo.round_nearest_even": (_idempotent,),
    "stablehlo.round_nearest_afz": (_idempotent,),
    "stablehlo.real": (_parts_of_complex,),
    "stablehlo.imag": (_parts_of_complex,),
    "stablehlo.complex": (_complex_of_parts,),
    "stablehlo.select": (_select,),
    "stablehlo.compare": (_compare_with_itself, _compare_of_boolean, _compare_of_rectified),
}
