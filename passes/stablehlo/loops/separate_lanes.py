"""Let the lanes of a batched loop go in blocks, each of which stops when its own lanes have.

    stablehlo.while(%x) while any(p(%x)) {          loop over blocks of lanes, marked lamina.lanes {
      return select(p(%x), f(%x), %x)         ->      stablehlo.while(%b = block of %x) while any(p(%b)) {
    }                                                   return select(p(%b), f(%b), %b) } }

A loop whose lanes stop by themselves is written so where only whole arrays can be (JAX's vmap of a while_loop):
all lanes take as many steps as the longest one, and throw away what they do not need. A lane that has stopped
keeps its values, so lanes may be taken apart wherever a step computes each of them from nothing but itself.
Blocks are what the frontend takes for its own lanes (`lamina.lanes`): 64 where each holds a few scalars, single
ones up to 4,096 elements. Larger ones, those that share matrix products, and loops with other loops in their
steps are left alone, and programs that say that their lanes go together (`lamina.lanes_together`).

example: test/passes/stablehlo/loops/separate_lanes.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import LANES_TOGETHER
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.emit.copies import copied, remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    computes_elements,
    defining,
    ints,
    is_pure,
    made_by,
    reducer_of,
    splat_of,
)
from lamina.passes.stablehlo.canonicalize.simplify import Simplify
from lamina.passes.stablehlo.loops.lane_blocks import block_of, by_blocks
from lamina.records import Record

_VECTOR_BLOCK = 64  # lanes of a few scalars that go together
_FEW = 4  # shape: elements that are a few scalars
_LARGE = 4096  # shape: elements of a lane's arrays above which all lanes at once are work enough for a step


class SeparateLanes(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.while",))

    def run(self, module: ir.Module) -> None:
        if LANES_TOGETHER in module.operation.attributes:
            return
        separated = 0
        for loop in find_ops(module, "stablehlo.while"):
            lanes = _Lanes.of(loop)
            if lanes is not None:
                lanes.write()
                separated += 1
        if separated:
            self.count("loops", separated)
            Simplify(fold=True).run(module)


class _Lanes(Record, frozen=False, eq=False):
    """A loop whose lanes stop by themselves.

    loop       the operation.
    predicate  of the lanes, in its condition.
    updated    the carried values that steps change, by number: what a lane that goes on gets.
    returned   what all lanes get, whether they go on or not.
    """

    loop: ir.Operation
    predicate: ir.Value
    updated: dict[int, ir.Value]
    returned: list[ir.Value]
    block: int = 0

    @classmethod
    def of(cls, loop: ir.Operation) -> _Lanes | None:
        """None for other loops, and where lanes had better go together."""
        condition, step = (region.blocks[0] for region in loop.regions)
        predicate = _any_of(condition)
        if predicate is None or not all(_is_array(value) for value in loop.operands):
            return None
        if not all(is_pure(view.operation) for block in (condition, step) for view in _computing(block)):
            return None
        same = _Same(dict(zip(step.arguments, condition.arguments, strict=True)))
        updated: dict[int, ir.Value] = {}
        returned = list(step.operations[len(step.operations) - 1].operands)
        for number, (old, new) in enumerate(zip(step.arguments, returned, strict=True)):
            if new == old:
                continue
            select = made_by(new, "stablehlo.select")
            if select is None or select.operands[2] != old or not same(_spread(select.operands[0]), predicate):
                return None
            updated[number] = select.operands[1]
        lanes = cls(loop, predicate, updated, [returned[n] for n in updated])
        lanes.block = lanes._chosen_block()
        return lanes if lanes.block else None

    @property
    def size(self) -> int:
        return int(self.predicate.type.shape[0])

    def _chosen_block(self) -> int:
        """How many lanes go together; 0 for all."""
        asked = self._asked()
        if asked is None:
            return 0
        most = max(prod(value.type.shape) // self.size for value in asked.found)
        block = 0 if most > _LARGE else 1 if most > _FEW else _VECTOR_BLOCK
        return block if block < self.size else 0

    def _asked(self) -> _Asked | None:
        """What is computed lane by lane; None where something can't be."""
        blocks = [region.blocks[0] for region in self.loop.regions]
        asked = _Asked(self.size, blocks, self.updated)
        return asked if all(map(asked.has_lanes, (self.predicate, *self.returned))) else None

    def write(self) -> None:
        """The loop over blocks in its place."""
        loop = self.loop
        used = [n for n in self.updated if any(True for _ in loop.results[n].uses)]
        with ir.InsertionPoint(loop), loop.location:
            made = by_blocks(self.size, self.block, [loop.results[n].type for n in used], self._steps_of(used))
        for number, value in zip(used, made, strict=True):
            loop.results[number].replace_all_uses_with(value)
        for number, value in enumerate(loop.operands):
            if number not in self.updated:
                loop.results[number].replace_all_uses_with(value)
        loop.erase()

    def _steps_of(self, used: Sequence[int]) -> Callable[[ir.Value], list[ir.Value]]:
        """What does the steps of a block and gives its lanes of these carried values."""
        condition, step = (region.blocks[0] for region in self.loop.regions)
        numbers = list(self.updated)

        def compute(first: ir.Value) -> list[ir.Value]:
            outside = _Blocks(self.size, self.block, first)
            starts = [outside.lanes(self.loop.operands[n]) for n in numbers]
            given = {
                block: {
                    argument: value
                    for n, (argument, value) in enumerate(zip(block.arguments, self.loop.operands, strict=True))
                    if n not in self.updated
                }
                for block in (condition, step)
            }
            # What steps read of other arrays is the same in each: cut out before the loop.
            asked = self._asked()
            assert asked is not None
            cuts = {value: outside.lanes(given[block].get(value, value)) for value, block in asked.cut.items()}

            def going_on(*carried: ir.Value) -> ir.Value:
                now = self._inside(condition, numbers, carried, given[condition], cuts, first)
                some = now.lanes(self.predicate)
                return hlo.reduce(
                    [some], [hlo.constant(np.bool_(False))], list(range(len(some.type.shape))),
                    lambda a, b: [hlo.or_(a, b)],
                )[0]  # fmt: skip

            def next_step(*carried: ir.Value) -> list[ir.Value]:
                now = self._inside(step, numbers, carried, given[step], cuts, first)
                if self.block == 1 and len(self.predicate.type.shape) == 1:
                    return [now.lanes(value) for value in self.updated.values()]  # it goes on, or would not be here
                return [now.lanes(value) for value in self.returned]

            results = hlo.while_(starts, going_on, next_step)
            return [results[numbers.index(n)] for n in used]

        return compute

    def _inside(
        self,
        block: ir.Block,
        numbers: Sequence[int],
        carried: Sequence[ir.Value],
        given: dict[ir.Value, ir.Value],
        cuts: dict[ir.Value, ir.Value],
        first: ir.Value,
    ) -> _Blocks:
        known = dict(cuts)
        known.update((block.arguments[n], value) for n, value in zip(numbers, carried, strict=True))
        return _Blocks(self.size, self.block, first, known, given, block)


def _is_array(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape


def _computing(block: ir.Block) -> list[ir.Operation]:
    """All but the terminator."""
    return list(block.operations)[:-1]


def _any_of(condition: ir.Block) -> ir.Value | None:
    """Of lanes' predicates, where a condition is that one of them holds; the lanes are dimension 0."""
    answer = condition.operations[len(condition.operations) - 1].operands[0]
    reduce = made_by(answer, "stablehlo.reduce")
    if reduce is None or len(reduce.results) != 1 or reducer_of(reduce) != "stablehlo.or":
        return None
    predicate, init = reduce.operands
    rank = len(predicate.type.shape)
    start = splat_of(init)
    if start is None or bool(start) or not rank or len(ints(reduce, "dimensions")) != rank:
        return None
    return predicate


def _spread(value: ir.Value) -> ir.Value:
    """What a value repeats behind its own dimensions."""
    op = made_by(value, "stablehlo.broadcast_in_dim")
    if op is None:
        return value
    of = op.operands[0]
    rank = len(of.type.shape)
    keeps = ints(op, "broadcast_dimensions") == list(range(rank))
    same = list(of.type.shape) == list(op.results[0].type.shape)[:rank]
    return of if rank and keeps and same else value


class _Same:
    """Whether values of a step are what values of a condition are."""

    def __init__(self, arguments: dict[ir.Value, ir.Value]) -> None:
        self._known = dict(arguments)

    def __call__(self, mine: ir.Value, other: ir.Value) -> bool:
        if mine in self._known:
            return bool(self._known[mine] == other)
        if mine == other:
            return True
        op, twin = defining(mine), defining(other)
        if op is None or twin is None or op.name != twin.name or not is_pure(op):
            return False
        if len(op.regions) and not _reduce_alike(op, twin):
            return False
        same = (
            len(op.results) == 1
            and mine.type == other.type
            and len(op.operands) == len(twin.operands)
            and op.attributes.keys() == twin.attributes.keys()
            and all(op.attributes[name] == twin.attributes[name] for name in op.attributes.keys())
            and all(map(self, op.operands, twin.operands))
        )
        if same:
            self._known[mine] = other
        return same


def _reduce_alike(op: ir.Operation, twin: ir.Operation) -> bool:
    return op.name == "stablehlo.reduce" and None is not reducer_of(op) == reducer_of(twin)


class _Asked:
    """Which values of a loop can be computed lane by lane, before anything is written.

    found  those that would be, and cut those of other arrays of which lanes are cut out, by the block that
           reads them.
    """

    def __init__(self, size: int, blocks: Sequence[ir.Block], updated: dict[int, ir.Value]) -> None:
        self._size, self._blocks = size, blocks
        self._changing = {block.arguments[n] for block in blocks for n in updated}
        self._invariant = {
            argument: block for block in blocks for n, argument in enumerate(block.arguments) if n not in updated
        }
        self._inside = {
            result for block in blocks for view in block.operations for result in view.operation.results
        }
        self.found: dict[ir.Value, bool] = {}
        self.cut: dict[ir.Value, ir.Block] = {}

    def has_lanes(self, value: ir.Value) -> bool:
        """Whether lanes of a value can be computed from lanes."""
        if value not in self.found:
            shape = list(value.type.shape)
            self.found[value] = bool(shape) and shape[0] == self._size and self._can(value)
        return self.found[value]

    def _can(self, value: ir.Value) -> bool:
        if value in self._changing:
            return True
        if value in self._invariant or value not in self._inside:
            if not _is_repeated(value):
                self.cut[value] = self._invariant.get(value, self._blocks[0])
            return True
        op = defining(value)
        assert op is not None
        needs = _needs(op, self._size)
        if needs is None:
            return False
        return all(
            self.has_lanes(read) if lanes else self._is_whole(read)
            for read, lanes in zip(op.operands, needs, strict=True)
        )

    def _is_whole(self, value: ir.Value) -> bool:
        """Whether a value is the same in all steps of all lanes."""
        if value in self._changing:
            return False
        if value not in self._inside:
            return True
        op = defining(value)
        assert op is not None
        return not len(op.regions) and is_pure(op) and all(map(self._is_whole, op.operands))


class _Blocks:
    """Blocks of values' lanes, each made once, at the ambient insertion point.

    known  blocks that are there; given  what stands for values that no step changes; inside  the block of
           ops whose results are computed again, instead of cut out.
    """

    def __init__(
        self,
        size: int,
        block: int,
        first: ir.Value,
        known: dict[ir.Value, ir.Value] | None = None,
        given: dict[ir.Value, ir.Value] | None = None,
        inside: ir.Block | None = None,
    ) -> None:
        self._size, self._block, self._first = size, block, first
        self._known = {} if known is None else known
        self._given = {} if given is None else given
        self._wholes: dict[ir.Value, ir.Value] = {}
        self._inside = set() if inside is None else {
            result for view in inside.operations for result in view.operation.results
        }  # fmt: skip

    def lanes(self, value: ir.Value) -> ir.Value:
        if value not in self._known:
            self._known[value] = self._made(value)
        return self._known[value]

    def _made(self, value: ir.Value) -> ir.Value:
        source = self._given.get(value, value)
        shape = [self._block, *list(value.type.shape)[1:]]
        if _is_repeated(source):
            return hlo.full(splat_of(source), shape, dtype_of(value.type))
        if source not in self._inside:
            return block_of(source, self._first, self._block)
        op = defining(source)
        assert op is not None
        needs = _needs(op, self._size)
        assert needs is not None
        operands = [
            self.lanes(read) if lanes else self._whole(read)
            for read, lanes in zip(op.operands, needs, strict=True)
        ]
        made = remade(
            op, [ir.RankedTensorType.get(shape, value.type.element_type)], operands, len(op.regions),
            **_changed(op, self._block),
        )  # fmt: skip
        for old, new in zip(op.regions, made.regions, strict=True):
            _copy_region(old, new)
        return made.results[0]

    def _whole(self, value: ir.Value) -> ir.Value:
        source = self._given.get(value, value)
        if source not in self._inside:
            return source
        if source not in self._wholes:
            op = defining(source)
            assert op is not None
            self._wholes[source] = copied(op, {read: self._whole(read) for read in op.operands}).results[0]
        return self._wholes[source]


def _is_repeated(value: ir.Value) -> bool:
    return splat_of(value) is not None


def _copy_region(old: ir.Region, new: ir.Region) -> None:
    block = old.blocks[0]
    types = [argument.type for argument in block.arguments]
    copy = new.blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    known = dict(zip(block.arguments, copy.arguments, strict=True))
    with ir.InsertionPoint(copy):
        for view in block.operations:
            copied(view.operation, known)


def _changed(op: ir.Operation, block: int) -> dict[str, ir.Attribute]:
    """The attributes of an op that say how many lanes it makes."""
    if op.name == "stablehlo.slice":
        return {"limit_indices": ir.DenseI64ArrayAttr.get([block, *ints(op, "limit_indices")[1:]])}
    return {}


def _needs(op: ir.Operation, size: int) -> list[bool] | None:
    """Of which operands lanes are needed for lanes of an op's result, the others whole; None where lanes of
    the one are not made of lanes of the others."""
    if len(op.results) != 1:
        return None
    if computes_elements(op):
        return [bool(list(value.type.shape)) for value in op.operands]
    rule = _RULES.get(op.name)
    return None if rule is None else rule(op, size)


def _of_broadcast(op: ir.Operation, size: int) -> list[bool] | None:
    dims, shape = ints(op, "broadcast_dimensions"), list(op.operands[0].type.shape)
    if 0 not in dims:
        return [False]
    at = dims.index(0)
    if shape[at] == 1 and size != 1:
        return [False]
    return [True] if at == 0 else None


def _of_reshape(op: ir.Operation, size: int) -> list[bool] | None:
    shape = list(op.operands[0].type.shape)
    return [True] if shape and shape[0] == size else None


def _of_reduce(op: ir.Operation, _: int) -> list[bool] | None:
    block = op.regions[0].blocks[0]
    own = {*block.arguments, *(r for view in block.operations for r in view.operation.results)}
    if 0 in ints(op, "dimensions") or any(v not in own for w in block.operations for v in w.operation.operands):
        return None
    return [True, False]


def _of_transpose(op: ir.Operation, _: int) -> list[bool] | None:
    return [True] if ints(op, "permutation")[0] == 0 else None


def _of_concatenate(op: ir.Operation, _: int) -> list[bool] | None:
    return [True] * len(op.operands) if op.attributes["dimension"].value != 0 else None


def _of_slice(op: ir.Operation, size: int) -> list[bool] | None:
    shape = list(op.operands[0].type.shape)
    return [True] if shape[0] == size and ints(op, "strides")[0] == 1 else None


def _of_iota(op: ir.Operation, _: int) -> list[bool] | None:
    return [] if op.attributes["iota_dimension"].value != 0 else None


def _of_gather(op: ir.Operation, size: int) -> list[bool] | None:
    numbers = stablehlo_ext.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    if 0 in numbers.offset_dims or numbers.index_vector_dim == 0:
        return None
    batching = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    if 0 not in batching:
        return [False, True]
    return [True, True] if batching[0] == 0 else None


def _of_constant(op: ir.Operation, _: int) -> list[bool] | None:
    return [] if splat_of(op.results[0]) is not None else None


_RULES: dict[str, Callable[[ir.Operation, int], list[bool] | None]] = {
    CONSTANT: _of_constant,
    "stablehlo.broadcast_in_dim": _of_broadcast,
    "stablehlo.reshape": _of_reshape,
    "stablehlo.reduce": _of_reduce,
    "stablehlo.transpose": _of_transpose,
    "stablehlo.concatenate": _of_concatenate,
    "stablehlo.slice": _of_slice,
    "stablehlo.iota": _of_iota,
    "stablehlo.gather": _of_gather,
}
