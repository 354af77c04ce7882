"""Rules of `stablehlo-simplify` for ops that only move elements, and for contractions over them."""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import (
    DotNumbers,
    defining,
    has_one_use,
    ints,
    made_by,
    reducer_of,
    splat_of,
)
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.passes.stablehlo.analysis.reassociation import grouped_dimensions
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of


def _same_type(op: ir.Operation) -> ir.Value | None:
    """A reshape, transpose, broadcast, slice or pad that changes nothing."""
    operand = op.operands[0]
    if operand.type != op.result.type:
        return None
    if op.name == "stablehlo.transpose" and not _keeps_order(ints(op, "permutation"), operand.type):
        return None
    if op.name == "stablehlo.broadcast_in_dim":
        dims = ints(op, "broadcast_dimensions")
        if not _keeps_order(dims, operand.type):
            return None
    if op.name == "stablehlo.pad" and (
        any(ints(op, "edge_padding_low")) or any(ints(op, "edge_padding_high"))
    ):
        return None
    return operand


def _keeps_order(dims: list[int], of: ir.Type) -> bool:
    """Whether dimensions longer than 1 stay where they are relative to each other."""
    kept = [d for d, size in zip(dims, of.shape, strict=True) if size != 1]
    return kept == sorted(kept)


# reshape


@needs_operand_of("reshape", "broadcast_in_dim", "iota")
def _reshape(op: ir.Operation) -> ir.Value | None:
    """Two reshapes -> one; of a broadcast scalar -> the scalar broadcast."""
    producer = defining(op.operands[0])
    if producer is None:
        return None
    if producer.name == "stablehlo.reshape":
        return hlo.reshape(producer.operands[0], op.result.type.shape)
    if producer.name == "stablehlo.broadcast_in_dim" and not producer.operands[0].type.shape:
        return hlo.broadcast_in_dim(producer.operands[0], op.result.type.shape, ())
    if producer.name == "stablehlo.iota" and len(producer.result.type.shape) == 1:
        long = [d for d, size in enumerate(op.result.type.shape) if size != 1]
        if len(long) == 1:
            return hlo.iota(op.result.type.shape, dtype_of(op.result.type), long[0])
    return None


# transpose


def _transpose(op: ir.Operation) -> ir.Value | None:
    """Two transposes -> one; of a broadcast -> a broadcast; moving only 1s -> a reshape; of a reshape that does
    the same -> before it; of parts beside each other, each of which only moves its 1s -> those beside each other."""
    operand = op.operands[0]
    permutation = ints(op, "permutation")
    producer = defining(operand)
    if producer is not None and producer.name == "stablehlo.transpose":
        inner = ints(producer, "permutation")
        return hlo.transpose(producer.operands[0], [inner[p] for p in permutation])
    if producer is not None and producer.name == "stablehlo.broadcast_in_dim":
        dims = ints(producer, "broadcast_dimensions")
        place = {source: at for at, source in enumerate(permutation)}
        shape = op.result.type.shape
        return hlo.broadcast_in_dim(producer.operands[0], shape, [place[d] for d in dims])
    if _keeps_order(_inverse(permutation), operand.type):
        return hlo.reshape(operand, op.result.type.shape)
    if producer is not None and producer.name == "stablehlo.dot_general" and has_one_use(operand):
        return _transposed_dot(producer, permutation)
    if producer is not None and producer.name == "stablehlo.concatenate" and has_one_use(operand):
        return _transposed_parts(producer, permutation)
    if producer is not None and producer.name == "stablehlo.reshape":
        return _transposed_before(producer, permutation)
    return None


def _transposed_parts(parts: ir.Operation, permutation: list[int]) -> ir.Value | None:
    """`stack([x, y], 0).T` -> `stack([x, y], 1)`."""
    if not all(_keeps_order(_inverse(permutation), part.type) for part in parts.operands):
        return None
    shapes = [[part.type.shape[d] for d in permutation] for part in parts.operands]
    turned = [hlo.reshape(part, shape) for part, shape in zip(parts.operands, shapes, strict=True)]
    return hlo.concatenate(turned, permutation.index(parts.attributes["dimension"].value))


_TAKE_TRANSPOSES = ("stablehlo.transpose", "stablehlo.gather")


def _transposed_before(reshape: ir.Operation, permutation: list[int]) -> ir.Value | None:
    """Of a reshape that leaves out dimensions of 1 -> that of its operand, reshaped; of one that puts them in, where
    the operand takes the transpose in. (Others stay before it: attention and products read a transpose as the layout
    of their operand.)"""
    source = reshape.operands[0]
    before, after = list(source.type.shape), list(reshape.result.type.shape)
    maker = defining(source)
    if len(before) <= len(after) and (maker is None or maker.name not in _TAKE_TRANSPOSES):
        return None
    long, now = ([d for d, size in enumerate(of) if size != 1] for of in (before, after))
    if [before[d] for d in long] != [after[d] for d in now] or 0 in before:
        return None
    order = iter([long[now.index(d)] for d in permutation if d in now])
    turned = hlo.transpose(source, [next(order) if d in long else d for d in range(len(before))])
    return hlo.reshape(turned, [after[d] for d in permutation])


def _inverse(permutation: list[int]) -> list[int]:
    return [permutation.index(d) for d in range(len(permutation))]


def _transposed_dot(dot: ir.Operation, permutation: list[int]) -> ir.Value | None:
    """The transpose of `a @ b` that brings b's dimensions before a's is `b @ a`."""
    lhs, rhs = dot.operands
    if lhs.type.element_type != rhs.type.element_type:
        return None
    numbers = DotNumbers.of(dot)
    batch = len(numbers.lhs_batch)
    left = len(numbers.lhs_free(len(lhs.type.shape)))
    rank = len(permutation)
    wanted = [*range(batch), *range(batch + left, rank), *range(batch, batch + left)]
    if permutation != wanted:
        return None
    swapped = DotNumbers(
        numbers.rhs_batch, numbers.lhs_batch, numbers.rhs_contracting, numbers.lhs_contracting
    )
    return _dot(dot, rhs, lhs, swapped, [dot.result.type.shape[p] for p in permutation])


# broadcast


def _broadcast(op: ir.Operation) -> ir.Value | None:
    """Of a broadcast or of a reshape that adds 1s -> one; that only adds 1s -> a reshape."""
    operand = op.operands[0]
    dims = ints(op, "broadcast_dimensions")
    shape = op.result.type.shape
    producer = defining(operand)
    if producer is not None and producer.name == "stablehlo.broadcast_in_dim":
        inner = ints(producer, "broadcast_dimensions")
        return hlo.broadcast_in_dim(producer.operands[0], shape, [dims[d] for d in inner])
    if _keeps_order(dims, operand.type) and _count(operand.type) == _count(op.result.type):
        return hlo.reshape(operand, shape)
    if producer is not None and producer.name == "stablehlo.reshape":
        source = producer.operands[0]
        kept = _dropped_ones(source.type.shape, operand.type.shape)
        if kept is not None:
            return hlo.broadcast_in_dim(source, shape, [dims[d] for d in kept])
        spread = made_by(source, "stablehlo.broadcast_in_dim")
        if spread is not None:
            return _broadcast_again(spread, operand.type.shape, shape, dims)
    return None


def _broadcast_again(
    inner: ir.Operation, joined: list[int], shape: list[int], dims: list[int]
) -> ir.Value | None:
    """What is spread, reshaped and spread again, as upsampling along one axis and then another is -> spread
    once, then reshaped; None if the reshape splits dimensions, or the second one repeats what it joins."""
    groups = grouped_dimensions(inner.result.type.shape, joined)
    if groups is None or dims != sorted(dims):
        return None
    wide: list[int] = []
    place: dict[int, int] = {}
    at = 0
    for old, new in groups:
        if len(new) != 1 or (len(old) > 1 and shape[dims[new[0]]] != joined[new[0]]):
            return None
        wide += shape[at : dims[new[0]]]
        for d in old:
            place[d] = len(wide)
            wide.append(inner.result.type.shape[d] if len(old) > 1 else shape[dims[new[0]]])
        at = dims[new[0]] + 1
    wide += shape[at:]
    sources = [place[d] for d in ints(inner, "broadcast_dimensions")]
    return hlo.reshape(hlo.broadcast_in_dim(inner.operands[0], wide, sources), shape)


def _dropped_ones(source: list[int], target: list[int]) -> list[int] | None:
    """Where each dimension of source is in target, if target is source with 1s put in."""
    places = []
    at = 0
    for size in source:
        while at < len(target) and target[at] != size:
            if target[at] != 1:
                return None
            at += 1
        if at == len(target):
            return None
        places.append(at)
        at += 1
    return places if all(size == 1 for size in target[at:]) else None


def _count(of: ir.Type) -> int:
    count = 1
    for size in of.shape:
        count *= size
    return count


# concatenate, reverse, iota


def _concatenate(op: ir.Operation) -> ir.Value | None:
    """Of one -> that one; nested along the same dimension -> flat; empty parts left out."""
    parts = list(op.operands)
    if len(parts) == 1:
        return parts[0]
    dim = op.attributes["dimension"].value
    flat: list[ir.Value] = []
    for part in parts:
        inner = made_by(part, "stablehlo.concatenate")
        if inner is not None and inner.attributes["dimension"].value == dim and has_one_use(part):
            flat += inner.operands
        elif part.type.shape[dim] != 0:
            flat.append(part)
    if not flat or flat == parts:
        return None
    return hlo.concatenate(flat, dim) if len(flat) > 1 else flat[0]


def _reverse(op: ir.Operation) -> ir.Value | None:
    """Along dimensions of size 1 -> not; twice -> not."""
    operand = op.operands[0]
    dims = ints(op, "dimensions")
    shape = operand.type.shape
    inner = made_by(operand, "stablehlo.reverse")
    if inner is not None:
        dims = sorted(set(dims) ^ set(ints(inner, "dimensions")))
        operand = inner.operands[0]
    long = [d for d in dims if shape[d] != 1]
    if inner is None and long == dims and dims:
        return None
    return hlo.reverse(operand, long) if long else operand


def _iota_of_one(op: ir.Operation) -> ir.Value | None:
    """Along a dimension of size 1 -> 0."""
    of = op.result.type
    if of.shape[op.attributes["iota_dimension"].value] != 1:
        return None
    return hlo.full(0, shape_of(of), dtype_of(of))


# contractions and reductions


@needs_operand_of("transpose")
def _dot_of_transpose(op: ir.Operation) -> ir.Value | None:
    """A transposed operand -> its source under other numbers, if a matrix product can read that."""
    numbers = DotNumbers.of(op)
    lhs, rhs = op.operands
    for side, operand in enumerate((lhs, rhs)):
        producer = made_by(operand, "stablehlo.transpose")
        if producer is None:
            continue
        permutation = ints(producer, "permutation")
        free = numbers.rhs_free if side else numbers.lhs_free
        order = [permutation[d] for d in free(len(permutation))]
        if order != sorted(order):
            continue  # the result's dimensions would come in another order
        moved = _with_side_moved(numbers, side, permutation)
        source = producer.operands[0]
        new_lhs, new_rhs = (lhs, source) if side else (source, rhs)
        if Gemm.of_types(new_lhs.type, new_rhs.type, moved) is None:
            continue
        return _dot(op, new_lhs, new_rhs, moved, op.result.type.shape)
    return None


def _with_side_moved(numbers: DotNumbers, side: int, permutation: list[int]) -> DotNumbers:
    def move(dims: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(permutation[d] for d in dims)

    if side:
        return DotNumbers(
            numbers.lhs_batch,
            move(numbers.rhs_batch),
            numbers.lhs_contracting,
            move(numbers.rhs_contracting),
        )
    return DotNumbers(
        move(numbers.lhs_batch),
        numbers.rhs_batch,
        move(numbers.lhs_contracting),
        numbers.rhs_contracting,
    )


def _dot(
    like: ir.Operation, lhs: ir.Value, rhs: ir.Value, numbers: DotNumbers, shape: list[int]
) -> ir.Value:
    attributes = {name: like.attributes[name] for name in like.attributes}
    attributes["dot_dimension_numbers"] = numbers.attribute()
    result = ir.RankedTensorType.get(shape, like.result.type.element_type)
    return ir.Operation.create(
        "stablehlo.dot_general", results=[result], operands=[lhs, rhs], attributes=attributes
    ).result


_NEUTRAL = {"stablehlo.add": 0, "stablehlo.multiply": 1, "stablehlo.or": 0}


@needs_operand_of("constant")
def _reduce_of_ones(op: ir.Operation) -> ir.Value | None:
    """Over dimensions of size 1, or none, from the neutral element -> a reshape."""
    if len(op.results) != 1:
        return None
    operand, init = op.operands
    if any(operand.type.shape[d] != 1 for d in ints(op, "dimensions")):
        return None
    reducer = reducer_of(op)
    splat = splat_of(init)
    if splat is None or operand.type.element_type != op.result.type.element_type:
        return None
    if not _is_neutral_init(reducer, splat):
        return None
    return hlo.reshape(operand, op.result.type.shape)


def _is_neutral_init(reducer: str | None, splat: object) -> bool:
    if reducer in _NEUTRAL:
        return bool(splat == _NEUTRAL[reducer])
    if reducer == "stablehlo.and":
        return bool(splat == ~np.zeros_like(splat))
    dtype = np.asarray(splat).dtype
    is_whole = dtype.kind in "iu"
    least, most = (np.iinfo(dtype).min, np.iinfo(dtype).max) if is_whole else (-np.inf, np.inf)
    if reducer == "stablehlo.maximum":
        return bool(splat == least)
    return reducer == "stablehlo.minimum" and bool(splat == most)


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.reshape": (_same_type, _reshape),
    "stablehlo.transpose": (_same_type, _transpose),
    "stablehlo.broadcast_in_dim": (_same_type, _broadcast),
    "stablehlo.slice": (_same_type,),
    "stablehlo.pad": (_same_type,),
    "stablehlo.concatenate": (_concatenate,),
    "stablehlo.reverse": (_reverse,),
    "stablehlo.iota": (_iota_of_one,),
    "stablehlo.dot_general": (_dot_of_transpose,),
    "stablehlo.reduce": (_reduce_of_ones,),
}
