"""Builders of control flow, calls and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.builders.creation import Body, Value, add_block, create, fill, i64
from lamina.dialects.vendors import ir


def while_(inits: Sequence[Value], cond: Body, body: Body) -> list[Value]:
    """body applied to the carried values while cond of them holds."""
    carried = [x.type for x in inits]
    op = create("stablehlo.while", results=carried, operands=list(inits), regions=2)
    fill(op.regions[0], carried, cond)
    fill(op.regions[1], carried, body)
    return list(op.results)


def case(index: Value, branches: Sequence[Body], result_types: Sequence[ir.Type]) -> list[Value]:
    """What branch number index gives; out of range is the last branch. Branches take nothing."""
    op = create(
        "stablehlo.case", results=list(result_types), operands=[index], regions=len(branches)
    )
    for region, branch in zip(op.regions, branches, strict=True):
        fill(region, [], branch)
    return list(op.results)


def if_(
    predicate: Value, then: Body, else_: Body, result_types: Sequence[ir.Type] | None = None
) -> list[Value]:
    """What then() or else_() gives; result types are read from then's values if not given."""
    if result_types is None:
        result_types = _types_of(then)
    op = create("stablehlo.if", results=list(result_types), operands=[predicate], regions=2)
    fill(op.regions[0], [], then)
    fill(op.regions[1], [], else_)
    return list(op.results)


def composite(
    name: str,
    operands: Sequence[Value],
    result_types: Sequence[ir.Type],
    *,
    decomposition: str,
    functions: Mapping[str, str],
    integers: Mapping[str, int],
    lists: Mapping[str, Sequence[int]],
) -> list[Value]:
    """An operation of a name of its own, which a function of the module spells out; its attributes
    are names of functions, integers and lists of integers."""
    attributes: dict[str, ir.Attribute] = {
        **{key: ir.FlatSymbolRefAttr.get(value) for key, value in functions.items()},
        **{key: i64(value) for key, value in integers.items()},
        **{key: ir.DenseI64ArrayAttr.get(list(values)) for key, values in lists.items()},
    }
    op = create(
        "stablehlo.composite",
        results=list(result_types),
        operands=list(operands),
        attributes={
            "name": ir.StringAttr.get(name),
            "decomposition": ir.FlatSymbolRefAttr.get(decomposition),
            "composite_attributes": ir.DictAttr.get(attributes),
        },
    )
    return list(op.results)


def _types_of(branch: Body) -> list[ir.Type]:
    scratch = create("stablehlo.if", operands=[], regions=1)
    fill(scratch.regions[0], [], branch)
    types = [x.type for x in scratch.regions[0].blocks[0].operations[-1].operands]
    scratch.erase()
    return types


def call(callee: str, operands: Sequence[Value], result_types: Sequence[ir.Type]) -> list[Value]:
    """The results of a function of this module."""
    op = create(
        "func.call",
        results=list(result_types),
        operands=list(operands),
        attributes={"callee": ir.FlatSymbolRefAttr.get(callee)},
    )
    return list(op.results)


def function(
    name: str,
    arg_types: Sequence[ir.Type],
    result_types: Sequence[ir.Type],
    visibility: str = "public",
) -> tuple[ir.Operation, ir.Block]:
    """A `func.func` at the insertion point, with its empty entry block."""
    op = create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get(list(arg_types), list(result_types))
            ),
            "sym_visibility": ir.StringAttr.get(visibility),
        },
        regions=1,
    )
    return op.operation, add_block(op.regions[0], arg_types)
