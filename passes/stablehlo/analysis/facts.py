"""Facts about StableHLO ops that several passes ask for: kind, purity, cost, attributes.

What is not listed here is treated as an op that nothing is known about.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from lamina.dialects.constants import splat_element
from lamina.dialects.context import forget_with_contexts
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.records import Record

_Block = ir.Block

CONSTANT = "stablehlo.constant"

PYTHON_CALLBACK = "lamina.python_callback"
"""The custom call of a function of the user's; `index` in its backend_config says which."""


def _names(text: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in text.split())


CHEAP = _names(
    "abs add and clamp compare complex convert bitcast_convert imag is_finite maximum minimum "
    "multiply negate not or popcnt real reduce_precision select shift_left shift_right_arithmetic "
    "shift_right_logical sign subtract xor count_leading_zeros floor ceil round_nearest_even "
    "round_nearest_afz"
)
"""Element-wise ops of a few instructions an element."""
COSTLY = _names(
    "atan2 cbrt cosine divide exponential exponential_minus_one log log_plus_one logistic power "
    "remainder rsqrt sine sqrt tan tanh"
)
"""Element-wise ops of tens of instructions an element: never to be computed twice."""
ELEMENTWISE = CHEAP | COSTLY
COMMUTATIVE = _names("add multiply maximum minimum and or xor")
TERMINATORS = frozenset(("stablehlo.return", "func.return"))
CONTROL = _names("while if case")

IMPURE = _names(
    "rng infeed outfeed send recv create_token after_all custom_call optimization_barrier "
    "all_gather all_reduce all_to_all collective_broadcast collective_permute cross-replica-sum "
    "reduce_scatter partition_id replica_id composite async_start async_done"
)
"""Ops that are not pure, or need not be."""


def computes_elements(op: ir.Operation) -> bool:
    """Whether an op is ELEMENTWISE here: a bitcast to a dtype of another width changes the shape."""
    if op.name == "stablehlo.bitcast_convert":
        return list(op.operands[0].type.shape) == list(op.results[0].type.shape)
    return op.name in ELEMENTWISE


def is_pure(op: ir.Operation) -> bool:
    """Whether the op has no effect but its results, which depend on its operands alone.

    An op with regions is as pure as what is in them. Calls are not looked into.
    """
    name = op.name
    if not is_name_of_pure(name):
        return name == "stablehlo.custom_call" and not has_side_effect(op)
    if not len(op.regions):
        return True
    return all(is_pure(inner) or inner.name in TERMINATORS for inner in inner_ops(op))


@functools.cache
def is_name_of_pure(name: str) -> bool:
    """Whether all ops of this name are pure that have no regions."""
    return name not in IMPURE and name.startswith(("stablehlo.", "chlo."))


_DROPPABLE = _names(
    "rng optimization_barrier all_gather all_reduce all_to_all collective_broadcast "
    "collective_permute reduce_scatter partition_id replica_id"
)


def is_droppable(op: ir.Operation) -> bool:
    """Whether the op may go when nobody uses its results. Collectives may: they go on all devices."""
    return op.name in _DROPPABLE or is_pure(op)


def has_side_effect(custom_call: ir.Operation) -> bool:
    """Whether a custom call says that it has one."""
    attributes = custom_call.attributes
    return "has_side_effect" in attributes and attributes["has_side_effect"].value


def callback_index(custom_call: ir.Operation) -> int | None:
    """Which function of the user's a call of PYTHON_CALLBACK is of; None where it does not say."""
    attributes = custom_call.attributes
    config = attributes["backend_config"] if "backend_config" in attributes else None
    if not isinstance(config, ir.DictAttr) or "index" not in config:
        return None
    index = config["index"]
    return index.value if isinstance(index, ir.IntegerAttr) and index.value >= 0 else None


def inner_ops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops directly in the regions of an op."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation


def defining(value: ir.Value) -> ir.Operation | None:
    """The op a value is a result of; None for block arguments."""
    owner = value.owner
    return None if type(owner) is _Block else owner.operation


def makes_a_factor(op: ir.Operation) -> bool:
    """Whether what a contraction multiplies is computed beside it, element by element."""
    makers = (defining(operand) for operand in op.operands)
    return any(maker is not None and computes_elements(maker) for maker in makers)


def made_by(value: ir.Value, name: str) -> ir.Operation | None:
    """The op a value is a result of, if it has this name."""
    op = defining(value)
    return op if op is not None and op.name == name else None


def in_order(ops: Iterable[ir.Operation]) -> list[ir.Operation]:
    """A few ops of one block in its order, without reading the block."""

    def compare(first: ir.Operation, second: ir.Operation) -> int:
        return -1 if first.is_before_in_block(second) else int(first != second)

    return sorted(ops, key=functools.cmp_to_key(compare))


def has_one_use(value: ir.Value) -> bool:
    """Whether exactly one operand is this value."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def is_unused(op: ir.Operation) -> bool:
    """Whether no result has a user."""
    for result in op.results:
        for _ in result.uses:
            return False
    return True


def ints(op: ir.Operation, attribute: str) -> list[int]:
    """An integer array attribute."""
    found = op.attributes[attribute]
    # By index: the bindings' iterator takes ten times as long.
    return [found[number] for number in range(len(found))]


def size_of(of: ir.Type) -> int:
    """The number of elements of a tensor type with static shape."""
    return prod(of.shape)


def splat_of(value: ir.Value) -> np.generic | None:
    """The element of a constant that has the same one everywhere; None for anything else, and for
    constants without elements."""
    constant = made_by(value, CONSTANT)
    return None if constant is None else splat_element(constant)


class DotNumbers(Record):
    """The dimensions of a dot_general."""

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @classmethod
    def of(cls, dot: ir.Operation) -> DotNumbers:
        """Read from the op."""
        attribute = dot.attributes["dot_dimension_numbers"]
        known = _known.numbers.get(attribute)
        if known is None:
            numbers = stablehlo_ext.DotDimensionNumbers(attribute)
            known = _known.numbers[attribute] = cls(
                tuple(numbers.lhs_batching_dimensions),
                tuple(numbers.rhs_batching_dimensions),
                tuple(numbers.lhs_contracting_dimensions),
                tuple(numbers.rhs_contracting_dimensions),
            )
        return known

    def attribute(self) -> ir.Attribute:
        """As the op's attribute."""
        return stablehlo_ext.DotDimensionNumbers.get(
            list(self.lhs_batch),
            list(self.rhs_batch),
            list(self.lhs_contracting),
            list(self.rhs_contracting),
        )

    def contracting(self, side: int) -> tuple[int, ...]:
        """The dimensions of operand 0 or 1 that are summed over."""
        return self.rhs_contracting if side else self.lhs_contracting

    def lhs_free(self, rank: int) -> list[int]:
        """lhs's dimensions that go to the result without being batch dimensions."""
        return [d for d in range(rank) if d not in self.lhs_batch + self.lhs_contracting]

    def rhs_free(self, rank: int) -> list[int]:
        """rhs's dimensions that go to the result without being batch dimensions."""
        return [d for d in range(rank) if d not in self.rhs_batch + self.rhs_contracting]


class _Known(threading.local):
    """The numbers of attributes seen in this thread's context, with which they go."""

    def __init__(self) -> None:
        self.numbers: dict[ir.Attribute, DotNumbers] = {}


_known = _Known()
forget_with_contexts(lambda: _known.numbers.clear())


def constant_starts(
    starts: Sequence[ir.Value], shape: Sequence[int], sizes: Sequence[int]
) -> list[int] | None:
    """Where a dynamic slice of these sizes begins, clamped as the op does; None if that is not known."""
    found = []
    for start, whole, size in zip(starts, shape, sizes, strict=True):
        splat = 0 if whole == size else splat_of(start)
        if splat is None:
            return None
        found.append(min(max(int(splat), 0), whole - size))
    return found


def reducer_of(op: ir.Operation) -> str | None:
    """The op that a reduction's body applies to its two arguments, when that is all it does."""
    block = op.regions[0].blocks[0]
    if len(block.arguments) != 2:
        return None
    body = [inner.operation for inner in block.operations]
    if len(body) != 2 or len(body[0].operands) != 2:
        return None
    lhs, rhs = block.arguments
    a, b = body[0].operands
    straight = a == lhs and b == rhs
    swapped = a == rhs and b == lhs and body[0].name in COMMUTATIVE
    returned = list(body[1].operands) == [body[0].results[0]]
    return body[0].name if (straight or swapped) and returned else None
