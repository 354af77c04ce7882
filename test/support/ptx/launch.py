"""Launches a kernel of a module of PTX on arrays, without a GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.ptx.block_races import BlockRaces
from support.ptx.bulk import MAP_BYTES, TensorMap
from support.ptx.decode import Decoder
from support.ptx.errors import PtxError, UnknownPtx
from support.ptx.machine import GLOBAL_BASE, PATIENCE, WAITING, Code, Wave
from support.ptx.memory import Space
from support.ptx.races import Places
from support.ptx.syntax import Module, Variable, parse

_LANES = 1 << 13  # in a wave
_GUARD = 256
_ROUNDS = 4  # in which nothing changed, not even registers


class Pointer:
    """An argument that is the address of an array, which the kernel may change."""

    def __init__(self, array: np.ndarray, offset: int = 0, written: bool = True) -> None:
        """`written`: whether the array has values; else to read them before a kernel wrote them is an error."""
        assert array.flags.c_contiguous
        self.array, self.offset, self.written = array, offset, written
        self.root = array
        while isinstance(self.root.base, np.ndarray):
            self.root = self.root.base
        first, mine = (a.__array_interface__["data"][0] for a in (self.root, array))
        self.place = mine - first
        self.address = 0

    @property
    def bytes(self) -> np.ndarray:
        return self.array.reshape(-1).view(np.uint8)


class Program:
    """A module of PTX; its kernels can be launched."""

    def __init__(self, text: str) -> None:
        self.module: Module = parse(text)
        self.kernels = [f.name for f in self.module.functions.values() if f.entry]
        self._codes: dict[str, Code] = {}
        self.addresses: dict[str, tuple[str, int]] = {}
        at = GLOBAL_BASE + _GUARD
        for variable in self.module.variables.values():
            if variable.space != "shared":
                at = -(-at // 256) * 256
                self.addresses[variable.name] = ("global", at)
                at += variable.size + _GUARD
        self._end = at

    def code(self, name: str) -> Code:
        if name not in self._codes:
            function = self.module.functions[name]
            self._codes[name] = Decoder(self.module, function, self.addresses).code
        return self._codes[name]

    def launch(
        self, name: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], shared: int = 0,
        seed: int = 0, strict: bool = True, measures: bool = False, blocks: Sequence[int] | None = None,
    ) -> Counter[str]:  # fmt: skip
        """Runs a kernel; arrays that `Pointer`s stand for are changed. How often each instruction was done by a
        group of threads. `strict`: to read what nobody wrote in a block's or a thread's memory is an error.
        `measures`: instructions by warp, sectors of global memory and conflicts of banks are counted, too.
        `blocks`: the numbers of those that are run, of all."""
        function, code = self.module.functions[name], self.code(name)
        required = function.limits.get(".reqntid")
        if required and math.prod(required) != math.prod(block):
            raise PtxError(f"{name} must be launched with {required} threads")
        maps = [a for a in arguments if isinstance(a, TensorMap)]
        pointers = [a for a in arguments if isinstance(a, Pointer)] + [a.pointer for a in maps]
        memory = self._memory(pointers)
        for one in maps:
            one.address = one.pointer.address + one.pointer.offset
            assert one.address % 16 == 0
        params = self._parameters(name, arguments, maps)
        random = np.random.default_rng(seed)
        order = random.permutation(math.prod(grid) if blocks is None else np.asarray(blocks))
        size = max(1, _LANES // (-(-math.prod(block) // 32) * 32))
        spaces = {"global": memory, "param": params}
        waves = [
            Wave(code, grid, block, order[n : n + size], spaces, shared, random, strict)
            for n in range(0, order.size, size)
        ]
        between = BlockRaces.of(memory, code.unit) if blocks is None else None
        within = Places.of(memory, waves[0].padded // 32, code.unit) if blocks is None and waves else None
        for wave in waves:
            wave.extra["maps"], wave.measures, wave.between, wave.in_global = maps, measures, between, within
        self._run(waves, memory)
        for pointer in pointers:
            at = pointer.address - GLOBAL_BASE
            after = memory.data[at : at + pointer.array.nbytes]
            if pointer.array.flags.writeable:
                pointer.bytes[:] = after
            elif (pointer.bytes != after).any():
                raise PtxError(f"{name} writes an array that can't be written")
        counts: Counter[str] = Counter()
        for wave in waves:
            counts += wave.counts
        return counts

    def _run(self, waves: list[Wave], memory: Space) -> None:
        """Each wave in its turn, until all have ended or none can."""
        left, idle = list(waves), 0
        states: list[int] = []  # of waves after the last turn, if that changed no memory
        while left:
            before = memory.changes, len(left)
            for wave in left:
                wave.run(WAITING if states else PATIENCE)
            left = [wave for wave in left if not wave.done]
            if (memory.changes, len(left)) != before:
                idle, states = 0, []
                continue
            old, states = states, [wave.state() for wave in left]
            idle += 1 if states == old else 0
            if idle > _ROUNDS:
                raise PtxError("deadlock: threads wait for what nobody changes any more")

    def _memory(self, pointers: list[Pointer]) -> Space:
        """Global memory with the module's variables and the arrays. Arrays that lie in one are so here, too."""
        at, bases = self._end, {}
        for pointer in pointers:
            if id(pointer.root) not in bases:
                at = -(-at // 512) * 512
                bases[id(pointer.root)] = at
                at += pointer.root.nbytes + _GUARD
            pointer.address = bases[id(pointer.root)] + pointer.place
        memory = Space("global", GLOBAL_BASE, at - GLOBAL_BASE + _GUARD)
        for variable in self.module.variables.values():
            if variable.space != "shared":
                place = self.addresses[variable.name][1] - GLOBAL_BASE
                memory.declare(place, variable.size, self._contents(variable))
        for pointer in pointers:
            data = pointer.bytes.tobytes() if pointer.written else None
            memory.declare(pointer.address - GLOBAL_BASE, pointer.array.nbytes, data)
        for pointer in pointers:
            memory.pad(pointer.address - GLOBAL_BASE + pointer.array.nbytes)
        return memory

    def _contents(self, variable: Variable) -> bytes | None:
        """What a variable holds at the start, addresses of others filled in."""
        data = variable.data
        for offset, other in variable.references:
            if data is not None and other in self.addresses:
                data = (
                    data[:offset]
                    + self.addresses[other][1].to_bytes(8, "little")
                    + data[offset + 8 :]
                )
        return data

    def _parameters(self, name: str, arguments: Sequence[Any], maps: list[TensorMap]) -> Space:
        parameters = self.module.functions[name].parameters
        if len(parameters) != len(arguments):
            raise PtxError(f"{name} takes {len(parameters)} arguments, not {len(arguments)}")
        space = Space("param", 0, sum(p.size + p.align for p in parameters) + 16)
        at = 0
        for parameter, argument in zip(parameters, arguments):
            at = -(-at // parameter.align) * parameter.align
            if isinstance(argument, Pointer):
                data = (argument.address + argument.offset).to_bytes(8, "little")
            elif isinstance(argument, TensorMap):
                number = next(n for n, one in enumerate(maps) if one is argument)
                data = number.to_bytes(8, "little").ljust(MAP_BYTES, b"\0")
            elif isinstance(argument, bytes):
                data = argument
            elif isinstance(argument, np.generic | np.ndarray):
                data = argument.tobytes()
            elif isinstance(argument, float):
                data = np.dtype(f"f{parameter.size}").type(argument).tobytes()
            elif isinstance(argument, int):
                data = (argument & (1 << 8 * parameter.size) - 1).to_bytes(parameter.size, "little")
            else:
                raise UnknownPtx(f"{name}: no argument of a kernel: {argument!r}")
            if len(data) != parameter.size:
                raise PtxError(
                    f"{name}: {parameter.name} has {parameter.size} bytes, not {len(data)}"
                )
            space.declare(at, parameter.size, data)
            at += parameter.size
        return space
