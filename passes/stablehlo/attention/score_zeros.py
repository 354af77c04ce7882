"""Whether what a mask hides adds nothing to what a score region makes."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import defining, reducer_of, splat_of
from lamina.passes.stablehlo.attention.score_region import ScoreRegion


class HiddenZeros:
    """What is zero wherever scores are so low that exponentials beside their row's maximum are zero,
    if all else there is finite. `visible` is true nowhere there, or everywhere if not `when`."""

    def __init__(
        self, region: ScoreRegion, scores: ir.Value, visible: ir.Value, *, when: bool
    ) -> None:
        self._region, self._scores = region, scores
        self._visible, self._when = visible, when

    def are_all_sums(self) -> bool:
        """Whether all that is summed up, in rows or by sinks, is zero there, and maxima are those of
        the scores."""
        for op in self._region.ops:
            if op.name == "stablehlo.reduce":
                is_sum = reducer_of(op) == "stablehlo.add"
                term = op.operands[0]
                if not (self._is_zero(term) if is_sum else term == self._scores):
                    return False
        return all(self._is_zero(sink.scores) for sink in self._region.sinks)

    def _is_zero(self, value: ir.Value) -> bool:
        op = defining(value)
        if op is None:
            return False
        match op.name.removeprefix("stablehlo."):
            case "constant":
                number = splat_of(value)
                return number is not None and float(number) == 0
            case "exponential":
                return self._is_low(op.operands[0])
            case "multiply":
                return any(map(self._is_zero, op.operands))
            case "divide" | "negate" | "convert":
                return self._is_zero(op.operands[0])
            case "add" | "subtract":
                return all(map(self._is_zero, op.operands))
            case "select":
                condition, *cases = op.operands
                if condition == self._visible:
                    cases = cases[1:] if self._when else cases[:1]
                return all(map(self._is_zero, cases))
            case _:
                return False

    def _is_low(self, value: ir.Value) -> bool:
        """Whether a value is that of scores less something of their row."""
        op = defining(value)
        if value == self._scores or op is None or op.name != "stablehlo.subtract":
            return value == self._scores
        row = defining(op.operands[1])
        is_row = row is not None and row.name == "stablehlo.broadcast_in_dim"
        return is_row and row in self._region.ops and self._is_low(op.operands[0])
