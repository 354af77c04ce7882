"""What statements assign, change and jump to: facts about syntax trees, within one scope."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.While, ast.For, ast.AsyncFor)


def in_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes under these, without what is inside functions, classes and comprehensions."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            if isinstance(node, _COMPREHENSIONS):
                # Only a walrus reaches out of a comprehension.
                yield from (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            else:
                yield from in_scope(ast.iter_child_nodes(node))


def assigned(nodes: Sequence[ast.AST]) -> list[str]:
    """The names that statements bind or delete, in order of appearance."""
    found: dict[str, None] = {}
    for node in in_scope(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, ast.NamedExpr):
            found[node.target.id] = None
        elif isinstance(node, ast.alias):
            found[(node.asname or node.name).split(".")[0]] = None
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found[node.name] = None
    return list(found)


def mutated(nodes: Sequence[ast.AST]) -> list[str]:
    """The attributes and items that statements assign, as written: self.x, d['k']."""
    return list(
        dict.fromkeys(
            ast.unparse(node)
            for node in in_scope(nodes)
            if isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, (ast.Store, ast.Del))
        )
    )


_CHANGING = frozenset(
    "append extend insert pop popitem remove clear update setdefault add discard sort reverse "
    "appendleft popleft".split()
)


def changed(nodes: Sequence[ast.AST], bound: Sequence[str]) -> list[tuple[str, str]]:
    """The calls that would change a list, dict or set, as written, with what they would change:
    ("xs.append(x)", "xs"). Without those of containers that the statements themselves bind."""
    found: dict[str, str] = {}
    for node in in_scope(nodes):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner: ast.AST = node.func.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if node.func.attr in _CHANGING and isinstance(owner, ast.Name) and owner.id not in bound:
            found[ast.unparse(node)] = ast.unparse(node.func.value)
    return list(found.items())


def declared(nodes: Sequence[ast.AST]) -> dict[str, type[ast.Global] | type[ast.Nonlocal]]:
    """The names that are declared global or nonlocal."""
    return {
        name: type(node)
        for node in in_scope(nodes)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }


def may_be_repeated(nodes: Sequence[ast.AST]) -> bool:
    """Whether a loop body looks free of effects on objects, so that it may be traced once for all
    iterations: it only assigns names, and no statement is a bare call."""
    bare = (ast.Expr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.With, ast.Try,
            ast.Raise, *_SCOPES)  # fmt: skip
    return not mutated(nodes) and not any(isinstance(node, bare) for node in in_scope(nodes))


def has_jump(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether a statement holds a return, break or continue that leaves it."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, _LOOPS):
        inner = tuple(k for k in kinds if k is ast.Return)
        return any(has_jump(n, inner) for n in node.body) or any(
            has_jump(n, kinds) for n in node.orelse
        )
    return any(has_jump(n, kinds) for n in ast.iter_child_nodes(node))
