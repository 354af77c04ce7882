"""Says in simpler statements what the rewriting has no rules for: `match`, and `while` whose test
assigns.

    match x:                       __subject_0 = x           while (y := f()) > 0:
        case 1 | 2: a()            if __subject_0 == 1 or       g(y)
        case y if y > 3: b(y)  ->        __subject_0 == 2:   ->
        case _: c()                    a()                   while True:
                                   else:                         if not (y := f()) > 0: break
                                       y = __subject_0 ...       g(y)
"""

from __future__ import annotations

import ast
import itertools

from lamina.python_control.jumps import expression, statements


def simpler(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's body without them. Matches by structure (classes, sequences, mappings) stay."""
    rewriter = _Simpler()
    return [new for statement in body for new in rewriter.listed(statement)]


class _Simpler(ast.NodeTransformer):
    def __init__(self) -> None:
        self.numbers = itertools.count()

    def listed(self, node: ast.stmt) -> list[ast.stmt]:
        new = self.visit(node)
        return new if isinstance(new, list) else [new]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # functions inside are rewritten on their own

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # type: ignore[assignment]

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if not any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            return node
        leave = ast.copy_location(
            ast.If(
                ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test),
                [*node.orelse, *statements("break", node)],
                [],
            ),
            node,
        )
        new = ast.While(expression("True", node.test), [leave, *node.body], [])
        return ast.copy_location(new, node)

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        subject = f"__subject_{next(self.numbers)}"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = _test(case.pattern, subject)
            if test is None:
                return node
            rest = _branch(case, test, subject, rest)
        (assign,) = statements(f"{subject} = 0", node)
        assert isinstance(assign, ast.Assign)
        assign.value = node.subject
        return [assign, *rest]


def _test(pattern: ast.pattern, subject: str) -> str | None:
    """When a pattern fits, as text; None for patterns that look into the subject."""
    if isinstance(pattern, ast.MatchValue):
        return f"{subject} == {ast.unparse(pattern.value)}"
    if isinstance(pattern, ast.MatchSingleton):
        return f"{subject} is {pattern.value!r}"
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(p, subject) for p in pattern.patterns]
        return None if None in tests else " or ".join(f"({t})" for t in tests)
    if isinstance(pattern, ast.MatchAs):
        return "True" if pattern.pattern is None else _test(pattern.pattern, subject)
    return None


def _branch(
    case: ast.match_case, test: str, subject: str, rest: list[ast.stmt]
) -> list[ast.stmt]:
    at = case.body[0]
    name = case.pattern.name if isinstance(case.pattern, ast.MatchAs) else None
    bind = statements(f"{name} = {subject}", at) if name else []
    body = case.body
    if case.guard is not None:
        if rest and bind:  # what the guard reads is bound whether or not it holds
            body = [ast.copy_location(ast.If(case.guard, body, rest), at)]
            if test == "True":
                return [*bind, *body]
        else:
            body = [ast.copy_location(ast.If(case.guard, body, rest), at)]
    if test == "True":
        return [*bind, *body]
    return [ast.copy_location(ast.If(expression(test, at), [*bind, *body], rest), at)]
