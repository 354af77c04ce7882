"""Copies of a contraction's factors: where columns are contiguous, in the result's type."""

from __future__ import annotations

from dataclasses import replace

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.kernels.cpu.gemm.contraction import Contraction, is_narrow
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import coefficient, make_generic


def laid_out(contraction: Contraction) -> Contraction:
    """The contraction with its second factor where the columns are contiguous, and both in the
    result's type."""
    op, a, b = contraction.generic.op, contraction.a, contraction.b
    if contraction.packs:
        with ir.InsertionPoint(_outermost(op, b.buffer)), op.location:
            contraction = _packed(contraction)
    elif is_narrow(b, contraction):
        contraction = replace(contraction, b=_widened(b, contraction))
    if is_narrow(a, contraction):
        contraction = replace(contraction, a=_widened(a, contraction))
    return contraction


def _outermost(op: ir.Operation, value: ir.Value) -> ir.Operation:
    """The op farthest out around this one, or itself, in front of which a value is known."""
    known = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    while op.block != known and op.parent.name != "func.func":
        op = op.parent
    return op


def _widened(factor: Factor, contraction: Contraction) -> Factor:
    """A copy of a factor in the result's type."""
    op = contraction.generic.op
    shape = ir.MemRefType(factor.buffer.type).shape
    identity = ir.AffineMap.get_identity(len(shape))
    with ir.InsertionPoint(_outermost(op, factor.buffer)), op.location:
        buffer = memref.AllocOp(ir.MemRefType.get(shape, contraction.element), [], []).result
        copy_elements(factor.buffer, buffer, identity)
    return Factor(buffer, factor.map)


def copy_elements(source: ir.Value, target: ir.Value, map_: ir.AffineMap) -> None:
    """Write each element of a buffer from that of another where `map_` says, widened if need be."""
    rank = map_.n_dims
    copy = make_generic(
        [source], [target], [map_, ir.AffineMap.get_identity(rank)], [False] * rank
    )
    types = [ir.MemRefType(value.type).element_type for value in (source, target)]
    block = copy.regions[0].blocks.append(*types)
    with ir.InsertionPoint(block):
        value = block.arguments[0]
        if types[0] != types[1]:
            value = arith.ExtFOp(types[1], value).result
        ir.Operation.create("linalg.yield", operands=[value])


def _packed(contraction: Contraction) -> Contraction:
    """The contraction with its second factor copied to where its columns are contiguous."""
    generic, b = contraction.generic, contraction.b
    used = [
        d
        for d in (*contraction.around, *contraction.reduced)
        if any(coefficient(expression, d) for expression in b.map.results)
    ]
    order = [*used, contraction.column]
    shape = [generic.extents[d] for d in order]
    buffer = memref.AllocOp(ir.MemRefType.get(shape, contraction.element), [], []).result
    rank = len(order)
    places = {d: ir.AffineDimExpr.get(place) for place, d in enumerate(order)}
    # Of the contraction's dimensions, those that the factor does not use may be anything.
    unused = ir.AffineConstantExpr.get(0)
    renaming = ir.AffineMap.get(rank, 0, [places.get(d, unused) for d in range(generic.rank)])
    source = ir.AffineMap.get(rank, 0, [e.compose(renaming) for e in b.map.results])
    copy_elements(b.buffer, buffer, source)
    map_ = ir.AffineMap.get(generic.rank, 0, [ir.AffineDimExpr.get(d) for d in order])
    return replace(contraction, b=Factor(buffer, map_), packs=False)
