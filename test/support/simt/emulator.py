"""Runs the kernels of a `gpu.module` on NumPy arrays, without a GPU, and checks how threads share.

All threads of all blocks go in step: a value is an array with one element for each thread, and what
only some threads do is masked. Every access of memory is noted with its thread and the number of
barriers before it. Refused with `SimtError`: an access out of bounds; a barrier or shuffle that not
all threads reach; two threads that touch a place, one writing, with no barrier between them (or in
different blocks).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lamina.dialects.constants import array_in
from lamina.dialects.context import parse
from lamina.dialects.vendors import ir
from support.simt import blocks as simt_blocks
from support.simt import hopper as simt_hopper
from support.simt import inline_assembly as simt_asm
from support.simt import mma as simt_mma
from support.simt import tensor_maps as simt_maps
from support.simt import turns as simt_turns
from support.simt import wgmma as simt_wgmma

SHARED = 3


class SimtError(AssertionError):
    """What a GPU would not forgive, or would do differently each time."""


def run(text: str, arguments: Sequence[np.ndarray]) -> Counter[str]:
    """Runs the kernels of a module one after the other on dense arrays, changing those in place; how
    often copies and `ldmatrix` met in banks of shared memory."""
    module = parse(text)
    (device,) = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    scratch = np.zeros(device.attributes["lamina.scratch_bytes"].value, np.int8)
    functions = [op.operation for op in device.regions[0].blocks[0].operations]
    globals_ = {f.attributes["sym_name"].value: f for f in functions if f.name == "memref.global"}
    conflicts: Counter[str] = Counter()
    for function in functions:
        if function.name == "gpu.func":
            launch = _Launch(function, globals_, [*arguments, scratch])
            launch.run()
            conflicts += launch.conflicts
    return conflicts


@functools.cache
def _functions(text: str) -> dict[str, Any]:
    module = parse(text)
    (device,) = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    functions = [op.operation for op in device.regions[0].blocks[0].operations]
    return {"module": module, **{f.attributes["sym_name"].value: f for f in functions}}


def kernel(text: str, name: str) -> Any:
    """The `gpu.func` of this name in a module."""
    return _functions(text)[name]


def launch(text: str, name: str, arguments: Sequence[np.ndarray]) -> None:
    """Runs one kernel of a module on all that it takes, scratch memory included."""
    _Launch(kernel(text, name), _functions(text), arguments).run()


class _Memory:
    """Bytes with, for each unit of so many, who wrote and read it last. Shared memory has a row a
    block, a stack a row a thread."""

    def __init__(
        self, data: np.ndarray, shared: bool, unit: int = 0, stack: bool = False
    ) -> None:
        self.data, self.shared, self.unit = data, shared, unit or data.itemsize
        self.stack = stack
        units = data.size * data.itemsize // self.unit
        self.writer, self.write_epoch = (np.full(units, -1) for _ in range(2))
        self.reader, self.read_epoch = (np.full(units, -1) for _ in range(2))
        self.read_block = np.full(units, -1)  # -2 for several
        self.pending = np.zeros(units, bool)  # where a copy goes that is under way
        self.atomic = np.full(units, -1)  # the kind of the last write, if it was atomic


class _View:
    """A memref: elements of a memory at an offset, with strides."""

    def __init__(self, memory: _Memory, type_: Any, offset: Any = None) -> None:
        self.memory, self.shape = memory, list(type_.shape)
        self.strides, static = type_.get_strides_and_offset()
        self.offset = static if offset is None else offset
        self.data = memory.data.view(_dtype(type_.element_type))

    def units(self, place: np.ndarray) -> tuple[np.ndarray, int]:
        """The units of memory that elements take, and how many each."""
        count = self.data.itemsize // self.memory.unit
        if count <= 1:
            return place, 1
        return (place[:, None] * count + np.arange(count)).reshape(-1), count


class _Launch:
    def __init__(
        self, function: Any, globals_: dict[str, Any], arguments: Sequence[np.ndarray]
    ) -> None:
        self.function, self.globals = function, globals_
        self.block_size = list(function.attributes["known_block_size"])
        self.grid_size = list(function.attributes["known_grid_size"])
        self.threads, self.blocks = math.prod(self.block_size), math.prod(self.grid_size)
        self.lane = np.arange(self.threads * self.blocks)
        self.block = self.lane // self.threads
        self.epoch = np.zeros(self.blocks, np.int64)
        self.copies, self.hopper = simt_mma.Copies(), simt_hopper.Hopper()
        self.conflicts: Counter[str] = Counter()
        self.give_way: Callable[..., None] | None = None
        """Lets other blocks go on, where blocks wait for each other."""
        self.repeats = False  # an atomic operation, until others did something
        self.values: dict[Any, Any] = {}
        self.named: dict[str, _Memory] = {}
        self.views: dict[Any, _Memory] = {}
        block = function.regions[0].blocks[0]
        if len(arguments) < len(block.arguments):
            arguments = [*arguments, *simt_maps.maps_of(function, arguments)]
        for argument, array in zip(block.arguments, arguments, strict=True):
            if isinstance(array, simt_maps.Map):
                self.values[argument] = array
                continue
            type_ = ir.MemRefType(argument.type)
            assert array.flags.c_contiguous and array.size == math.prod(type_.shape)
            memory = _Memory(array.reshape(-1).view(_dtype(type_.element_type)), False)
            self.values[argument] = _View(memory, type_)

    def run(self) -> None:
        if simt_blocks.wait(self.function.regions[0].blocks[0]):
            simt_blocks.run(self)
            return
        with np.errstate(all="ignore"):
            self.do(self.function.regions[0].blocks[0], np.ones(self.lane.size, bool))

    def do(self, block: Any, mask: np.ndarray) -> list[Any]:
        """Runs a block; what its last op yields."""
        for view in block.operations:
            op = view.operation
            if op.name in ("scf.yield", "gpu.return", "scf.condition"):
                return [self.values[value] for value in op.operands]
            results = self.step(op, mask)
            for value, result in zip(op.results, results, strict=True):
                self.values[value] = result
        return []

    def step(self, op: Any, mask: np.ndarray) -> list[Any]:
        operands = [self.values[value] for value in op.operands]
        match op.name:
            case "complex.constant":
                re, im = (float(part.value) for part in op.attributes["value"])
                return [np.asarray(re + 1j * im, _dtype(op.results[0].type))]
            case "arith.constant":
                return [_constant(op)]
            case "ub.poison":  # what nobody may look at
                dtype = _dtype(op.results[0].type)
                return [np.frombuffer(b"\xab" * dtype.itemsize, dtype)[0]]
            case "gpu.thread_id":
                return [self._along(op, self.lane % self.threads, self.block_size)]
            case "gpu.block_id":
                return [self._along(op, self.block, self.grid_size)]
            case "gpu.barrier":
                self._everyone(op, mask, self.threads)
                self.epoch += mask[:: self.threads]
                return []
            case "gpu.shuffle":
                return self._shuffle(op, operands, mask)
            case "scf.for":
                return self._for(op, operands, mask)
            case "scf.while":
                return self._while(op, operands, mask)
            case "scf.if":
                return self._if(op, operands[0], mask)
            case "memref.load":
                return [self._load(op, operands[0], self._place(op, operands, mask), mask)]
            case "memref.store":
                self._store(op, operands[1], self._place(op, operands[1:], mask), operands[0], mask)
                return []
            case "memref.atomic_rmw":
                before = self._atomic(op, operands, self._place(op, operands[1:], mask), mask)
                if self.give_way is not None and not self.repeats and mask.any():
                    self.give_way()
                return [before]
            case "vector.load":
                count = op.results[0].type.shape[0]
                first = self._place(op, operands, mask, count)
                return [np.stack([
                    self._load(op, operands[0], first + n, mask) for n in range(count)
                ], axis=-1)]  # fmt: skip
            case "vector.store":
                count = op.operands[0].type.shape[0]
                first = self._place(op, operands[1:], mask, count)
                for n in range(count):
                    self._store(op, operands[1], first + n, operands[0][..., n], mask)
                return []
            case "vector.extract":
                return [operands[0][(..., *op.attributes["static_position"])]]
            case "vector.from_elements":
                parts = np.stack([np.broadcast_to(o, self.lane.shape) for o in operands], axis=-1)
                return [parts.reshape(self.lane.size, *op.results[0].type.shape)]
            case name if name in simt_mma.OPS:
                return simt_mma.OPS[name](self, op, operands, mask)
            case name if name in simt_asm.OPS:
                return simt_asm.OPS[name](self, op, operands, mask)
            case name if name in simt_wgmma.OPS:
                if not mask.any():
                    return [None] * len(op.results)
                return simt_wgmma.OPS[name](self, op, operands, mask)
            case name if name.startswith("memref."):
                return [self._view(op, operands)]
        return [_compute(op, operands)]

    def _along(self, op: Any, flat: np.ndarray, sizes: list[int]) -> np.ndarray:
        axis = "xyz".index(str(op.attributes["dimension"]).rstrip(">").rsplit(" ", 1)[1])
        return flat // math.prod(sizes[:axis]) % sizes[axis]

    def _everyone(self, op: Any, mask: np.ndarray, group: int = 0) -> None:
        """Refuses what not all threads reach, or of some groups of neighbours not all."""
        groups = mask.reshape(-1, group or mask.size)
        if (groups.any(axis=1) != groups.all(axis=1)).any():
            raise SimtError(f"{op.name} in {self.function.attributes['sym_name']}: "
                            f"threads {np.flatnonzero(~mask)[:4]} do not get there")  # fmt: skip

    def _shuffle(self, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
        warps = mask.reshape(-1, 32)
        if (warps.any(axis=1) != warps.all(axis=1)).any():
            raise SimtError(f"{op}: some lanes of a warp do not take part")
        value = np.broadcast_to(operands[0], self.lane.shape)
        return [value[self.lane ^ int(operands[1])], np.ones(self.lane.size, bool)]

    def _for(self, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
        low, high, step, *carried = operands
        body = op.regions[0].blocks[0]
        at = np.broadcast_to(low, self.lane.shape).copy()
        while (active := mask & (at < high)).any():
            self.values.update(zip(body.arguments, [at, *carried], strict=True))
            carried = [
                _where(active, new, old)
                for new, old in zip(self.do(body, active), carried, strict=True)
            ]
            at = at + step
        return carried

    def _while(self, op: Any, carried: list[Any], mask: np.ndarray) -> list[Any]:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [np.broadcast_to(value, self.lane.shape) for value in carried]
        out: list[Any] = []
        waits = self.give_way is not None and simt_blocks.has_atomic(op)
        self.repeats, missing = waits, -1
        while True:
            self.values.update(zip(before.arguments, carried, strict=True))
            goes_on, *passed = self.do(before, mask)
            out = [np.where(mask, p, o) for p, o in zip(passed, out or passed, strict=True)]
            mask = mask & np.broadcast_to(goes_on, self.lane.shape)
            if not mask.any():
                self.repeats = False
                return out
            if waits and missing >= 0:
                self.give_way(in_vain=missing == mask.sum())  # type: ignore[misc]
            missing = mask.sum()
            self.values.update(zip(after.arguments, passed, strict=True))
            carried = [
                np.where(mask, new, old)
                for new, old in zip(self.do(after, mask), carried, strict=True)
            ]

    def _if(self, op: Any, condition: Any, mask: np.ndarray) -> list[Any]:
        condition = np.broadcast_to(condition, self.lane.shape)
        if simt_turns.takes_turns(op):
            self.hopper.turns = simt_turns.Turns()
            self.hopper.turns.run([
                functools.partial(self.do, region.blocks[0], part)
                for region, part in zip(op.regions, (mask & condition, mask & ~condition))
            ])  # fmt: skip
            return []
        arms = [
            self.do(region.blocks[0], part) if len(region.blocks) else []
            for region, part in zip(op.regions, (mask & condition, mask & ~condition))
        ]
        return [np.where(condition, a, b) for a, b in zip(*arms)] if len(op.results) else []

    # ---- memory ----------------------------------------------------------------------------------
    def _view(self, op: Any, operands: list[Any]) -> _View:
        type_ = ir.MemRefType(op.results[0].type)
        if op.name == "memref.get_global":
            return _View(self._global(op, type_), type_)
        if op.name == "memref.alloca":
            data = np.zeros(math.prod(type_.shape) * self.lane.size, _dtype(type_.element_type))
            data.view(np.uint8)[:] = 0xAB
            return _View(_Memory(data, False, stack=True), type_)
        if op.name == "memref.view" and operands[0].memory.shared:
            # Parts that overlap share what is known of who wrote and read.
            return _View(operands[0].memory, type_, int(operands[1]) // _dtype(type_.element_type).itemsize)
        if op.name == "memref.view":
            # One memory for each typed window: they do not overlap.
            source, start = operands[0].memory.data, int(operands[1])
            dtype = _dtype(type_.element_type)
            data = source[start : start + math.prod(type_.shape) * dtype.itemsize].view(dtype)
            return _View(_Memory(data, False), type_)
        if op.name not in ("memref.subview", "memref.collapse_shape", "memref.expand_shape",
                           "memref.cast", "memref.reinterpret_cast"):  # fmt: skip
            raise NotImplementedError(f"the emulator does not know {op.name}")
        if len(operands) == 1:
            return _View(operands[0].memory, type_)
        source = operands[0]
        dynamic = iter(operands[1:])
        smallest = ir.ShapedType.get_dynamic_size()
        starts = [next(dynamic) if o == smallest else o for o in op.attributes["static_offsets"]]
        offset = source.offset + sum(o * s for o, s in zip(starts, source.strides))
        return _View(source.memory, type_, offset)

    def _global(self, op: Any, type_: Any) -> _Memory:
        name = op.attributes["name"].value
        if name not in self.named:
            shared = type_.memory_space is not None
            count = math.prod(type_.shape) * (self.blocks if shared else 1)
            data = np.zeros(count, _dtype(type_.element_type))
            if shared:
                data.view(np.uint8)[:] = 0xAB  # memory that nobody wrote is not zero
            else:
                data[:] = array_in(self.globals[name], "initial_value", type_).reshape(-1)
            self.named[name] = _Memory(data, shared, self._unit_of(op) if shared else 0)
        return self.named[name]

    def _unit_of(self, op: Any) -> int:
        """The smallest element that a shared buffer is seen to hold."""
        seen = [use.owner.operation.results[0].type for use in op.results[0].uses
                if use.owner.operation.name == "memref.view"]  # fmt: skip
        return min((_dtype(ir.MemRefType(t).element_type).itemsize for t in seen), default=0)

    def _place(
        self, op: Any, operands: list[Any], mask: np.ndarray, count: int = 1
    ) -> np.ndarray:
        view, *at = operands
        place = np.broadcast_to(view.offset, self.lane.shape).copy()
        for number, (i, size, stride) in enumerate(zip(at, view.shape, view.strides, strict=True)):
            last = count - 1 if number == len(at) - 1 else 0
            if ((i < 0) | (i + last >= size))[mask if np.ndim(i) else ...].any() and mask.any():
                raise SimtError(f"{op}: an index is out of the bounds of {view.shape}")
            place += i * stride
        if count > 1 and (place[mask] % count).any():
            raise SimtError(f"{op}: not aligned")
        if view.memory.shared:
            place += self.block * (view.data.size // self.blocks)
        if view.memory.stack:
            place += self.lane * (view.data.size // self.lane.size)
        return np.where(mask, place, 0)

    def _load(
        self, op: Any, view: _View, place: np.ndarray, mask: np.ndarray, by_warp: bool = False
    ) -> np.ndarray:
        """`by_warp`: other lanes get the data, too."""
        memory = view.memory
        if not view.data.size:
            return np.zeros(self.lane.size, view.data.dtype)
        at, lane, block = self._touched(view, place, mask)
        self._check_pending(op, memory, at)
        lane = np.full_like(lane, -2) if by_warp else lane
        self._check(op, memory.writer[at], memory.writer[at] // self.threads,
                    memory.write_epoch[at], lane, block)  # fmt: skip
        epoch = self.epoch[block]
        same = (memory.read_epoch[at] == epoch) & (memory.reader[at] != -1)
        memory.reader[at] = np.where(same & (memory.reader[at] != lane), -2, lane)
        several = (memory.reader[at] != lane) & (memory.reader[at] != -2)
        memory.reader[at[several]] = -2
        known = memory.read_block[at]
        memory.read_block[at] = np.where((known == -1) | (known == block), block, -2)
        memory.read_block[at[(memory.read_block[at] != block)]] = -2
        memory.read_epoch[at] = epoch
        return view.data[place]

    def _touched(self, view: _View, place: np.ndarray, mask: np.ndarray) -> tuple[Any, Any, Any]:
        at, each = view.units(place[mask])
        return at, np.repeat(self.lane[mask], each), np.repeat(self.block[mask], each)

    def _store(
        self, op: Any, view: _View, place: np.ndarray, value: Any, mask: np.ndarray
    ) -> None:
        memory = view.memory
        at, lane, block = self._claim(op, view, place, mask, pending=False)
        memory.writer[at], memory.write_epoch[at] = lane, self.epoch[block]
        memory.atomic[at] = -1
        self.hopper.wrote(memory, at)
        view.data[place[mask]] = np.broadcast_to(value, self.lane.shape)[mask]

    def _claim(
        self, op: Any, view: _View, place: np.ndarray, mask: np.ndarray, pending: bool = True
    ) -> tuple[Any, Any, Any]:
        """Checks that threads may write here; `pending`: that they will, when a copy is done."""
        memory = view.memory
        at, lane, block = self._touched(view, place, mask)
        if np.unique(at).size != at.size:
            raise SimtError(f"{op}: threads write the same place at once")
        self._check_pending(op, memory, at)
        self.hopper.check_write(op, memory, at)
        memory.pending[at] = pending
        self._check(op, memory.writer[at], memory.writer[at] // self.threads,
                    memory.write_epoch[at], lane, block)  # fmt: skip
        self._check(op, memory.reader[at], memory.read_block[at],
                    memory.read_epoch[at], lane, block)  # fmt: skip
        return at, lane, block

    def _check_pending(self, op: Any, memory: _Memory, at: np.ndarray) -> None:
        if memory.pending[at].any():
            raise SimtError(f"race: {op} where a copy goes that nobody waited for")

    def _atomic(self, op: Any, operands: list[Any], place: np.ndarray, mask: np.ndarray) -> Any:
        """Each thread in turn; atomics of one kind may meet, but not with other accesses."""
        kind = op.attributes["kind"].value
        value, memory = np.broadcast_to(operands[0], self.lane.shape), operands[1].memory
        at, lane, block = place[mask], self.lane[mask], self.block[mask]
        alone = memory.atomic[at] != kind
        for who, where, when in ((memory.writer, memory.writer // self.threads, memory.write_epoch),
                                 (memory.reader, memory.read_block, memory.read_epoch)):  # fmt: skip
            self._check(op, *(x[at][alone] for x in (who, where, when)), lane[alone], block[alone])
        before = np.zeros(self.lane.size, memory.data.dtype)
        for thread in np.flatnonzero(mask):
            old = before[thread] = memory.data[place[thread]]
            memory.data[place[thread]] = _ATOMICS[kind](old, value[thread])
        memory.writer[at], memory.write_epoch[at] = lane, self.epoch[block]
        memory.atomic[at] = kind
        return before

    def _check(self, op: Any, who: Any, their_block: Any, when: Any, lane: Any, block: Any) -> None:
        others = (when != -1) & (who != lane) & ((their_block != block) | (when == self.epoch[block]))
        if others.any():
            first = np.flatnonzero(others)[0]
            raise SimtError(f"race: {op} by thread {lane[first]} after thread {who[first]} "
                            "touched the same place, with no barrier between")  # fmt: skip


def _where(mask: np.ndarray, new: Any, old: Any) -> np.ndarray:
    """The same for vectors, which have more dimensions."""
    if isinstance(new, simt_hopper.Sums):
        return new.where(mask, old)
    more = max(np.ndim(new), np.ndim(old)) - 1
    return np.where(mask.reshape(-1, *[1] * more), new, old)


# ---- scalar operations ---------------------------------------------------------------------------
def _dtype_of_name(name: str) -> np.dtype:
    """An element type as PTX calls it."""
    return np.dtype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8,
                     "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
                     "tf32": np.float32}[name])  # fmt: skip


def _dtype(type_: Any) -> np.dtype:
    text = str(type_)
    names = {"index": "int64", "i1": "bool", "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
             "f8E5M2": ml_dtypes.float8_e5m2, "f16": "float16",
             "f32": "float32", "tf32": "float32", "f64": "float64", "complex<f32>": "complex64",
             "complex<f64>": "complex128"}  # fmt: skip
    return np.dtype(names.get(text) or f"int{text[1:]}")


def _constant(op: Any) -> Any:
    value = op.attributes["value"]
    type_ = op.results[0].type
    if isinstance(type_, ir.VectorType):
        number = value.get_splat_value().value
        return np.full((1, *type_.shape), number, _dtype(type_.element_type))
    return np.asarray(value.value).astype(_dtype(op.results[0].type))


def _unsigned(x: Any) -> Any:
    return x.view(f"uint{8 * x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _as_unsigned(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: f(*(_unsigned(np.asarray(x)) for x in xs))


def _select(condition: Any, a: Any, b: Any) -> Any:
    """By one condition for whole vectors, too."""
    more = max(a.ndim, b.ndim) - condition.ndim
    return np.where(condition.reshape(*condition.shape, *[1] * max(more, 0)), a, b)


_INTEGER = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
            *map(_as_unsigned, (np.less, np.less_equal, np.greater, np.greater_equal)))  # fmt: skip
_ORDERED = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)


def _compare_floats(op: Any, a: Any, b: Any) -> Any:
    predicate = op.attributes["predicate"].value
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.full(nan.shape, predicate == 15)
    if predicate in (7, 14):
        return nan if predicate == 14 else ~nan
    if predicate < 7:
        return _ORDERED[predicate - 1](a, b) & ~nan
    return _ORDERED[predicate - 8](a, b) | nan


_OPS: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply,
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide, "arith.negf": np.negative, "arith.remf": np.fmod,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.maxui": _as_unsigned(np.maximum), "arith.minui": _as_unsigned(np.minimum),
    "arith.ceildivui": _as_unsigned(lambda a, b: a // b + (a % b != 0).astype(a.dtype)),
    "arith.divui": _as_unsigned(np.floor_divide), "arith.remui": _as_unsigned(np.remainder),
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
    "arith.shrui": _as_unsigned(np.right_shift), "arith.select": _select,
    "math.absf": np.abs, "math.absi": np.abs, "math.ceil": np.ceil, "math.copysign": np.copysign,
    "math.cos": np.cos, "math.exp": np.exp, "math.expm1": np.expm1, "math.floor": np.floor,
    "math.fma": lambda a, b, c: a * b + c, "math.log": np.log, "math.log1p": np.log1p,
    "math.powf": np.power, "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.sin": np.sin,
    "complex.create": lambda re, im: re + 1j * im, "complex.re": np.real, "complex.im": np.imag,
    "complex.add": np.add, "complex.sub": np.subtract, "complex.mul": np.multiply,
    "complex.div": np.divide, "complex.neg": np.negative, "complex.abs": np.abs,
    "complex.exp": np.exp, "complex.expm1": np.expm1, "complex.log": np.log, "complex.sin": np.sin,
    "complex.cos": np.cos, "complex.tan": np.tan, "complex.tanh": np.tanh, "complex.pow": np.power,
    "complex.log1p": np.log1p, "complex.sqrt": np.sqrt, "complex.conj": np.conj,
    "complex.rsqrt": lambda x: 1 / np.sqrt(x), "complex.eq": np.equal, "complex.neq": np.not_equal,
    "arith.divsi": lambda a, b: a // b + ((a % b != 0) & ((a < 0) != (b < 0))), "arith.remsi": np.fmod,
    "math.round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "math.ctpop": lambda x: np.bitwise_count(_unsigned(x)),
    "math.ctlz": lambda x: 8 * x.dtype.itemsize - np.frexp(_unsigned(x).astype(float))[1],
    "math.cbrt": np.cbrt, "math.tan": np.tan, "math.atan2": np.arctan2, "math.roundeven": np.rint,
    "math.sqrt": np.sqrt, "math.tanh": np.tanh,
}  # fmt: skip
_ATOMICS: dict[int, Callable[..., Any]] = {
    0: np.add, 1: np.add, 2: np.bitwise_and, 6: np.maximum, 7: _as_unsigned(np.maximum),
    10: np.minimum, 11: _as_unsigned(np.minimum), 14: np.bitwise_or,
}  # fmt: skip
"""By number in arith's AtomicRMWKind."""
_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast",
                "arith.extsi", "arith.trunci")  # fmt: skip
_SMALL = (np.float16, ml_dtypes.bfloat16)
_UNSIGNED_CONVERSIONS = ("arith.extui", "arith.uitofp", "arith.index_castui")


def _saturated(op: Any, value: Any, dtype: np.dtype) -> Any:
    """As the CPU does, and all backends (`math-saturate-conversions`)."""
    whole = np.dtype(f"u{dtype}") if op.name == "arith.fptoui" else dtype
    limits = np.iinfo(whole)
    rounded = np.clip(np.trunc(np.nan_to_num(value.astype(float), posinf=1e30, neginf=-1e30)),
                      float(limits.min), float(limits.max))  # fmt: skip
    exact = np.where(rounded >= float(limits.max), limits.max, 0).astype(whole)
    return np.where(exact != 0, exact, np.where(exact == 0, rounded, 0).astype(whole)).view(dtype)


def _compute(op: Any, operands: list[Any]) -> Any:
    operands = [np.asarray(x) for x in operands]
    of = op.results[0].type
    dtype = _dtype(of.element_type if isinstance(of, ir.VectorType) else of)
    if op.name == "arith.cmpi":
        return _INTEGER[op.attributes["predicate"].value](*operands)
    if op.name == "arith.cmpf":
        return _compare_floats(op, *operands)
    if op.name in ("arith.fptosi", "arith.fptoui"):
        return _saturated(op, operands[0], dtype)
    if op.name in _CONVERSIONS:
        if op.name == "arith.trunci" and dtype.kind == "b":
            return (operands[0] & 1).astype(bool)
        return operands[0].astype(dtype)
    if op.name in _UNSIGNED_CONVERSIONS:
        return _unsigned(operands[0]).astype(dtype)
    if op.name == "arith.bitcast":
        return operands[0].view(dtype)
    if op.name not in _OPS:
        raise NotImplementedError(f"the emulator does not know {op.name}")
    if op.name.startswith("math."):  # as `math-expand-small-floats`: in f32, rounded once
        operands = [x.astype(np.float32) if x.dtype in _SMALL else x for x in operands]
    result = np.asarray(_OPS[op.name](*operands))
    same = dtype.kind == "i" and result.dtype.itemsize == dtype.itemsize
    return result.view(dtype) if same else result.astype(dtype)
