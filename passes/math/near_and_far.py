"""Functions with a short formula for almost all arguments and a long one for those far away.

Vector code computes what is selected from: both. So what mends the short one's results is a function
with variants for vectors, which jump over their work where no lane is far away. Where the long one is very long,
it is there once, for the longest vectors, and all others call it.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.dialects.vendors import ir, vector
from lamina.passes.math.terms import Lane, Term
from lamina.passes.math.variants import define, variants_of
from lamina.records import Record

Formula = Callable[[Term], Term]


class NearAndFar(Record):
    """A function of one float: `near` where |x| < `limit`, `far` everywhere."""

    near: Formula
    far: Formula
    limit: float
    far_is_long: bool = False
    """Whether `far` is too long to be in each place that may need it."""

    def is_far(self, x: ir.Value) -> Term:
        return Term.of(x).magnitude() >= self.limit


def define_near_and_far(name: str, type_: ir.Type, function: NearAndFar, vector_bits: int) -> None:
    """A function of that name and those that mend its results, at the insertion point."""
    mend = f"{name}_mend"
    if isinstance(type_, ir.VectorType):
        _define_mend_of_vectors(mend, type_, function, _define_far(f"{name}_far", type_, function))
    else:
        _define_mends(name, type_, function, vector_bits)
    [x], function_op = define(name, [type_], type_, [ir.StringAttr.get("alwaysinline")])
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        near = function.near(Term.of(x))
        _return(_call(mend, type_, [x, near.value]))


def _define_mends(name: str, type_: ir.Type, function: NearAndFar, vector_bits: int) -> None:
    """Of scalars, and its variants for vectors."""
    most = vector_bits // Lane.of(type_).width
    wide = ir.VectorType.get([most], type_)
    far = _define_far(f"{name}_far_x{most}", wide, function)
    variants = {n: f"{name}_mend_x{n}" for n in (most, most // 2) if n > 1}
    for n, variant in variants.items():
        _define_mend_of_vectors(variant, ir.VectorType.get([n], type_), function, far)
    noinline = ir.StringAttr.get("noinline")
    [x], function_op = define(f"{name}_far", [type_], type_, [noinline])
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        _return(far(x))
    _define_mend(f"{name}_mend", f"{name}_far", type_, function, variants)


Far = Callable[[ir.Value], ir.Value]


def _define_far(name: str, type_: ir.VectorType, function: NearAndFar) -> Far:
    """What computes `far` of a value of this type, or of fewer elements: a call, where it is long."""
    if not function.far_is_long:
        return lambda x: function.far(Term.of(x)).value
    fast = [ir.StringAttr.get(word) for word in ("noinline", "optnone")]  # to compile
    [x], function_op = define(name, [type_], type_, fast)
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        _return(function.far(Term.of(x)).value)

    def far(x: ir.Value) -> ir.Value:
        if x.type == type_:
            return _call(name, type_, [x])
        if not isinstance(x.type, ir.VectorType):
            return vector.extract(_call(name, type_, [vector.broadcast(type_, x)]), [], [0])
        count = x.type.shape[0]
        filled = [lane % count for lane in range(type_.shape[0])]
        of_all = _call(name, type_, [vector.shuffle(x, x, filled)])
        return vector.shuffle(of_all, of_all, filled[:count])

    return far


def _define_mend(
    name: str, far: str, type_: ir.Type, function: NearAndFar, variants: dict[int, str]
) -> None:
    noinline = ir.StringAttr.get("noinline")
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
    name: str, type_: ir.VectorType, function: NearAndFar, far: Far
) -> None:
    [x, near], function_op = define(name, [type_, type_], type_, [ir.StringAttr.get("alwaysinline")])
    entry = function_op.regions[0].blocks[0]
    away = entry.create_after()
    end = ir.Block.create_after(away, type_)
    with ir.InsertionPoint(entry):
        is_far = function.is_far(x)
        bit = ir.IntegerType.get_signless(1)
        any_ = ir.Operation.create("llvm.intr.vector.reduce.or", [bit], [is_far.value]).result
        _branch(any_, away, end, near)
    with ir.InsertionPoint(away):
        mended = is_far.select(Term.of(far(x)), Term.of(near))
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
