"""A kernel's instructions -> steps: names become numbers of registers and addresses, calls are written out."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from support.ptx.errors import UnknownPtx
from support.ptx.machine import Code, Group, Step, Wave
from support.ptx.syntax import (
    SIZES,
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Register,
    Scope,
    Symbol,
    Variable,
    Vector,
    bits_of,
)  # fmt: skip

DTYPES: dict[str, Any] = {f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)}
DTYPES |= {f"b{n}": DTYPES[f"u{n}"] for n in (8, 16, 32, 64)} | {
    f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)
}
DTYPES |= {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32),
           "f64": np.dtype(np.float64), "f16x2": np.dtype(np.float16), "bf16x2": np.dtype(ml_dtypes.bfloat16),
           "tf32": np.dtype(np.float32), "s16x2": np.dtype(np.int16), "u16x2": np.dtype(np.uint16)}  # fmt: skip
PACKED = {"f16x2", "bf16x2", "s16x2", "u16x2"}
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

Read = Callable[[Wave], np.ndarray]
Write = Callable[[Wave, Group, np.ndarray], None]
Do = Callable[[Wave, Group], Any]


def size_of(type_: str) -> int:
    """Bytes of a value of a type."""
    return 4 if type_ in PACKED else SIZES[type_]


@dataclass
class Frame:
    """A scope within a kernel, with the scopes around it."""

    scope: Scope
    outer: Frame | None
    registers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, list[int]] = field(default_factory=dict)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Space and address."""


class Modifiers:
    """The parts of an instruction's name after the first; what nobody asks for is not known."""

    def __init__(self, instruction: Instruction, skip: int = 1) -> None:
        self.instruction, self.left = instruction, list(instruction.parts[skip:])

    def has(self, *words: str) -> bool:
        """Whether one of the words is there; takes it."""
        return self.one(words) != ""

    def one(self, words: Any, default: str = "") -> str:
        for part in self.left:
            if part in words:
                self.left.remove(part)
                return part
        return default

    def last(self) -> str:
        """The type at the end."""
        return self.left.pop() if self.left else self.unknown()

    def type(self, of: Any = None) -> str:
        found = self.last()
        if found not in (DTYPES if of is None else of) and found != "pred":
            self.left.append(found)
            self.unknown()
        return found

    def end(self) -> None:
        if self.left:
            self.unknown()

    def unknown(self) -> Any:
        raise UnknownPtx(
            f"{self.instruction}: the emulator does not know {'.' + '.'.join(self.left) if self.left else 'this form'}"
        )


class Decoder:
    """Turns one kernel into code."""

    def __init__(
        self, module: Module, function: Function, addresses: dict[str, tuple[str, int]]
    ) -> None:
        """`addresses`: of the module's variables that are not in shared memory."""
        self.module, self.code = module, Code()
        self.frames = 0
        self.symbols = dict(addresses)
        self.labels: list[tuple[Step, list[int]]] = []
        self.leaders: set[int] = set()
        dynamic = []
        for variable in module.variables.values():
            if variable.space == "shared":
                if variable.size:
                    self.symbols[variable.name] = ("shared", self.place_shared(variable))
                else:
                    dynamic.append(variable)
        at = 0
        for parameter in function.parameters:
            at = -(-at // parameter.align) * parameter.align
            self.symbols[parameter.name] = ("param", at)
            at += parameter.size
        assert function.body is not None
        self._shared_of(function.body)
        self.code.shared_size = (
            -(-self.code.shared_size // 1024) * 1024 if dynamic else self.code.shared_size
        )
        for variable in dynamic:
            self.symbols[variable.name] = ("shared", self.code.shared_size)
        self._emit(Frame(function.body, None), None)
        for step, place in self.labels:
            step.target = place[0]
            self.leaders.add(place[0])
        for n in self.leaders:
            if n < len(self.code.steps):
                self.code.steps[n].leader = True

    # ---- memory ----------------------------------------------------------------------------------
    def place_shared(self, variable: Variable) -> int:
        at = -(-self.code.shared_size // variable.align) * variable.align
        self.code.shared.append((at, variable.size))
        self.code.shared_size = at + variable.size
        return at

    def _shared_of(self, scope: Scope) -> None:
        for variable in scope.variables.values():
            if variable.space == "shared":
                self.symbols[variable.name] = ("shared", self.place_shared(variable))
        for item in scope.body:
            if isinstance(item, Scope):
                self._shared_of(item)

    def place_local(self, variable: Variable) -> int:
        align = max(variable.align, 8)
        at = -(-self.code.local_size // align) * align
        self.code.local.append((at, variable.size))
        self.code.local_size = at + variable.size
        return at

    # ---- control ---------------------------------------------------------------------------------
    def _emit(self, frame: Frame, after: list[int] | None) -> None:
        """The steps of a scope; `after` is where a return goes, None out of the kernel."""
        for item in frame.scope.body:
            if isinstance(item, Label):
                frame.labels[item.name] = [-1]
        for variable in frame.scope.variables.values():
            if variable.space in ("local", "param"):
                frame.variables[variable.name] = ("local", self.place_local(variable))
        for item in frame.scope.body:
            if isinstance(item, Label):
                frame.labels[item.name][0] = len(self.code.steps)
                self.leaders.add(len(self.code.steps))
            elif isinstance(item, Scope):
                self._emit(Frame(item, frame), after)
            else:
                self.frame = frame
                self._instruction(item, after)

    def _instruction(self, one: Instruction, after: list[int] | None) -> None:
        from support.ptx import instructions

        guard = None
        if one.guard is not None:
            predicate = self.read(Register(one.guard.register), "pred", one)
            guard = (lambda m: ~predicate(m)) if one.guard.negated else predicate
        head = one.parts[0]
        if head in ("bra", "ret", "exit", "trap", "call"):
            self._control(one, head, guard, after)
            return
        if head not in instructions.OPS:
            raise UnknownPtx(f"{one}: the emulator does not know this instruction")
        if head == "wgmma" or one.parts[:3] == ("cp", "async", "bulk"):
            self.code.proxies = True
        made = instructions.OPS[head](self, one)
        step = made if isinstance(made, Step) else Step(made, str(one))
        step.guard = guard
        self.code.steps.append(step)

    def _control(
        self, one: Instruction, head: str, guard: Read | None, after: list[int] | None
    ) -> None:
        modifiers = Modifiers(one)
        modifiers.has("uni")
        modifiers.end()
        text = str(one)
        if head == "bra":
            (to,) = one.operands
            assert isinstance(to, Symbol)
            self._jump(text, guard, self._label(to.name, one))
        elif head == "ret" and after is not None:
            self._jump(text, guard, after)
        elif head in ("ret", "exit"):
            self.code.steps.append(Step(lambda m, g: None, text, "exit", guard))
        elif head == "trap":

            def trap(m: Wave, g: Group) -> None:
                raise UnknownPtx(f"{text}: the kernel traps")

            self.code.steps.append(Step(trap, text, "exit", guard))
        else:
            self._call(one, guard)

    def _jump(self, text: str, guard: Read | None, to: list[int]) -> None:
        step = Step(lambda m, g: None, text, "branch", guard)
        self.labels.append((step, to))
        self.code.steps.append(step)

    def _label(self, name: str, one: Instruction) -> list[int]:
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.labels:
                return frame.labels[name]
            frame = frame.outer
        raise UnknownPtx(f"{one}: there is no label {name}")

    def _call(self, one: Instruction, guard: Read | None) -> None:
        """The called function's steps, in the place of the call."""
        operands = list(one.operands)
        results = operands.pop(0) if isinstance(operands[0], Vector) else Vector(())
        name = operands.pop(0)
        given = operands.pop(0) if operands else Vector(())
        assert isinstance(name, Symbol) and isinstance(given, Vector)
        function = self.module.functions.get(name.name)
        if function is None or function.body is None or operands:
            raise UnknownPtx(f"{one}: the emulator does not know the function {name.name}")
        end = [-1]
        if guard is not None:
            self._jump(str(one), lambda m: ~guard(m), end)
        caller, frame = self.frame, Frame(function.body, None)
        for mine, theirs in zip(
            (*results.items, *given.items), (*function.results, *function.parameters), strict=True
        ):
            assert isinstance(mine, Symbol)
            frame.variables[theirs.name] = self.address_of(mine.name, one)
        self._shared_of(function.body)
        self._emit(frame, end)
        end[0] = len(self.code.steps)
        self.leaders.add(end[0])
        self.frame = caller

    # ---- operands --------------------------------------------------------------------------------
    def address_of(self, name: str, one: Instruction) -> tuple[str, int]:
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.variables:
                return frame.variables[name]
            frame = frame.outer
        if name not in self.symbols:
            raise UnknownPtx(f"{one}: there is no variable {name}")
        return self.symbols[name]

    def register(self, name: str, one: Instruction) -> tuple[int, str]:
        """The number and the type of a register."""
        frame: Frame | None = self.frame
        while frame is not None:
            type_ = frame.scope.type_of(name)
            if type_ is not None:
                if name not in frame.registers:
                    frame.registers[name] = len(self.code.sizes)
                    self.code.sizes.append(1 if type_ == "pred" else min(size_of(type_), 8))
                    if type_ == "b128":  # two registers
                        self.code.sizes.append(8)
                return frame.registers[name], type_
            frame = frame.outer
        raise UnknownPtx(f"{one}: there is no register {name}")

    def named(self, operand: Operand) -> Operand:
        """A name without % is a register's where one is declared."""
        frame: Frame | None = self.frame
        while isinstance(operand, Symbol) and frame is not None:
            if frame.scope.type_of(operand.name) is not None:
                return Register(operand.name)
            frame = frame.outer
        return operand

    def read(self, operand: Operand, type_: str, one: Instruction) -> Read:
        """How a wave's values of an operand are had, as NumPy's type for `type_`."""
        operand = self.named(operand)
        if isinstance(operand, Negated):
            inner = self.read(operand.operand, type_, one)
            return lambda m: ~inner(m)
        if type_ == "pred":
            if isinstance(operand, Immediate):
                value = bool(int(operand.text, 0))
                return lambda m: np.full(m.lanes, value)
            assert isinstance(operand, Register)
            number, of = self.register(operand.name, one)
            if of != "pred":
                raise UnknownPtx(f"{one}: {operand.name} is no predicate")
            return lambda m: m.regs[number].view(np.bool_)
        dtype, size = DTYPES[type_], size_of(type_)
        if isinstance(operand, Immediate):
            return _constant(operand.text, type_)
        if isinstance(operand, Symbol):
            if operand.name == "WARP_SZ":
                return _constant("32", type_)
            _, at = self.address_of(operand.name, one)
            return _constant(str(at + operand.offset), type_)
        if not isinstance(operand, Register):
            raise UnknownPtx(f"{one}: the emulator does not know this operand: {operand}")
        name = operand.name
        if name.startswith("%") and (found := self.special(name, one)) is not None:
            return lambda m: found(m).astype(WORD[size]).view(dtype)
        number, of = self.register(name, one)
        if of == "pred" or size_of(of) < size:
            raise UnknownPtx(f"{one}: {name} is of type {of}, not {type_}")
        if size_of(of) == size:
            return lambda m: m.regs[number].view(dtype)
        word = WORD[size]
        return lambda m: m.regs[number].astype(word).view(dtype)

    def special(self, name: str, one: Instruction) -> Callable[[Wave], np.ndarray] | None:
        if name in ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo", "%clock_hi"):
            return lambda m: np.full(m.lanes, sum(m.counts.values()), np.uint64)
        if name.split(".")[0] in _SPECIAL:
            return lambda m: m.special[name]
        return None

    def write(self, operand: Operand, type_: str, one: Instruction) -> Write:
        """How values become a register's."""
        operand = self.named(operand)
        if isinstance(operand, Register) and operand.name == "_":
            return lambda m, g, value: None
        if not isinstance(operand, Register):
            raise UnknownPtx(f"{one}: {operand} is no register")
        number, of = self.register(operand.name, one)
        if (of == "pred") != (type_ == "pred"):
            raise UnknownPtx(f"{one}: {operand.name} is of type {of}, not {type_}")
        size = 1 if of == "pred" else size_of(of)
        given = 1 if type_ == "pred" else size_of(type_)
        if size < given:
            raise UnknownPtx(f"{one}: {operand.name} of type {of} is too narrow for {type_}")
        word = WORD[size]
        signed = type_[0] == "s"
        narrow = WORD[given]

        def write(m: Wave, g: Group, value: np.ndarray) -> None:
            if value.ndim == 0:
                value = np.full(m.lanes, value)
            if size == given:
                value = value.view(word)
            elif signed:
                value = value.astype(f"i{size}").view(word)
            else:
                value = value.view(narrow).astype(word)
            if value.size != m.lanes:
                value = np.broadcast_to(value, m.lanes).copy()
            m.regs[number] = value if g.all else np.where(g.mask, value, m.regs[number])

        return write

    def reads(self, operand: Operand, type_: str, one: Instruction) -> list[Read]:
        """Of a vector all, of anything else the one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        return [self.read(item, type_, one) for item in items]

    def writes(self, operand: Operand, type_: str, one: Instruction) -> list[Write]:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        return [self.write(item, type_, one) for item in items]

    def address(self, operand: Operand, one: Instruction) -> tuple[str | None, Read]:
        """Of `[...]`: the space where a variable says it, and how addresses are had, as 64 bits."""
        if not isinstance(operand, Address):
            raise UnknownPtx(f"{one}: {operand} is no address")
        base = self.named(operand.base)
        if isinstance(base, Symbol):
            space, at = self.address_of(base.name, one)
            return space, _constant(str(at + base.offset + operand.offset), "u64")
        if isinstance(base, Immediate):
            return None, _constant(str(int(base.text, 0) + operand.offset), "u64")
        assert isinstance(base, Register)
        number, of = self.register(base.name, one)
        offset = np.uint64(operand.offset & (1 << 64) - 1)
        if size_of(of) == 4:
            offset32 = np.uint32(operand.offset & 0xFFFFFFFF)
            return None, lambda m: (m.regs[number] + offset32).astype(np.uint64)
        return None, lambda m: m.regs[number] + offset


_SPECIAL = {"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid",
            "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%clusterid", "%nclusterid",
            "%cluster_ctaid", "%cluster_nctaid", "%cluster_ctarank", "%cluster_nctarank", "%dynamic_smem_size",
            "%total_smem_size"}  # fmt: skip


def _constant(text: str, type_: str) -> Read:
    size = size_of(type_)
    kind = DTYPES[type_]
    if text.lower().lstrip("-").startswith("0f") and type_ == "f64":
        bits = struct.unpack(
            "<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits_of(text, 4)))[0])
        )[0]
    elif text.lower().lstrip("-").startswith("0d") and type_ in ("f32", "b32"):
        bits = int(
            np.float32(struct.unpack("<d", struct.pack("<Q", bits_of(text, 8)))[0]).view(np.uint32)
        )
    elif "." in text or ("e" in text.lower() and not text.lower().lstrip("-").startswith("0")):
        bits = int(np.array(float(text), kind).view(WORD[size]))
    else:
        bits = bits_of(text, size)
    word = WORD[size](bits)
    made: dict[int, np.ndarray] = {}

    def read(m: Wave) -> np.ndarray:
        found = made.get(m.lanes)
        if found is None:
            found = made[m.lanes] = np.full(m.lanes, word).view(kind)
        return found

    return read
