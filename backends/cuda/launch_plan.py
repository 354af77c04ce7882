"""What a planned program launches, in order, as data: the launch plan of its manifest.

A plan is a list of steps, each an object whose first key says what it is:

    {"launch": symbol, "buffers": [...], "name": kernel, "at": "file.py:12 in f"}
    {"copy": [from, to], "bytes": n}
    {"fill": to, "bytes": n, "element": hex}         n bytes, an element of 1, 2 or 4 over and over
    {"if": predicate, "then": [steps], "else": [steps]}
    {"switch": index, "bytes": 4, "cases": [[steps], ...], "default": [steps]}
    {"while": predicate, "condition": [steps], "body": [steps]}
    {"call": number, "inputs": [[buffer, bytes], ...], "outputs": [...], "at": "file.py:12 in f"}
    {"collective": name, ..., "buffers": [operand, result], "at": "file.py:12 in f"}

A buffer is [space, where]: argument or result and its number, arena or constant and an offset in
bytes. Predicates are a byte, not zero for true, an index is a signed integer; both are in device
memory, written by the steps before (for `while` by those of `condition`, which run before each
decision). A call is of a Python function of the program, on copies of its inputs, when all before
it is done; outputs that nobody reads have null for a buffer. What a collective
says beside (`passes/kernels/gpu/collectives.py`) is about positions among the devices that run the program; that of
`partition_id` writes the device's own. Constants are the file
`constants.bin`. Kernels get the addresses of their buffers and, last, of scratch memory, which
begins in the arena at `scratch`. A kernel that the manifest's `device_kernels` say a `library` of
can be a call of cuBLASLt instead: which it is, is decided when the program is loaded
(`runtime/cuda.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from lamina.backends.planned import Constants, kernels_of, main_of
from lamina.dialects.attributes import ARGUMENTS, COLLECTIVE, LIBRARY, string_of
from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import source_frames
from lamina.passes.kernels.gpu.collectives import collective_step
from lamina.passes.stablehlo.analysis.facts import PYTHON_CALLBACK, callback_index
from lamina.records import Record

_ALIGNMENT = 256
_WIDEST_FILL = 4  # bytes of an element that the driver fills with

Step = dict[str, Any]
Place = list[Any]  # [space, number or offset]


class LaunchPlan(Record, frozen=False):
    """The steps of a program, and the bytes of its constants."""

    steps: list[Step] = field(default_factory=list)
    constants: bytes = b""


def launch_plan(
    planned: ir.Module,
    symbols: dict[str, str],
    fill_kernel: Callable[[np.ndarray, int], str],
) -> LaunchPlan:
    """The steps of @main of a planned module, whose kernels are called `symbols`.

    `fill_kernel(element, count)` names a kernel that writes an element the driver can't fill with.
    """
    return _Writer(planned, symbols, fill_kernel).write()


class _Writer:
    def __init__(
        self,
        planned: ir.Module,
        symbols: dict[str, str],
        fill_kernel: Callable[[np.ndarray, int], str],
    ) -> None:
        self.symbols, self.fill_kernel = symbols, fill_kernel
        self.kernels, self.main = kernels_of(planned), main_of(planned)
        self.constants = Constants(planned)
        self.data = bytearray()
        self.placed: dict[str, int] = {}
        self.places: dict[ir.Value, Place] = {}
        self.offsets: dict[ir.Value, int] = {}
        self.scalars: dict[ir.Value, ir.Value] = {}  # what decides, and the buffer it is read from

    def write(self) -> LaunchPlan:
        block = self.main.regions[0].blocks[0]
        count = self.main.attributes[ARGUMENTS].value
        for number, value in enumerate(list(block.arguments)[:-1]):
            space = ["argument", number] if number < count else ["result", number - count]
            self.places[value] = space
        steps = self._block(block)
        return LaunchPlan(steps, bytes(self.data))

    def _block(self, block: ir.Block) -> list[Step]:
        steps: list[Step] = []
        for view in block.operations:
            op = view.operation
            match op.name:
                case "func.call":
                    steps.append(self._launch(op))
                case "memref.view":
                    self.places[op.results[0]] = ["arena", self.offsets[op.operands[1]]]
                case "memref.reinterpret_cast":
                    self.places[op.results[0]] = self.places[op.operands[0]]
                case "memref.get_global":
                    self.places[op.results[0]] = ["constant", op.attributes["name"].value]
                case "memref.copy":
                    steps += self._copy(op)
                case "memref.load":
                    self.scalars[op.results[0]] = op.operands[0]
                case "arith.constant":
                    self.offsets[op.results[0]] = op.attributes["value"].value
                case "arith.index_cast":
                    self.scalars[op.results[0]] = self.scalars[op.operands[0]]
                case "scf.while":
                    steps.append(self._while(op))
                case "scf.if":
                    then, otherwise = self._branches(op)
                    where = self._decider(op)
                    steps.append({"if": where, "then": then, "else": otherwise})
                case "scf.index_switch":
                    default, *cases = self._branches(op)
                    size = byte_size(self.scalars[op.operands[0]].type)
                    steps.append({"switch": self._decider(op), "bytes": size, "cases": cases,
                                  "default": default})  # fmt: skip
                case "scf.yield" | "scf.condition" | "func.return":
                    pass
                case name:
                    raise NotImplementedError(f"{name} in a planned program")
        return steps

    def _launch(self, op: ir.Operation) -> Step:
        name = op.attributes["callee"].value
        if is_callback(self.kernels[name]):
            return self._call(op, self.kernels[name])
        if is_collective(self.kernels[name]):
            return self._collective(op, self.kernels[name])
        step = {
            "launch": self.symbols[name],
            "buffers": [self._place(value) for value in op.operands],
            "name": name,
        }
        return step | _at(op)

    def _call(self, op: ir.Operation, function: ir.Operation) -> Step:
        block = function.regions[0].blocks[0]
        call, end = (block.operations[n].operation for n in (0, len(block.operations) - 1))
        given = dict(zip([*block.arguments, *end.operands], op.operands, strict=True))
        return {
            "call": callback_index(call),
            "inputs": [[self._place(given[v]), byte_size(v.type)] for v in call.operands],
            "outputs": [
                [self._place(given[v]) if v in given else None, byte_size(v.type)]
                for v in call.results
            ],
        } | _at(op)

    def _collective(self, op: ir.Operation, function: ir.Operation) -> Step:
        places = [self._place(value) for value in op.operands]
        return collective_step(function) | {"buffers": [places[0], places[-1]]} | _at(op)

    def _copy(self, op: ir.Operation) -> list[Step]:
        source, target = op.operands
        size = byte_size(source.type)
        if not size:
            return []
        space, name = self.places[source]
        if space == "constant":
            array = self.constants.array(name)
            if not any(array.strides):
                return [self._fill(array.reshape(-1)[:1], size, target)]
        return [{"copy": [self._place(source), self._place(target)], "bytes": size}]

    def _fill(self, element: np.ndarray, size: int, target: ir.Value) -> Step:
        data = element.tobytes()
        for width in (1, 2, _WIDEST_FILL):
            if data[:width] * (len(data) // width) == data:
                return {"fill": self._place(target), "bytes": size, "element": data[:width].hex()}
        symbol = self.fill_kernel(element, size // len(data))
        return {"launch": symbol, "buffers": [self._place(target)], "name": "fill"}

    def _place(self, value: ir.Value) -> Place:
        space, where = self.places[value]
        return [space, self._constant(where)] if space == "constant" else [space, where]

    def _constant(self, name: str) -> int:
        """The offset of a constant in the program's data, where it is put now if it is not there."""
        if name not in self.placed:
            self.data += bytes(-len(self.data) % _ALIGNMENT)
            self.placed[name] = len(self.data)
            self.data += self.constants.array(name).tobytes()
        return self.placed[name]

    # Control flow

    def _decider(self, op: ir.Operation) -> Place:
        return self._place(self.scalars[op.operands[0]])

    def _while(self, op: ir.Operation) -> Step:
        condition = op.regions[0].blocks[0]
        before = self._block(condition)
        leave = condition.operations[len(condition.operations) - 1].operation
        return {
            "while": self._decider(leave),
            "condition": before,
            "body": self._block(op.regions[1].blocks[0]),
        }

    def _branches(self, op: ir.Operation) -> list[list[Step]]:
        return [
            [step for block in region.blocks for step in self._block(block)]
            for region in op.regions
        ]


def is_callback(kernel: ir.Operation) -> bool:
    """Whether a kernel of a planned module is a call of a Python function."""
    return string_of(kernel, LIBRARY) == PYTHON_CALLBACK


def is_collective(kernel: ir.Operation) -> bool:
    """Whether a kernel of a planned module is something that devices do together."""
    return string_of(kernel, LIBRARY) == COLLECTIVE


def _at(op: ir.Operation) -> Step:
    frames = source_frames(op.location)
    return {"at": str(frames[0])} if frames else {}
