"""Plain loops written over vectors: several side by side, then what remains."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from lamina.dialects.types import byte_size
from lamina.dialects.vendors import arith, ir, memref, scf, vector
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import constant_of, index
from lamina.passes.linalg.vectors.shuffles import deinterleaved, interleaved
from lamina.passes.linalg.vectors.vector_body import across_lanes
from lamina.passes.memref import quotients
from lamina.passes.memref.interleave_factor import side_by_side
from lamina.passes.memref.partial_results import all_combined, identity_of, splat
from lamina.passes.memref.plain_loop import Interleaved, Place, PlainLoop, Step

_SIGNED = frozenset(range(6))
"""The predicates of integers that are not of unsigned ones."""
_FAR = 1 << 30  # range


def rest_has_masks(loop: PlainLoop, *, masked: bool) -> bool:
    """Whether what remains of a loop is done with a mask, if vectors have such."""
    return masked and not (loop.one_by_one or loop.backwards or loop.interleaved)


def write_over_vectors(
    loop: PlainLoop, *, masked: bool, ahead: int = 0, short_buffers: bool = False, whole: bool = False
) -> bool:
    """Replace a loop; whether it works on vectors side by side then because of a long chain. What remains
    is done with a mask where vectors are `masked` and elements lie side by side, or else one by one. Memory
    is asked for so many bytes `ahead`, if any; for `short_buffers` see `interleave_factor`. `whole` says that no loop
    should be left."""
    for step in loop.same:
        step.op.move_before(loop.op)
    rest_in_vectors = rest_has_masks(loop, masked=masked)
    with ir.InsertionPoint(loop.op), loop.op.location:
        writer = _Writer(loop, masked, ahead, short_buffers, whole)
        writer.write_main()
        writer.write_rest(rest_in_vectors)
        results = writer.combined()
        if not rest_in_vectors:
            results = writer.write_scalar(results)
        writer.front.erase()
    for old, new in zip(loop.op.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.op.erase()
    return writer.for_chain


class _Writer:
    def __init__(self, loop: PlainLoop, wide: bool, ahead: int, short_buffers: bool, whole: bool) -> None:
        self._loop = loop
        self._ahead = ahead
        self._count, self.for_chain = side_by_side(loop, 32 if wide else 16, short_buffers)
        if whole and loop.trips is not None:
            self._count, self.for_chain = loop.trips // loop.lanes, False
        self._wide = wide
        self._divisors: dict[ir.Value, quotients.Divisor] = {}
        self._broadcasts: dict[ir.Value, ir.Value] = {}
        self._nearby: dict[ir.Value, ir.Value] = {}
        self._iotas: dict[tuple[ir.Type, int], ir.Value] = {}
        self._low, self._high = loop.bounds
        self._first = constant_of(self._low) or 0
        self.front = index(0).owner  # ops are put only relative to ops
        initial = [
            identity_of(step.name, ir.VectorType.get([loop.lanes], step.results[0].type)) for step in loop.combiners
        ]
        self._carried = [initial] * self._count

    # ---- the parts of a loop ------------------------------------------------------------
    def write_main(self) -> None:
        """Whole vectors, `count` of them at a time; what is done then lies below `low`."""
        by = self._loop.lanes * self._count
        trips = self._loop.trips
        start = self._low
        if trips is None:
            self._low = self._end_of_whole(start, by)
        elif trips < by:
            return
        else:
            first = constant_of(start)
            assert first is not None
            self._low = index(first + trips // by * by)
            if trips // by == 1:
                self._carried = self._at(start, self._carried)
                return
        self._carried = self._repeated(start, self._low, by, lambda at, held: self._at(at, held))

    def _end_of_whole(self, start: ir.Value, by: int) -> ir.Value:
        """Where so many elements at a time, from a place on, leave fewer than that; the place itself beyond the
        loop's end."""
        length = arith.MaxSIOp(arith.SubIOp(self._high, start).result, index(0)).result
        return arith.AddIOp(start, arith.AndIOp(length, index(-by)).result).result

    def write_rest(self, masked: bool) -> None:
        """Whole vectors that remain, one at a time, and where they are `masked` one with a mask for the lanes
        beyond the end."""
        loop = self._loop
        low, high = constant_of(self._low), constant_of(self._high)
        if low is not None and high is not None:
            self._write_known_rest(low, high, masked)
        elif masked:
            self._write_vectors(
                self._high, lambda at, held: self._at(at, held, self._mask(arith.SubIOp(self._high, at).result))
            )
        elif self._count > 1:
            end = self._end_of_whole(self._low, loop.lanes)
            self._write_vectors(end, self._at)
            self._low = end

    def _write_known_rest(self, low: int, high: int, masked: bool) -> None:
        lanes = self._loop.lanes
        for number, at in enumerate(range(low, high, lanes)):
            is_whole = high - at >= lanes
            if not (is_whole or masked):
                break
            which = slice(number % self._count, number % self._count + 1)
            mask = None if is_whole else self._mask(index(high - at))
            self._carried[which] = self._at(index(at), self._carried[which], mask)
            self._low = index(min(at + lanes, high))
        rest = high - (constant_of(self._low) or 0)
        if 0 < rest < lanes <= high - self._first and self._may_overlap:
            counts = self._constant_mask(lanes - rest)
            self._carried[:1] = self._at(index(high - lanes), self._carried[:1], counts=counts)
            self._low = self._high

    @property
    def _may_overlap(self) -> bool:
        """Whether what remains can be the last lanes of a vector that begins before: where nothing is stored."""
        loop = self._loop
        stores = any(step.name == "memref.store" and step.place[0] not in loop.own for step in loop.body)
        return bool(loop.combiners) and bool(loop.interleaved) and not stores

    def _constant_mask(self, off: int) -> ir.Value:
        """All lanes but so many of the first."""
        truths = ir.VectorType.get([self._loop.lanes], ir.IntegerType.get_signless(1))
        bits = [ir.BoolAttr.get(lane >= off) for lane in range(self._loop.lanes)]
        with ir.InsertionPoint(self.front):
            return arith.ConstantOp(truths, ir.DenseElementsAttr.get(bits, truths)).result

    def _write_vectors(
        self, end: ir.Value, body: Callable[[ir.Value, list[list[ir.Value]]], list[list[ir.Value]]]
    ) -> None:
        """A loop over single vectors, from `low` to an end."""
        self._carried[:1] = self._repeated(self._low, end, self._loop.lanes, body, of=1)

    def write_scalar(self, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """What remains, element by element."""
        if constant_of(self._low) is not None and constant_of(self._low) == constant_of(self._high):
            return list(carried)
        known: dict[ir.Value, ir.Value] = {}
        copy = copied(self._loop.op, known)
        copy.operands[0] = self._low
        for number, value in enumerate(carried):
            copy.operands[3 + number] = value
        return list(copy.results)

    def combined(self) -> list[ir.Value]:
        """Each carried value as a scalar, with what the loop began with."""
        results = []
        for number, (step, start) in enumerate(
            zip(self._loop.combiners, list(self._loop.op.operands)[3:], strict=True)
        ):
            values = [one[number] for one in self._carried]
            results.append(across_lanes(step.op, all_combined(step, values), start))
        return results

    # ---- loops and bodies ---------------------------------------------------------------------
    def _repeated(
        self,
        low: ir.Value,
        high: ir.Value,
        by: int,
        body: Callable[[ir.Value, list[list[ir.Value]]], list[list[ir.Value]]],
        of: int | None = None,
    ) -> list[list[ir.Value]]:
        """A loop around a body that is given and gives what the first `of` vectors carry."""
        carried = self._carried[:of]
        flat = [value for one in carried for value in one]
        width = len(self._loop.combiners)
        op = scf.ForOp(low, high, index(by), flat)

        def parted(values: Sequence[ir.Value]) -> list[list[ir.Value]]:
            return [list(values[n * width : (n + 1) * width]) for n in range(len(carried))]

        with ir.InsertionPoint(op.body):
            new = body(op.induction_variable, parted(list(op.inner_iter_args)))
            scf.YieldOp([value for one in new for value in one])
        return parted(list(op.results))

    def _at(
        self,
        at: ir.Value,
        carried: Sequence[Sequence[ir.Value]],
        mask: ir.Value | None = None,
        counts: ir.Value | None = None,
    ) -> list[list[ir.Value]]:
        """The body on as many vectors as carry something from here on; what they carry then. Lanes outside of a mask
        are not there; those that don't count change nothing that is carried."""
        offsets = [_beyond(at, n * self._loop.lanes) for n in range(len(carried))]
        bodies = [
            _Body(self._loop, offset, held, mask, mask or counts, self._broadcast, 0 if mask else self._ahead)
            for offset, held in zip(offsets, carried, strict=True)
        ]
        spread = functools.cache(bodies[0].spread)
        for number, body in enumerate(bodies):
            body.count_on(spread, functools.partial(self._iota, first=number * self._loop.lanes))
        for step in self._loop.body:
            divisor = self._divisor(step)
            of_all = self._compared(step, bodies)
            if divisor is not None:
                of_all = divisor.quotients([body.vector(step.operands[0]) for body in bodies])
            for number, body in enumerate(bodies):
                if of_all is None:
                    body.write(step)
                else:
                    body.known[step.results[0]] = of_all[number]
        return [[body.known[step.results[0]] for step in self._loop.combiners] for body in bodies]

    def _mask(self, count: ir.Value) -> ir.Value:
        """The lanes in front of this one, compared as `convert-vector-to-llvm` would."""
        word = ir.IntegerType.get_signless(32)
        numbers = self._iota(word)
        end = vector.BroadcastOp(numbers.type, arith.IndexCastOp(word, count).result).result
        return arith.CmpIOp(arith.CmpIPredicate.slt, numbers, end).result

    def _broadcast(self, value: ir.Value) -> ir.Value:
        """What stays the same in all lanes, made in front of the loop."""
        if value not in self._broadcasts:
            type_ = ir.VectorType.get([self._loop.lanes], value.type)
            with ir.InsertionPoint(self.front):
                self._broadcasts[value] = vector.BroadcastOp(type_, value).result
        return self._broadcasts[value]

    def _divisor(self, step: Step) -> quotients.Divisor | None:
        """What a step divides by, made in front of the loop, if that stays the same and is better
        divided by so."""
        if step.name != "arith.divf" or step.operands[1] in self._loop.kinds or not self._wide:
            return None
        value, lanes, trips = step.operands[1], self._loop.lanes, self._loop.trips
        if not quotients.pays(value.type, None if trips is None else trips // lanes):
            return None
        if value not in self._divisors:
            with ir.InsertionPoint(self.front):
                self._divisors[value] = quotients.Divisor(value, lanes)
        return self._divisors[value]

    def _compared(self, step: Step, bodies: Sequence[_Body]) -> list[ir.Value] | None:
        """What a comparison of the place with what stays the same is in each vector: the lanes' numbers, which are
        constants, are compared with how far that is from the first lane. None for other steps."""
        if step.name != "arith.cmpi" or _predicate(step) not in _SIGNED:
            return None
        for side in (0, 1):
            place, other = step.operands[side], step.operands[1 - side]
            if self._is_place(place) and other not in self._loop.kinds:
                near = self._near(other)
                break
        else:
            return None
        if near is None:
            return None
        of = ir.VectorType.get([self._loop.lanes], place.type)
        distance = vector.BroadcastOp(of, arith.SubIOp(near, bodies[0].scalar(place)).result).result
        truths = ir.VectorType.get([self._loop.lanes], step.results[0].type)
        results = []
        for number in range(len(bodies)):
            pair = self._iota(place.type, number * self._loop.lanes), distance
            operands = list(pair if side == 0 else reversed(pair))
            results.append(ir.Operation.create(step.name, [truths], operands, step.attributes).result)
        return results

    def _is_place(self, value: ir.Value) -> bool:
        """Whether something is the number of the iteration, of a type that has room for all."""
        is_integer = isinstance(value.type, ir.IntegerType) and value.type.width >= 32
        if not is_integer or self._loop.kinds.get(value) != "linear" or isinstance(value.owner, ir.Block):
            return False
        op = value.owner.operation
        return op.name == "arith.index_cast" and op.operands[0] == self._loop.variable

    def _near(self, value: ir.Value) -> ir.Value | None:
        """What stays the same, at most one beyond the loop's bounds on either side; None where they vary."""
        low, high = (constant_of(bound) for bound in self._loop.bounds)
        if low is None or high is None or not -_FAR <= low <= high <= _FAR:
            return None
        if value not in self._nearby:
            with ir.InsertionPoint(self.front):
                least, most = (
                    arith.ConstantOp(value.type, ir.IntegerAttr.get(value.type, n)).result
                    for n in (low - 1, high)
                )
                self._nearby[value] = arith.MaxSIOp(arith.MinSIOp(value, most).result, least).result
        return self._nearby[value]

    def _iota(self, type_: ir.Type, first: int = 0) -> ir.Value:
        if (type_, first) not in self._iotas:
            lanes = self._loop.lanes
            of = ir.VectorType.get([lanes], type_)
            with ir.InsertionPoint(self.front):
                numbers = _numbered(of, range(first, first + lanes))
                self._iotas[type_, first] = arith.ConstantOp(of, numbers).result
        return self._iotas[type_, first]


class _Body:
    """One iteration on the elements from a place on: scalars for what is linear, else vectors."""

    def __init__(
        self,
        loop: PlainLoop,
        at: ir.Value,
        carried: Sequence[ir.Value],
        mask: ir.Value | None,
        counts: ir.Value | None,
        broadcast: Callable[[ir.Value], ir.Value],
        ahead: int,
    ) -> None:
        self._loop = loop
        self._ahead = ahead
        self._mask, self._counts = mask, counts
        self._broadcast = broadcast
        arguments = list(loop.op.regions[0].blocks[0].arguments)[1:]
        self.known = dict(zip(arguments, carried, strict=True))
        self._scalars = {loop.variable: at}
        self._stored: dict[tuple[ir.Value, ...], ir.Value] = {}
        self._columns: dict[Interleaved, list[ir.Value]] = {}  # of rows that are loaded
        self._rows: dict[Interleaved, dict[int, ir.Value]] = {}  # columns of rows that are to be stored

    def write(self, step: Step) -> None:
        """Do an op to vectors."""
        if step.name == "memref.load":
            self.known[step.results[0]] = self._loaded(step)
        elif step.name == "memref.store":
            self._store(step)
        elif self._loop.kinds.get(step.results[0]) in ("linear", "falling"):
            copied(step.op, self._scalars)
        else:
            self.known[step.results[0]] = self._done(step)

    def _done(self, step: Step) -> ir.Value:
        """The result of an element-wise op; a carried one stays as it is where the mask is off."""
        operands = [self.vector(value) for value in step.operands]
        attributes = step.attributes
        type_ = self._type(step.results[0].type)
        result = ir.Operation.create(step.name, [type_], operands, attributes).result
        if self._counts is None or step not in self._loop.combiners:
            return result
        before = next(v for v in step.operands if self._loop.kinds.get(v) == "carried")
        return arith.SelectOp(self._counts, result, self.known[before]).result

    def _place_of(self, step: Step) -> Place:
        """The buffer and indices of a load or store; of the loop's own, which have one element, the buffer alone."""
        place = step.place
        return place[:1] if place[0] in self._loop.own else place

    def _loaded(self, step: Step) -> ir.Value:
        place = self._place_of(step)
        if place not in self._stored:
            buffer, *indices = place
            type_ = self._type(step.results[0].type)
            at = [self._scalars.get(value, value) for value in indices]
            if step in self._loop.one_by_one:
                each = [memref.LoadOp(buffer, places).result for places in self._of_lanes(indices)]
                value = vector.FromElementsOp(type_, each).result
            elif step in self._loop.interleaved:
                rows, column = self._loop.interleaved[step]
                if rows not in self._columns:
                    loads = [vector.LoadOp(type_, rows.buffer, place).result for place in self._of_rows(rows)]
                    self._columns[rows] = deinterleaved(loads)
                value = self._columns[rows][column]
            elif step in self._loop.backwards:
                loaded = vector.LoadOp(type_, buffer, self._first_place(indices)).result
                value = self._turned(loaded)
            elif step in self._loop.strides:
                places, mask = self._places(step)
                zero = arith.ConstantOp(type_, splat(type_, 0)).result
                value = vector.GatherOp(type_, buffer, at, places, mask, zero).result
            elif self._mask is None:
                value = vector.LoadOp(type_, buffer, at).result
                self._prefetch(value, buffer, at, writes=False)
            else:
                zero = arith.ConstantOp(type_, splat(type_, 0)).result
                value = vector.MaskedLoadOp(type_, buffer, at, self._mask, zero).result
            self._stored[place] = value
        return self._stored[place]

    def _store(self, step: Step) -> None:
        place = self._place_of(step)
        buffer, *indices = place
        value = self.vector(step.operands[0])
        at = [self._scalars.get(value, value) for value in indices]
        if buffer in self._loop.own:
            pass  # nobody else reads it
        elif step in self._loop.one_by_one:
            for lane, places in enumerate(self._of_lanes(indices)):
                memref.StoreOp(vector.ExtractOp(value, [], [lane]).result, buffer, places)
        elif step in self._loop.interleaved:
            rows, column = self._loop.interleaved[step]
            columns = self._rows.setdefault(rows, {})
            columns[column] = value
            if self._is_last(step, rows):
                whole = interleaved([columns[number] for number in range(rows.columns)])
                for one, first in zip(whole, self._of_rows(rows), strict=True):
                    vector.StoreOp(one, buffer, first)
        elif step in self._loop.backwards:
            vector.StoreOp(self._turned(value), buffer, self._first_place(indices))
        elif step in self._loop.strides:
            places, mask = self._places(step)
            vector.ScatterOp(None, buffer, at, places, mask, value)
        elif self._mask is None:
            vector.StoreOp(value, buffer, at)
            self._prefetch(value, buffer, at, writes=True)
        else:
            vector.MaskedStoreOp(buffer, at, self._mask, value)
        self._stored[place] = value

    def _places(self, step: Step) -> tuple[ir.Value, ir.Value]:
        """Where lanes lie that are apart, from the first of them on, and which of them count."""
        lanes, stride = self._loop.lanes, self._loop.strides[step]
        of = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        places = arith.ConstantOp(of, _numbered(of, range(0, lanes * stride, stride))).result
        truths = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        return places, self._mask or arith.ConstantOp(truths, splat(truths, 1)).result

    def _of_lanes(self, indices: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """The indices of the elements that lanes load or store, each its own."""

        def of_lane(value: ir.Value, lane: int) -> ir.Value:
            if value in self._scalars:
                return _beyond(self._scalars[value], -lane if self._falls(value) else lane)
            if value in self.known:
                return vector.ExtractOp(self.known[value], [], [lane]).result
            return value

        return [[of_lane(value, lane) for value in indices] for lane in range(self._loop.lanes)]

    def _of_rows(self, rows: Interleaved) -> list[list[ir.Value]]:
        """Where the vectors begin that interleaved rows are, one for each column."""
        shape = ir.MemRefType(rows.buffer.type).shape[len(rows.around) :]
        *outer, row = (self._scalars.get(value, value) for value in rows.around)
        places = []
        for first in range(0, rows.columns * self._loop.lanes, self._loop.lanes):
            number, rest = divmod(first, rows.columns)
            inside = []
            for extent in reversed(shape):
                rest, index_ = divmod(rest, extent)
                inside.append(index(index_))
            places.append([*outer, _beyond(row, number), *reversed(inside)])
        return places

    def _is_last(self, step: Step, rows: Interleaved) -> bool:
        """Whether no store to these rows follows."""
        stores = (
            other
            for other in self._loop.body
            if other.name == "memref.store" and self._loop.interleaved.get(other, (None,))[0] == rows
        )
        return list(stores)[-1] is step

    def _falls(self, value: ir.Value) -> bool:
        return self._loop.kinds.get(value) == "falling"

    def _first_place(self, indices: Sequence[ir.Value]) -> list[ir.Value]:
        """Where the last lane's element lies, which is before the others'."""
        last = self._loop.lanes - 1
        places = (self._scalars.get(value, value) for value in indices)
        return [
            _beyond(place, -last) if self._falls(value) else place
            for value, place in zip(indices, places, strict=True)
        ]

    def _turned(self, value: ir.Value) -> ir.Value:
        """The lanes of a vector from the last to the first."""
        return vector.ShuffleOp(value, value, list(range(self._loop.lanes))[::-1]).result

    def _prefetch(
        self, value: ir.Value, buffer: ir.Value, at: Sequence[ir.Value], *, writes: bool
    ) -> None:
        """Ask for what lies ahead of a vector in memory; past the end of an array that does nothing."""
        if self._ahead and buffer not in self._loop.own:
            distance = self._ahead * self._loop.lanes // byte_size(value.type)
            *outer, last = at
            memref.PrefetchOp(buffer, [*outer, _beyond(last, distance)], writes, 3, True)

    def vector(self, value: ir.Value) -> ir.Value:
        """A value in all lanes."""
        if value in self.known:
            return self.known[value]
        if value not in self._scalars:
            return self._broadcast(value)
        step = arith.SubIOp if self._falls(value) else arith.AddIOp
        self.known[value] = step(self._spread(value), self._iota(value.type)).result
        return self.known[value]

    def scalar(self, value: ir.Value) -> ir.Value:
        """What something linear is in the first lane."""
        return self._scalars[value]

    def spread(self, value: ir.Value) -> ir.Value:
        """What something linear is in the first lane, in all lanes."""
        return vector.BroadcastOp(self._type(value.type), self._scalars[value]).result

    def count_on(
        self, spread: Callable[[ir.Value], ir.Value], iota: Callable[[ir.Type], ir.Value]
    ) -> None:
        """What is linear is a sum of these: what it is in the first lane of the first vector, and how far
        this vector's lanes are from there."""
        self._spread, self._iota = spread, iota

    def _type(self, element: ir.Type) -> ir.Type:
        return ir.VectorType.get([self._loop.lanes], element)


def _predicate(step: Step) -> int:
    return ir.IntegerAttr(step.op.attributes["predicate"]).value


def _beyond(at: ir.Value, distance: int) -> ir.Value:
    first = constant_of(at)
    if distance == 0:
        return at
    return arith.AddIOp(at, index(distance)).result if first is None else index(first + distance)


def _numbered(type_: ir.VectorType, numbers: Iterable[int]) -> ir.Attribute:
    """These numbers, as many of their lowest bits as elements have."""
    element = type_.element_type
    bits = element.width if isinstance(element, ir.IntegerType) else 64
    half = 1 << (bits - 1)
    signed = ((number + half) % (2 * half) - half for number in numbers)
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, n) for n in signed], type_)
