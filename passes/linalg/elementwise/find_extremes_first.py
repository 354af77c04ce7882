"""Find along rows the largest of floats that are computed on the way first, then where it is, from one temporary.

    (_, %where) = generic ins(%x, %y) {             %d     = generic ins(%x, %y) { mulf(%in, %in_0) }
      %v = mulf(%in, %in_0)                   ->    %most  = reduce ins(%d) { maximumf(%out, %in) }
      the larger of (%v, j) and (%out, %at)         %where = reduce ins(%d, %most) {
    }                                                 minsi(%at, %in == %most or %in != %in ? j : greatest) }

A body that compares and selects values with their positions goes element by element; each of these is a loop over
vectors, and `schedule-generics` has the three share the loops around rows, so that of %d one row is kept. Arrays that
are in memory are compared there (`stablehlo-find-extremes-first`, which sees no rounding; here each element is
rounded once). What a body picks is asked by trying it. Leaves alone reductions along several dimensions or another
than the last, those of which no operand has rows along that, and those that begin with a number that wins.

example: test/passes/linalg/elementwise/find_extremes_first.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.dialects.vendors import arith, ir, tensor
from lamina.passes.framework.base import Pass
from lamina.passes.framework.extremes import FLOATS, picks
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_fill_of_input,
    make_generic,
    places_of,
    read_generic,
)
from lamina.records import Record

_OF_FLOATS: tuple[Callable[..., Any] | None, ...] = (
    None, np.equal, np.greater, np.greater_equal, np.less, np.less_equal, None, None,
    None, None, None, None, None, np.not_equal,
)  # fmt: skip
"""What `arith.cmpf` compares by, by its predicate; those that other numbers than NaN never tell apart are left out."""
_OF_INTEGERS: tuple[Callable[..., Any], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "arith.andi": np.logical_and, "arith.ori": np.logical_or, "arith.xori": np.logical_xor, "arith.select": np.where,
}  # fmt: skip


class FindExtremesFirst(Pass):
    """See the module's docstring."""

    only_with = frozenset(("linalg.generic",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "linalg.generic"):
            search = _read(read_generic(op)) if len(op.results) == 2 else None
            if search is not None:
                with ir.InsertionPoint(op), op.location:
                    search.write()
                op.erase()
                self.count("reductions")


class _Search(Record):
    """A generic that finds extremes of rows, the ops that make an element, and what is compared."""

    generic: Generic
    makers: tuple[ir.Operation, ...]
    value: ir.Value
    largest: bool

    def write(self) -> None:
        """Three generics before this one, whose results are those of the last two."""
        generic, rank = self.generic, self.generic.rank
        whole = ir.AffineMap.get_identity(rank)
        row = generic.output_maps[0]
        element, position = (value.type.element_type for value in generic.outputs)
        values = self._values(whole)

        best = make_generic([values], [generic.outputs[0]], [whole, row], generic.reductions, [generic.outputs[0].type])
        block = best.regions[0].blocks.append(element, element)
        with ir.InsertionPoint(block):
            better = arith.MaximumFOp if self.largest else arith.MinimumFOp
            _yield(better(block.arguments[1], block.arguments[0]).result)

        beyond = arith.ConstantOp(position, (1 << (position.width - 1)) - 1).result
        start = _filled(beyond, generic.outputs[1].type)
        where = make_generic(
            [values, best.results[0]], [start], [whole, row, row], generic.reductions, [generic.outputs[1].type]
        )
        block = where.regions[0].blocks.append(element, element, position)
        with ir.InsertionPoint(block):
            at, most, first = block.arguments
            place = _place(rank - 1, position)
            is_most = arith.CmpFOp(arith.CmpFPredicate.OEQ, at, most).result
            is_nan = arith.CmpFOp(arith.CmpFPredicate.UNE, at, at).result
            found = arith.SelectOp(arith.OrIOp(is_most, is_nan).result, place, beyond).result
            _yield(arith.MinSIOp(first, found).result)
        for old, new in zip(generic.op.results, (best, where), strict=True):
            old.replace_all_uses_with(new.results[0])

    def _values(self, whole: ir.AffineMap) -> ir.Value:
        """All that is compared: an operand, or what is made of some."""
        generic, arguments = self.generic, list(self.generic.body.arguments)
        if self.value in arguments and generic.input_maps[arguments.index(self.value)] == whole:
            return generic.inputs[arguments.index(self.value)]
        type_ = ir.RankedTensorType.get(generic.extents, self.value.type)
        empty = tensor.EmptyOp(list(generic.extents), self.value.type).result
        made = make_generic(
            generic.inputs, [empty], [*generic.input_maps, whole], [False] * generic.rank, [type_]
        )
        read = [argument.type for argument in arguments[: len(generic.inputs)]]
        block = made.regions[0].blocks.append(*read, self.value.type)
        known = dict(zip(arguments, block.arguments, strict=False))
        with ir.InsertionPoint(block):
            for op in self.makers:
                copy = op.clone().operation
                for number, operand in enumerate(op.operands):
                    copy.operands[number] = known.get(operand, operand)
                known |= dict(zip(op.results, copy.results, strict=True))
            _yield(known.get(self.value, self.value))
        return made.results[0]


def _read(generic: Generic) -> _Search | None:
    *outer, last = generic.reductions
    rows = list(range(generic.rank - 1))
    if any(outer) or not last or any(places_of(map_) != rows for map_ in generic.output_maps):
        return None
    if not any(_has_rows(map_) for map_ in generic.input_maps):
        return None
    element, position = (value.type.element_type for value in generic.outputs)
    if not isinstance(element, ir.FloatType) or not isinstance(position, ir.IntegerType) or 0 in generic.extents:
        return None
    carried = list(generic.body.arguments[len(generic.inputs) :])
    made, picking, given = _parted(generic.body, carried)
    if len(given) != 2 or generic.extents[-1] >= 1 << (position.width - 1):
        return None
    value, place = sorted(given, key=lambda one: one.type != element)
    if value.type != element or place.type != position or not _is_place(place, generic.rank - 1):
        return None
    compared = (*carried, value, place)

    def body(*given: np.ndarray) -> list[Any] | None:
        return _tried(picking, generic.body, dict(zip(compared, given, strict=True)))

    for largest in (True, False):
        if _begins(generic, largest) and picks(body, FLOATS, largest):
            return _Search(generic, tuple(made), value, largest)
    return None


def _has_rows(map_: ir.AffineMap) -> bool:
    """Whether an operand is not spread over rows, and walked along its last dimension by what goes along these."""
    places = places_of(map_)
    return len(places) >= min(2, map_.n_dims) and places[-1] == map_.n_dims - 1


def _parted(
    body: ir.Block, carried: Sequence[ir.Value]
) -> tuple[list[ir.Operation], list[ir.Operation], list[ir.Value]]:
    """The ops that make an element, those that compare it with what is carried, and what these take of the former."""
    *ops, _ = (view.operation for view in body.operations)
    known, made, picking, given = set(carried), [], [], dict[ir.Value, None]()
    for op in ops:
        if any(operand in known for operand in op.operands):
            picking.append(op)
            known |= set(op.results)
        else:
            made.append(op)
    results = {result for op in made for result in op.results}
    # What compares an element with itself is made of it alone, but is no other number.
    while True:
        given = dict.fromkeys(
            operand for op in picking for operand in op.operands
            if operand not in known and (operand in results or operand in list(body.arguments))
        )  # fmt: skip
        tests = [value for value in given if _is_bool(value) and value in results]
        if not tests:
            return made, picking, list(given)
        for value in tests:
            op = value.owner.operation
            picking.insert(0, op)
            made.remove(op)
            known.add(value)


def _is_bool(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType) and value.type.width == 1


def _is_place(value: ir.Value, dimension: int) -> bool:
    """Whether a value is the number of an element in its row."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is not None and op.name == "arith.index_cast":
        op = None if isinstance(op.operands[0].owner, ir.Block) else op.operands[0].owner.operation
    return op is not None and op.name == "linalg.index" and ir.IntegerAttr(op.attributes["dim"]).value == dimension


def _begins(generic: Generic, largest: bool) -> bool:
    """Whether a reduction begins with what no element loses against, at the first position."""
    value, position = (_splat(output) for output in generic.outputs)
    return value == (-np.inf if largest else np.inf) and position == 0


def _splat(value: ir.Value) -> float | None:
    """The number that a tensor is filled with."""
    if isinstance(value.owner, ir.Block) or not is_fill_of_input(value.owner.operation):
        return None
    return _constant(value.owner.operation.operands[0])


def _constant(value: ir.Value) -> float | None:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    kind = ir.FloatAttr if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr
    return float(kind(attribute).value)


def _tried(ops: Sequence[ir.Operation], body: ir.Block, known: dict[ir.Value, Any]) -> list[Any] | None:
    """What a body yields for arrays of what it compares; None for one that does more than compare and select."""
    for op in ops:
        taken = [known.get(value, _constant(value)) for value in op.operands]
        compare = _comparison(op)
        if compare is None or any(value is None for value in taken):
            return None
        known[op.results[0]] = compare(*taken)
    found = [known.get(value) for value in body.operations[len(body.operations) - 1].operands]
    return None if any(value is None for value in found) else found


def _comparison(op: ir.Operation) -> Callable[..., Any] | None:
    if op.name in _LOGIC:
        return _LOGIC[op.name]
    if op.name not in ("arith.cmpf", "arith.cmpi"):
        return None
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    known = _OF_FLOATS if op.name == "arith.cmpf" else _OF_INTEGERS
    return known[number] if number < len(known) else None


def _place(dimension: int, type_: ir.Type) -> ir.Value:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
    place = ir.Operation.create("linalg.index", [ir.IndexType.get()], attributes={"dim": number}).result
    return arith.IndexCastOp(type_, place).result


def _filled(number: ir.Value, type_: ir.Type) -> ir.Value:
    rank = type_.rank
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    scalar, whole = ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank)
    fill = make_generic([number], [empty], [scalar, whole], [False] * rank, [type_])
    block = fill.regions[0].blocks.append(type_.element_type, type_.element_type)
    with ir.InsertionPoint(block):
        _yield(block.arguments[0])
    return fill.results[0]


def _yield(value: ir.Value) -> None:
    ir.Operation.create("linalg.yield", operands=[value])
