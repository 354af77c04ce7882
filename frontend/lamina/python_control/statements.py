"""Replaces statements and expressions that decide by calls of runtime.py.

    if c:            def __if_0():                    nonlocal x; x = 1
        x = 1   ->   def __else_0():                  nonlocal x; x = 2
    else:            def __get_0():                   return (__ag.peek(lambda: x),)
        x = 2        def __set_0(__values):           nonlocal x; (x,) = __values
                     __ag.if_stmt(c, __if_0, __else_0, __ag.State(("x",), __get_0, __set_0, ()))

Each generated node has the place of the statement it comes from.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from lamina.python_control import names
from lamina.python_control.jumps import expression, statements, without_jumps
from lamina.python_control.simpler import simpler

RUNTIME = "__ag"
_LEFT_ALONE = frozenset(("super", "locals", "globals", "vars", "eval", "exec", "dir"))
_OWN_FRAME = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def is_generator(node: ast.AST) -> bool:
    """Whether a function yields or awaits: those are left as they are."""
    body = node.body if isinstance(node, ast.FunctionDef) else []
    return isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in names.in_scope(body)
    )


def rewritten(node: ast.FunctionDef | ast.Lambda, private_to: str | None) -> ast.FunctionDef:
    """The function with control flow replaced; a lambda becomes a function. `node` is used up.

    private_to  the class in whose body it stands, if any: __names are that class's own.
    """
    if private_to is not None:
        for inner in ast.walk(node):
            _mangle(inner, private_to)
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        function = ast.FunctionDef("__lambda", node.args, body, [])
        ast.copy_location(function, node)
    else:
        function = node
    function.decorator_list = []
    function.returns = None
    for argument in _arguments(function.args):
        argument.annotation = None
    return Rewriter().function(function)


def _mangle(node: ast.AST, owner: str) -> None:
    for field in ("attr", "id", "arg"):
        name = getattr(node, field, None)
        if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
            setattr(node, field, f"_{owner.lstrip('_')}{name}")


def _arguments(args: ast.arguments) -> list[ast.arg]:
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return found + [a for a in (args.vararg, args.kwarg) if a is not None]


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; functions in it get a rewriter each."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._declared: dict[str, Any] = {}

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function with its body rewritten, in place."""
        node.body = without_jumps(simpler(node.body), node.body[0])
        self._declared = names.declared(node.body)
        parameters = {a.arg for a in _arguments(node.args)}
        local = [
            name
            for name in names.assigned(node.body)
            if name not in parameters and name not in self._declared
        ]
        body = self._block(node.body)
        if local:  # bound here for the compiler, so that inner functions can say nonlocal
            body = [*statements(f"if 0: {' = '.join(local)} = None", node.body[0]), *body]
        node.body = body
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    # Statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not is_generator(node):
            node.decorator_list = [self.visit(d) for d in node.decorator_list]
            Rewriter().function(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_If(self, node: ast.If) -> Any:
        number = next(self._numbers)
        body, orelse = node.body, node.orelse
        state, parts = self._state(number, [*body, *orelse], node)
        return [
            self._helper(f"__if_{number}", body, node),
            self._helper(f"__else_{number}", orelse, node),
            *parts,
            self._call("if_stmt", [self.visit(node.test), f"__if_{number}", f"__else_{number}", state], node),
        ]  # fmt: skip

    def visit_While(self, node: ast.While) -> Any:
        number = next(self._numbers)
        state, parts = self._state(number, node.body, node)
        test = self._thunk(node.test)
        return [
            self._helper(f"__body_{number}", node.body, node),
            *parts,
            self._call("while_stmt", [test, f"__body_{number}", state], node),
        ]

    def visit_For(self, node: ast.For) -> Any:
        number = next(self._numbers)
        target = ast.copy_location(
            ast.Assign([node.target], expression("__item", node.target)), node.target
        )
        body: list[ast.stmt] = [target, *node.body]
        repeat = names.may_be_repeated(body)
        state, parts = self._state(number, body, node)
        stop = node.__dict__.get("stop")
        return [
            self._helper(f"__body_{number}", body, node, "__item"),
            *parts,
            self._call(
                "for_stmt",
                [self.visit(node.iter), f"__body_{number}", f"lambda: {stop}" if stop else "None",
                 state, repr(tuple(names.assigned([target]))), str(repeat)],
                node,
            ),
        ]  # fmt: skip

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None:
            node.value = self._runtime("returned", [self.visit(node.value)], node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self._runtime("assertable", [self.visit(node.test)], node)
        return node

    def _state(self, number: int, body: list[ast.stmt], at: ast.AST) -> tuple[str, list[ast.stmt]]:
        """How the runtime reads and writes the variables that a block assigns."""
        variables = names.assigned(body)
        mutated = names.mutated(body)
        changed = names.changed(body, variables)
        get, set_ = f"__get_{number}", f"__set_{number}"
        peeks = "".join(f"{RUNTIME}.peek(lambda: {v}), " for v in variables)
        parts = statements(f"def {get}(): return ({peeks})", at)
        text = f"def {set_}(__values):\n {self._scope_line(variables)}\n"
        if variables:
            text += f" ({', '.join(variables)},) = __values\n"
        text += "".join(f" if {v} is {RUNTIME}.UNBOUND: del {v}\n" for v in variables) or " pass\n"
        parts += statements(text, at)
        seen = "".join(f"({text!r}, {RUNTIME}.peek(lambda: {of})), " for text, of in changed)
        return (
            f"{RUNTIME}.State({tuple(variables)!r}, {get}, {set_}, {tuple(mutated)!r}, "
            f"lambda: ({seen}))"
        ), parts

    def _scope_line(self, variables: list[str]) -> str:
        own = [v for v in variables if self._declared.get(v) is not ast.Global]
        world = [v for v in variables if self._declared.get(v) is ast.Global]
        lines = [f"nonlocal {', '.join(own)}"] if own else []
        lines += [f"global {', '.join(world)}"] if world else []
        return "; ".join(lines) or "pass"

    def _helper(
        self, name: str, body: list[ast.stmt], at: ast.AST, parameter: str = ""
    ) -> ast.FunctionDef:
        (function,) = statements(f"def {name}({parameter}): pass", at)
        assert isinstance(function, ast.FunctionDef)
        scope = statements(self._scope_line(names.assigned(body)), at)
        kept = [s for s in body if not isinstance(s, (ast.Global, ast.Nonlocal))]
        function.body = [*scope, *self._block(kept)]
        return function

    def _call(self, name: str, arguments: list[Any], at: ast.AST) -> ast.stmt:
        (call,) = statements("0", at)
        assert isinstance(call, ast.Expr)
        call.value = self._runtime(name, arguments, at)
        return call

    def _runtime(self, name: str, arguments: list[Any], at: ast.AST) -> Any:
        call = expression(f"{RUNTIME}.{name}()", at)
        call.args = [expression(a, at) if isinstance(a, str) else a for a in arguments]
        return call

    # Expressions

    def _thunk(self, node: ast.expr) -> Any:
        thunk = expression("lambda: 0", node)
        thunk.body = self.visit(node)
        return thunk

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if _has_own_frame(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._runtime(name, [self._thunk(v) for v in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self._runtime("not_", [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _has_own_frame(node):
            return node
        parts = [self.visit(node.test), self._thunk(node.body), self._thunk(node.orelse)]
        return self._runtime("if_expr", parts, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 or _has_own_frame(node):
            return self.generic_visit(node)
        signs = tuple(type(op).__name__ for op in node.ops)
        values = [self._thunk(v) for v in (node.left, *node.comparators)]
        return self._runtime("chain", [repr(signs), *values], node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _LEFT_ALONE):
            node.func = self._runtime("callee", [node.func], node.func)
        return node


def _has_own_frame(node: ast.AST) -> bool:
    """Whether part of an expression means something else within a lambda."""
    return any(isinstance(n, _OWN_FRAME) for n in ast.walk(node))
