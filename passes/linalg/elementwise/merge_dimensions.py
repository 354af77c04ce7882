"""Make one dimension of those that all operands walk together.

    r[a, b] = max over c, d of x[a, b, c, d]            r[i] = max over j of x[i, j]
    y[a, b, c, d] = x[a, b, c, d] - r[a, b]      ->     y[i, j] = x[i, j] - r[i]

for x of 8x64x32x32, which is one of 512x1024 then, as are the function's arguments and whatever else has
that shape. Passes that follow look for rows and columns, and their loops are long. Two neighbours become one
if every `linalg.generic` on a tensor that has them walks them by two dimensions of one kind, which stand
side by side wherever it names either. They stay where a body asks how far one is (`linalg.index`), and
where anything else looks at the shape.

For functions of generics on tensors, whose callers give them bare pointers.

example: test/passes/linalg/elementwise/merge_dimensions.mlir
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from math import prod

from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir, tensor
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.structure import places_of, reductions_of

_SAME_SHAPE = frozenset(("linalg.copy", "linalg.fill", "bufferization.materialize_in_destination"))
_EMPTY = "tensor.empty"
_SHAPELESS = frozenset(("linalg.generic", "func.return", _EMPTY))

Pair = tuple[int, int]
Boundary = tuple[ir.Value, int]
"""The place of a tensor in front of one of its dimensions, but the first."""


class MergeDimensions(Pass):
    """See the module's docstring."""

    only_with = frozenset(("linalg.generic",))

    def run(self, module: ir.Module) -> None:
        for view in module.body.operations:
            function = view.operation
            if function.name != "func.func" or len(function.regions[0].blocks) != 1:
                continue
            spaces = [_Space(op) for op in find_ops(function, "linalg.generic")]
            if any(space.pairs() for space in spaces):
                self.count("dimensions", _merge(function, spaces))


class _Space:
    """The dimensions of a generic."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.kinds = reductions_of(op.attributes["iterator_types"])
        self.maps = tuple(part.value for part in op.attributes["indexing_maps"])
        self.asked: list[ir.Operation] = []

    @functools.cached_property
    def tensors(self) -> list[tuple[ir.Value, list[int]]]:
        """Those of several dimensions, and the op's dimension that each of theirs is."""
        places = [places_of(map_) for map_ in self.maps]
        named = list(zip(self.op.operands, places, strict=True))
        made = list(zip(self.op.results, places[len(places) - len(self.op.results) :], strict=True))
        inputs = len(named) - len(made)
        kept = [one for number, one in enumerate(named) if number < inputs or not _is_empty(one[0])]
        return [(value, at) for value, at in (*kept, *made) if len(at) > 1]

    def pairs(self) -> frozenset[Pair]:
        """Dimensions that can be one with the next."""
        asked = {ir.IntegerAttr(op.attributes["dim"]).value for op in self.asked}
        pairs = _pairs(self.maps, self.kinds)
        return frozenset(pair for pair in pairs if not asked.intersection(pair)) if asked else pairs

    def rewrite(self, merged: set[Pair]) -> None:
        """Walk the dimensions of such pairs as one."""
        gone = {second for _, second in merged}
        kept = [d for d in range(len(self.kinds)) if d not in gone]
        number = {d: n for n, d in enumerate(kept)}
        # A second one stands for itself nowhere, but renumbering names all.
        now = [ir.AffineDimExpr.get(number.get(d, 0)) for d in range(len(self.kinds))]
        renumbered = ir.AffineMap.get(len(kept), 0, now)
        maps = []
        for map_ in self.maps:
            left = [e for e, d in zip(map_.results, places_of(map_), strict=True) if d not in gone]
            results = [ir.AffineExpr.compose(e, renumbered) for e in left]
            maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(len(kept), 0, results)))
        kinds = list(self.op.attributes["iterator_types"])
        self.op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        self.op.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[d] for d in kept])
        for op in self.asked:
            dim = ir.IntegerAttr(op.attributes["dim"])
            op.attributes["dim"] = ir.IntegerAttr.get(dim.type, number[dim.value])


@cached_with_context(1024)
def _pairs(maps: tuple[ir.AffineMap, ...], kinds: tuple[bool, ...]) -> frozenset[Pair]:
    """The dimensions of one kind that stand side by side in all maps that name one of them."""
    after: dict[int, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = defaultdict(set)
    for map_ in maps:
        places = places_of(map_)
        for first, second in pairwise([-1, *places, -1]):
            after[first].add(second)
            before[second].add(first)
        if -1 in places:
            for d in map(int, re.findall(r"\bd(\d+)", " ".join(map(str, _sums(map_))))):
                after[d].add(-1)
                before[d].add(-1)
    return frozenset(
        (first, second)
        for first, (second, *more) in after.items()
        if first >= 0 <= second and not more and before[second] == {first} and kinds[first] == kinds[second]
    )


def _sums(map_: ir.AffineMap) -> list[ir.AffineExpr]:
    return [e for e, d in zip(map_.results, places_of(map_), strict=True) if d < 0]


class _Seams:
    """Which boundaries close together, and which never do."""

    def __init__(self) -> None:
        self._same: dict[Boundary, Boundary] = {}
        self._open: set[Boundary] = set()

    def tie(self, boundaries: Iterable[Boundary]) -> None:
        """Close all of these or none."""
        first, *others = map(self._find, boundaries)
        for other in others:
            if other != first:
                self._same[other] = first
                if other in self._open:
                    self._open.add(first)

    def keep(self, boundary: Boundary) -> None:
        """Close neither this nor what is tied to it."""
        self._open.add(self._find(boundary))

    def closes(self, boundary: Boundary) -> bool:
        """Whether the dimensions at a boundary become one."""
        return self._find(boundary) not in self._open

    def _find(self, boundary: Boundary) -> Boundary:
        while (other := self._same.get(boundary, boundary)) != boundary:
            self._same[boundary] = self._same.get(other, other)
            boundary = other
        return boundary


def _merge(function: ir.Operation, spaces: list[_Space]) -> int:
    """Merge what can be merged in a function; how many dimensions of arrays are gone."""
    of_ops = {space.op: space for space in spaces}
    for op in find_ops(function, "linalg.index"):
        of_ops[op.parent.operation].asked.append(op)
    boundaries = _Seams()
    pairs = {space.op: space.pairs() for space in spaces}
    for space in spaces:
        _note(space, pairs[space.op], boundaries)
    values, same_shape = _look_around(function, spaces, boundaries)
    shapes = {value: shape for value in values if (shape := _shape(value, boundaries)) is not None}
    for space in spaces:
        found = {
            (at[n - 1], at[n])
            for value, at in space.tensors
            if value in shapes
            for n in range(1, len(at))
            if boundaries.closes((value, n))
        }
        if found:
            space.rewrite(found)
    gone = 0
    for value, shape in shapes.items():
        gone += len(value.type.shape) - len(shape)
        _give_shape(value, shape)
    if shapes:
        for op in (*of_ops, *same_shape):
            _begin_with_own_shape(op)
        _write_type(function)
    return gone


def _note(space: _Space, pairs: frozenset[Pair], boundaries: _Seams) -> None:
    """What a generic says of its tensors' boundaries."""
    of_pair: dict[Pair, list[Boundary]] = defaultdict(list)
    for value, at in space.tensors:
        for number, pair in enumerate(pairwise(at), start=1):
            if pair in pairs:
                of_pair[pair].append((value, number))
            else:
                boundaries.keep((value, number))
    for together in of_pair.values():
        boundaries.tie(together)


def _look_around(
    function: ir.Operation, spaces: list[_Space], boundaries: _Seams
) -> tuple[list[ir.Value], list[ir.Operation]]:
    """The tensors of generics and those of equal shape, and the ops that make them so; notes what others
    than generics say of their boundaries."""
    entry = function.regions[0].blocks[0]
    values = {value: None for space in spaces for value, _ in space.tensors}
    same_shape: dict[ir.Operation, None] = {}
    work = list(values)
    while work:
        value = work.pop()
        around = [use.owner.operation for use in value.uses]
        if not isinstance(value.owner, ir.Block):
            around.append(value.owner.operation)
        elif value.owner != entry:
            _keep_all(value, boundaries)
        for op in around:
            if op.name in _SAME_SHAPE:
                if op not in same_shape:
                    same_shape[op] = None
                    new = [other for other in _tied(op, boundaries) if other not in values]
                    values.update(dict.fromkeys(new))
                    work += new
            elif op.name not in _SHAPELESS and not _is_splat(op):
                _keep_all(value, boundaries)
    return list(values), list(same_shape)


def _tied(op: ir.Operation, boundaries: _Seams) -> list[ir.Value]:
    """The tensors of an op for which all have one shape."""
    values = (*op.operands, *op.results)
    tied = [value for value in values if isinstance(value.type, ir.RankedTensorType) and not _is_empty(value)]
    for number in range(1, tied[0].type.rank):
        boundaries.tie((value, number) for value in tied)
    return tied


def _keep_all(value: ir.Value, boundaries: _Seams) -> None:
    for number in range(1, value.type.rank):
        boundaries.keep((value, number))


def _shape(value: ir.Value, boundaries: _Seams) -> list[int] | None:
    """The shape that a tensor gets, if it is another."""
    groups: list[list[int]] = []
    for number, extent in enumerate(value.type.shape):
        if number and boundaries.closes((value, number)):
            groups[-1].append(extent)
        else:
            groups.append([extent])
    return [prod(group) for group in groups] if len(groups) < value.type.rank else None


def _give_shape(value: ir.Value, shape: list[int]) -> None:
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    value.set_type(type_)
    if not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant":
        constant = value.owner.operation
        element = ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value()
        constant.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, element)


def _begin_with_own_shape(op: ir.Operation) -> None:
    """Give an op whose result has another shape now an empty tensor of that, if it begins with one."""
    first = len(op.operands) - len(op.results)
    for number, result in enumerate(op.results, start=first):
        old = op.operands[number]
        if old.type != result.type:
            with ir.InsertionPoint(old.owner), old.owner.location:
                op.operands[number] = tensor.empty(result.type.shape, result.type.element_type)
            if not list(old.uses):
                old.owner.erase()


def _write_type(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    results = [value.type for value in block.operations[len(block.operations) - 1].operands]
    type_ = ir.FunctionType.get([argument.type for argument in block.arguments], results)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _is_empty(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == _EMPTY


def _is_splat(op: ir.Operation) -> bool:
    if op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat
