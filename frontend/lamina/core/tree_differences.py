"""In what two structures of pytrees differ, in words for messages."""

from __future__ import annotations

from typing import Any

from lamina.core import tree
from lamina.core.tree_paths import DictKey, GetAttrKey, SequenceKey


def tree_differences(
    a: tree.PyTreeDef, b: tree.PyTreeDef, path: str = ""
) -> list[tuple[str, str, str, str]]:
    """The outermost places where two structures differ: (path, what stands there in a, what stands
    there in b, what follows from it)."""
    if a == b:
        return []
    in_a, in_b = _describe(a), _describe(b)
    if a.is_leaf() or b.is_leaf() or a.type is not b.type:
        return [(path, in_a, in_b, "their Python types differ")]
    if a.num_children != b.num_children:
        more = ""
        if isinstance(a.type, type) and issubclass(a.type, dict):
            keys = sorted(set(a.entries()) ^ set(b.entries()), key=repr)
            more = f", with the symmetric difference of key sets: {{{', '.join(map(repr, keys))}}}"
        what = "the numbers of children do not match" + more
        return [(path, f"{in_a} with {_children(a)}", f"{in_b} with {_children(b)}", what)]
    if a.entries() != b.entries():
        keys_of = [f" with the keys {list(t.entries())}" for t in (a, b)]
        return [(path, in_a + keys_of[0], in_b + keys_of[1], "their keys differ")]
    found = [
        difference
        for key, x, y in zip(a.entries(), a.children(), b.children(), strict=True)
        for difference in tree_differences(x, y, path + _key(a.type, key))
    ]
    return found or [(path, in_a, in_b, "the static data of the nodes differ")]


def _describe(t: tree.PyTreeDef) -> str:
    return "a pytree leaf" if t.is_leaf() else f"a {t.type}"


def _children(t: tree.PyTreeDef) -> str:
    return f"{t.num_children} child" + ("" if t.num_children == 1 else "ren")


def _key(kind: Any, key: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, dict):
        return str(DictKey(key))
    return str(SequenceKey(key) if isinstance(key, int) else GetAttrKey(key))
