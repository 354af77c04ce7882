"""Contexts and parsing: what every piece of IR lives in, and how it comes in from outside."""

from __future__ import annotations

import re
import threading

from lamina.dialects.vendors import ir, load_dialects, stablehlo_ext

_MLIR_BYTECODE_MAGIC = b"ML\xefR"
_of_thread = threading.local()


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


class ParseError(ValueError):
    """A module's text or bytes that MLIR does not accept; the message names the line."""

    def __init__(self, name: str, problem: str, line: int = 0, column: int = 0, shown: str = ""):
        self.problem = problem
        self.line = line
        place = f"{name}:{line}:{column}" if line else name
        excerpt = f"\n{shown}\n{' ' * (column - 1)}^" if shown.strip() else ""
        super().__init__(f"{place}: {problem}{excerpt}")


def parse(source: str | bytes, *, name: str = "<input>") -> ir.Module:
    """The module in MLIR text, MLIR bytecode or a StableHLO portable artifact, verified.

    It lives in the ambient context, or in this thread's when there is none. Raises `ParseError`,
    whose message starts with `name` and, for text, the line and column.
    """
    with ir.Context.current or context() as ctx, ir.Location.unknown():
        if isinstance(source, bytes) and source[:4] == _MLIR_BYTECODE_MAGIC:
            return _parse_bytecode(ctx, source, name)
        if isinstance(source, bytes):
            try:
                source = source.decode()
            except UnicodeDecodeError as error:
                problem = "neither MLIR text (not UTF-8) nor MLIR bytecode (no ML\\xefR header)"
                raise ParseError(name, problem) from error
        try:
            return ir.Module.parse(source)
        except ir.MLIRError as error:
            raise _located(error, source, name) from None


def _parse_bytecode(ctx: ir.Context, source: bytes, name: str) -> ir.Module:
    # A portable artifact is bytecode whose producer string says StableHLO and whose ops are VHLO.
    producer = source[5:64].split(b"\0", 1)[0]
    try:
        if producer.startswith(b"StableHLO"):
            return stablehlo_ext.deserialize_portable_artifact(ctx, source)
        return ir.Module.parse(source)
    except Exception as error:
        what = "portable artifact" if producer.startswith(b"StableHLO") else "bytecode"
        raise ParseError(name, f"not a readable MLIR {what}: {error}") from None


def _located(error: ir.MLIRError, source: str, name: str) -> ParseError:
    """MLIR's first diagnostic, with the line of source it points at."""
    diagnostics = getattr(error, "error_diagnostics", None)
    problem = diagnostics[0].message if diagnostics else str(error)
    place = re.search(r'"-":(\d+):(\d+)', str(error))
    if place is None:
        return ParseError(name, problem)
    line, column = int(place[1]), int(place[2])
    lines = source.splitlines()
    return ParseError(name, problem, line, column, lines[line - 1] if line <= len(lines) else "")
