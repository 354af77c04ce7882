"""The gradient of attention with the scores of a few queries at a time.

    %dq, %dk, %dv = products of what %s = dot_general %q, %k and %g, %v make  (an `attention_gradient`)

becomes loops over blocks of queries. The scores of a block with all keys are computed, transposed: a
vector holds one key's for 16 queries, so that a row's sum needs none across lanes. Sweeps over the
keys follow, each as far as is known (maximum; exponentials and their sum; ...), and what is costly is
kept from one to the next. The last sweep multiplies what comes out by keys, for the block's own rows
of the gradient with respect to queries, and by the queries' rows, for what is added to the gradients
with respect to keys and values.

Tasks are batches and heads, as others would add to the same sums; where these are few, queries too
are divided, and each part has sums of its own that are added up in the end. In memory are the scores of
one block for each of at most as many tasks as fit into `kept_bytes`. Keys that a mask of positions hides
from all queries of a block are left out, if all that is made of their scores is zero. (What is infinite
or NaN there is then not multiplied by zero.)

Products of f32, and of what is widened to that, are done in vectors. Where `features` have `amx-bf16`,
those that the program has of bf16 are done in tile registers.

example: test/passes/kernels/cpu/attention/write_attention_gradient.mlir
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, for_tasks, index, load, store
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.attention.blocks import (
    Blocks,
    Position,
    array,
    block_of,
    constant,
    for_both,
    is_f32,
    narrowed,
    on_buffers,
    plus,
    replace_kernels,
)
from lamina.passes.kernels.cpu.attention.gradient_block import QueryBlock
from lamina.passes.kernels.cpu.attention.gradient_lanes import Layout
from lamina.passes.kernels.cpu.attention.gradient_pairs import (
    TurnedKeys,
    is_product_of_pairs,
    is_sink_of_pairs,
)
from lamina.passes.kernels.cpu.attention.mask import Mask
from lamina.passes.kernels.cpu.gemm.dot_instructions import release_tiles
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.stablehlo.analysis.facts import reducer_of
from lamina.passes.stablehlo.attention.score_region import (
    Operand,
    Product,
    ScoreRegion,
    Sink,
    positions_in,
)
from lamina.passes.stablehlo.attention.score_sweeps import Sweeps
from lamina.passes.stablehlo.attention.score_zeros import HiddenZeros
from lamina.passes.stablehlo.attention.wide_copies import before_rounding

KIND = "attention_gradient"
_KEYS = 64  # of a step, roughly
_QUERIES, _LANES = 32, 16  # of a block, at most and at least
_PAIRED_QUERIES = 64
_TASK_BYTES = 240 << 10  # memory: on a task's stack, which has a little more
_LEAST_TASKS = 8  # rounding: each adds up a part of the sums


class WriteAttentionGradient(Pass):
    """See the module's docstring."""

    features: str = ""
    """Of `amx-bf16`, `avx512bf16`, with `+` between them; others mean nothing here."""
    vector_bits: int = 512
    kept_bytes: int = REFERENCE.l3_bytes // 2

    def run(self, module: ir.Module) -> None:
        self.count("written", replace_kernels(module, KIND, lambda kernel: _Writer(kernel, self).write()))


class _Writer:
    """Writes the function on buffers that takes the place of one."""

    def __init__(self, function: ir.Operation, options: WriteAttentionGradient) -> None:
        block = function.regions[0].blocks[0]
        positions = positions_in(block)
        first = next(op for op in positions if op.name == "stablehlo.dot_general")
        region = ScoreRegion.of(first, positions)
        assert region is not None, "only kernels that were outlined for this are asked about"
        self._function, self._options, self._region = function, options, region
        self._results = list(list(positions)[-1].operands)
        features = options.features.split("+")
        self._pairs = _in_pairs(region) if "amx-bf16" in features else []
        self._rounds = "avx512bf16" in features
        region.sinks = [
            sink if sink in self._pairs else replace(sink, scores=before_rounding(sink.scores))
            for sink in region.sinks
        ]
        again = [p for p in region.products if p in self._pairs]
        self._plan = Sweeps.of(region, again)
        extents = region.extents
        self._blocks = Blocks(region.width, options.vector_bits // 32)
        self._query, self._keys = region.rows[-1], extents[region.keys]
        # Rows behind the last are computed, and not used.
        self._queries, self._step = self._sizes()
        self._row_counts = [
            *(extents[d] for d in region.rows[:-1]),
            math.ceil(extents[self._query] / self._queries),
        ]
        places = math.prod(extents[d] for d in region.batch)
        parts = math.ceil(_LEAST_TASKS / places)
        self._part_rows = math.ceil(math.prod(self._row_counts) / parts)
        self._parts = math.ceil(math.prod(self._row_counts) / self._part_rows)
        kept = max(1, self._plan.arrays) * self._keys * self._queries * 4
        self._units = places * self._parts
        self._slots = min(self._units, max(_LEAST_TASKS, options.kept_bytes // kept))

    def _sizes(self) -> tuple[int, int]:
        """The queries of a block and the keys of a step, for what tasks have room for."""
        extent = self._region.extents[self._query]
        most = min(_PAIRED_QUERIES if self._pairs else _QUERIES, math.ceil(extent / _LANES) * _LANES)
        sizes = [(q, k) for q in range(most, 0, -_LANES) for k in (_KEYS, _KEYS // 2)]
        queries, keys = next((s for s in sizes if self._task_bytes(*s) <= _TASK_BYTES), sizes[-1])
        # Pairs of a block of keys are no other block's.
        return queries, min(keys, self._keys) if self._pairs else block_of(self._keys, keys)

    def _task_bytes(self, queries: int, keys: int) -> int:
        """Of a task's temporaries, roughly."""
        region, pairs, scores = self._region, self._pairs, queries * keys
        is_ragged = region.extents[self._query] % queries != 0
        copied: dict[Operand, int] = {}
        total = 0
        for product in region.products:
            size = 2 if product in pairs else 4
            total += queries * product.rows.width * size + scores * 4
            if size == 2 and (is_ragged or product.rows.dims[-1] != region.width):
                copied[product.rows] = queries * size
            if product.keys.dims[-1] != region.width or size == 4:
                copied[product.keys] = keys * size
        for sink in region.sinks:
            size, number = (2, 2) if sink in pairs else (4, 1)
            total += queries * sink.other.width * (4 * number if sink.over_keys else size)
            total += scores * size + scores * 2 * sink.over_keys
            if size == 4:
                copied[sink.other] = size * (keys if sink.over_keys else 0)
        return total + sum(operand.width * by for operand, by in copied.items())

    def write(self) -> None:
        with on_buffers(self._function, self._results) as self._buffers:
            self._tasks()

    # ---- tasks ---------------------------------------------------------------------------------
    def _tasks(self) -> None:
        region = self._region
        kept = [array(self._slots, self._keys, self._queries) for _ in range(self._plan.arrays)]
        self._layout = Layout(
            region, self._plan, self._blocks, self._buffers, kept, self._queries, self._step,
            _mask(region), self._pairs, self._rounds,
        )  # fmt: skip
        self._turned_keys = {
            sink.other: TurnedKeys(self._layout, sink.other, self._slots)
            for sink in region.sinks
            if sink.over_keys and sink in self._pairs
        }
        self._partial = {
            sink: array(self._units, self._keys, sink.other.width)
            for sink in region.sinks
            if not sink.over_keys and not self._is_direct(sink)
        }
        widths = [p.rows.width for p in region.products]
        widths += [sink.other.width for sink in region.sinks]
        machine = machine_of(self._function)
        cost = math.prod(region.extents) * sum(widths) * machine.multiply_add_ns("f32")
        tasks, grain = split([self._slots], cost, machine)

        def task(values: list[ir.Value]) -> None:
            (slot,) = values
            for_steps(
                slot, index(self._units), self._slots, lambda unit: self._unit(slot, unit)
            )

        for_tasks([self._slots], tasks, grain, task)
        for sink in self._partial:
            self._add_parts(sink)

    def _is_direct(self, sink: Sink) -> bool:
        """Whether sums over rows can be where the result is, from the first on."""
        at_end = sink.dims[-1] == self._region.width
        return self._parts == 1 and at_end and is_f32(self._buffers[sink.result])

    def _unit(self, slot: ir.Value, unit: ir.Value) -> None:
        region, blocks = self._region, self._blocks
        counts = [*(region.extents[d] for d in region.batch), self._parts]
        *places, part = _digits(unit, counts)
        at = {**dict(zip(region.batch, places, strict=True)), blocks.slot: slot}
        sums = {sink: self._sum(sink) for sink in region.sinks if not sink.over_keys}
        for sink, target in sums.items():
            self._clear(target, sink.other.width, {**at, blocks.slot: unit})
        for keys in self._turned_keys.values():
            keys.write(at)
        low = arith.MulIOp(part, index(self._part_rows)).result
        high = arith.MinUIOp(
            plus(low, index(self._part_rows)), index(math.prod(self._row_counts))
        ).result

        def rows(number: ir.Value) -> None:
            *outer, last = _digits(number, self._row_counts)
            first = arith.MulIOp(last, index(self._queries)).result
            where = {**at, **dict(zip(region.rows, (*outer, first), strict=True))}
            QueryBlock(self._layout, where, sums, unit, self._turned_keys).write()

        for_steps(low, high, 1, rows)
        if self._pairs:
            release_tiles()

    def _sum(self, sink: Sink) -> Factor:
        """Where a sum over rows is, its keys by a first one and a place behind it."""
        region, blocks = self._region, self._blocks
        shifts = {region.keys: blocks.key}
        if sink in self._partial:
            dims = (blocks.slot, region.keys, region.width)
            return blocks.factor(self._partial[sink], dims, shifts)
        return blocks.factor(self._buffers[sink.result], sink.dims, shifts)

    def _clear(self, target: Factor, width: int, at: Position) -> None:
        blocks, zero = self._blocks, constant(0.0)

        def one(k: ir.Value, c: ir.Value) -> None:
            place = {**at, self._region.keys: index(0), blocks.key: k, blocks.width: c}
            store(zero, target.buffer, target.at(place))

        for_both(index(self._keys), width, one)

    def _add_parts(self, sink: Sink) -> None:
        region, width = self._region, sink.other.width
        partial = self._partial[sink]
        counts = [*(region.extents[d] for d in region.batch), self._keys]
        machine = machine_of(self._function)
        cost = math.prod(counts) * width * self._parts * machine.on_elements(3 * machine.access_ps + machine.op_ps)
        tasks, grain = split(counts, cost, machine)

        def one(values: list[ir.Value]) -> None:
            *places, key = values
            first = index(0)
            for d, place in zip(region.batch, places, strict=True):
                first = plus(arith.MulIOp(first, index(region.extents[d])).result, place)
            first = arith.MulIOp(first, index(self._parts)).result
            at = dict(zip((*region.batch, region.keys), values, strict=True))

            def element(c: ir.Value) -> None:
                total = load(partial, [first, key, c])
                for part in range(1, self._parts):
                    other = load(partial, [plus(first, index(part)), key, c])
                    total = arith.AddFOp(total, other).result
                where = {**at, region.width: c}
                target = self._buffers[sink.result]
                store(narrowed(total, target), target, [where[d] for d in sink.dims])

            for_steps(index(0), index(width), 1, element)

        for_tasks(counts, tasks, grain, one)


def _in_pairs(region: ScoreRegion) -> list[Product | Sink]:
    """What tiles multiply."""
    products = [p for p in region.products if is_product_of_pairs(p)]
    return [*products, *(s for s in region.sinks if is_sink_of_pairs(s))]


def _mask(region: ScoreRegion) -> Mask | None:
    """The mask of scores, if all that it hides from queries that see the first key is zero."""
    for op in region.ops:
        scores = op.operands[0]
        if op.name == "stablehlo.reduce" and reducer_of(op) == "stablehlo.maximum":
            mask = Mask.of_scores(scores)
            if mask is None or region.dims[scores] != tuple(range(region.width)):
                return None
            zeros = HiddenZeros(region, scores, mask.visible, when=mask.when)
            return replace(mask, is_infinite=False) if zeros.are_all_sums() else None
    return None


def _digits(number: ir.Value, counts: Sequence[int]) -> list[ir.Value]:
    """A number's digits, each below one of the counts."""
    digits: list[ir.Value] = []
    for count in reversed(counts[1:]):
        digits.append(arith.RemUIOp(number, index(count)).result)
        number = arith.DivUIOp(number, index(count)).result
    return [number, *reversed(digits)]
