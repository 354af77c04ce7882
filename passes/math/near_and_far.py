"""Functions with a short formula for almost all arguments and a long one for those far away.

Vector code computes what is selected from: both. So what mends the short one's results is a function
with variants for vectors, which jump over their work where no lane is far away.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import ir
from lamina.passes.math.terms import Lane, Term
from lamina.passes.math.variants import define, variants_of
from lamina.passes.records import Record

Formula = Callable[[Term], Term]


class NearAndFar(Record):
    """A function of one f32: `near` where |x| < `limit`, `far` everywhere; the same bits near."""

    near: Formula
    far: Formula
    limit: float

    def is_far(self, x: ir.Value) -> Term:
        return Term.of(x).magnitude() >= self.limit


def define_near_and_far(name: str, type_: ir.Type, function: NearAndFar, vector_bits: int) -> None:
    """A function of that name and those that mend its results, at the insertion point."""
    inline = ir.StringAttr.get("alwaysinline")
    mend = f"{name}_mend"
    if isinstance(type_, ir.VectorType):
        _define_mend_of_vectors(mend, type_, function, inline)
    else:
        width = Lane.of(type_).width
        variants = {n: f"{mend}_x{n}" for n in (vector_bits // width, vector_bits // width // 2)}
        for n, variant in variants.items():
            _define_mend_of_vectors(variant, ir.VectorType.get([n], type_), function, inline)
        _define_mend(mend, f"{name}_far", type_, function, variants)
    [x], function_op = define(name, [type_], type_, [inline])
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        near = function.near(Term.of(x))
        _return(_call(mend, type_, [x, near.value]))


def _define_mend(
    name: str, far: str, type_: ir.Type, function: NearAndFar, variants: dict[int, str]
) -> None:
    noinline = ir.StringAttr.get("noinline")
    [x], function_op = define(far, [type_], type_, [noinline])
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        _return(function.far(Term.of(x)).value)
    [x, near], function_op = define(name, [type_, type_], type_, [noinline, variants_of(name, variants, 2)])
    entry = function_op.regions[0].blocks[0]
    away = entry.create_after()
    end = ir.Block.create_after(away, type_)
    with ir.InsertionPoint(entry):
        _branch(function.is_far(x).value, away, end, near)
    with ir.InsertionPoint(away):
        ir.Operation.create("cf.br", operands=[_call(far, type_, [x])], successors=[end])
    with ir.InsertionPoint(end):
        _return(end.arguments[0])


def _define_mend_of_vectors(
    name: str, type_: ir.Type, function: NearAndFar, inline: ir.Attribute
) -> None:
    [x, near], function_op = define(name, [type_, type_], type_, [inline])
    entry = function_op.regions[0].blocks[0]
    away = entry.create_after()
    end = ir.Block.create_after(away, type_)
    with ir.InsertionPoint(entry):
        is_far = function.is_far(x)
        bit = ir.IntegerType.get_signless(1)
        any_ = ir.Operation.create("llvm.intr.vector.reduce.or", [bit], [is_far.value]).result
        _branch(any_, away, end, near)
    with ir.InsertionPoint(away):
        mended = is_far.select(function.far(Term.of(x)), Term.of(near))
        ir.Operation.create("cf.br", operands=[mended.value], successors=[end])
    with ir.InsertionPoint(end):
        _return(end.arguments[0])


def _branch(condition: ir.Value, then: ir.Block, other: ir.Block, passed: ir.Value) -> None:
    """To `then`, which is rare: LLVM must take nothing of it out of a loop into registers."""
    sizes = ir.DenseI32ArrayAttr.get([1, 0, 1])
    ir.Operation.create(
        "cf.cond_br",
        operands=[condition, passed],
        successors=[then, other],
        attributes={
            "operandSegmentSizes": sizes,
            "branch_weights": ir.DenseI32ArrayAttr.get([1, 2000]),
        },
    )


def _return(value: ir.Value) -> None:
    ir.Operation.create("func.return", operands=[value])


def _call(name: str, type_: ir.Type, operands: list[ir.Value]) -> ir.Value:
    callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
    return ir.Operation.create("func.call", [type_], operands, attributes=callee).result
