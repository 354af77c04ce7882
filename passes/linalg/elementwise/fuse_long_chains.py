"""Make one op of the many element-wise ops of a long chain, in time that grows with their number.

    %0 = linalg.generic ins(%x) { a }             %y = linalg.generic ins(%x, %b) {
    %1 = linalg.generic ins(%b) { b }        ->     a; b; c
    %y = linalg.generic ins(%0, %1) { c }         }
`linalg-fuse-elementwise-ops` makes one op of two with copies of both bodies, and begins with the last: of
4,000 ops it makes copies of eight million. Here the bodies move into one, each behind those that it needs.
Taken are parallel ops whose results are read at one place in all, by ops over one space; what is read at
another place, or by anything else, is a result as well. What a body looks up elements of is made before.
Leaves functions of fewer than `least_ops` such ops to
the other pass, and those where what stays would have to be between what moves.

example: test/passes/linalg/elementwise/fuse_long_chains.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops, in_block
from lamina.passes.linalg.analysis.structure import Generic, make_generic, read_generic


class FuseLongChains(Pass):
    """See the module's docstring."""

    least_ops: int = 256  # code

    def run(self, module: ir.Module) -> None:
        if len(find_ops(module, "linalg.generic")) < self.least_ops:
            return
        for function in module.body.operations:
            if function.operation.name == "func.func" and function.regions[0].blocks:
                self._fuse([view.operation for view in function.regions[0].blocks[0].operations])

    def _fuse(self, operations: list[ir.Operation]) -> None:
        chain = _Chain(operations)
        if len(chain.places) >= self.least_ops and chain.can_move():
            chain.write()
            self.count("ops", len(chain.places))


class _Chain:
    """The ops that become one: all that the last one over its space needs, and what else is over that."""

    def __init__(self, operations: list[ir.Operation]) -> None:
        self._numbers = {op: number for number, op in enumerate(operations)}
        generics = {op: _elementwise(op) for op in operations if op.name == "linalg.generic"}
        self._generics = {op: generic for op, generic in generics.items() if generic is not None}
        self._makers_of = {value: op for op in self._generics for value in op.results}
        self._extents = max((g.extents for g in self._generics.values()), key=len, default=())
        self._identity = ir.AffineMap.get_identity(len(self._extents))
        self.places: dict[ir.Operation, ir.AffineMap] = {}
        """Of each op, at which place of its own space it is computed."""
        self._reads: dict[ir.Operation, list[tuple[ir.Value, ir.AffineMap]]] = {}
        """Of each op what it reads there, and by which maps."""
        self._wanted: dict[ir.Operation, list[ir.AffineMap]] = {}
        self._stored: list[ir.Operation] = []
        self._first: set[ir.Operation] = set()
        """Ops that stay in front, as a body looks for elements of what they make."""
        for op in reversed(self._generics):
            if op in self._first or _is_looked_up(op):
                self._first.update(self._makers(op))
            else:
                self._place(op)

    def _place(self, op: ir.Operation) -> None:
        generic = self._generics[op]
        wanted = self._wanted.get(op, [])
        is_read = sum(len(list(result.uses)) for result in op.results) > len(wanted)
        places = {*wanted, self._identity} if is_read else {*wanted}
        if len(places) != 1 or (is_read and generic.extents != self._extents):
            return
        (place,) = places
        is_straight = place == self._identity
        if not is_straight and _asks_where(op):
            return
        self.places[op] = place
        if is_read:
            self._stored.append(op)
        maps = generic.input_maps if is_straight else [_composed(map_, place) for map_ in generic.input_maps]
        self._reads[op] = list(zip(generic.inputs, maps, strict=True))
        for value, map_ in self._reads[op]:
            maker = self._makers_of.get(value)
            if maker is not None:
                self._wanted.setdefault(maker, []).append(map_)

    def _makers(self, op: ir.Operation) -> list[ir.Operation]:
        found = map(self._makers_of.get, self._generics[op].inputs)
        return [maker for maker in found if maker is not None]

    def can_move(self) -> bool:
        """Whether nothing that stays reads what is computed before the last of them."""
        last = max(self._numbers[op] for op in self.places)
        return all(
            use.owner in self.places or self._numbers[in_block(use.owner.operation, op.block)] >= last
            for op in self._stored
            for value in op.results
            for use in value.uses
        )

    def write(self) -> None:
        """Put one op in place of all, at the last of them."""
        ops = [op for op in self._generics if op in self.places]
        stored = self._stored[::-1]
        inputs = self._inputs(ops)
        rank = len(self._extents)
        values = [value for value, _ in inputs]
        maps = [map_ for _, map_ in inputs]
        outputs = [value for op in stored for value in self._generics[op].outputs]
        results = [value.type for op in stored for value in op.results]
        maps += [self._identity] * len(outputs)
        with ir.InsertionPoint(ops[-1]), ops[-1].location:
            fused = make_generic(values, outputs, maps, [False] * rank, results)
        block = fused.regions[0].blocks.append(*(v.type.element_type for v in (*values, *outputs)))
        arguments = dict(zip(inputs, block.arguments, strict=False))
        with ir.InsertionPoint(block), ops[-1].location:
            end = index(0).owner.operation  # ops move only relative to an op
        yielded: dict[ir.Value, ir.Value] = {}
        for op in ops:
            self._move(op, end, arguments, yielded)
        with ir.InsertionPoint(block), ops[-1].location:
            ir.Operation.create("linalg.yield", operands=[yielded[v] for op in stored for v in op.results])
        end.erase()
        old = [value for op in stored for value in op.results]
        for value, new in zip(old, fused.results, strict=True):
            value.replace_all_uses_with(new)
        for op in reversed(ops):
            op.erase()

    def _inputs(self, ops: list[ir.Operation]) -> dict[tuple[ir.Value, ir.AffineMap], int]:
        """What they read that is none of theirs, by which map, each with its number."""
        found: dict[tuple[ir.Value, ir.AffineMap], int] = {}
        for op in ops:
            for read in self._reads[op]:
                if not self._is_inside(read[0]):
                    found.setdefault(read, len(found))
        return found

    def _is_inside(self, value: ir.Value) -> bool:
        return self._makers_of.get(value) in self.places

    def _move(
        self,
        op: ir.Operation,
        end: ir.Operation,
        arguments: dict[tuple[ir.Value, ir.AffineMap], ir.Value],
        yielded: dict[ir.Value, ir.Value],
    ) -> None:
        body = op.regions[0].blocks[0]
        for argument, read in zip(body.arguments, self._reads[op], strict=False):
            new = yielded[read[0]] if self._is_inside(read[0]) else arguments[read]
            argument.replace_all_uses_with(new)
        *steps, last = [view.operation for view in body.operations]
        for step in steps:
            step.move_before(end)
        yielded.update(zip(op.results, last.operands, strict=True))


def _elementwise(op: ir.Operation) -> Generic | None:
    """A generic that computes each element of arrays that it makes from those of others; None for others."""
    if not len(op.results):
        return None
    generic = read_generic(op)
    arguments = list(generic.body.arguments)[len(generic.inputs) :]
    identity = ir.AffineMap.get_identity(generic.rank)
    is_elementwise = (
        not any(generic.reductions)
        and all(map_ == identity for map_ in generic.output_maps)
        and all(isinstance(value.type, ir.RankedTensorType) for value in generic.inputs)
        and not any(len(list(argument.uses)) for argument in arguments)
    )
    return generic if is_elementwise else None


def _asks_where(op: ir.Operation) -> bool:
    return any(step.operation.name == "linalg.index" for step in op.regions[0].blocks[0].operations)


def _is_looked_up(op: ir.Operation) -> bool:
    """Whether a body reads what an op makes at places that it computes."""
    return any(use.owner.operation.name == "tensor.extract" for value in op.results for use in value.uses)


def _composed(map_: ir.AffineMap, place: ir.AffineMap) -> ir.AffineMap:
    """Where an op at a place of its space reads by a map."""
    results = [ir.AffineExpr.compose(result, place) for result in map_.results]
    return ir.AffineMap.get(place.n_dims, 0, results)
