"""Sizes in a program from outside that arithmetic on 64 bits has no numbers for.

MLIR's verifier multiplies sizes, strides and paddings without looking whether the product fits, and
upstream's passes after it: a padding of 2^63 - 1 beside one of -(2^63 - 1) is a valid program to the one, and
brings the other down.
"""

from __future__ import annotations

import math

from lamina.dialects.parse_error import ParseError
from lamina.dialects.types import DYNAMIC
from lamina.dialects.vendors import ir

MOST_ELEMENTS = 1 << 56
"""Memory has no addresses for more bytes."""
_MOST_REACH = 1 << 62
_SHAPED = frozenset(
    f"stablehlo.{name}"
    for name in ("convolution", "dynamic_conv", "pad", "reduce_window", "select_and_scatter", "slice")
)
"""Ops whose attributes are added to sizes of their operands, or multiplied by them."""
_MULTIPLIED = ("dilation", "interior")
"""Words in the names of attributes that are multiplied."""


def check_sizes(module: ir.Module, name: str) -> None:
    """Raises ParseError, which names the op and its line, where an array has more elements than memory
    has addresses, or an op reaches beyond what 64 bits count."""
    known: set[ir.Type] = set()
    errors: list[ParseError] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        problem = _problem_of_op(op, known)
        if problem is None:
            return ir.WalkResult.ADVANCE
        at = op.location
        place = (at.start_line, at.start_col) if isinstance(at, ir.FileLineColLoc) else (0, 0)
        short = op.name.removeprefix("stablehlo.")
        errors.append(ParseError(name, f"[{short}] {problem}", *place))
        return ir.WalkResult.INTERRUPT  # what a callback raises arrives as another error

    module.operation.walk(visit)
    if errors:
        raise errors[0]


def _problem_of_op(op: ir.Operation, known: set[ir.Type]) -> str | None:
    """What is wrong with an op's sizes; `known` are types with which nothing is."""
    arguments = [x for region in op.regions for block in region.blocks for x in block.arguments]
    for value in (*op.results, *arguments):
        problem = _problem_of_type(value.type, known)
        if problem is not None:
            return problem
    return _problem_of_attributes(op) if op.name in _SHAPED else None


def _problem_of_type(of: ir.Type, known: set[ir.Type]) -> str | None:
    if of in known:
        return None
    if isinstance(of, ir.TupleType):
        for i in range(of.num_types):
            problem = _problem_of_type(of.get_type(i), known)
            if problem is not None:
                return problem
    elif isinstance(of, ir.RankedTensorType):
        count = math.prod(size for size in of.shape if size != DYNAMIC)
        if count > MOST_ELEMENTS:
            return f"has an array {of} of {count} elements, for which memory has no addresses"
    known.add(of)
    return None


def _problem_of_attributes(op: ir.Operation) -> str | None:
    numbers = {}
    for name in op.attributes:
        attribute = op.attributes[name]
        if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseIntElementsAttr):
            numbers[name] = max(map(abs, attribute), default=0)
    sizes = map(_largest_size, (*op.operands, *op.results))
    largest = max(1, *sizes, *(n for name, n in numbers.items() if not _is_multiplied(name)))
    for name, number in numbers.items():
        if number > (_MOST_REACH // largest if _is_multiplied(name) else MOST_ELEMENTS):
            return f"has {number} in {name}, with which it reaches beyond what 64 bits count"
    return None


def _is_multiplied(name: str) -> bool:
    return any(word in name for word in _MULTIPLIED)


def _largest_size(value: ir.Value) -> int:
    of = value.type
    return max(of.shape, default=1) if isinstance(of, ir.RankedTensorType) else 1
