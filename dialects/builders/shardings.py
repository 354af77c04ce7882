"""Builders of Shardy's ops and attributes, as ops of a dialect that the wheel is without.

Programs with them are written as text, which the process that partitions programs reads. They
live in a context that allows unregistered dialects.

An axis is named; a dimension is the axes that it is split over, and whether it may be split further.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence

from lamina.dialects.builders.creation import Body, Value, add_block, create
from lamina.dialects.vendors import ir

Dimension = tuple[Sequence[str], bool]
Terms = tuple[Sequence[str], str]
"""Axes along which each device has a term of an array, and what combines terms: sum, max or min."""
_NO_TERMS: Terms = ((), "sum")


@contextlib.contextmanager
def allowed(context: ir.Context) -> Iterator[None]:
    """Within it, the context takes Shardy's ops."""
    before = context.allow_unregistered_dialects
    context.allow_unregistered_dialects = True
    try:
        yield
    finally:
        context.allow_unregistered_dialects = before


def mesh(symbol: str, axes: Sequence[tuple[str, int]]) -> None:
    """A mesh with a name, of all devices in their order."""
    shown = ", ".join(f"{json.dumps(name)}={size}" for name, size in axes)
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "mesh": ir.Attribute.parse(f"#sdy.mesh<[{shown}]>"),
    }
    create("sdy.mesh", attributes=attributes)


def sharding(
    symbol: str, dimensions: Sequence[Dimension], terms: Terms = _NO_TERMS
) -> ir.Attribute:
    """How an array lies on a mesh."""
    return ir.Attribute.parse(f"#sdy.sharding<{_shown(symbol, dimensions, terms)}>")


def _shown(symbol: str, dimensions: Sequence[Dimension], terms: Terms) -> str:
    shown = (
        "{" + ", ".join([*map(json.dumps, axes), *(["?"] if is_open else [])]) + "}"
        for axes, is_open in dimensions
    )
    axes, combiner = terms
    kind = "" if combiner == "sum" else combiner
    unreduced = f", unreduced={kind}{{{', '.join(map(json.dumps, axes))}}}" if axes else ""
    return f"@{symbol}, [{', '.join(shown)}]{unreduced}"


def _per_value(symbol: str, shardings: Sequence[tuple[Sequence[Dimension], Terms]]) -> ir.Attribute:
    shown = ", ".join(f"<{_shown(symbol, *one)}>" for one in shardings)
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{shown}]>")


def sharding_constraint(x: Value, how: ir.Attribute) -> Value:
    """x, which is to lie so."""
    return create(
        "sdy.sharding_constraint", results=[x.type], operands=[x], attributes={"sharding": how}
    ).result


def sharding_group(x: Value, number: int) -> None:
    """x is to lie as all others of the group with this number."""
    of = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    create("sdy.sharding_group", operands=[x], attributes={"group_id": of})


def manual_computation(
    symbol: str,
    manual: Sequence[str],
    operands: Sequence[Value],
    operand_shardings: Sequence[tuple[Sequence[Dimension], Terms]],
    blocks: Sequence[ir.Type],
    results: Sequence[ir.Type],
    result_shardings: Sequence[tuple[Sequence[Dimension], Terms]],
    body: Body,
) -> list[Value]:
    """The body on each device's blocks of the operands along the manual axes; its results are blocks.

    blocks   the types of the body's arguments.
    results  the types of the whole results.
    """
    axes = ", ".join(map(json.dumps, manual))
    op = create(
        "sdy.manual_computation",
        results=list(results),
        operands=list(operands),
        attributes={
            "in_shardings": _per_value(symbol, operand_shardings),
            "out_shardings": _per_value(symbol, result_shardings),
            "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{axes}}}>"),
        },
        regions=1,
    )
    block = add_block(op.regions[0], blocks)
    with ir.InsertionPoint(block):
        create("sdy.return", operands=list(body(*block.arguments)))
    return list(op.results)
