"""What a pass is, and the error by which it refuses a program."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ClassVar, Self, dataclass_transform

from lamina.dialects.vendors import ir
from lamina.records import Record

_counts: ContextVar[Counter[str] | None] = ContextVar("lamina_pass_counts", default=None)


@dataclass_transform(frozen_default=True)
class Pass:
    """A rewrite of a whole module. Subclasses declare their options as annotated attributes with defaults,
    `max_ops: int = 64`, and are then made as `Fuse(max_ops=32)`; a pass does not change afterwards.

    A pass may expect a valid module and must leave a valid one; inside `run` it may break it.
    It is named by its file: passes/stablehlo/canonicalize/cse.py holds `stablehlo-cse`. The file's docstring is
    its documentation, the first line its summary.

    (To a dataclass Python compiles six methods: half a millisecond for each of a hundred passes,
    before the first program is compiled.)
    """

    name: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """The options in order, with their defaults."""
    only_with: ClassVar[frozenset[str]] = frozenset()
    """Ops by name: a pipeline leaves the pass out for a module that has none of them, since it would
    find nothing to do. Empty where that can't be said."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = name_of_module(cls.__module__)
        own = (name for name, of in cls.__annotations__.items() if "ClassVar" not in str(of))
        cls.defaults = {**cls.defaults, **{name: _default(cls, name) for name in own}}

    def __init__(self, *values: Any, **options: Any) -> None:
        given = dict(zip(self.defaults, values, strict=False)) | options
        if len(given) < len(values) + len(options) or not given.keys() <= self.defaults.keys():
            takes = ", ".join(self.defaults) or "no options"
            raise TypeError(f"{type(self).__name__}{(*values, options)}: it takes {takes}")
        vars(self).update({**self.defaults, **given})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self} is made once; {name} can't be set")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pass) or type(other) is not type(self):
            return NotImplemented
        return self.options == other.options

    def __hash__(self) -> int:
        return hash((type(self), *self.options.values()))

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in self.options.items())
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def options(self) -> dict[str, Any]:
        """The options in order, with their values."""
        return {name: getattr(self, name) for name in self.defaults}

    def but(self, **options: Any) -> Self:
        """The same pass with some options set otherwise."""
        return type(self)(**{**self.options, **options})

    def run(self, module: ir.Module) -> None:
        """Rewrite the module in place. Raises CompileError for a program it can't take."""
        raise NotImplementedError(f"{type(self).__name__}.run")

    def count(self, what: str, n: int = 1) -> None:
        """Add to a statistic of this run; shown by --timing and LAMINA_TIMING."""
        counts = _counts.get()
        if counts is not None and n:
            counts[what] += n


def _default(cls: type[Pass], name: str) -> Any:
    if name not in vars(cls):
        raise TypeError(f"option {name} of {cls.__name__} has no default")
    return vars(cls)[name]


def name_of_module(module: str) -> str:
    """`lamina.passes.stablehlo.canonicalize.fold` -> `stablehlo-fold`: the level and the file's name. The
    folder between says only where to look for it. Kernel writers have their target for a level."""
    level, *folders = module.removeprefix("lamina.passes.").removeprefix("kernels.").split(".")
    return "-".join((level, *folders[-1:])).replace("_", "-")


class Frame(Record):
    """One place in a user's source file."""

    file: str
    line: int
    column: int
    function: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        return where + (f" in {self.function}" if self.function else "")


def source_frames(location: ir.Location | None) -> list[Frame]:
    """The source places an MLIR location names, innermost call first; a fused one's parts in turn.

    A name around a file position is that position's function; other names are op paths, left out.
    """
    found: list[Frame] = []
    work: list[tuple[Any, str | None]] = [(location, None)]
    while work:
        at, function = work.pop()
        if isinstance(at, ir.FileLineColLoc):
            frame = Frame(at.filename, at.start_line, at.start_col, function)
            if frame not in found:
                found.append(frame)
        elif isinstance(at, ir.NameLoc):
            work.append((at.child_loc, at.name_str))
        elif isinstance(at, ir.CallSiteLoc):
            work += [(at.caller, None), (at.callee, None)]
        elif isinstance(at, ir.FusedLoc):
            work += [(part, None) for part in reversed(at.locations)]
    return found


class CompileError(Exception):
    """A program that can't be compiled: which op, where in the user's source, why, what to do.

    Prints as `[op] message`, then the user's line with a caret, then the hint. Holds no IR, so it
    may outlive the module.
    """

    def __init__(
        self,
        op_name: str,
        location: ir.Location | None,
        message: str,
        hint: str | None = None,
    ) -> None:
        self.op_name = op_name.split(".", 1)[-1] if op_name else ""
        self.message = message
        self.hint = hint
        self.frames = source_frames(location)
        self.pass_name: str | None = None
        super().__init__(op_name, message)

    @classmethod
    def at(cls, op: ir.Operation, message: str, hint: str | None = None) -> CompileError:
        """The error about an op."""
        return cls(op.operation.name, op.location, message, hint)

    def in_file(self, placeholder: str, name: str) -> CompileError:
        """This error, with the file name MLIR gives to text without one replaced."""
        self.frames = [replace(f, file=name) if f.file == placeholder else f for f in self.frames]
        return self

    def __str__(self) -> str:
        lines = [f"[{self.op_name}] {self.message}" if self.op_name else self.message]
        if self.frames:
            frame = self.frames[0]
            lines.append(f"  at {frame}")
            lines += _source_excerpt(frame)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:  # kernels are compiled in worker processes
        return _rebuild, (type(self), self.__dict__, self.args)


def _rebuild(cls: type[CompileError], state: dict[str, Any], args: tuple[Any, ...]) -> CompileError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class PassError(CompileError):
    """A pass failed for a reason that is not the user's program: a bug, or an upstream refusal."""

    reproducer: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        if self.pass_name:
            text = f"pass {self.pass_name} failed: {text}"
        return f"{text}\n  reproduce: {self.reproducer}" if self.reproducer else text


def from_diagnostics(error: ir.MLIRError) -> PassError:
    """MLIR's first error as ours, with the op it names and the place it points at."""
    diagnostics = getattr(error, "error_diagnostics", None)
    if not diagnostics:
        return PassError("", None, str(error))
    first = diagnostics[0]
    named = re.search(r"'([a-z_]+\.[\w.]+)'", first.message)
    return PassError(named[1] if named else "", first.location, first.message)


def _source_excerpt(frame: Frame) -> list[str]:
    line = linecache.getline(frame.file, frame.line).rstrip("\n")
    if not line.strip():
        return []
    indent = len(line) - len(line.lstrip())
    column = max(frame.column - 1, indent) if frame.column else indent
    caret = "".join("\t" if c == "\t" else " " for c in line[indent:column]) + "^"
    return [f"    {line.strip()}", f"    {caret}"]
