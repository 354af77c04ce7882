"""Functions with a short formula for almost all arguments and a long one for those far away.

Vector code computes what is selected from: both. So the long one is a call that loops are vectorised
with: `vector-function-abi-variant` names functions that take vectors and which lanes are wanted. They
are inlined afterwards (`backends.llvm_codegen`) and jump over their work where no lane is.
Source of the attribute: LLVM Language Reference, "Vector Function ABI variants".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.math.terms import Lane, Term

Formula = Callable[[Term], Term]


@dataclass(frozen=True)
class NearAndFar:
    """A function of one f32: `near` where |x| < `limit`, `far` everywhere; the same bits near."""

    near: Formula
    far: Formula
    limit: float


def define_near_and_far(name: str, type_: ir.Type, function: NearAndFar, vector_bits: int) -> None:
    """Functions of that name, its far part and the variants of that, at the insertion point."""
    far = f"{name}_far"
    inline = ir.StringAttr.get("alwaysinline")
    attributes: list[ir.Attribute] = [ir.StringAttr.get("noinline")]
    if not isinstance(type_, ir.VectorType):
        width = Lane.of(type_).width
        lanes = [vector_bits // width, vector_bits // width // 2]
        variants = [f"_ZGV_LLVM_M{n}v_{far}({far}_x{n})" for n in lanes]
        attributes.append(_pair("vector-function-abi-variant", ",".join(variants)))
        for n in lanes:
            _define_variant(f"{far}_x{n}", ir.VectorType.get([n], type_), function.far, inline)
    [x], function_op = define(far, [type_], type_, attributes)
    with ir.InsertionPoint(function_op.regions[0].blocks[0]):
        _return(function.far(Term.of(x)).value)

    [x], function_op = define(name, [type_], type_, [inline])
    entry = function_op.regions[0].blocks[0]
    away = entry.create_after()
    end = ir.Block.create_after(away, type_)
    with ir.InsertionPoint(entry):
        term = Term.of(x)
        result = function.near(term)
        is_far = term.magnitude() >= function.limit
        _branch(_any(is_far), away, end, result.value)
    with ir.InsertionPoint(away):
        callee = {"callee": ir.FlatSymbolRefAttr.get(far)}
        called = ir.Operation.create("func.call", [type_], [x], attributes=callee).result
        chosen = is_far.select(Term.of(called), result).value if is_far.lane.shape else called
        ir.Operation.create("cf.br", operands=[chosen], successors=[end])
    with ir.InsertionPoint(end):
        _return(end.arguments[0])


def define(
    name: str, types: list[ir.Type], result: ir.Type, passthrough: list[ir.Attribute]
) -> tuple[list[ir.Value], ir.Operation]:
    """An internal function without a body, at the insertion point; its arguments, and itself."""
    signature = ir.FunctionType.get(types, [result])
    function = ir.Operation.create(
        "func.func",
        regions=1,
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(signature),
            "llvm.linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "llvm.passthrough": ir.ArrayAttr.get(passthrough),
        },
    )
    block = ir.Block.create_at_start(function.regions[0], signature.inputs)
    return list(block.arguments), function


def _define_variant(name: str, type_: ir.Type, far: Formula, inline: ir.Attribute) -> None:
    lane = Lane.of(type_)
    [x, wanted], function = define(name, [type_, lane.bool], type_, [inline])
    entry = function.regions[0].blocks[0]
    work = entry.create_after()
    end = ir.Block.create_after(work, type_)
    with ir.InsertionPoint(entry):
        _branch(_any(Term(wanted, lane, "bool")), work, end, x)
    with ir.InsertionPoint(work):
        ir.Operation.create("cf.br", operands=[far(Term.of(x)).value], successors=[end])
    with ir.InsertionPoint(end):
        _return(end.arguments[0])


def _any(truth: Term) -> ir.Value:
    if truth.lane.shape is None:
        return truth.value
    bit = ir.IntegerType.get_signless(1)
    return ir.Operation.create("llvm.intr.vector.reduce.or", [bit], [truth.value]).result


def _branch(condition: ir.Value, then: ir.Block, other: ir.Block, passed: ir.Value) -> None:
    sizes = ir.DenseI32ArrayAttr.get([1, 0, 1])
    ir.Operation.create(
        "cf.cond_br",
        operands=[condition, passed],
        successors=[then, other],
        attributes={"operandSegmentSizes": sizes},
    )


def _return(value: ir.Value) -> None:
    ir.Operation.create("func.return", operands=[value])


def _pair(key: str, value: str) -> ir.Attribute:
    return ir.ArrayAttr.get([ir.StringAttr.get(key), ir.StringAttr.get(value)])
