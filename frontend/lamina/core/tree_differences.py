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


def prefix_difference(prefix: tree.PyTreeDef, full: Any, path: str = "tree_map tree") -> str | None:
    """Where `full` has not the structure that `prefix` begins, for a message; None if it has."""
    if prefix.is_leaf():
        return None
    at = f"at key path\n    {path}\nAt that key path, the first tree has "
    kind, here = prefix.type, tree.structure(full, is_leaf=lambda x: x is not full)
    if here.type is not kind and not (full is None and prefix.is_one_level()):
        named = type(full) if here.is_leaf() else here.type
        return (
            f"pytree structure error: different types {at}a subtree of type\n    {kind}\n"
            f"but at the same key path the other tree has a subtree of different type\n    {named}."
        )
    if prefix.entries() != here.entries():
        ours, theirs = list(prefix.entries()), list(here.entries())
        listed = isinstance(kind, type) and issubclass(kind, (tuple, list))
        what = "lengths" if listed else "keys"
        count = (
            f"length {len(ours)}, but the other tree has one of length {len(theirs)}"
            if listed
            else f"keys {ours}, but the other tree has one with keys {theirs}"
        )
        return f"pytree structure error: different {what} {at}a {_name(kind)} of {count}."
    children = tree.leaves(full, is_leaf=lambda x: x is not full)
    if len(children) != prefix.num_children:  # None among them
        return None
    for key, part, child in zip(prefix.entries(), prefix.children(), children, strict=True):
        if found := prefix_difference(part, child, path + _key(kind, key)):
            return found
    return None


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _describe(t: tree.PyTreeDef) -> str:
    return "a pytree leaf" if t.is_leaf() else f"a {t.type}"


def _children(t: tree.PyTreeDef) -> str:
    return f"{t.num_children} child" + ("" if t.num_children == 1 else "ren")


def _key(kind: Any, key: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, dict):
        return str(DictKey(key))
    return str(SequenceKey(key) if isinstance(key, int) else GetAttrKey(key))
