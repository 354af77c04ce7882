"""Pipelines: our passes and upstream's in one textual list, run with checks and instrumentation.

`stablehlo-cse,canonicalize,func.func(linalg-fuse-elementwise-ops),stablehlo-fuse{max-ops=64}`

A name that is a file of ours is our pass and runs on the module; any other goes to MLIR as written.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar

from lamina.dialects.interrupts import let_interrupts_in
from lamina.dialects.vendors import PassManager, ir
from lamina.passes.framework import instrumentation, options, registry
from lamina.passes.framework.base import CompileError, Pass, PassError, from_diagnostics
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.upstream import run_upstream
from lamina.records import Record

Verify = Literal["each", "end", "never"]
T = TypeVar("T")

_unchecked: ContextVar[bool] = ContextVar("lamina_unchecked", default=False)


def checked_if_it_fails(lower: Callable[[], T], again: Callable[[], T] | None = None) -> T:
    """What `lower` returns, whose pipelines neither verify modules nor keep copies of them: where it
    fails `again`, or `lower` once more, is called, and they do, so that the error says which pass it
    was.

    Passes are deterministic, and verifying takes a twelfth of a kernel's time in MLIR. The tests have
    LAMINA_VERIFY=1, with which all is checked at once.
    """
    try:
        with unchecked():
            return lower()
    except Exception:
        if not _unchecked_is_wanted():
            raise
    return (again or lower)()  # raises it again, better explained


@contextmanager
def unchecked() -> Iterator[None]:
    """Inside, pipelines neither verify modules nor keep copies, unless LAMINA_VERIFY says so."""
    token = _unchecked.set(_unchecked_is_wanted())
    try:
        yield
    finally:
        _unchecked.reset(token)


def _unchecked_is_wanted() -> bool:
    return os.environ.get("LAMINA_VERIFY", "0") in ("", "0")


class NotYet:
    """A pass of ours that is imported when it first has something to do."""

    def __init__(self, item: str, only_with: frozenset[str]) -> None:
        self._item, self.only_with = item, only_with

    @functools.cached_property
    def loaded(self) -> Pass:
        """The pass."""
        found = _stage(self._item)
        assert isinstance(found, Pass)
        return found

    def run(self, module: ir.Module) -> None:
        """As the pass does."""
        self.loaded.run(module)


Stage = Pass | NotYet | str


class Pipeline(Record):
    """Passes in order: instances of ours, text for upstream's. Equal pipelines print equally."""

    stages: tuple[Stage, ...]

    @classmethod
    def of(cls, *stages: Stage) -> Pipeline:
        """The pipeline of these passes; text may itself be a pipeline. Those that many modules have no use
        for are not imported yet."""
        flat: list[Stage] = []
        for stage in stages:
            flat += map(_when_needed, _items(stage)) if isinstance(stage, str) else [stage]
        return cls(tuple(flat))

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """The pipeline in a text; raises ValueError naming what is wrong with it."""
        return cls(tuple(map(_stage, _items(text))))

    def __str__(self) -> str:
        return ",".join(_text(stage) for stage in self.stages)

    def run(self, module: ir.Module, *, verify: Verify = "end") -> None:
        """Run the passes on the module, which is verified after each, at the end, or never.

        Raises CompileError when a pass refuses the program, PassError when a pass fails or leaves
        an invalid module; it names the pass, and the IR before it is kept in a file. No handle on
        an op of the module is valid afterwards.
        """
        for _ in self.steps(module, verify=verify):
            pass

    def steps(self, module: ir.Module, *, verify: Verify = "end") -> Iterator[None]:
        """`run`, a step at a time: other modules may have theirs in between."""
        watch = instrumentation.current(_name_of(module))
        names = _OpNames(module, self._looked_for)
        is_checked = watch.looks_at_every_pass or not _unchecked.get()
        before = module.operation.clone(ip=False) if is_checked else None  # in no module around it
        done = 0
        for stage, count in self._alone if watch.wants_every_pass else self._together:
            done += count
            with module.context, ir.Location.unknown():
                try:
                    if watch.wants_every_pass:
                        with watch.around(_text(stage), module):
                            _run_stage(stage, names, is_checked and verify == "each")
                    else:
                        _run_stage(stage, names, is_checked and verify == "each")
                    if is_checked and verify == "end" and done == len(self.stages):
                        module.operation.verify()
                except (Exception, RecursionError) as error:
                    if before is None:
                        raise
                    raise self._explained(error, before, done, verify, watch) from (
                        None if isinstance(error, (CompileError, ir.MLIRError)) else error
                    )
            let_interrupts_in()
            yield

    @functools.cached_property
    def _alone(self) -> list[tuple[Stage, int]]:
        return [(stage, 1) for stage in self.stages]

    @functools.cached_property
    def _together(self) -> list[tuple[Stage, int]]:
        """The passes, upstream ones together, for one pass manager; and how many each is."""
        found: list[tuple[Stage, int]] = []
        for stage in self.stages:
            last, count = found[-1] if found else (None, 0)
            if isinstance(stage, str) and isinstance(last, str):
                found[-1] = f"{last},{stage}", count + 1
            else:
                found.append((stage, 1))
        return found

    @functools.cached_property
    def _looked_for(self) -> tuple[str, ...]:
        """The names of ops without which one of the passes is left out."""
        wanted = [stage.only_with for stage in self.stages if not isinstance(stage, str)]
        return tuple(sorted(frozenset().union(*wanted)))

    def _explained(
        self,
        error: BaseException,
        before: ir.Operation,
        done: int,
        verify: Verify,
        watch: instrumentation.Instrumentation,
    ) -> CompileError:
        """The error, with the pass it belongs to and how to meet it again. It was met in the first
        `done` passes.

        Passes are deterministic, so the pass and the IR before it are found by running all of them
        once more on the copy, one by one; verifying and keeping copies would cost every run.
        """
        found = self.stages[done - 1]
        if isinstance(error, CompileError) and not isinstance(error, PassError):
            error.pass_name = _text(found)
            if not watch.keeps_refused:
                return error
        again = ir.Module.parse(before.get_asm(enable_debug_info=True))
        with instrumentation.off():
            for stage in self.stages[:done]:
                text = again.operation.get_asm(enable_debug_info=True)
                try:
                    _run_stage(stage, _OpNames(again, self._looked_for), verify != "never")
                except (Exception, RecursionError):
                    found = stage
                    again = ir.Module.parse(text)
                    break
        explained = error if isinstance(error, CompileError) else _as_pass_error(error)
        explained.pass_name = _text(found)
        loaded = registry.loaded_file(found.name) if isinstance(found, Pass) else None
        reproducer = watch.keep_failure(again, _text(found), loaded)
        if isinstance(explained, PassError):
            explained.reproducer = reproducer
        return explained


class _OpNames:
    """Which of some names the ops in a module have."""

    def __init__(self, module: ir.Module, looked_for: tuple[str, ...]) -> None:
        self.module, self.context = module, module.context
        self._looked_for = looked_for
        self._names: set[str] = set()
        self._is_old = True

    def has_any(self, names: frozenset[str]) -> bool:
        """Whether the module has an op of these names; or had one, which is no reason to look again."""
        if names.isdisjoint(self._names) and self._is_old:
            self._names = {op.name for op in find_ops(self.module, *self._looked_for)}
            self._is_old = False
        return not names.isdisjoint(self._names)

    def forget(self) -> None:
        """Say that a pass has run."""
        self._is_old = True


def _run_stage(stage: Stage, names: _OpNames, verify: bool) -> None:
    """Run a pass of ours, or upstream ones in a text."""
    module = names.module
    if isinstance(stage, str):
        run_upstream(module, stage, verify)
    elif stage.only_with and not names.has_any(stage.only_with):
        return
    else:
        stage.run(module)
        if verify:
            module.operation.verify()
    names.forget()


def _as_pass_error(error: BaseException) -> PassError:
    if isinstance(error, ir.MLIRError):
        return from_diagnostics(error)
    return PassError("", None, f"{type(error).__name__}: {error}")


def _name_of(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "module"


def _text(stage: Stage) -> str:
    if isinstance(stage, NotYet):
        stage = stage.loaded
    return options.to_text(stage) if isinstance(stage, Pass) else stage


# The textual form


def _items(text: str) -> list[str]:
    text = text.strip()
    whole = re.fullmatch(r"builtin\.module\((.*)\)", text, re.DOTALL)
    return _split(whole[1] if whole and len(_split(text)) == 1 else text)


_NAME = re.compile(r"[\w.\-]+")


@functools.lru_cache(1024)
def _when_needed(item: str) -> Stage:
    name = _NAME.match(item)
    only_with = registry.only_with(name[0]) if name else None
    return NotYet(item, only_with) if only_with else _stage(item)


@functools.lru_cache(1024)
def _stage(item: str) -> Stage:
    name = _NAME.match(item)
    if name is None:
        raise ValueError(f"expected a pass name, got {item!r}")
    cls = registry.find(name[0])
    if cls is not None:
        return options.make(cls, _options_of(item[name.end() :], name[0]))
    _check_upstream(item)
    return item


def _split(text: str) -> list[str]:
    """The items of a comma-separated list, not cut inside brackets or quotes."""
    items, depth, begin, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
            if depth < 0:
                raise ValueError(f"unexpected {char!r} at column {at + 1} of pipeline {text!r}")
        elif char == "," and depth == 0:
            items.append(text[begin:at].strip())
            begin = at + 1
    if depth or quote:
        raise ValueError(f"pipeline {text!r} ends inside {quote or 'brackets'}")
    items.append(text[begin:].strip())
    return [item for item in items if item]


def _options_of(text: str, name: str) -> list[tuple[str, str]]:
    if not text:
        return []
    if not (text[0] == "{" and text[-1] == "}"):
        raise ValueError(f"{name}: expected options in braces after the name, got {text!r}")
    pairs = (part.partition("=") for part in text[1:-1].split())
    return [(key, value) for key, _, value in pairs]


def _check_upstream(item: str) -> None:
    for name in re.findall(r"[\w\-]+(?:\.[\w\-]+)*", item):
        nested = registry.find(name) if "-" in name else None
        if nested is not None and "(" in item:
            raise ValueError(f"{name} runs on the whole module; it can't stand inside {item!r}")
    try:
        with ir.Context.current or _context():
            PassManager.parse(f"builtin.module({item})")
    except ValueError as error:
        raise ValueError(_upstream_message(item, str(error))) from None


def _upstream_message(item: str, text: str) -> str:
    unknown = re.search(r"'([^']+)' does not refer to a registered pass", text)
    if unknown:
        close = registry.like(unknown[1])
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        return f"no pass named {unknown[1]!r}, ours or MLIR's (see lamina-opt --list-passes).{hint}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{item}: {'; '.join(lines)}"


def _context() -> ir.Context:
    from lamina.dialects.context import context

    return context()
