"""Takes return, break and continue out of a function's body.

What follows a jump is put under an `if` of a flag, or into the other branch:

    if c:               if c:                      while c:            __broken = False
        return a            __result = a               if d:           while not __broken and c:
    return b     ->     else:                              break   ->      if d: __broken = True
                            __result = b               f()                 if not __broken: f()
                        return __result

On concrete values flags are booleans and nothing changes; traced jumps make them traced.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from lamina.python_control.names import has_jump

RESULT = "__result"
_DONE = "__returned"
_JUMPS = (ast.Break, ast.Continue)


def expression(text: str, at: ast.AST) -> Any:
    """A generated expression, at the place of a node."""
    return _placed(ast.parse(text, mode="eval").body, at)


def statements(text: str, at: ast.AST) -> list[ast.stmt]:
    """Generated statements, at the place of a node."""
    return [_placed(node, at) for node in ast.parse(text).body]


def _placed(node: Any, at: Any) -> Any:
    # On one line: of an attribute that spans several, Python takes the last one.
    for inner in ast.walk(node):
        if "lineno" in inner._attributes:
            vars(inner).update(
                lineno=at.lineno,
                end_lineno=at.lineno,
                col_offset=at.col_offset,
                end_col_offset=at.col_offset + 1,
            )
    return node


def without_jumps(body: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """A function's body with one return, at its end."""
    body = _Loops().block(body, (), ())
    if not any(has_jump(s, (ast.Return,)) for s in body):
        return body
    if (
        len(body) > 0
        and isinstance(body[-1], ast.Return)
        and not any(has_jump(s, (ast.Return,)) for s in body[:-1])
    ):
        return body
    end = [] if vars(body[-1]).get("endless") else statements("return None", body[-1])
    new = _tail([*body, *end])
    return [*statements(f"{_DONE} = False", at), *new, *statements(f"return {RESULT}", body[-1])]


def _ends(body: list[ast.stmt]) -> bool:
    """Whether control never leaves a block but by a return (or an exception)."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


def _tail(body: list[ast.stmt]) -> list[ast.stmt]:
    """A block that ends the function, with the result assigned instead of returned."""
    out: list[ast.stmt] = []
    for i, statement in enumerate(body):
        rest = body[i + 1 :]
        if isinstance(statement, ast.Return):
            return [*out, _assignment(statement)]
        if not has_jump(statement, (ast.Return,)):
            out.append(statement)
            continue
        if isinstance(statement, ast.If) and _ends(statement.body):
            return [*out, _if(statement, _tail(statement.body), _tail(statement.orelse + rest))]
        if isinstance(statement, ast.If) and _ends(statement.orelse):
            return [*out, _if(statement, _tail(statement.body + rest), _tail(statement.orelse))]
        out.append(_flagged(statement))
        if not rest:
            return out
        guard = ast.copy_location(
            ast.If(expression(f"not {_DONE}", statement), _tail(rest), []), statement
        )
        return [*out, guard]
    return out


def _if(like: ast.If, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.If:
    return ast.copy_location(ast.If(like.test, body, orelse), like)


def _assignment(statement: ast.Return) -> ast.stmt:
    value = statement.value or ast.copy_location(ast.Constant(None), statement)
    target = ast.copy_location(ast.Name(RESULT, ast.Store()), statement)
    return ast.copy_location(ast.Assign([target], value), statement)


def _flagged(statement: ast.stmt) -> Any:
    """A statement whose returns set a flag, under which what follows them stands."""
    if isinstance(statement, ast.Return):
        raise AssertionError("a return is taken apart where its block is")
    if isinstance(statement, (ast.While, ast.For)):
        statement.body = _replaced(statement.body)  # what follows is under the loop's flag already
        return statement
    for field in ("body", "orelse", "finalbody"):
        if isinstance(getattr(statement, field, None), list):
            setattr(statement, field, _flagged_block(getattr(statement, field)))
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        part.body = _flagged_block(part.body)
    if isinstance(statement, ast.Try) and has_jump_flag(statement.body) and statement.orelse:
        statement.orelse = [_guard(_DONE, statement.orelse, statement)]
    return statement


def has_jump_flag(body: list[ast.stmt]) -> bool:
    """Whether a block may set the flag of having returned."""
    return any(isinstance(n, ast.Name) and n.id == _DONE for s in body for n in ast.walk(s))


def _guard(flag: str, body: list[ast.stmt], at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.If(expression(f"not {flag}", at), body, []), at)


def _replaced(body: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Return):
            out += [_assignment(statement), *statements(f"{_DONE} = True", statement)]
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.append(statement)
        else:
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, field, None), list):
                    setattr(statement, field, _replaced(getattr(statement, field)))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                part.body = _replaced(part.body)
            out.append(statement)
    return out


def _flagged_block(body: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return [*out, _assignment(statement), *statements(f"{_DONE} = True", statement)]
        if not has_jump(statement, (ast.Return,)):
            out.append(statement)
            continue
        out.append(_flagged(statement))
        rest = _flagged_block(body[i + 1 :])
        return [*out, _guard(_DONE, rest, statement)] if rest else out
    return out


class _Loops:
    """Takes break and continue out, and lets loops end at a return in them."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def block(self, body: list[ast.stmt], stop: tuple[str, ...], skip: tuple[str, ...]
              ) -> list[ast.stmt]:  # fmt: skip
        """A block in a loop whose break sets the flag in `stop`, its continue the one in `skip`."""
        out: list[ast.stmt] = []
        for i, statement in enumerate(body):
            if isinstance(statement, ast.Break):
                return [*out, *statements(f"{stop[0]} = True", statement)]
            if isinstance(statement, ast.Continue):
                return [*out, *statements(f"{skip[0]} = True", statement)]
            if isinstance(statement, ast.Return):
                out += [statement]
                if stop:  # set first: what follows a return is not reached
                    out[-1:] = [*statements(f"{stop[0]} = True", statement), statement]
                return out
            leaves = has_jump(statement, (ast.Return, *_JUMPS) if stop else _JUMPS)
            out += self.statement(statement, stop, skip)
            if leaves and (stop or skip):
                rest = self.block(body[i + 1 :], stop, skip)
                if rest:
                    flags = " or ".join((*stop, *skip))
                    out.append(_guard(f"({flags})", rest, statement))
                return out
        return out

    def statement(self, node: Any, stop: tuple[str, ...], skip: tuple[str, ...]) -> list[ast.stmt]:
        if isinstance(node, (ast.While, ast.For)):
            return self.loop(node, stop, skip)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.block(getattr(node, field), stop, skip))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.block(part.body, stop, skip)
        return [node]

    def loop(
        self, node: ast.While | ast.For, stop: tuple[str, ...], skip: tuple[str, ...]
    ) -> list[ast.stmt]:
        number = next(self.numbers)
        broken, skipped = f"__broken_{number}", f"__skipped_{number}"
        breaks = any(has_jump(s, (ast.Break, ast.Return)) for s in node.body)
        node.__dict__["endless"] = (  # but for a return in it
            isinstance(node, ast.While)
            and isinstance(node.test, ast.Constant)
            and bool(node.test.value)
            and not any(has_jump(s, (ast.Break,)) for s in node.body)
        )
        continues = any(has_jump(s, (ast.Continue,)) for s in node.body)
        outer_jump = any(has_jump(s, (ast.Return,)) for s in node.body)
        body = self.block(node.body, (broken,) if breaks else (), (skipped,) if continues else ())
        if continues:
            body = [*statements(f"{skipped} = False", node), *body]
        before = statements(f"{broken} = False", node) if breaks else []
        node.body = body
        if breaks and isinstance(node, ast.While):
            test = expression(f"not {broken} and 0", node)
            test.values[1] = node.test
            node.test = test
        elif breaks:
            node.__dict__["stop"] = broken
        after = self.block(node.orelse, stop, skip) if node.orelse else []
        node.orelse = []
        if after and breaks:
            after = [_guard(broken, after, node)]
        if outer_jump and stop:  # a return ends the loops around as well
            after = [*after, *statements(f"{stop[0]} = {stop[0]} or {_DONE}", node)]
        return [*before, node, *after]
