"""Scalar work written where it is needed: counters, predicates, learning rates.

A kernel of kind `scalar` holds nothing but ops of `passes/stablehlo/analysis/scalar_work.py`. Its
callers load its operands, do them and store its results, so that a step of a loop makes no call for
`i + 1`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lamina.dialects.attributes import updated_arguments
from lamina.dialects.constants import array_of
from lamina.dialects.context import cached_with_context
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.scalar_work import kind_of

_BITS = {"and": "and", "or": "or", "xor": "xor"}
_ARITHMETIC = {"add": "add", "subtract": "sub", "multiply": "mul"}
_COMPARE_INTEGERS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_COMPARE_FLOATS = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}
_FLOATS = {"f32": "float", "f64": "double"}
_SHORT = {"float": "f32", "double": "f64"}

DECLARATIONS = tuple(f"declare {of} @llvm.sqrt.{name}({of})" for of, name in _SHORT.items())
"""Of what scalar work calls."""
CALL_PLACES = tuple(f"  %scalar{number} = alloca i64" for number in range(4))
"""Where operands and results of calls in scalar kernels are, in the order of operands and then results."""


class ScalarText:
    """Writes one scalar kernel; `line` appends an instruction and names its result, `append` a
    line, `call` a call of another kernel on buffers."""

    def __init__(
        self,
        kernel: ir.Operation,
        line: Callable[[str], str],
        append: Callable[[str], None],
        call: Callable[[ir.Operation, list[str]], None],
    ) -> None:
        self._kernel, self._line, self._append, self._call = kernel, line, append, call
        self._names: dict[ir.Value, str] = {}

    def write(self, buffers: list[str]) -> None:
        """The kernel on these buffers: its operands, then the results not held by operands."""
        block = self._kernel.regions[0].blocks[0]
        updated = updated_arguments(self._kernel)
        for argument, buffer in zip(block.arguments, buffers):
            self._names[argument] = self._load(argument.type, buffer)
        fresh = iter(buffers[len(block.arguments) :])
        for view in block.operations:
            op = view.operation
            if op.name == "func.return":
                for number, value in enumerate(op.operands):
                    place = buffers[updated[number]] if number in updated else next(fresh)
                    self._store(value, place)
            elif op.name == "func.call":
                self._write_call(op)
            else:
                self._names[op.results[0]] = self._op(op)

    def _write_call(self, op: ir.Operation) -> None:
        places = [f"%scalar{number}" for number in range(len(op.operands) + len(op.results))]
        for value, place in zip(op.operands, places):
            self._store(value, place)
        self._call(op, places)
        for value, place in zip(op.results, places[len(op.operands) :]):
            self._names[value] = self._load(value.type, place)

    def _load(self, of: ir.Type, buffer: str) -> str:
        if kind_of(of) == "boolean":
            return self._line(f"icmp ne i8 {self._line(f'load i8, ptr {buffer}')}, 0")
        return self._line(f"load {_llvm(of)}, ptr {buffer}")

    def _store(self, value: ir.Value, buffer: str) -> None:
        name, kind = self._names[value], _llvm(value.type)
        if kind == "i1":
            name, kind = self._line(f"zext i1 {name} to i8"), "i8"
        self._append(f"  store {kind} {name}, ptr {buffer}")

    def _op(self, op: ir.Operation) -> str:
        name = op.name.removeprefix("stablehlo.")
        if name == "constant":
            return _literal(op)
        of = op.operands[0].type
        kind, type_ = kind_of(of), _llvm(of)
        given = [self._names[value] for value in op.operands]
        if name == "reshape":
            return given[0]
        if name in _BITS:
            return self._line(f"{_BITS[name]} {type_} {given[0]}, {given[1]}")
        if name == "not":
            return self._line(f"xor {type_} {given[0]}, -1")
        if name == "negate":
            form = "fneg {} {}" if kind == "float" else "sub {} 0, {}"
            return self._line(form.format(type_, given[0]))
        if name == "sqrt":
            return self._line(f"call {type_} @llvm.sqrt.{_SHORT[type_]}({type_} {given[0]})")
        if name == "divide":
            return self._line(f"fdiv {type_} {given[0]}, {given[1]}")
        if name in _ARITHMETIC:
            word = _ARITHMETIC[name]
            if kind == "float":  # as in every kernel, a product may be fused with a sum
                word = f"f{word} contract"
            return self._line(f"{word} {type_} {given[0]}, {given[1]}")
        if name == "compare":
            direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
            return self._compare(direction, of, *given)
        if name == "select":
            held = _llvm(op.results[0].type)
            return self._line(f"select i1 {given[0]}, {held} {given[1]}, {held} {given[2]}")
        if name == "convert":
            return self._convert(given[0], of, op.results[0].type)
        if name == "clamp":
            low, value, high = given
            above = self._extreme("GT", op.results[0].type, value, low)
            return self._extreme("LT", op.results[0].type, above, high)
        return self._extreme("GT" if name == "maximum" else "LT", of, *given)

    def _extreme(self, direction: str, of: ir.Type, a: str, b: str) -> str:
        first = self._compare(direction, of, a, b)
        return self._line(f"select i1 {first}, {_llvm(of)} {a}, {_llvm(of)} {b}")

    def _compare(self, direction: str, of: ir.Type, a: str, b: str) -> str:
        kind, type_ = kind_of(of), _llvm(of)
        if kind == "float":
            return self._line(f"fcmp {_COMPARE_FLOATS[direction]} {type_} {a}, {b}")
        test = _COMPARE_INTEGERS[direction]
        if test not in ("eq", "ne"):
            test = ("s" if kind == "signed" else "u") + test
        return self._line(f"icmp {test} {type_} {a}, {b}")

    def _convert(self, value: str, source: ir.Type, target: ir.Type) -> str:
        old, new = _llvm(source), _llvm(target)
        signed = kind_of(source) == "signed"
        if kind_of(target) == "float":
            return self._line(f"{'si' if signed else 'ui'}tofp {old} {value} to {new}")
        if kind_of(target) == "boolean":
            return value if old == "i1" else self._line(f"icmp ne {old} {value}, 0")
        have, want = int(old[1:]), int(new[1:])
        if have == want:
            return value
        how = "trunc" if have > want else "sext" if signed else "zext"
        return self._line(f"{how} {old} {value} to {new}")


@cached_with_context(1024)
def _llvm(of: ir.Type) -> str:
    element = of.element_type
    return _FLOATS.get(str(element)) or f"i{element.width}"


def _literal(op: ir.Operation) -> str:
    value = array_of(op).reshape(-1)[0]
    of = op.results[0].type
    if kind_of(of) == "boolean":
        return "true" if value else "false"
    if kind_of(of) == "float":
        bits = np.asarray(value, np.float64).view(np.uint64)
        return f"0x{int(bits):016X}"
    return str(int(value))
