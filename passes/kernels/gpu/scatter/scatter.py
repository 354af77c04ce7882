"""Scatters as kernels. Every result is what applying the updates one after another gives.

| updates | kernels |
|---|---|
| of distinct places: one index vector, or `unique_indices` | a thread for each element |
| integers, by an op whose order is free | a thread for each element, atomically |
| all others | a thread for each element that is updated, after a sort of the updates by place |

After the sort, updates of one place lie side by side in the order they were given in, so a float
sum has the same bits at every run, and the CPU's. An update is a whole window where windows can't
overlap in part, and one element where they can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    constant,
    flat,
    index,
    repeat_while,
    select,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel, Scratch
from lamina.passes.kernels.gpu.sort.merge_sort import sort_rows
from lamina.passes.stablehlo.analysis.sort_order import SIGNED, Key
from lamina.passes.stablehlo.lower.lower_scatter import Scatter

_ATOMIC = {
    "stablehlo.add": "addi", "stablehlo.and": "andi", "stablehlo.or": "ori",
    "stablehlo.maximum": "max", "stablehlo.minimum": "min",
}  # fmt: skip


def write_scatter(job: Job) -> None:
    """The kernels of a `stablehlo.scatter`, whose operands are overwritten by its results."""
    scatter = _Scattering(job)
    if scatter.distinct:
        scatter.one_by_one()
    elif scatter.atomic is not None:
        scatter.atomically()
    else:
        scatter.by_place()


class _Scattering:
    """A scatter as units of work: index vectors, or elements of their windows."""

    def __init__(self, job: Job) -> None:
        self.job, self.op = job, job.op
        self.scatter = scatter = Scatter(job.op)
        updates = list(scatter.updates[0].type.shape)
        self.scatter_dims = [d for d in range(len(updates)) if d not in scatter.window_dims]
        self.vectors = [updates[d] for d in self.scatter_dims]
        self.window = [updates[d] for d in scatter.window_dims]
        self.shape = list(scatter.inputs[0].type.shape)
        sizes = dict(zip(scatter.operand_window_dims, self.window, strict=True))
        self.window_of = sizes
        self.distinct = math.prod(self.vectors) == 1 or flag(job.op, "unique_indices")
        self.aligned = all(sizes.get(d, 1) == 1 for d in scatter.index_targets)
        """Whether two windows are either at the same place or have nothing in common."""
        self.atomic = self._atomic()

    def _atomic(self) -> str | None:
        """The atomic op that does what the update computation does, where order is free."""
        body = self.op.regions[0].blocks[0]
        first, *_, end = [op.operation for op in [*body.operations][:2] * 2]
        element = self.scatter.inputs[0].type.element_type
        if (
            len(self.scatter.inputs) > 1
            or first.name not in _ATOMIC
            or set(first.operands) != set(body.arguments)
            or list(end.operands) != list(first.results)
            or not isinstance(element, ir.IntegerType)
            or element.width not in (32, 64)
        ):
            return None
        kind = _ATOMIC[first.name]
        return kind + ("u" if element.is_unsigned else "s") if kind in ("max", "min") else kind

    # ---- places ----------------------------------------------------------------------------------
    def _starts(self, kernel: Kernel, positions: Sequence[Scalar]) -> dict[int, Scalar]:
        scatter = self.scatter
        indices = self.job.array(kernel, scatter.indices)
        of = scatter.indices.type
        is_unsigned = ir.IntegerType(of.element_type).is_unsigned
        starts: dict[int, Scalar] = {}
        for component, dimension in enumerate(scatter.index_targets):
            at = list(positions)
            if scatter.vector_dim != len(of.shape):
                at.insert(scatter.vector_dim, index(component))
            raw = indices[at]
            wide = arith.IndexCastUIOp if is_unsigned else arith.IndexCastOp
            starts[dimension] = Scalar(wide(ir.IndexType.get(), raw.value).result)
        for dimension, indices_dim in scatter.batching.items():
            starts[dimension] = positions[indices_dim - (indices_dim > scatter.vector_dim)]
        return starts

    def _fits(self, starts: dict[int, Scalar]) -> Scalar:
        fits = constant(True, ir.IntegerType.get_signless(1))
        for dimension in self.scatter.index_targets:
            last = self.shape[dimension] - self.window_of.get(dimension, 1)
            start = starts[dimension]
            fits = fits & (start >= 0) & (start <= last)
        return fits

    def _target(self, starts: dict[int, Scalar], offsets: Sequence[Scalar]) -> list[Scalar]:
        offset_of = dict(zip(self.scatter.operand_window_dims, offsets, strict=True))
        target = []
        for dimension in range(len(self.shape)):
            parts = [p[dimension] for p in (starts, offset_of) if dimension in p]
            target.append(parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else index(0))
        return target

    def _source(self, positions: Sequence[Scalar], offsets: Sequence[Scalar]) -> list[Scalar]:
        of_window, of_scatter = iter(offsets), iter(positions)
        rank = len(self.scatter_dims) + len(self.scatter.window_dims)
        return [
            next(of_window) if d in self.scatter.window_dims else next(of_scatter) for d in range(rank)
        ]

    def _updates(self, kernel: Kernel) -> list[Array]:
        return [self.job.array(kernel, update) for update in self.scatter.updates]

    def _results(self, kernel: Kernel) -> list[Array]:
        return [self.job.array(kernel, result) for result in self.op.results]

    # ---- schemes ---------------------------------------------------------------------------------
    def one_by_one(self) -> None:
        def work(kernel: Kernel) -> Callable[[Scalar], None]:
            def one(target: list[Scalar], updates: list[Scalar]) -> None:
                results = self._results(kernel)
                values = [result[target] for result in results]
                new = self.job.apply(self.op.regions[0], [*values, *updates])
                for result, value in zip(results, new, strict=True):
                    result[target] = value

            return self._element(kernel, one)

        self.job.each(math.prod(self.vectors + self.window), work)

    def atomically(self) -> None:
        def work(kernel: Kernel) -> Callable[[Scalar], None]:
            def one(target: list[Scalar], updates: list[Scalar]) -> None:
                (result,) = self._results(kernel)
                places = [place.value for place in target]
                memref.AtomicRMWOp(
                    getattr(arith.AtomicRMWKind, str(self.atomic)), updates[0].value, result.buffer, places
                )

            return self._element(kernel, one)

        self.job.each(math.prod(self.vectors + self.window), work)

    def _element(
        self, kernel: Kernel, one: Callable[[list[Scalar], list[Scalar]], None]
    ) -> Callable[[Scalar], None]:
        """Does `one(target, updates)` for an element of a window that lies inside."""

        def element(item: Scalar) -> None:
            at = split(item, [*self.vectors, *self.window])
            positions, offsets = at[: len(self.vectors)], at[len(self.vectors) :]
            starts = self._starts(kernel, positions)
            with when(self._fits(starts)):
                source = self._source(positions, offsets)
                one(self._target(starts, offsets), [u[source] for u in self._updates(kernel)])

        return element

    def by_place(self) -> None:
        """Sort units by where they go, then let one thread do all that goes to one place."""
        inner = self.window if self.aligned else []
        outer = self.vectors if self.aligned else [*self.vectors, *self.window]
        units, items = math.prod(outer), math.prod(inner)
        word = ir.IntegerType.get_signless(64 if math.prod(self.shape) >= 1 << 31 else 32)
        keys, order = (self.job.scratch([1, units], word) for _ in range(2))
        nowhere = math.prod(self.shape)

        def load(kernel: Kernel) -> Callable[[Scalar, Scalar], list[Scalar]]:
            def one(_: Scalar, unit: Scalar) -> list[Scalar]:
                at = split(unit, outer)
                starts = self._starts(kernel, at[: len(self.vectors)])
                offsets = at[len(self.vectors) :] or [index(0)] * len(self.window)
                target = self._target(starts, offsets)
                place = flat(target, self.shape)
                return [choose(self._fits(starts), place, nowhere).to(word), unit.to(word)]

            return one

        def store(kernel: Kernel) -> Callable[[Scalar, Scalar, list[Scalar]], None]:
            arrays = [self.job.array(kernel, part) for part in (keys, order)]

            def one(_: Scalar, at: Scalar, values: list[Scalar]) -> None:
                for array, value in zip(arrays, values, strict=True):
                    array[0, at] = value

            return one

        sort_rows(self.job, 1, units, [word, word], lambda a, b: a[0] < b[0], load, store,
                  [Key(0, SIGNED)])  # fmt: skip

        def work(kernel: Kernel) -> Callable[[Scalar], None]:
            return self._run(kernel, keys, order, outer, inner)

        self.job.each(units * items, work)

    def _run(
        self, kernel: Kernel, keys: Scratch, order: Scratch, outer: list[int], inner: list[int]
    ) -> Callable[[Scalar], None]:
        """Applies, for an element of the first unit that goes to a place, all those that go there."""
        key_of, unit_at = (self.job.array(kernel, part) for part in (keys, order))
        units, items = math.prod(outer), math.prod(inner)
        results, updates = self._results(kernel), self._updates(kernel)
        bit = ir.IntegerType.get_signless(1)

        def source(unit: Scalar, offsets: list[Scalar]) -> list[Scalar]:
            at = split(unit, outer)
            return self._source(at[: len(self.vectors)], [*at[len(self.vectors) :], *offsets])

        def one(item: Scalar) -> None:
            first, within = item // items, item % items
            key = key_of[0, first]
            starts_run = select(
                first > 0, lambda: [key_of[0, first - 1].differs(key)],
                lambda: [constant(True, bit)], [bit],
            )[0]  # fmt: skip
            with when(starts_run & key.differs(math.prod(self.shape))):
                offsets = split(within, inner)
                at = split(unit_at[0, first].to(ir.IndexType.get()), outer)
                starts = self._starts(kernel, at[: len(self.vectors)])
                target = self._target(starts, [*at[len(self.vectors) :], *offsets])

                def goes_on(place: Scalar, *_: Scalar) -> Scalar:
                    return select(
                        place < units, lambda: [key_of[0, place].equals(key)],
                        lambda: [constant(False, bit)], [bit],
                    )[0]  # fmt: skip

                def apply(place: Scalar, *values: Scalar) -> list[Scalar]:
                    unit = unit_at[0, place].to(ir.IndexType.get())
                    given = [update[source(unit, offsets)] for update in updates]
                    return [place + 1, *self.job.apply(self.op.regions[0], [*values, *given])]

                before = [result[target] for result in results]
                _, *after = repeat_while([first, *before], goes_on, apply)
                for result, value in zip(results, after, strict=True):
                    result[target] = value

        return one
