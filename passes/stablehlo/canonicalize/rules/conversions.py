"""Rules of `stablehlo-simplify` for conversions between types: what loses nothing is not done twice."""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, is_float, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import made_by
from lamina.passes.stablehlo.canonicalize.rewriting import Rule


def _convert(op: ir.Operation) -> ir.Value | None:
    """To its own type -> nothing; two converts -> one when the first loses nothing."""
    (operand,) = op.operands
    if operand.type == op.result.type:
        return operand
    first = made_by(operand, "stablehlo.convert")
    if first is None:
        return None
    source = first.operands[0]
    if not _loses_nothing(dtype_of(source.type), dtype_of(operand.type)):
        return None
    target = dtype_of(op.result.type)
    return source if dtype_of(source.type) == target else hlo.convert(source, target)


def _bitcast(op: ir.Operation) -> ir.Value | None:
    """To its own type -> nothing; two bit casts -> one."""
    (operand,) = op.operands
    if operand.type == op.result.type:
        return operand
    first = made_by(operand, op.name)
    if first is None:
        return None
    source = first.operands[0]
    if source.type == op.result.type:
        return source
    same_width = shape_of(source.type) == shape_of(operand.type) == shape_of(op.result.type)
    if not same_width:
        return None
    return hlo.bitcast_convert(source, shape_of(op.result.type), dtype_of(op.result.type))


def _loses_nothing(source: np.dtype, target: np.dtype) -> bool:
    """Whether converting source to target keeps every value, so that a next convert can't tell."""
    if source == target:
        return True
    if target == np.bool_ or source.kind == "c" or target.kind == "c":
        return False
    if source == np.bool_:
        return True
    source_float, target_float = is_float(source), is_float(target)
    if source_float and target_float:
        (se, sm), (te, tm) = _float_format(source), _float_format(target)
        return (se, sm) != (0, 0) and te >= se and tm >= sm and target.itemsize >= 2
    if source_float:
        return False
    bits, signed = _integer_format(source)
    if target_float:
        exponent, mantissa = _float_format(target)
        return mantissa + 1 >= bits - signed and exponent >= 8
    wide, target_signed = _integer_format(target)
    return (wide >= bits and signed == target_signed) or (wide > bits and target_signed)


def _float_format(dtype: np.dtype) -> tuple[int, int]:
    """(exponent bits, mantissa bits) of the formats with infinities; (0, 0) for others."""
    return {
        "float16": (5, 10),
        "bfloat16": (8, 7),
        "float32": (8, 23),
        "float64": (11, 52),
        "float8_e5m2": (5, 2),
    }.get(dtype.name, (0, 0))


def _integer_format(dtype: np.dtype) -> tuple[int, bool]:
    name = dtype.name
    signed = not name.startswith("u")
    return int(name.removeprefix("u").removeprefix("int")), signed


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.convert": (_convert,),
    "stablehlo.bitcast_convert": (_bitcast,),
}
