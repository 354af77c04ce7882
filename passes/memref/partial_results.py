"""Partial results: a loop that combines one value after the other waits for each; several copies of its body side
by side have results of their own, which are combined at the end.

    s = for i = 0 to n carry (t = a) {              s:2 = for i = 0 to n step 2 carry (t = a, u = 0) {
      yield t + x[i]                        ->        yield t + x[i], u + x[i + 1]
    }                                               }
                                                    s = s#0 + s#1
"""

from __future__ import annotations

from lamina.dialects.vendors import arith, ir, scf
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import add, constant_of, index
from lamina.passes.memref.plain_loop import Step, combiners_of, trips_of

_COPIES, _RESULTS = 4, 8  # rounding: of a body, and of what all carry
_WORTH = 4  # rounding: iterations of a copy


def in_partial_results(loop: ir.Operation) -> None:
    """Let an innermost loop in steps of one have partial results of the vectors that it carries, where it may
    combine them in any order."""
    trips, low = trips_of(loop), constant_of(loop.operands[0])
    variable, *carried = loop.regions[0].blocks[0].arguments
    *body, end = [view.operation for view in loop.regions[0].blocks[0].operations]
    are_vectors = all(isinstance(value.type, ir.VectorType) for value in carried)
    combiners = combiners_of(loop, [Step(op) for op in body], Step(end)) if are_vectors else None
    copies = min(_COPIES, _RESULTS // max(1, len(carried)))
    if not carried or combiners is None or trips is None or low is None or copies < 2:
        return
    if trips < _WORTH * copies or constant_of(loop.operands[2]) != 1:
        return
    whole = low + trips // copies * copies

    def iteration(at: ir.Value, held: list[ir.Value]) -> list[ir.Value]:
        known = dict(zip((variable, *carried), (at, *held), strict=True))
        for op in body:
            copied(op, known)
        return [known[value] for value in end.operands]

    with ir.InsertionPoint(loop), loop.location:
        neutral = [identity_of(step.name, step.results[0].type) for step in combiners]
        start = list(loop.operands)[3:]
        made = scf.ForOp(loop.operands[0], index(whole), index(copies), [*start, *neutral * (copies - 1)])
        with ir.InsertionPoint(made.body):
            held = list(made.inner_iter_args)
            width, new = len(carried), []
            for number in range(copies):
                at = made.induction_variable
                at = add(at, index(number)) if number else at
                new += iteration(at, held[number * width : (number + 1) * width])
            scf.YieldOp(new)
        results = list(made.results)
        totals = [
            all_combined(step, results[number::width]) for number, step in enumerate(combiners)
        ]
        for at in range(whole, low + trips):
            totals = iteration(index(at), totals)
    for old, total in zip(loop.results, totals, strict=True):
        old.replace_all_uses_with(total)
    loop.erase()


def all_combined(step: Step, values: list[ir.Value]) -> ir.Value:
    """What a combiner makes of several values, in pairs, which wait for each other the least."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(combined(step, *pair) for pair in pairs), *values[len(values) & ~1 :]]
    return values[0]


def combined(step: Step, one: ir.Value, other: ir.Value) -> ir.Value:
    """What a combiner makes of two values."""
    return ir.Operation.create(step.name, [one.type], [one, other], step.attributes).result


def identity_of(name: str, type_: ir.Type) -> ir.Value:
    """A vector of what changes nothing where an op of this name combines it with something else."""
    element = ir.VectorType(type_).element_type
    if isinstance(element, ir.FloatType):
        numbers = {"arith.addf": -0.0, "arith.mulf": 1.0, "arith.maximumf": -float("inf")}
        return arith.ConstantOp(type_, splat(type_, numbers.get(name, float("inf")))).result
    ones = {"arith.andi": -1, "arith.minui": -1, "arith.muli": 1}
    width = ir.IntegerType(element).width
    most = (1 << (width - 1)) - 1
    limits = {"arith.maxsi": -most - 1, "arith.minsi": most}
    return arith.ConstantOp(type_, splat(type_, (ones | limits).get(name, 0))).result


def splat(type_: ir.Type, number: float) -> ir.Attribute:
    """The same number in all lanes."""
    element = ir.VectorType(type_).element_type
    if isinstance(element, ir.FloatType):
        return ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, float(number)))
    return ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, int(number)))
