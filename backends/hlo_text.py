"""A fused module in HLO's textual form, for people who read XLA's dumps.

    HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[3]{0})->f32[3]{0}}

    %fused_computation (param_0: f32[3]) -> f32[3] {
      %param_0 = f32[3]{0} parameter(0)
      %sine.1 = f32[3]{0} sine(%param_0), metadata={op_name="jit(f)/sin" source_line=2}
      ROOT %negate.2 = f32[3]{0} negate(%sine.1)
    }

    ENTRY %main (Arg_0: f32[3]) -> f32[3] {
      %Arg_0 = f32[3]{0} parameter(0)
      ROOT %fusion.3 = f32[3]{0} fusion(%Arg_0), kind=kLoop, calls=%fused_computation
    }

Kernels of one op print as that op. Loops and branches take, as HLO wants it, one tuple, with what
they use from outside in it. Nothing reads this form back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from lamina.backends.hlo_attributes import attributes_of, braces
from lamina.dialects.attributes import KIND, LIBRARY, string_of
from lamina.dialects.constants import array_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import source_frames
from lamina.passes.framework.find import functions_of
from lamina.passes.stablehlo.collectives import collective
from lamina.records import Record

_KINDS = {
    "loop": "kLoop",
    "input": "kInput",
    "rows": "kInput",
    "output": "kOutput",
    "update": "kLoop",
}
_OPCODES = {"broadcast_in_dim": "broadcast", "dot_general": "dot", "if": "conditional",
            "case": "conditional", "optimization_barrier": "opt-barrier", "top_k": "topk"}  # fmt: skip
_CONTROL = ("stablehlo.while", "stablehlo.if", "stablehlo.case")
_SHOWN_ELEMENTS = 16


class HloModule(Record):
    """A module in HLO's form, as JAX's `compiler_ir("hlo")` gives one."""

    module: ir.Module
    name: str

    def as_hlo_text(self) -> str:
        """The HLO text."""
        return hlo_text(self.module, self.name, scheduled=False)


def hlo_text(module: ir.Module, name: str, *, scheduled: bool = True) -> str:
    """The module, whose @main may call kernels, as an HloModule.

    scheduled  it is a compiled program's, of which source places are shown too, as in XLA's dumps.
    """
    return _Printer(module, places=scheduled).text(name, scheduled)


class _Computation(Record, frozen=False):
    """A computation being written: the names of its values, and its lines."""

    names: dict[ir.Value, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


class _Printer:
    def __init__(self, module: ir.Module, places: bool) -> None:
        self.places = places
        self.functions = functions_of(module)
        self.finished: list[str] = []
        self.computations: dict[str, str] = {}
        self.used: set[str] = set()
        self.count = 0

    def _metadata(self, op: ir.Operation) -> str:
        return _metadata(op) if self.places else ""

    def text(self, name: str, scheduled: bool) -> str:
        main = self.functions["main"]
        block = main.regions[0].blocks[0]
        layout = [_shape(value.type) for value in block.arguments]
        results = [_shape(value.type) for value in _terminator(block).operands]
        arguments = [f"Arg_{i}" for i in range(len(layout))]
        self._function("main", block, arguments, entry=True)
        head = (
            f"HloModule {name}, {'is_scheduled=true, ' * scheduled}entry_computation_layout="
            f"{{({', '.join(layout)})->{_tuple(results)}}}"
        )
        return "\n\n".join([head, *self.finished]) + "\n"

    # Computations

    def _function(
        self, name: str, block: ir.Block, parameters: Sequence[str], *, entry: bool = False
    ) -> None:
        """A computation with one parameter for each block argument."""
        inside = _Computation()
        for position, (value, parameter) in enumerate(zip(block.arguments, parameters)):
            inside.names[value] = f"%{parameter}"
            inside.lines.append(f"%{parameter} = {_shape(value.type)} parameter({position})")
        self._body(inside, block)
        given = [f"{p}: {_plain(v.type)}" for p, v in zip(parameters, block.arguments)]
        self._finish(name, given, inside, block, entry=entry)

    def _region(self, op: ir.Operation, region: ir.Region, captured: list[ir.Value]) -> str:
        """A computation on one tuple: the block's arguments, then what it uses from outside."""
        name = self._unique("region")
        block = region.blocks[0]
        inside = _Computation()
        values = [*block.arguments, *captured]
        types = [_shape(value.type) for value in values]
        inside.lines.append(f"%arg_tuple = {_tuple(types, always=True)} parameter(0)")
        for index, value in enumerate(values):
            self._instruction(inside, value, "get-tuple-element", f"%arg_tuple), index={index}")
        self._body(inside, block)
        plain = _tuple([_plain(value.type) for value in values], always=True)
        if op.name == "stablehlo.while" and region == op.regions[0]:
            self._finish(name, [f"arg_tuple: {plain}"], inside, block)
        else:
            # A loop's body hands on what it does not change, too.
            extra = captured if op.name == "stablehlo.while" else []
            self._finish(name, [f"arg_tuple: {plain}"], inside, block, extra=extra, packed=True)
        return name

    def _reducer(self, region: ir.Region) -> str:
        """A computation on scalars."""
        name = self._unique("region")
        block = region.blocks[0]
        self._function(name, block, [f"param_{i}" for i in range(len(block.arguments))])
        return name

    def _finish(
        self,
        name: str,
        given: list[str],
        inside: _Computation,
        block: ir.Block,
        *,
        entry: bool = False,
        extra: Sequence[ir.Value] = (),
        packed: bool = False,
    ) -> None:
        """The computation's text; it gives back a tuple where `packed`, or of several values."""
        roots = [*_terminator(block).operands, *extra]
        if len(roots) == 1 and not packed:
            self._root(inside, inside.names[roots[0]])
        else:
            shape = _tuple([_shape(value.type) for value in roots], always=True)
            operands = ", ".join(inside.names[value] for value in roots)
            inside.lines.append(f"ROOT {self._name('tuple')} = {shape} tuple({operands})")
        plain = [_plain(value.type) for value in roots]
        result = _tuple(plain, always=packed)
        head = f"{'ENTRY ' if entry else ''}%{name} ({', '.join(given)}) -> {result} {{"
        self.finished.append("\n".join([head, *("  " + line for line in inside.lines), "}"]))

    def _root(self, inside: _Computation, name: str) -> None:
        for position, line in enumerate(inside.lines):
            if line.startswith(f"{name} = "):
                inside.lines[position] = f"ROOT {line}"

    # Instructions

    def _body(self, inside: _Computation, block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            if op.name == "func.call":
                self._call(inside, op)
            elif op.name in _CONTROL:
                self._control(inside, op)
            elif op.name not in ("func.return", "stablehlo.return"):
                self._op(inside, op)

    def _op(self, inside: _Computation, op: ir.Operation, operands: str | None = None) -> None:
        word = op.name.split(".", 1)[1]
        opcode = _OPCODES.get(word, word.replace("_", "-"))
        if operands is None:
            operands = ", ".join(inside.names[value] for value in op.operands)
        notes = attributes_of(op)
        if word == "constant":
            self._constant(inside, op)
            return
        if word == "select_and_scatter":
            notes += [f"select=%{self._reducer(op.regions[0])}"]
            notes += [f"scatter=%{self._reducer(op.regions[1])}"]
        elif len(op.regions):
            notes += [f"to_apply=%{self._reducer(op.regions[0])}"]
        self._define(inside, op, opcode, operands, notes)

    def _constant(self, inside: _Computation, op: ir.Operation) -> None:
        array, value = array_of(op), op.results[0]
        if array.size > 1 and not any(array.strides):  # one element everywhere
            scalar = self._name("constant")
            element = _plain(value.type).partition("[")[0]
            literal = _nested(array.reshape(-1)[0])
            inside.lines.append(f"{scalar} = {element}[] constant({literal})")
            self._instruction(inside, value, "broadcast", f"{scalar}), dimensions={{}}")
            return
        literal = _nested(array) if array.size <= _SHOWN_ELEMENTS else "{...}"
        self._define(inside, op, "constant", literal, [])

    def _call(self, inside: _Computation, op: ir.Operation) -> None:
        callee = op.attributes["callee"].value
        kernel = self.functions[callee]
        operands = ", ".join(inside.names[value] for value in op.operands)
        kind = string_of(kernel, KIND)
        block = kernel.regions[0].blocks[0]
        computing = [o.operation for o in block.operations][:-1]
        single = [o for o in computing if o.name != "stablehlo.constant"]
        is_one = len(single) == 1 and len(computing) == 1
        if kind == "library" and not (is_one and single[0].name in collective.KINDS):
            library = string_of(kernel, LIBRARY)
            self._define(inside, op, "custom-call", operands, [f'custom_call_target="{library}"'])
            return
        if is_one and kind != "control":
            only = single[0]
            inner = dict(zip(block.arguments, (inside.names[v] for v in op.operands)))
            self._op(inside, only, ", ".join(inner[value] for value in only.operands))
            for result, value in zip(op.results, only.results):
                inside.names[result] = inside.names[value]
            return
        if callee not in self.computations:
            name = self.computations[callee] = self._unique("fused_computation")
            self._function(name, block, [f"param_{i}" for i in range(len(block.arguments))])
        if kind == "control":
            self._define(inside, op, "call", operands, [f"to_apply=%{self.computations[callee]}"])
            return
        notes = [f"kind={_KINDS.get(kind, 'kLoop')}", f"calls=%{self.computations[callee]}"]
        self._define(inside, op, "fusion", operands, notes)

    def _control(self, inside: _Computation, op: ir.Operation) -> None:
        captured = _captured(op)
        regions = [self._region(op, region, captured) for region in op.regions]
        names = inside.names
        state = list(op.operands) if op.name == "stablehlo.while" else []
        values = [*state, *captured]
        shape = _tuple([_shape(value.type) for value in values], always=True)
        packed = self._name("tuple")
        operands = ", ".join(names[value] for value in values)
        inside.lines.append(f"{packed} = {shape} tuple({operands})")
        if op.name == "stablehlo.while":
            made = self._name("while")
            notes = f"condition=%{regions[0]}, body=%{regions[1]}"
            inside.lines.append(f"{made} = {shape} while({packed}), {notes}{self._metadata(op)}")
        else:
            made = self._name("conditional")
            shape = _tuple([_shape(value.type) for value in op.results], always=True)
            branches = ", ".join(f"%{region}" for region in regions)
            notes = f"branch_computations={{{branches}}}"
            if op.name == "stablehlo.if":
                notes = f"true_computation=%{regions[0]}, false_computation=%{regions[1]}"
            given = ", ".join([names[op.operands[0]], *([packed] * len(regions))])
            inside.lines.append(f"{made} = {shape} conditional({given}), {notes}{self._metadata(op)}")
        for index, result in enumerate(op.results):
            self._instruction(inside, result, "get-tuple-element", f"{made}), index={index}")

    def _define(
        self, inside: _Computation, op: ir.Operation, opcode: str, operands: str, notes: list[str]
    ) -> None:
        rest = "".join(f", {note}" for note in notes) + self._metadata(op)
        if len(op.results) == 1:
            self._instruction(inside, op.results[0], opcode, f"{operands}){rest}")
            return
        shape = _tuple([_shape(value.type) for value in op.results], always=True)
        made = self._name(opcode)
        inside.lines.append(f"{made} = {shape} {opcode}({operands}){rest}")
        for index, result in enumerate(op.results):
            self._instruction(inside, result, "get-tuple-element", f"{made}), index={index}")

    def _instruction(self, inside: _Computation, value: ir.Value, opcode: str, rest: str) -> None:
        """One line; `rest` is what follows the opening parenthesis."""
        name = inside.names[value] = self._name(opcode)
        inside.lines.append(f"{name} = {_shape(value.type)} {opcode}({rest}")

    def _name(self, opcode: str) -> str:
        self.count += 1
        return f"%{opcode}.{self.count}"

    def _unique(self, name: str) -> str:
        found, number = name, 0
        while found in self.used:
            number += 1
            found = f"{name}.{number}"
        self.used.add(found)
        return found


def _captured(op: ir.Operation) -> list[ir.Value]:
    """What the regions of an op use and do not define, each once."""
    defined: set[ir.Value] = set()
    used: dict[ir.Value, None] = {}

    def visit(block: ir.Block) -> None:
        defined.update(block.arguments)
        for view in block.operations:
            inner = view.operation
            used.update(dict.fromkeys(v for v in inner.operands if v not in defined))
            defined.update(inner.results)
            for region in inner.regions:
                for nested in region.blocks:
                    visit(nested)

    for region in op.regions:
        visit(region.blocks[0])
    return [value for value in used if value not in defined]


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


# Types, constants, metadata

_ELEMENTS = {
    "i1": "pred",
    "complex<f32>": "c64",
    "complex<f64>": "c128",
    **{f"i{width}": f"s{width}" for width in (2, 4, 8, 16, 32, 64)},
    **{f"ui{width}": f"u{width}" for width in (2, 4, 8, 16, 32, 64)},
}


def _plain(of: ir.Type) -> str:
    element = str(of.element_type)
    return f"{_ELEMENTS.get(element, element.lower())}[{','.join(map(str, of.shape))}]"


def _shape(of: ir.Type) -> str:
    rank = len(of.shape)
    return _plain(of) + (braces(range(rank - 1, -1, -1)) if rank else "")


def _tuple(parts: list[str], *, always: bool = False) -> str:
    return parts[0] if len(parts) == 1 and not always else f"({', '.join(parts)})"


def _nested(array: np.ndarray) -> str:
    if array.ndim:
        return "{" + ", ".join(_nested(part) for part in array) + "}"
    value = array.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, complex):
        return f"({value.real:g}, {value.imag:g})"
    return str(value) if isinstance(value, int) else f"{float(value):g}"


def _metadata(op: ir.Operation) -> str:
    parts = []
    path = _path(op.location)
    if path:
        parts.append(f"op_name={json.dumps(path)}")
    frames = source_frames(op.location)
    if frames:
        parts.append(f"source_file={json.dumps(frames[0].file)} source_line={frames[0].line}")
    return f", metadata={{{' '.join(parts)}}}" if parts else ""


def _path(location: ir.Location) -> str:
    """The name that the frontend gave an op, such as `jit(f)/sin`: the outermost one.

    A name right around a file's position, with no path in it, is that of the function there.
    """
    while isinstance(location, ir.FusedLoc) and location.locations:
        location = location.locations[0]
    if isinstance(location, ir.NameLoc):
        name = location.name_str
        if "/" in name or not isinstance(location.child_loc, ir.FileLineColLoc):
            return name
    return ""
