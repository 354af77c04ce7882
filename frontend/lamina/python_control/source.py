"""The syntax tree of a function, with the places it has in its file."""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType, FunctionType

FunctionNode = ast.FunctionDef | ast.Lambda


class SourceError(TypeError):
    """The source of a function is not to be had, or can't be told from others' on its line."""


@functools.lru_cache(64)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def function_node(fun: FunctionType) -> FunctionNode:
    """The definition of a function. The tree is shared: copy before changing it.

    Raises SourceError where there is no source, or where it is a generator or a coroutine.
    """
    code = fun.__code__
    lines = linecache.getlines(code.co_filename, fun.__globals__)
    try:
        tree = _tree("".join(lines))
    except SyntaxError as e:
        raise SourceError(f"the source of {code.co_qualname} has changed: {e}") from None
    found = [node for node in ast.walk(tree) if _may_be(node, code)]
    if len(found) > 1:
        found = sorted((node for node in found if _holds(node, code)), key=_length)
        # A lambda within another holds fewer characters; two of one length are the same text.
        if len(found) > 1 and _length(found[0]) < _length(found[1]):
            del found[1:]
    place = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if not found:
        raise SourceError(
            f"the source of {place} is not there, so its control flow can't be rewritten: write it "
            "in a file, or use lax.cond, lax.while_loop and lax.scan"
        )
    if len(found) > 1:
        raise SourceError(f"{place} is one of several functions of its name on this line")
    return found[0]  # type: ignore[return-value]


def _length(node: ast.AST) -> int:
    return len(ast.unparse(node))


def _may_be(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    return False


def _holds(node: ast.AST, code: CodeType) -> bool:
    """Whether all instructions of a lambda come from within this one's body."""
    if not isinstance(node, ast.Lambda):
        return True
    return all(
        _start(node.body) <= (line, column) and (end_line, end_column) <= _end(node.body)
        for line, end_line, column, end_column in code.co_positions()
        if line and end_line and end_column and column is not None
    )


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0
