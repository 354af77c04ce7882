"""Contexts and parsing: what every piece of IR lives in, and how it comes in from outside."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from lamina.dialects.interrupts import uninterrupted
from lamina.dialects.parse_error import NOT_UTF8, excerpt_at, is_about_encoding
from lamina.dialects.parse_error import ParseError as ParseError
from lamina.dialects.vendors import ir, load_dialects, stablehlo_ext

_MLIR_BYTECODE_MAGIC = b"ML\xefR"
P = ParamSpec("P")
T = TypeVar("T")

_PROGRAM_BYTES = 4 << 10  # memory: what a context keeps of the smallest program
_MOST_KEPT_BYTES = 1 << 20  # memory: about what it may keep; a new one has dialects loaded and patterns collected again

_of_thread = threading.local()
_forgetters: list[Callable[[], None]] = []


@uninterrupted()
def make_context() -> ir.Context:
    """A fresh context with StableHLO, CHLO and the upstream dialects."""
    context = ir.Context(load_on_create_dialects=[])  # else all of upstream's fifty
    # MLIR's own thread pool would cost threads for each context and does not survive a fork.
    context.enable_multithreading(False)
    load_dialects(context)
    return context


def context() -> ir.Context:
    """This thread's context, made on first use. Attributes made in it live as long as it does."""
    found = getattr(_of_thread, "context", None)
    if found is None:
        found = _of_thread.context = make_context()
    return found


def context_for_program(size: int = 0) -> ir.Context:
    """This thread's context, for a program that begins, of about so many bytes.

    A context never forgets an attribute, a type or a location. After many programs a new one takes its place, and
    what is left of it are the modules that somebody holds.
    """
    kept = getattr(_of_thread, "kept_bytes", 0) + _PROGRAM_BYTES + 2 * size
    if kept > _MOST_KEPT_BYTES:
        kept, _of_thread.context, _of_thread.of_context = 0, None, None
        for forget in _forgetters:
            forget()
    _of_thread.kept_bytes = kept
    return context()


def kept_with(context: ir.Context) -> dict[Any, Any]:
    """What this thread keeps that lives in a context, under names of those who keep it: nothing of another."""
    found = getattr(_of_thread, "of_context", None)
    if found is None or found[0] != context:
        found = _of_thread.of_context = (context, {})
    return found[1]  # type: ignore[no-any-return]


def forget_with_contexts(forget: Callable[[], None]) -> None:
    """Has this called where a thread drops its context, by that thread: it is to let go of all that lives in it."""
    _forgetters.append(forget)


def cached_with_context(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """functools.lru_cache for functions of attributes and types, which are forgotten with their contexts."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        cached = functools.lru_cache(most)(function)
        forget_with_contexts(cached.cache_clear)
        return cached  # type: ignore[return-value]

    return decorated


def parse(source: str | bytes, *, name: str = "<input>") -> ir.Module:
    """The module in MLIR text, MLIR bytecode or a StableHLO portable artifact, verified.

    It lives in the ambient context, or in this thread's when there is none. Raises `ParseError`,
    whose message starts with `name` and, for text, the line and column.
    """
    with ir.Context.current or context() as ctx, ir.Location.unknown():
        if isinstance(source, bytes) and source[:4] == _MLIR_BYTECODE_MAGIC:
            return _parse_bytecode(ctx, source, name)
        source = decoded(source, name)
        try:
            return ir.Module.parse(source)
        except ir.MLIRError as error:
            raise _located(error, source, name) from None
        except (RuntimeError, UnicodeError) as error:
            if not is_about_encoding(error):
                raise
            raise ParseError(name, NOT_UTF8) from None


def decoded(source: str | bytes, name: str) -> str:
    """Text of a program as text; ParseError where it is not UTF-8."""
    try:
        if isinstance(source, bytes):
            return source.decode()
        if not source.isascii():
            source.encode()  # a str may hold what has no UTF-8
        return source
    except UnicodeError as error:
        problem = "neither MLIR text (not UTF-8) nor MLIR bytecode (no ML\\xefR header)"
        raise ParseError(name, problem) from error


def _parse_bytecode(ctx: ir.Context, source: bytes, name: str) -> ir.Module:
    # A portable artifact is bytecode whose producer string says StableHLO and whose ops are VHLO.
    producer = source[5:64].split(b"\0", 1)[0]
    what = "portable artifact" if producer.startswith(b"StableHLO") else "bytecode"
    try:
        if what == "bytecode":
            return ir.Module.parse(source)
        return stablehlo_ext.deserialize_portable_artifact(ctx, source)
    except Exception as error:
        problem = NOT_UTF8 if is_about_encoding(error) else _first_diagnostic(error)
        raise ParseError(name, f"not a readable MLIR {what}: {problem}") from None


def _first_diagnostic(error: Exception) -> str:
    diagnostics = getattr(error, "error_diagnostics", None)
    return diagnostics[0].message if diagnostics else str(error)


def _located(error: ir.MLIRError, source: str, name: str) -> ParseError:
    """MLIR's first diagnostic, with the line of source it points at."""
    problem = _first_diagnostic(error)
    place = re.search(r'"-":(\d+):(\d+)', str(error))
    if place is None:
        return ParseError(name, problem)
    line, column = int(place[1]), int(place[2])
    return ParseError(name, problem, line, column, excerpt_at(source, line, column))
