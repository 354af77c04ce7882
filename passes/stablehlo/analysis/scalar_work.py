"""Which ops are scalar work: a few instructions on scalars that whoever needs them does himself.

`stablehlo-fuse` gives kernels that hold nothing else the kind `scalar`; they are not compiled, but
written into their callers. Where there are many of them, such kernels may also hold calls, of functions of
scalars that are kernels of their own (fuse_scalars.py).
"""

from __future__ import annotations

from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir

INSTRUCTIONS = frozenset(
    f"stablehlo.{name}"
    for name in "add and clamp compare convert divide maximum minimum multiply negate not or reshape "
    "select sqrt subtract xor constant".split()
)
"""Ops that are an instruction or two, for some types at least."""


def is_of_scalars(op: ir.Operation) -> bool:
    """Whether an op takes and makes scalars alone, of types that instructions have."""
    return None not in _kinds(_types(op))


def is_scalar_op(op: ir.Operation) -> bool:
    """Whether an op is one whose instructions are known here for its types."""
    name = op.name
    if name not in INSTRUCTIONS or not _has_instructions(name, _types(op)):
        return False
    return name != "stablehlo.compare" or "TOTALORDER" not in str(_compare_type(op))


def _types(op: ir.Operation) -> tuple[ir.Type, ...]:
    return tuple([value.type for value in (*op.operands, *op.results)])


@cached_with_context(1024)
def _has_instructions(name: str, types: tuple[ir.Type, ...]) -> bool:
    kinds = _kinds(types)
    if None in kinds:
        return False
    name = name.removeprefix("stablehlo.")
    if name in ("maximum", "minimum", "clamp", "not", "and", "or", "xor"):
        return all(kind in ("signed", "unsigned", "boolean") for kind in kinds)
    if name in ("add", "subtract", "multiply", "negate"):
        return "boolean" not in kinds
    if name in ("divide", "sqrt"):
        return kinds[0] == "float"
    return name != "convert" or kinds[0] != "float"  # out-of-range floats need more than an instruction


@cached_with_context(1024)
def _kinds(types: tuple[ir.Type, ...]) -> list[str | None]:
    """`kind_of` each of these types; None for what is no scalar."""
    return [kind_of(of) if isinstance(of, ir.RankedTensorType) and not of.rank else None for of in types]


def _compare_type(op: ir.Operation) -> object:
    return op.attributes["compare_type"] if "compare_type" in op.attributes else ""


@cached_with_context(1024)
def kind_of(of: ir.Type) -> str | None:
    """How a tensor's elements are computed with: "float", "signed", "unsigned", "boolean"; None where
    no instruction does it."""
    element = of.element_type
    if isinstance(element, (ir.F32Type, ir.F64Type)):
        return "float"
    if not isinstance(element, ir.IntegerType) or element.width not in (1, 8, 16, 32, 64):
        return None
    if element.width == 1:
        return "boolean"
    return "unsigned" if element.is_unsigned else "signed"
