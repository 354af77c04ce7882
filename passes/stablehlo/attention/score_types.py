"""Which types of scores and of what they are made of tensor cores multiply without rounding more than
the program allows."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.attention.score_region import Product, ScoreRegion, Sink
from lamina.passes.stablehlo.legalize.note_tf32 import asks_for_tf32

_NARROW = ("bf16", "f16")
_SUMS = ("f32", *_NARROW)


def suits_tensor_cores(region: ScoreRegion) -> bool:
    """Whether all products are of 16-bit floats, or of f32 that may be rounded to tf32. Scores of f32
    times bf16 are, too: a f32 is the sum of three bf16."""
    numbers = [v for op in region.ops for v in op.results]
    numbers += [sink.op.results[0] for sink in region.sinks]
    floats = [t for t in map(_element, numbers) if not t.startswith(("i", "ui"))]
    return (
        all(type_ in _SUMS for type_ in floats)
        and all(map(_is_product, region.products))
        and all(map(_is_sink, region.sinks))
        and len({_element(operand.value) for operand in region.operands()}) == 1
    )


def _is_product(product: Product) -> bool:
    types = {_element(product.rows.value), _element(product.keys.value)}
    return _are_multiplied(types, product.op) and _element(product.op.results[0]) in _SUMS


def _is_sink(sink: Sink) -> bool:
    scores, other = _element(sink.scores), _element(sink.other.value)
    return (scores, other) == ("f32", "bf16") or _are_multiplied({scores, other}, sink.op)


def _are_multiplied(types: set[str], op: ir.Operation) -> bool:
    return len(types) == 1 and (types <= set(_NARROW) or types == {"f32"} and asks_for_tf32(op))


def _element(value: ir.Value) -> str:
    return str(value.type.element_type)
