"""A planned program as LLVM text: calls of kernels, copies, control flow and scalar work.

It is written straight from the planned module, one line or two for each step: a program has
thousands of steps. Where buffers are is the caller's to say; the entry of a program (`entry`) and
a loop that is one kernel (`control`) say it differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lamina.backends.cpu.scalar_text import CALL_PLACES, DECLARATIONS, ScalarText
from lamina.backends.planned import (
    Constants,
    is_scalar,
    kernels_of,
    main_of,
    may_be_long,
    may_loop_for_long,
    team_of,
)
from lamina.dialects.attributes import BEGUN, LIBRARY, WAIT, string_of
from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.stablehlo.analysis.facts import PYTHON_CALLBACK

_PATTERN_BYTES = 64  # code
_STEPS_BETWEEN_LOOKS = 256
FAILED = "failed:\n  ret void\n"
"""What a function ends with where `ProgramText.may_leave`."""


class ProgramText:
    """Writes the steps of a planned module; `symbols` maps its kernels to functions that take
    their buffers and then scratch memory. Kernels of kind `scalar` are written where they are
    called."""

    def __init__(
        self, planned: ir.Module, symbols: Mapping[str, str], scratch_bytes: int = 0
    ) -> None:
        """`scratch_bytes`: of the kernel that needs most. Calls that run at the same time have so
        many each, one behind the other's."""
        self.symbols = symbols
        self.scratch_bytes = scratch_bytes
        self.kernels = kernels_of(planned)
        self.may_fail = {
            name
            for name, kernel in self.kernels.items()
            if string_of(kernel, LIBRARY) == PYTHON_CALLBACK or may_loop_for_long(kernel)
        }
        """Kernels after which the program ends, at label `failed`, if one says so."""
        self.may_leave = bool(self.may_fail)
        """Whether something that is written so far goes to label `failed`."""
        self.main = main_of(planned)
        self.constants = Constants(planned)
        self.header = [
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            *DECLARATIONS,
        ]
        self.declared: set[str] = set()
        self.callees: dict[str, str] = {}
        """Of kernels that were called, the functions."""
        self.emitted: set[str] = set()
        self.lines: list[str] = []
        self.pointers: dict[ir.Value, str] = {}
        self.addresses: dict[ir.Value, str] = {}
        """Of buffers that were used in the basic block that is being written."""
        self.offsets: dict[ir.Value, int] = {}
        self.lent: dict[ir.Value, str] = {}
        """Of views that are not of the arena, the buffer they view."""
        self.scalars: dict[ir.Value, tuple[str, str]] = {}
        """Types and names of elements that were loaded for what follows to decide by."""
        self.global_of: dict[ir.Value, str] = {}
        self.stack_sizes: dict[int, int] = {}
        self.moving: set[str] = set()
        """Places on the stack that hold the addresses of buffers which change places in a loop."""
        self.asked_of_moving = 0
        """How many questions about where such buffers are behind their loops are to be written yet."""
        self.places: list[str] = []
        self.names = 0

    def steps(self, pointers: list[str], scratch: str, arena: str, stack: int = 0) -> str:
        """The lines of @main, given the names of its arguments' and results' buffers.

        Places below offset `stack` of the arena are on the stack, the others in `arena`.
        """
        block = self.main.regions[0].blocks[0]
        self.pointers.update(zip(block.arguments, pointers))
        self.scratch, self.arena, self.stack = scratch, arena, stack
        self._block(block)
        return self._written()

    def _written(self) -> str:
        """The lines so far, behind the places on the stack that they use."""
        allocas = [
            f"  %stack{offset} = alloca [{size} x i8], align 64"
            for offset, size in self.stack_sizes.items()
        ]
        return "\n".join([*allocas, *dict.fromkeys(self.places), *self.lines])

    def _name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def _label(self) -> str:
        self.names += 1
        return f"b{self.names}"

    def _line(self, instruction: str) -> str:
        name = self._name()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def _begin(self, label: str) -> None:
        self.addresses.clear()
        self.lines.append(f"{label}:")

    def _branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def _block(self, block: ir.Block) -> None:
        """Write the steps of a block."""
        team: list[ir.Operation] = []
        for view in block.operations:
            op = view.operation
            name = op.name
            if team and team_of(op) != team_of(team[0]):
                self._team(team)
                team = []
            if not team:
                self._between_steps()
            match name:
                case "func.call":
                    if team_of(op):
                        team.append(op)
                    else:
                        self._call(op)
                case "memref.view":
                    self._view(op)
                case "builtin.unrealized_conversion_cast":
                    self.pointers[op.results[0]] = self.pointers[op.operands[0]]
                case "memref.reinterpret_cast":
                    tables: tuple[dict[ir.Value, Any], ...] = (
                        self.pointers,
                        self.lent,
                        self.offsets,
                        self.global_of,
                    )
                    for known in tables:
                        if op.operands[0] in known:
                            known[op.results[0]] = known[op.operands[0]]
                case "memref.get_global":
                    self.global_of[op.results[0]] = op.attributes["name"].value
                case "memref.copy":
                    self._copy(op)
                case "memref.load":
                    self._load(op)
                case "arith.constant":
                    self.offsets[op.results[0]] = op.attributes["value"].value
                case "memref.extract_aligned_pointer_as_index":
                    self.scalars[op.results[0]] = ("ptr", self._pointer(op.operands[0]))
                    self.asked_of_moving -= _is_end_of_loop(op.operands[0])
                case "arith.cmpi":
                    one, other = (self.scalars.pop(value)[1] for value in op.operands)
                    self.scalars[op.results[0]] = ("i1", self._line(f"icmp eq ptr {one}, {other}"))
                case "arith.index_cast":
                    self.scalars[op.results[0]] = self.scalars.pop(op.operands[0])
                case "scf.while":
                    self._while(op)
                case "scf.if":
                    self._if(op)
                case "scf.index_switch":
                    self._switch(op)
                case "scf.yield" | "scf.condition" | "func.return":
                    pass
                case _:
                    raise NotImplementedError(f"{name} in a planned program")

    def _between_steps(self) -> None:
        """What is done where all steps so far are written."""

    def _view(self, op: ir.Operation) -> None:
        offset = self.offsets[op.results[0]] = self.offsets[op.operands[1]]
        if op.operands[0] in self.pointers:
            self.lent[op.results[0]] = self.pointers[op.operands[0]]
        elif offset < self.stack:
            size = byte_size(op.results[0].type)
            self.stack_sizes[offset] = max(size, self.stack_sizes.get(offset, 1))

    # Each address is computed once a block, where it is used first: later uses find it on the stack,
    # which takes as long as to compute it again, and LLVM has two fifths less to do.
    def _pointer(self, value: ir.Value) -> str:
        known = self.addresses.get(value)
        if known is None:
            known = self.addresses[value] = self._address(value)
        return known

    def _address(self, value: ir.Value) -> str:
        offset = self.offsets.get(value)
        if offset is None:
            name = self.global_of.get(value)
            return self._buffer(self.pointers[value]) if name is None else self._global(name)
        base = self.lent.get(value)
        if base is not None:
            base = self._buffer(base)
        else:
            if offset < self.stack:
                return f"%stack{offset}"
            base, offset = self.arena, offset - self.stack
        return self._line(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def _buffer(self, pointer: str) -> str:
        """The address of a buffer that has a name, where it is used."""
        if pointer in self.moving:
            return self._line(f"load ptr, ptr {pointer}")
        return self._base(pointer)

    def _base(self, pointer: str) -> str:
        """The pointer of an argument's or result's buffer, where it is used."""
        return pointer

    def _call(self, op: ir.Operation) -> None:
        given = [self._pointer(value) for value in op.operands]
        callee = op.attributes["callee"].value
        if callee == WAIT:
            self._of_runtime(WAIT)
            return
        if BEGUN in op.attributes:
            self._of_runtime("lamina_collective_begin")
        if callee not in self.callees and is_scalar(self.kernels.get(callee)):
            kernel = self.kernels[callee]
            ScalarText(kernel, self._line, self.lines.append, self._call_from_scalar).write(given)
        else:
            self._write_call(callee, given)

    def _of_runtime(self, function: str) -> None:
        if function not in self.declared:
            self.declared.add(function)
            self.header.append(f"declare void @{function}()")
        self.lines.append(f"  call void @{function}()")

    def _call_from_scalar(self, op: ir.Operation, given: list[str]) -> None:
        self.places += CALL_PLACES
        self._write_call(op.attributes["callee"].value, given)

    def _write_call(self, callee: str, given: list[str]) -> None:
        symbol = self.callees.get(callee) or self._declared(callee, len(given))
        self.lines.append(_call_text(symbol, [*given, self.scratch]))
        if callee in self.may_fail:
            self._leave_if("lamina_failed")

    def _declared(self, callee: str, buffers: int) -> str:
        """The function of a kernel with so many buffers."""
        symbol = self.callees[callee] = self.symbols[callee]
        if symbol not in self.declared:
            self.declared.add(symbol)
            pointers = ", ".join(["ptr"] * (buffers + 1))
            self.header.append(f"declare void @{symbol}({pointers})")
        return symbol

    def _team(self, calls: list[ir.Operation]) -> None:
        """Calls that run at the same time: tasks of the runtime's, which find their buffers in
        `%team`."""
        given: list[str] = []
        cases: list[tuple[str, range]] = []
        for number, call in enumerate(calls):
            first = len(given)
            given += [self._pointer(value) for value in call.operands]
            scratch = f"getelementptr i8, ptr {self.scratch}, i64 {number * self.scratch_bytes}"
            given.append(self._line(scratch))
            symbol = self._declared(call.attributes["callee"].value, len(call.operands))
            cases.append((symbol, range(first, len(given))))
        name = f"team{team_of(calls[0])}"
        array, *stores = pack(given, f"%{name}")
        self.places.append(array)
        self.lines += stores
        if DECLARATION not in self.declared:
            self.declared.add(DECLARATION)
            self.header.append(DECLARATION)
        self.header.append(_tasks_text(name, cases))
        self.lines.append(run(name, len(calls), 1, f"%{name}"))
        if any(call.attributes["callee"].value in self.may_fail for call in calls):
            self._leave_if("lamina_failed")

    def _leave_if(self, question: str) -> None:
        """End the program where a function of the runtime's says so."""
        self.may_leave = True
        if question not in self.declared:
            self.declared.add(question)
            # What it touches is nothing that code here reads or writes.
            effects = "nounwind willreturn memory(inaccessiblemem: readwrite)"
            self.header.append(f"declare i32 @{question}() {effects}")
        answer = self._line(f"call i32 @{question}()")
        after = self._label()
        self.lines.append(f"  switch i32 {answer}, label %failed [ i32 0, label %{after} ]")
        self._begin(after)

    # Copies and constants

    def _copy(self, op: ir.Operation) -> None:
        source, target = op.operands
        of = source.type
        size = byte_size(of)
        if size == 0:
            return
        name = self.global_of.get(source)
        if name is not None and not any(self.constants.array(name).strides):
            self._fill(self.constants.array(name), size, self._pointer(target))
            return
        read = self._pointer(source)
        self._memcpy(self._pointer(target), read, size)

    def _memcpy(self, target: str, source: str, size: int) -> None:
        self.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def _fill(self, splat: np.ndarray, size: int, target: str) -> None:
        """Write one element's bytes over and over."""
        element = splat.reshape(-1)[:1].tobytes()
        if len(set(element)) == 1:
            self.lines.append(
                f"  call void @llvm.memset.p0.i64("
                f"ptr {target}, i8 {element[0]}, i64 {size}, i1 false)"
            )
            return
        pattern = f"pattern_{element.hex()}"
        self._define(pattern, element * (_PATTERN_BYTES // len(element)))
        whole, rest = divmod(size, _PATTERN_BYTES)
        if whole:
            before, loop, after = self._label(), self._label(), self._label()
            self._branch(before)
            self._begin(before)
            data = self._line(f"load <{_PATTERN_BYTES} x i8>, ptr @{pattern}, align 64")
            self._branch(loop)
            self._begin(loop)
            index, following = self._name(), self._name()
            self.lines.append(f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{loop} ]")
            place = self._line(f"getelementptr [{_PATTERN_BYTES} x i8], ptr {target}, i64 {index}")
            self.lines.append(f"  store <{_PATTERN_BYTES} x i8> {data}, ptr {place}, align 1")
            self.lines.append(f"  {following} = add i64 {index}, 1")
            more = self._line(f"icmp ult i64 {following}, {whole}")
            self.lines.append(f"  br i1 {more}, label %{loop}, label %{after}")
            self._begin(after)
        if rest:
            end = self._line(f"getelementptr i8, ptr {target}, i64 {size - rest}")
            self._memcpy(end, f"@{pattern}", rest)

    def _global(self, name: str) -> str:
        self._define(name, self.constants.array(name).tobytes())
        return f"@{name}"

    def _define(self, name: str, data: bytes) -> None:
        if name not in self.emitted:
            self.emitted.add(name)
            value = f'c"{_escaped(data)}"' if any(data) else "zeroinitializer"
            self.header.append(f"@{name} = internal constant [{len(data)} x i8] {value}, align 64")

    # Control flow

    def _load(self, op: ir.Operation) -> None:
        """One element that decides: booleans are bytes, as everywhere in memory."""
        of = op.results[0].type
        width = max(of.width, 8)
        value = self._line(f"load i{width}, ptr {self._pointer(op.operands[0])}")
        if of.width == 1:
            value = self._line(f"icmp ne i8 {value}, 0")
        self.scalars[op.results[0]] = (f"i{of.width if of.width == 1 else width}", value)

    def _while(self, op: ir.Operation) -> None:
        carried = self._carried(op)
        looks = may_be_long(op)
        again, body, after = (self._label() for _ in range(3))
        begin = self._label() if looks else again
        steps = f"%steps{self.names}"
        if looks:
            self._branch(begin)
            self._begin(begin)
            self.places.append(f"  {steps} = alloca i32")
            self.lines.append(f"  store i32 {_STEPS_BETWEEN_LOOKS}, ptr {steps}")
        self._branch(again)
        self._begin(again)
        condition = op.regions[0].blocks[0]
        self._block(condition)
        leave = condition.operations[len(condition.operations) - 1]
        kind, predicate = self.scalars.pop(leave.operands[0])
        self.lines.append(f"  br {kind} {predicate}, label %{body}, label %{after}")
        self._begin(body)
        block = op.regions[1].blocks[0]
        self._block(block)
        self._exchange(carried, block)
        if looks:
            self._look_for_signals(steps, again)
        self._branch(begin)
        self._begin(after)

    def _look_for_signals(self, steps: str, again: str) -> None:
        """After every so many steps, of which `steps` holds how many are left, end the program if a signal
        does: it may run in the thread that has to see to signals, for nobody knows how long. Otherwise
        go on at label `again`, in a loop of its own, which LLVM can unroll and vectorise."""
        left = self._line(f"sub i32 {self._line(f'load i32, ptr {steps}')}, 1")
        self.lines.append(f"  store i32 {left}, ptr {steps}")
        is_due, look = self._line(f"icmp eq i32 {left}, 0"), self._label()
        self.lines.append(f"  br i1 {is_due}, label %{look}, label %{again}")
        self._begin(look)
        self._leave_if("lamina_interrupted")

    def _carried(self, op: ir.Operation) -> list[str]:
        """The places that hold the addresses of the buffers which a loop carries, with those that they
        have first."""
        carried: list[str] = []
        for number, first in enumerate(op.operands):
            place = self._name().replace("%v", "%moving")
            self.moving.add(place)
            self.places.append(f"  {place} = alloca ptr")
            self.lines.append(f"  store ptr {self._pointer(first)}, ptr {place}")
            for region in op.regions:
                self.pointers[region.blocks[0].arguments[number]] = place
            self.pointers[op.results[number]] = place
            self.asked_of_moving += sum(1 for _ in op.results[number].uses)
            carried.append(place)
        return carried

    def _exchange(self, carried: list[str], block: ir.Block) -> None:
        """Let these places hold the addresses that a loop's step ends with."""
        leave = block.operations[len(block.operations) - 1]
        following = [self._pointer(value) for value in leave.operands]
        self.lines += [
            f"  store ptr {pointer}, ptr {place}"
            for pointer, place in zip(following, carried, strict=True)
        ]

    def _if(self, op: ir.Operation) -> None:
        kind, predicate = self.scalars.pop(op.operands[0])
        labels = [self._label() for _ in range(3)]
        self.lines.append(f"  br {kind} {predicate}, label %{labels[0]}, label %{labels[1]}")
        self._branches(op, labels)

    def _switch(self, op: ir.Operation) -> None:
        kind, index = self.scalars.pop(op.operands[0])
        labels = [self._label() for _ in range(len(op.regions) + 1)]
        cases = " ".join(
            f"{kind} {case}, label %{label}"
            for case, label in zip(op.attributes["cases"], labels[1:])
        )
        self.lines.append(f"  switch {kind} {index}, label %{labels[0]} [ {cases} ]")
        self._branches(op, labels)

    def _branches(self, op: ir.Operation, labels: list[str]) -> None:
        for region, label in zip(op.regions, labels):
            self._begin(label)
            for block in _blocks(region):
                self._block(block)
            self._branch(labels[-1])
        self._begin(labels[-1])


def _call_text(symbol: str, given: list[str]) -> str:
    return f"  call void @{symbol}(ptr {', ptr '.join(given)})"


def _tasks_text(name: str, cases: list[tuple[str, range]]) -> str:
    """A function that does some of these calls, whose pointers it finds at places of an array."""
    labels = " ".join(f"i64 {number}, label %c{number}" for number in range(len(cases)))
    lines = [
        f"define internal void @{name}(ptr %given, i64 %low, i64 %high) nounwind {{",
        "  br label %more", "more:", "  %i = phi i64 [ %low, %0 ], [ %next, %again ]",
        "  %done = icmp eq i64 %i, %high", "  br i1 %done, label %end, label %run", "run:",
        f"  switch i64 %i, label %again [ {labels} ]",
    ]  # fmt: skip
    for number, (symbol, places) in enumerate(cases):
        lines.append(f"c{number}:")
        pointers = [f"%p{place}" for place in places]
        lines += unpack(pointers, "%given", places[0])
        lines.append(_call_text(symbol, pointers))
        lines.append("  br label %again")
    lines += ["again:", "  %next = add i64 %i, 1", "  br label %more", "end:", "  ret void", "}"]
    return "\n".join(lines)



def _is_end_of_loop(buffer: ir.Value) -> bool:
    return not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name == "scf.while"


def _blocks(region: ir.Region) -> Iterator[ir.Block]:
    yield from region.blocks  # an `else` that does nothing has no block


_ESCAPES = [
    chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in range(256)
]


def _escaped(data: bytes) -> str:
    return "".join(map(_ESCAPES.__getitem__, data))
