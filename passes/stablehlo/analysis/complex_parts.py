"""The real or the imaginary part of what element-wise ops make of complex numbers, without the pairs."""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import defining, ints

_MOST_DEEP = 3  # search
"""Each product needs both parts of its factors."""


def part_of(value: ir.Value, imaginary: bool, depth: int = _MOST_DEEP) -> ir.Value:
    """A part, computed from those of what is added, multiplied or spread: by ops of its own, which become
    one loop with what reads it alone."""
    producer = defining(value) if depth else None
    if producer is None:
        return (hlo.imag if imaginary else hlo.real)(value)
    match producer.name:
        case "stablehlo.complex":
            return _again(producer.operands[int(imaginary)])
        case "stablehlo.add":
            return hlo.add(*(part_of(of, imaginary, depth - 1) for of in producer.operands))
        case "stablehlo.multiply":
            x, y = producer.operands
            combined, crossed = (hlo.add, True) if imaginary else (hlo.subtract, False)
            return combined(
                *(
                    hlo.multiply(part_of(x, of_x, depth - 1), part_of(y, of_x != crossed, depth - 1))
                    for of_x in (False, True)
                )
            )
        case "stablehlo.broadcast_in_dim":
            part = part_of(producer.operands[0], imaginary, depth - 1)
            return hlo.broadcast_in_dim(part, value.type.shape, ints(producer, "broadcast_dimensions"))
    return (hlo.imag if imaginary else hlo.real)(value)


def _again(value: ir.Value) -> ir.Value:
    """A number that ops of its own take from one, or negate."""
    producer = defining(value)
    if producer is None or producer.name not in _TAKEN:
        return value
    return remade(producer, [value.type], [_again(of) for of in producer.operands]).result


_TAKEN = frozenset(f"stablehlo.{name}" for name in "imag negate real".split())
