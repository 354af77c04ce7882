"""Which blocks of scores a mask hides, so that nothing made of them adds to what uses them up.

A mask is select(visible, score, lowest), of which softmax takes the exponential relative to the row's
maximum: zero where a row sees anything else. What that is multiplied by is zero, too, and so on: where
all that uses scores up, and all that adds up rows of them, is zero behind the mask, hidden blocks are left
out for those queries that see the first key. (Infinities and NaNs are then not multiplied by zero.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import Scalar, index, repeat_while
from lamina.passes.kernels.cpu.attention.mask import Bounds, Mask, blocks_in_sight
from lamina.passes.stablehlo.analysis.facts import defining, made_by, reducer_of, splat_of
from lamina.passes.stablehlo.attention.score_region import ScoreRegion

_FACTORS = ("stablehlo.multiply", "stablehlo.and")
_ONE_OPERAND = ("stablehlo.convert", "stablehlo.negate", "stablehlo.transpose")
_TERMS = ("stablehlo.add", "stablehlo.subtract")


def mask_of(region: ScoreRegion) -> Mask | None:
    """The mask behind which all that is made of scores vanishes; None where there is none."""
    for op in region.ops:
        mask = Mask.of_scores(op.results[0])
        if mask is None or list(region.dims[op.results[0]]) != list(range(region.width)):
            continue
        sums = [
            each.operands[0] for each in region.ops
            if each.name == "stablehlo.reduce" and reducer_of(each) == "stablehlo.add"
        ]  # fmt: skip
        if all(_vanishes(v, op, mask) for v in (*sums, *(sink.scores for sink in region.sinks))):
            return mask
    return None


def _vanishes(value: ir.Value, masked: ir.Operation, mask: Mask) -> bool:
    """Whether a value is zero where scores are hidden and their row sees others."""
    op = defining(value)
    if op is None:
        return False
    operands = list(op.operands)
    if op.name == "stablehlo.exponential":
        return _is_relative(operands[0], masked)
    if op.name == "stablehlo.select" and operands[0] == mask.visible:
        hidden = operands[2 if mask.when else 1]
        return splat_of(hidden) == 0 or _vanishes(hidden, masked, mask)
    if op.name in _FACTORS:
        return any(_vanishes(operand, masked, mask) for operand in operands)
    if op.name in _TERMS:
        return all(_vanishes(operand, masked, mask) for operand in operands)
    if op.name in _ONE_OPERAND or op.name == "stablehlo.divide":
        return _vanishes(operands[0], masked, mask)
    return False


def _is_relative(value: ir.Value, masked: ir.Operation) -> bool:
    """Whether it is masked scores less their row's maximum."""
    difference = made_by(value, "stablehlo.subtract")
    if difference is None or difference.operands[0] != masked.results[0]:
        return False
    spread = made_by(difference.operands[1], "stablehlo.broadcast_in_dim")
    highest = None if spread is None else made_by(spread.operands[0], "stablehlo.reduce")
    return (
        highest is not None
        and reducer_of(highest) == "stablehlo.maximum"
        and highest.operands[0] == masked.results[0]
    )


def keys_in_sight(
    mask: Mask, at: Mapping[int, Bounds], region: ScoreRegion, size: int
) -> Scalar:
    """How many blocks of keys queries within bounds need."""
    finite = Mask(mask.visible, mask.when, False)  # rows that see nothing are NaN throughout
    return blocks_in_sight(finite, at, region.keys, region.extents[region.keys], size)


def blind_queries(
    mask: Mask, at: Mapping[int, Bounds], steps: int, region: ScoreRegion,
    queries_at: Callable[[Scalar], Mapping[int, Bounds]],
) -> Scalar:  # fmt: skip
    """How many blocks of queries at the front see none of some keys, all but the last one at most.
    `queries_at(number)` gives the bounds of a block of queries."""
    zero = index(0)

    def is_blind(number: Scalar) -> Scalar:
        here = {**at, **queries_at(number)}
        first = {**here, region.keys: (zero, zero)}
        sees_first = mask.bounds([first[d] for d in sorted(first)])[0]
        sees_any = mask.bounds([here[d] for d in sorted(here)])[1]
        return sees_first & ~sees_any & (number < steps - 1)

    return repeat_while([zero], is_blind, lambda number: [number + 1])[0]
