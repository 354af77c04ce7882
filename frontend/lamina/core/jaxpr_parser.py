"""Reads jaxprs from text, so that they can be test inputs and be written by hand.

Accepts what jaxpr_printer writes: equations end at a new line or at `;`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from lamina.core import dtypes
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    close_jaxpr,
)
from lamina.core.primitive import Primitive


class JaxprSyntaxError(ValueError):
    """Text that is not a jaxpr; the message shows the line and the place."""


_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE = re.compile(r"(key<[a-z]+>|[a-z]+[0-9]*(?:_[a-z0-9]+)?)\[([0-9,]*)\]")
_LITERAL = re.compile(r"-?inf|nan|True|False|\([^)]*j\)|-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?j?")


def parse_jaxpr(
    text: str, primitives: Mapping[str, Primitive], names: Mapping[str, Any] | None = None
) -> ClosedJaxpr:
    """The jaxpr in `text`. Constants (variables before the first `;`) become leading inputs.

    primitives  by name; `names` are the classes and values that parameters may mention.
    Raises JaxprSyntaxError.
    """
    parser = _Parser(text, primitives, names or {})
    parser.definitions()
    jaxpr = parser.jaxpr()
    parser.end()
    return close_jaxpr(jaxpr)


class _Parser:
    def __init__(
        self, text: str, primitives: Mapping[str, Primitive], names: Mapping[str, Any]
    ) -> None:
        self.text, self.at = text, 0
        self.primitives, self.names = primitives, names
        self.shared: dict[str, ClosedJaxpr | int] = {}  # where it stands, until it is read

    # ---- characters ----
    def error(self, message: str) -> JaxprSyntaxError:
        before = self.text[: self.at]
        line = before.count("\n") + 1
        column = self.at - (before.rfind("\n") + 1)
        shown = self.text.split("\n")[line - 1]
        return JaxprSyntaxError(f"line {line}: {message}\n{shown}\n{' ' * column}^")

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def peek(self, token: str) -> bool:
        self.skip()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> None:
        if not self.peek(token):
            raise self.error(f"expected {token!r}")
        self.at += len(token)

    def accept(self, token: str) -> bool:
        if self.peek(token):
            self.at += len(token)
            return True
        return False

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.error(f"expected {what}")
        self.at = found.end()
        return found

    def end(self) -> None:
        self.skip()
        if self.at != len(self.text):
            raise self.error("unexpected text after the jaxpr")

    # ---- grammar ----
    def definitions(self) -> None:
        """let f = { ... } in: jaxprs that parameters name, those of each other, too. Each is read once."""
        while self.keyword("let"):
            self.take("let")
            name = self.match(_NAME, "a name")[0]
            self.take("=")
            self.skip()
            self.shared[name] = self.at
            self.pass_over()
            self.take("in")
        for name in self.shared:
            self.defined(name)

    def pass_over(self) -> None:
        """Past what stands in braces."""
        start, depth = self.at, 0
        for found in re.compile(r"[{}]|#[^\n]*").finditer(self.text, start):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if not depth:
                self.at = found.end()
                return
        raise self.error("expected a jaxpr in braces")

    def defined(self, name: str) -> ClosedJaxpr:
        """The jaxpr that was defined under a name."""
        found = self.shared[name]
        if isinstance(found, int):
            back, self.at = self.at, found
            found = self.shared[name] = close_jaxpr(self.jaxpr())
            self.at = back
        return found

    def jaxpr(self) -> Jaxpr:
        self.take("{")
        self.take("lambda")
        env: dict[str, Var] = {}
        consts = self.binders(env)
        self.take(";")
        inputs = self.binders(env)
        self.take(".")
        self.take("let")
        eqns = []
        while not self.keyword("in"):
            eqns.append(self.equation(env))
            self.accept(";")
        self.take("in")
        outs = self.parenthesised(env)
        self.take("}")
        return Jaxpr([], consts + inputs, outs, eqns)

    def keyword(self, word: str) -> bool:
        self.skip()
        return re.compile(rf"{word}\b(?!:)").match(self.text, self.at) is not None

    def binder_follows(self) -> bool:
        self.skip()
        return re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[a-z]").match(self.text, self.at) is not None

    def binders(
        self, env: dict[str, Var], outer: Mapping[str, Var] = MappingProxyType({})
    ) -> list[Var]:
        """Variables with their types, put into env; none may be in it or in `outer`."""
        out = []
        while self.binder_follows():
            name = self.match(_NAME, "a variable")[0]
            if name != "_" and (name in env or name in outer):
                self.at -= len(name)
                raise self.error(f"variable {name!r} is defined twice")
            self.take(":")
            aval = self.aval()
            var = DropVar(aval) if name == "_" else Var(aval)
            env[name] = var
            out.append(var)
        return out

    def aval(self) -> ShapedArray:
        found = self.match(_TYPE, "a type such as f32[2,3]")
        try:
            dtype = dtypes.from_short_name(found[1])
        except KeyError:
            self.at = found.start()
            raise self.error(f"unknown dtype {found[1]!r}") from None
        return ShapedArray(tuple(int(d) for d in found[2].split(",") if d), dtype)

    def equation(self, env: dict[str, Var]) -> JaxprEqn:
        made: dict[str, Var] = {}
        outs = self.binders(made, env)
        if outs:
            self.take("=")
        name = self.match(_NAME, "a primitive")[0]
        primitive = self.primitives.get(name)
        if primitive is None:
            self.at -= len(name)
            raise self.error(f"unknown primitive {name!r}")
        params = self.params() if self.peek("[") else {}
        args: list[Atom] = []
        while not (self.peek(";") or self.peek("}") or self.binder_follows() or self.keyword("in")):
            args.append(self.atom(env))
        env.update(made)
        return JaxprEqn(args, outs, primitive, params)

    def parenthesised(self, env: dict[str, Var]) -> list[Atom]:
        self.take("(")
        out: list[Atom] = []
        while not self.accept(")"):
            out.append(self.atom(env))
            self.accept(",")
        return out

    def atom(self, env: dict[str, Var]) -> Atom:
        self.skip()
        found = _LITERAL.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return self.literal(found[0])
        name = self.match(_NAME, "a variable or a literal")[0]
        if name not in env:
            self.at -= len(name)
            raise self.error(f"variable {name!r} is not defined")
        return env[name]

    def literal(self, text: str) -> Literal:
        value: Any = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(text)
        if value is None:
            value = (
                complex(text.strip("()")) if text.endswith(("j", "j)")) else ast.literal_eval(text)
            )
        if self.text.startswith(":", self.at):
            self.at += 1
            aval = self.aval()
        else:
            default = {bool: "bool", int: "int32", float: "float32", complex: "complex64"}
            aval = ShapedArray((), np.dtype(default[type(value)]))
        return Literal(np.asarray(value).astype(aval.dtype)[()], aval)

    # ---- parameters ----
    def params(self) -> dict[str, Any]:
        self.take("[")
        out = {}
        while not self.accept("]"):
            key = self.match(_NAME, "a parameter name")[0]
            self.take("=")
            out[key] = self.value(shared=key != "name")
        return out

    def program(self) -> ClosedJaxpr | None:
        """A jaxpr, written out or by the name it was defined under, if one stands here."""
        if self.peek("{"):
            return close_jaxpr(self.jaxpr())
        word = _NAME.match(self.text, self.at)
        if word is None or word[0] not in self.shared:
            return None
        self.at = word.end()
        return self.defined(word[0])

    def value(self, shared: bool = True) -> Any:
        """A parameter's value; `shared` says whether a word may stand for a defined jaxpr."""
        self.skip()
        start = self.at
        program = self.program() if shared else None
        if program is not None:
            return program
        if shared and self.accept("("):
            programs = []
            while (program := self.program()) is not None:
                programs.append(program)
                self.accept(",")
            if programs:
                self.take(")")
                return tuple(programs)
            self.at = start
        text = self.expression_text()
        if text == "<lambda>":
            return "_lambda_"
        try:
            return _evaluate(ast.parse(text, mode="eval").body, self.lookup)
        except (SyntaxError, ValueError, TypeError, AttributeError) as e:
            self.at = start
            raise self.error(f"parameter value {text!r} can't be read: {e}") from None

    def expression_text(self) -> str:
        """Up to the space that ends the value: brackets and quotes may hold spaces."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            c = self.text[self.at]
            if quote:
                quote = "" if c == quote else quote
            elif c in "'\"":
                quote = c
            elif c in "([{<":
                depth += 1
            elif c in ")]}>":
                if depth == 0:
                    break
                depth -= 1
            elif c.isspace() and depth == 0:
                break
            self.at += 1
        return self.text[start : self.at]

    def lookup(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        # What is neither is a plain word, such as the name of a function.
        return dtypes.from_name(name) or name


def _evaluate(node: ast.AST, lookup: Callable[[str], Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, lookup)
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(_evaluate(e, lookup) for e in node.elts)
    if isinstance(node, ast.Name):
        return lookup(node.id)
    if isinstance(node, ast.Attribute) and not node.attr.startswith("_"):
        return getattr(_evaluate(node.value, lookup), node.attr)
    if isinstance(node, ast.Call):
        function = _evaluate(node.func, lookup)
        if not callable(function):
            raise ValueError(f"{function!r} is not known")
        keywords = {k.arg: _evaluate(k.value, lookup) for k in node.keywords if k.arg}
        return function(*[_evaluate(a, lookup) for a in node.args], **keywords)
    raise ValueError(f"{type(node).__name__} is not allowed here")
