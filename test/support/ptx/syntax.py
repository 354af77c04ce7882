"""PTX as text -> functions of instructions with typed operands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from support.ptx.errors import UnknownPtx

_TOKEN = re.compile(
    r'(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"[^"]*")|(?P<word>(?:[\w$%.]|::)+)|(?P<sign>.)',
    re.DOTALL,
)
_NUMBER = re.compile(r"\d[\w.]*")
_IGNORED = {".loc", ".pragma", ".file"}
_LIMITS = {".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".noreturn", ".explicitcluster", ".reqnctapercluster",
           ".maxclusterrank", ".blocksareclusters"}  # fmt: skip


@dataclass(frozen=True)
class Register:
    """A register by name; special ones, as %tid.x, too."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A number as it is written, with its sign."""

    text: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable and an offset; of a label or a function, the name."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """What brackets hold: a base with an offset; of a tensor also coordinates."""

    base: Operand
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True)
class Vector:
    """Operands in braces or parentheses."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """Two results: `d|p`."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Negated:
    """A predicate that counts the other way round."""

    operand: Operand


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated


@dataclass(frozen=True)
class Guard:
    """The predicate that an instruction stands under."""

    register: str
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction; `parts` is its name cut at the dots."""

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    line: int
    guard: Guard | None = None

    @property
    def name(self) -> str:
        return ".".join(self.parts)

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}"


@dataclass(frozen=True)
class Label:
    name: str


@dataclass
class Scope:
    """The inside of braces: names that are declared there, and what is done in order."""

    registers: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict)
    """`%r<8>`: the prefix with its type and how many."""
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list[Instruction | Label | Scope] = field(default_factory=list)

    def type_of(self, name: str) -> str | None:
        """The type of a register that is declared here."""
        if name in self.registers:
            return self.registers[name]
        prefix = name.rstrip("0123456789")
        while prefix:
            if prefix in self.ranges and name != prefix:
                type_, count = self.ranges[prefix]
                return type_ if int(name[len(prefix) :]) < count else None
            if len(prefix) == len(name) or not name[len(prefix) - 1].isdigit():
                return None
            prefix = prefix[:-1]
        return None


@dataclass(frozen=True)
class Variable:
    """Memory with a name. `data` is what it holds at the start, None where that is undefined."""

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None
    references: tuple[tuple[int, str], ...] = ()


@dataclass
class Function:
    """A kernel or a function that kernels call."""

    name: str
    entry: bool
    results: list[Variable]
    parameters: list[Variable]
    body: Scope | None
    limits: dict[str, list[int]]


@dataclass
class Module:
    """A module's variables and functions."""

    target: str
    variables: dict[str, Variable]
    functions: dict[str, Function]


SIZES = {"pred": 1, "b128": 16} | {f"{k}{n}": n // 8 for k in "busf" for n in (8, 16, 32, 64)} | {
    "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "tf32": 4}  # fmt: skip
_PACK = {1: "B", 2: "H", 4: "I", 8: "Q"}


@functools.lru_cache(maxsize=64)
def parse(text: str) -> Module:
    """Raises UnknownPtx for what is no PTX that this reads."""
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        self.lines: list[int] = []
        line = 1
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "space":
                self.tokens.append(match[0])
                self.lines.append(line)
            line += match[0].count("\n")
        self.at = 0

    # ---- tokens ----------------------------------------------------------------------------------
    @property
    def token(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token: str) -> bool:
        found = self.token == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"{token!r} expected, not {self.token!r}")

    def error(self, message: str) -> UnknownPtx:
        line = self.lines[min(self.at, len(self.lines) - 1)]
        return UnknownPtx(f"line {line}: {message}")

    def integer(self) -> int:
        sign = -1 if self.take("-") else 1
        return sign * int(self.next().rstrip("U"), 0)

    def list_of(self, end: str, item: Callable[[], Operand]) -> Iterator[Operand]:
        while not self.take(end):
            yield item()
            self.take(",")

    # ---- modules ---------------------------------------------------------------------------------
    def module(self) -> Module:
        found = Module("", {}, {})
        while self.token:
            word = self.next()
            if word == ".version" or word == ".address_size":
                self.next()
            elif word == ".target":
                found.target = self.next()
                while self.take(","):
                    self.next()
            elif word in (".visible", ".extern", ".weak", ".common", ".alias"):
                pass
            elif word in (".global", ".const", ".shared"):
                for variable in self.variables(word[1:]):
                    found.variables[variable.name] = variable
            elif word in (".entry", ".func"):
                function = self.function(word == ".entry")
                if function.body is not None or function.name not in found.functions:
                    found.functions[function.name] = function
            elif word in _IGNORED:
                line = self.lines[self.at - 1]
                while self.token and self.lines[self.at] == line:
                    self.at += 1
            elif word == ".section":
                while not self.take("}"):
                    self.next()
            else:
                self.at -= 1
                raise self.error(f"the emulator does not know {word}")
        return found

    def function(self, entry: bool) -> Function:
        limits: dict[str, list[int]] = {}
        while self.token in _LIMITS:  # .noreturn stands before the name
            self.next()
        results = self.parameters() if self.token == "(" else []
        name = self.next()
        parameters = self.parameters() if self.token == "(" else []
        while self.token in _LIMITS:
            limits[self.next()] = numbers = []
            while self.token and self.token[0].isdigit():
                numbers.append(self.integer())
                self.take(",")
        if self.take(";"):
            return Function(name, entry, results, parameters, None, limits)
        self.expect("{")
        return Function(name, entry, results, parameters, self.scope(), limits)

    def parameters(self) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.take(")"):
            space = self.next()[1:]
            if space == "reg":
                raise self.error("the emulator does not know parameters in registers")
            found.append(self.variable(space))
            self.take(",")
        return found

    def variables(self, space: str) -> Iterator[Variable]:
        yield self.variable(space)
        while self.take(","):
            raise self.error("the emulator does not know several variables in one declaration")
        self.expect(";")

    def variable(self, space: str) -> Variable:
        align, size, vector = 0, 0, 1
        while self.token.startswith(".") and self.token != ".":
            word = self.next()[1:]
            if word == "align":
                align = self.integer()
            elif word in SIZES:
                size = SIZES[word]
            elif re.fullmatch(r"v[248]", word):
                vector = int(word[1:])
            elif word not in (
                "ptr",
                "global",
                "const",
                "shared",
                "local",
                "attribute",
                "surfref",
                "texref",
                "b",
            ):
                raise self.error(f"the emulator does not know .{word}")
        name, element = self.next(), size
        size *= vector
        while self.take("["):
            size *= 0 if self.token == "]" else self.integer()
            self.expect("]")
        data, references = None, []
        if self.take("="):
            values: list[int] = []
            self.values(values, element, references)
            data = b"".join(v.to_bytes(element, "little") for v in values)
            data += bytes(max(size - len(data), 0))
            size = max(size, len(data))
        elif space in ("global", "const"):
            data = bytes(size)
        return Variable(name, space, align or element, size, data, tuple(references))

    def values(self, into: list[int], element: int, references: list[tuple[int, str]]) -> None:
        if self.take("{"):
            while not self.take("}"):
                self.values(into, element, references)
                self.take(",")
            return
        if self.token != "-" and not _NUMBER.match(self.token):
            name = self.next()
            if self.take("("):
                name = self.next()
                self.expect(")")
            references.append((len(into) * element, name))
            into.append(0)
            return
        sign = "-" if self.take("-") else ""
        into.append(bits_of(sign + self.next(), element))

    # ---- functions -------------------------------------------------------------------------------
    def scope(self) -> Scope:
        found = Scope()
        while not self.take("}"):
            if self.take("{"):
                found.body.append(self.scope())
                continue
            if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
                found.body.append(Label(self.next()))
                self.next()
                continue
            word = self.token
            if word == ".reg":
                self.next()
                self.registers(found)
            elif word in (".shared", ".local", ".param", ".const", ".global"):
                self.next()
                for variable in self.variables(word[1:]):
                    found.variables[variable.name] = variable
            elif word in _IGNORED:
                line = self.lines[self.at]
                while self.lines[self.at] == line:
                    self.at += 1
            elif self.take(";"):
                pass
            elif word.startswith("."):
                raise self.error(f"the emulator does not know {word}")
            else:
                found.body.append(self.instruction())
        return found

    def registers(self, scope: Scope) -> None:
        type_ = self.next()[1:]
        while True:
            name = self.next()
            if self.take("<"):
                scope.ranges[name] = (type_, self.integer())
                self.expect(">")
            else:
                scope.registers[name] = type_
            if not self.take(","):
                break
        self.expect(";")

    def instruction(self) -> Instruction:
        line = self.lines[self.at]
        guard = None
        if self.take("@"):
            negated = self.take("!")
            guard = Guard(self.next(), negated)
        name = self.next()
        operands = list(self.list_of(";", self.operand))
        return Instruction(tuple(name.split(".")), tuple(operands), line, guard)

    def operand(self) -> Operand:
        found = self.one_operand()
        return Pair(found, self.one_operand()) if self.take("|") else found

    def one_operand(self) -> Operand:
        if self.take("{"):
            return Vector(tuple(self.list_of("}", self.operand)))
        if self.take("("):
            return Vector(tuple(self.list_of(")", self.operand)))
        if self.take("["):
            base = self.one_operand()
            offset = self.offset()
            coordinates = None
            if self.take(","):
                coordinates = self.one_operand()
                assert isinstance(coordinates, Vector)
            self.expect("]")
            if isinstance(base, Symbol):
                base, offset = Symbol(base.name), base.offset + offset
            return Address(base, offset, coordinates)
        if self.take("!"):
            return Negated(self.one_operand())
        if self.take("-"):
            return Immediate("-" + self.next())
        word = self.next()
        if _NUMBER.fullmatch(word):
            return Immediate(word)
        if word.startswith("%") or word == "_":
            return Register(word)
        if not re.fullmatch(r"[\w$.]+", word):
            self.at -= 1
            raise self.error(f"no operand: {word!r}")
        return Symbol(word, self.offset())

    def offset(self) -> int:
        total = 0
        while self.token in ("+", "-"):
            self.take("+")
            total += self.integer()
        return total


def bits_of(text: str, size: int) -> int:
    """The bits of a number of so many bytes."""
    negative = text.startswith("-")
    digits = text.lstrip("-")
    if digits[:2] in ("0f", "0F", "0d", "0D"):
        found = int(digits[2:], 16)
        if negative:
            found ^= 1 << (4 * len(digits[2:]) - 1)
        return found
    found = int(digits.rstrip("U"), 8 if re.fullmatch(r"0[0-7]+U?", digits) else 0)
    return (-found if negative else found) & ((1 << 8 * size) - 1)
