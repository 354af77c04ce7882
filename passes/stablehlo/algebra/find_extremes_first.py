"""Find along rows the largest element first, then where it is: each is a loop over vectors.

    (_, %where) = reduce(%x, iota)             %most = reduce max (%x)
      { the larger, or the earlier of    ->    %found = %x == %most or %x != %x
        equals, with its index }               %where = reduce min (select %found, iota, greatest)

and the same for the smallest. What a reduction picks is asked by trying it: its body compares and
selects only, so that it can tell no more of two elements than which is less, equal or no number. Of
several that are no numbers it may pick any; the first is found. Leaves alone reductions along other
dimensions than the last, which go by columns, over vectors already, those of indices that are
more than positions, and those of floats that are computed on the way: they are computed in both loops,
and need not be rounded alike, by which none would be found again.

Rows that no cache holds are done in chunks, of whose extremes the reduction picks: memory is walked once.

example: test/passes/stablehlo/algebra/find_extremes_first.mlir
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.framework.base import Pass
from lamina.passes.framework.extremes import FLOATS, picks
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.chunks import Chunks
from lamina.passes.stablehlo.analysis.facts import defining, ints, made_by, splat_of

_LONG_ROW = REFERENCE.l2_bytes // 4  # bytes, which are no longer in cache when they are read again
_NUMBERS = {"b": (0, 1), "i": (0, 1, 2), "u": (0, 1, 2)}
_FLOAT_TYPES = ("bfloat16", "float16", "float32", "float64")
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "stablehlo.and": np.logical_and, "stablehlo.or": np.logical_or, "stablehlo.not": np.logical_not,
    "stablehlo.select": np.where,
}  # fmt: skip


class FindExtremesFirst(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.reduce",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.reduce"):
            if not _is_along_rows(op) or not _is_same_twice(op.operands[0]):
                continue
            for largest in (True, False):
                if _starts_neutral(op, largest) and _picks(op, largest):
                    with ir.InsertionPoint(op), op.location:
                        most, where = _found(op, largest)
                    op.results[0].replace_all_uses_with(most)
                    op.results[1].replace_all_uses_with(where)
                    op.erase()
                    self.count("reductions")
                    break


def _is_along_rows(op: ir.Operation) -> bool:
    """Whether a reduction takes numbers and their positions along the last dimension."""
    if len(op.results) != 2:
        return False
    values, positions = op.operands[0], op.operands[1]
    shape = shape_of(values.type)
    iota = made_by(positions, "stablehlo.iota")
    last = len(shape) - 1
    dtype = dtype_of(values.type)
    return (
        iota is not None
        and ints(op, "dimensions") == [last]
        and ir.IntegerAttr(iota.attributes["iota_dimension"]).value == last
        and 0 < shape[last] <= np.iinfo(dtype_of(positions.type)).max
        and (dtype.kind in "biu" or dtype.name in _FLOAT_TYPES)
        and [value.type.element_type for value in op.results]
        == [value.type.element_type for value in (values, positions)]
    )


def _is_same_twice(value: ir.Value) -> bool:
    """Whether each computation of a value gives the same bits: it is read, moved, chosen or counted, or
    one operation is rounded, which nothing can be contracted with. Matrix products are done once."""
    work, seen = [(value, True)], set()
    while work:
        at, may_round = work.pop()
        op = defining(at)
        if op is None or (at, may_round) in seen:
            continue
        seen.add((at, may_round))
        if op.name in _STORED and len(op.results[0].type.shape) > 1:
            continue
        if dtype_of(at.type).kind not in "biu" and op.name not in _EXACT:
            if op.name not in _ROUNDED or not may_round:
                return False
            may_round = False
        work += [(operand, may_round) for operand in op.operands]
    return True


_STORED = ("stablehlo.dot_general", "stablehlo.convolution")
_EXACT = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs bitcast_convert broadcast_in_dim clamp concatenate constant convert dynamic_slice gather imag"
        " iota maximum minimum negate pad real reshape reverse select slice transpose"
    ).split()
)
_ROUNDED = frozenset(f"stablehlo.{name}" for name in ("add", "divide", "multiply", "subtract"))


def _starts_neutral(op: ir.Operation, largest: bool) -> bool:
    """Whether a reduction begins with what no element loses against, at the first position."""
    value, position = (splat_of(init) for init in list(op.operands)[2:])
    return (
        value is not None and position is not None and position == 0
        and value == _worst(dtype_of(op.operands[0].type), largest)
    )  # fmt: skip


def _worst(dtype: np.dtype, largest: bool) -> Any:
    if dtype == np.bool_:
        return not largest
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if largest else limits.max
    return -np.inf if largest else np.inf


def _picks(op: ir.Operation, largest: bool) -> bool:
    """Whether a body, of any two elements at different positions, picks the right one."""
    numbers = _NUMBERS.get(dtype_of(op.operands[0].type).kind, FLOATS)
    block = op.regions[0].blocks[0]
    return picks(lambda *given: _tried(block, dict(zip(block.arguments, given, strict=True))), numbers, largest)


def _tried(block: ir.Block, known: dict[ir.Value, Any]) -> list[Any] | None:
    """What a body gives for arrays of arguments; None for one that does more than compare and select."""
    for view in block.operations:
        op = view.operation
        if not all(value in known for value in op.operands):
            return None
        operands = [known[value] for value in op.operands]
        if op.name == "stablehlo.return":
            return operands
        if op.name == "stablehlo.compare":
            if "TOTALORDER" in str(op.attributes):
                return None
            direction = stablehlo_ext.ComparisonDirectionAttr(op.attributes["comparison_direction"])
            known[op.result] = _COMPARISONS[direction.value](*operands)
        elif op.name in _LOGIC:
            known[op.result] = _LOGIC[op.name](*operands)
        else:
            return None
    return None


def _found(op: ir.Operation, largest: bool) -> tuple[ir.Value, ir.Value]:
    """The extremes of rows and where they are: of long rows first those of chunks, of which the body picks."""
    values, positions, *inits = op.operands
    *rows, row = shape_of(values.type)
    chunks = Chunks.of_rows(values, row) if row * dtype_of(values.type).itemsize > _LONG_ROW else None
    if chunks is None:
        return _two_reductions(values, positions, inits[0], largest)
    dtype, shape = dtype_of(positions.type), shape_of(chunks.view.type)
    places = hlo.iota(shape, dtype, len(shape) - 1)
    most, where = _two_reductions(chunks.view, places, inits[0], largest)
    starts = hlo.iota(shape[:-1], dtype, len(rows))
    starts = hlo.multiply(starts, hlo.full(chunks.length, shape[:-1], dtype))
    again = op.clone().operation
    picks = ir.Operation.create(
        op.name, [value.type for value in op.results], [most, hlo.add(where, starts), *inits],
        {"dimensions": ir.DenseI64ArrayAttr.get([len(rows)])}, regions=1,
    )  # fmt: skip
    again.regions[0].blocks[0].append_to(picks.regions[0])
    again.erase()
    return picks.results[0], picks.results[1]


def _two_reductions(
    values: ir.Value, positions: ir.Value, start: ir.Value, largest: bool
) -> tuple[ir.Value, ir.Value]:
    shape, dtype, of = shape_of(values.type), dtype_of(positions.type), dtype_of(values.type)
    dimension = len(shape) - 1
    if of == np.bool_:  # bits have no vectors to compare
        values, start = (hlo.convert(value, np.uint8) for value in (values, start))
    better = hlo.maximum if largest else hlo.minimum
    [most] = hlo.reduce([values], [start], [dimension], lambda a, b: [better(a, b)])
    spread = hlo.broadcast_in_dim(most, shape, list(range(dimension)))
    found = hlo.compare(values, spread, "EQ")
    if of.kind not in "biu":
        found = hlo.or_(found, hlo.compare(values, values, "NE"))
    beyond = np.iinfo(dtype).max
    place = hlo.select(found, positions, hlo.full(beyond, shape, dtype))
    none = hlo.full(beyond, (), dtype)
    [where] = hlo.reduce([place], [none], [dimension], lambda a, b: [hlo.minimum(a, b)])
    return (hlo.convert(most, of) if of == np.bool_ else most), where
