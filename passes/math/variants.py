"""Functions that have a form of their own for sixteen f32 in a register of AVX-512.

LLVM's vectoriser knows only instructions that do to each lane what a scalar one does. Where a better one
exists, scalar code calls a function whose attribute `vector-function-abi-variant` names another that
takes vectors; both are inlined once loops are vectorised (`backends.llvm_codegen`).
Source of the attribute: LLVM Language Reference, "Vector Function ABI variants".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.intrinsics import call_intrinsic
from lamina.passes.math.terms import Kind, Lane, Term, enclosing_module, is_named

LANES = 16
_VARIANTS = "vector-function-abi-variant"

Formula = Callable[..., Term]


def call_variant(name: str, scalar: Formula, vector: Formula, *operands: Term) -> Term:
    """What `scalar` makes of the operands, a float, in loops by `vector`; both give the same.

    `vector` is used for vectors of `LANES`, and `scalar` for those of any other length.
    """
    lane = operands[0].lane
    if lane.shape is not None:
        return (vector if lane.shape == (LANES,) else scalar)(*operands)
    symbol = f"lamina_{name}"
    body = enclosing_module().regions[0].blocks[0]
    if not any(is_named(op, symbol) for op in body.operations):
        with ir.InsertionPoint.at_block_begin(body):
            kinds = [operand.kind for operand in operands]
            lanes = Lane.make(lane.width, (LANES,))
            variant = f"{symbol}_x{LANES}"
            _define(variant, vector, lanes, kinds, [ir.StringAttr.get("alwaysinline")])
            named = variants_of(symbol, {LANES: variant}, len(operands))
            _define(symbol, scalar, lane, kinds, [ir.StringAttr.get("noinline"), named])
    called = ir.Operation.create(
        "func.call",
        [lane.float],
        [operand.value for operand in operands],
        attributes={"callee": ir.FlatSymbolRefAttr.get(symbol)},
    )
    return Term(called.result, lane, "float")


def intrinsic(name: str, result: Lane, *operands: ir.Value) -> Term:
    """A call of one of LLVM's intrinsics that gives floats."""
    return Term(call_intrinsic(name, operands, result.float), result, "float")


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


def variants_of(name: str, variants: dict[int, str], arity: int) -> ir.Attribute:
    """The attribute that names the functions that do for vectors, by lanes, what this one does."""
    mangled = [f"_ZGV_LLVM_N{n}{'v' * arity}_{name}({variant})" for n, variant in variants.items()]
    return ir.ArrayAttr.get([ir.StringAttr.get(_VARIANTS), ir.StringAttr.get(",".join(mangled))])


def _define(
    symbol: str, formula: Formula, lane: Lane, kinds: Sequence[Kind], passthrough: list[ir.Attribute]
) -> None:
    types = [lane.type_of(kind) for kind in kinds]
    arguments, function = define(symbol, types, lane.float, passthrough)
    with ir.InsertionPoint(function.regions[0].blocks[0]):
        terms = (Term(value, lane, kind) for value, kind in zip(arguments, kinds, strict=True))
        ir.Operation.create("func.return", operands=[formula(*terms).value])
