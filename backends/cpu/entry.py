"""The entry function of a planned program: one object that calls the kernels in order.

It is written as LLVM text straight from the planned module, one line or two for each step: a
program has thousands of steps and nothing in them is left to optimise.

    void lamina_entry(ptr* arguments, ptr* results, ptr arena)

Kernels take their buffers as bare pointers and, last, scratch memory, which begins where the
planned part of the arena ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from lamina.backends.cpu.libraries import PYTHON_CALLBACK
from lamina.backends.llvm_codegen import CodegenOptions, Machine, emit
from lamina.backends.target import Target
from lamina.dialects import constants
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir

ENTRY_SYMBOL = "lamina_entry"

_PATTERN_BYTES = 64
_FAILED = "failed:\n  ret void\n"  # after a callback that raised: its results are not there


def build_entry(planned: ir.Module, symbols: Mapping[str, str], target: Target) -> bytes:
    """The object file of the entry of a planned module; `symbols` maps its kernels to theirs."""
    machine = Machine(target.triple, target.cpu, target.features)
    # Calls and copies gain nothing from optimisation, and programs may have thousands.
    options = CodegenOptions(level=0, vectorise=False, unroll=False)
    return emit(entry_text(planned, symbols), machine, options).object


def entry_imports(kernel_imports: Set[str]) -> set[str]:
    """The runtime's functions that the entry calls itself, where kernels call these."""
    return {"lamina_failed"} if "lamina_python_callback" in kernel_imports else set()


def entry_text(planned: ir.Module, symbols: Mapping[str, str]) -> str:
    """The entry function as LLVM text."""
    return _Emitter(planned, symbols).text()


class _Emitter:
    def __init__(self, planned: ir.Module, symbols: Mapping[str, str]) -> None:
        self.symbols = symbols
        self.globals: dict[str, ir.Operation] = {}
        self.may_fail: set[str] = set()
        for op in planned.body.operations:
            operation = op.operation
            if operation.name == "memref.global":
                self.globals[operation.attributes["sym_name"].value] = operation
            elif operation.name == "func.func" and op.attributes["sym_name"].value == "main":
                self.main = operation
            elif operation.name == "builtin.module":
                self.may_fail = set(_callback_kernels(operation))
        self.header: list[str] = []
        self.data: dict[str, np.ndarray] = {}
        self.declared: set[str] = set()
        self.emitted: set[str] = set()
        self.lines: list[str] = []
        self.pointers: dict[ir.Value, str] = {}
        self.offsets: dict[ir.Value, int] = {}
        self.scalars: dict[ir.Value, tuple[str, str]] = {}
        self.global_of: dict[ir.Value, str] = {}
        self.names = 0

    def text(self) -> str:
        block = self.main.regions[0].blocks[0]
        count = self.main.attributes["lamina.arguments"].value
        buffers = list(block.arguments)
        self.pointers[buffers.pop()] = "%arena"
        for position, value in enumerate(buffers):
            array, index = (
                ("%arguments", position) if position < count else ("%results", position - count)
            )
            place = self._line(f"getelementptr ptr, ptr {array}, i64 {index}")
            self.pointers[value] = self._line(f"load ptr, ptr {place}")
        planned = self.main.attributes["lamina.arena_bytes"].value
        self.scratch = self._line(f"getelementptr i8, ptr %arena, i64 {planned}")
        self._block(block)
        body = "\n".join(self.lines)
        header = "\n".join(self.header)
        return (
            f"{header}\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
            f"define void @{ENTRY_SYMBOL}(ptr %arguments, ptr %results, ptr %arena) nounwind {{\n"
            f"{body}\n  ret void\n{_FAILED if self.may_fail else ''}}}\n"
        )

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
        self.lines.append(f"{label}:")

    def _branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def _block(self, block: ir.Block) -> None:
        """Write the steps of a block."""
        for view in block.operations:
            op = view.operation
            match op.name:
                case "func.call":
                    self._call(op)
                case "memref.view":
                    self.offsets[op.results[0]] = self.offsets[op.operands[1]]
                case "memref.reinterpret_cast":
                    tables: tuple[dict[ir.Value, Any], ...] = (
                        self.pointers,
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
                case "arith.index_cast":
                    self.scalars[op.results[0]] = self.scalars[op.operands[0]]
                case "scf.while":
                    self._while(op)
                case "scf.if":
                    self._if(op)
                case "scf.index_switch":
                    self._switch(op)
                case "scf.yield" | "scf.condition" | "func.return":
                    pass
                case name:
                    raise NotImplementedError(f"{name} in a planned program")

    # Addresses are computed where they are used: they are one instruction, and names that live
    # across thousands of calls would only be spilled.
    def _pointer(self, value: ir.Value) -> str:
        offset = self.offsets.get(value)
        if offset is not None:
            return self._line(f"getelementptr i8, ptr %arena, i64 {offset}")
        name = self.global_of.get(value)
        return self.pointers[value] if name is None else self._global(name)

    def _call(self, op: ir.Operation) -> None:
        symbol = self.symbols[op.attributes["callee"].value]
        count = len(op.operands)
        if symbol not in self.declared:
            self.declared.add(symbol)
            self.header.append(f"declare void @{symbol}({', '.join(['ptr'] * (count + 1))})")
        given = [*(self._pointer(value) for value in op.operands), self.scratch]
        self.lines.append(f"  call void @{symbol}({', '.join('ptr ' + p for p in given)})")
        if op.attributes["callee"].value in self.may_fail:
            self._leave_if_failed()

    def _leave_if_failed(self) -> None:
        if "lamina_failed" not in self.declared:
            self.declared.add("lamina_failed")
            self.header.append("declare i32 @lamina_failed()")
        failed = self._line("call i32 @lamina_failed()")
        after = self._label()
        self.lines.append(f"  switch i32 {failed}, label %failed [ i32 0, label %{after} ]")
        self._begin(after)

    # Copies and constants

    def _copy(self, op: ir.Operation) -> None:
        source, target = op.operands
        of = source.type
        size = math.prod(of.shape) * dtype_of(of).itemsize
        if size == 0:
            return
        name = self.global_of.get(source)
        if name is not None and not any(self._array(name).strides):
            self._fill(self._array(name), size, self._pointer(target))
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

    def _array(self, name: str) -> np.ndarray:
        if name not in self.data:
            op = self.globals[name]
            of = op.attributes["type"].value
            self.data[name] = constants.array_in(op, "initial_value", of)
        return self.data[name]

    def _global(self, name: str) -> str:
        self._define(name, self._array(name).tobytes())
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
        again, body, after = self._label(), self._label(), self._label()
        self._branch(again)
        self._begin(again)
        condition = op.regions[0].blocks[0]
        self._block(condition)
        leave = condition.operations[len(condition.operations) - 1]
        kind, predicate = self.scalars[leave.operands[0]]
        self.lines.append(f"  br {kind} {predicate}, label %{body}, label %{after}")
        self._begin(body)
        self._block(op.regions[1].blocks[0])
        self._branch(again)
        self._begin(after)

    def _if(self, op: ir.Operation) -> None:
        kind, predicate = self.scalars[op.operands[0]]
        labels = [self._label() for _ in range(3)]
        self.lines.append(f"  br {kind} {predicate}, label %{labels[0]}, label %{labels[1]}")
        self._branches(op, labels)

    def _switch(self, op: ir.Operation) -> None:
        kind, index = self.scalars[op.operands[0]]
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


def _callback_kernels(kernels: ir.Operation) -> Iterator[str]:
    for op in kernels.regions[0].blocks[0].operations:
        attributes = op.operation.attributes
        if "lamina.library" in attributes:
            if attributes["lamina.library"].value == PYTHON_CALLBACK:
                yield attributes["sym_name"].value


def _blocks(region: ir.Region) -> Iterator[ir.Block]:
    yield from region.blocks  # an `else` that does nothing has no block


_ESCAPES = [
    chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in range(256)
]


def _escaped(data: bytes) -> str:
    return "".join(map(_ESCAPES.__getitem__, data))
