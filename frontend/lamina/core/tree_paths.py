"""Paths in pytrees: the keys that lead from a node to its children, and flattening with them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import optree

from lamina.core import tree
from lamina.records import Record

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]


class SequenceKey(Record):
    """The index of a child of a list or tuple."""

    idx: int

    def __hash__(self) -> int:
        return hash((type(self), self.idx))

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(Record):
    """The key of a child of a dict."""

    key: Hashable

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(Record):
    """The name of a child of a namedtuple or dataclass."""

    name: str

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(Record):
    """The position of a child of a registered class that names no keys."""

    key: int

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


# For registered classes that name them: instance -> the keys of its children.
_keys_of: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def register_keys(nodetype: type, keys: Callable[[Any], tuple[Any, ...]]) -> None:
    """Tells the keys of a registered class."""
    _keys_of[nodetype] = keys


def is_node_type(kind: type) -> bool:
    """Whether instances of a type are inner nodes."""
    if kind is type(None) or optree.is_namedtuple_class(kind):
        return True
    if kind in (dict, list, tuple, collections.OrderedDict, collections.defaultdict):
        return True
    return _is_registered(kind)


def _is_registered(kind: type) -> bool:
    found = optree.register_pytree_node.get(kind, namespace=tree.NAMESPACE)
    return found is not None and found.type is kind  # not all namedtuples'


def one_level(node: Any) -> tuple[list[Any], Any, tuple[Any, ...]] | None:
    """(children, static data, keys) of an inner node; None of a leaf."""
    kind = type(node)
    if kind in (int, float, complex, bool, str) or not is_node_type(kind):
        return None
    children, data, entries, _ = optree.tree_flatten_one_level(node, namespace=tree.NAMESPACE)
    if kind in _keys_of:
        return list(children), data, tuple(_keys_of[kind](node))
    if isinstance(node, dict):
        return list(children), tuple(entries), tuple(map(DictKey, entries))
    if optree.is_namedtuple_class(kind) and not _is_registered(kind):
        return list(children), kind, tuple(map(GetAttrKey, kind._fields))  # type: ignore[attr-defined]
    if kind in (list, tuple):
        return list(children), None, tuple(map(SequenceKey, range(len(children))))
    if node is None:
        return [], None, ()
    return list(children), data, tuple(map(FlattenedIndexKey, range(len(children))))


def leaves_with_path(
    pytree: Any, is_leaf: Callable[..., bool] | None, takes_path: bool
) -> list[tuple[tuple[Any, ...], Any]]:
    """Each leaf with the keys that lead to it, in the order of flatten."""
    out: list[tuple[tuple[Any, ...], Any]] = []

    def visit(node: Any, path: tuple[Any, ...]) -> None:
        if is_leaf is not None and (is_leaf(path, node) if takes_path else is_leaf(node)):
            out.append((path, node))
            return
        level = one_level(node)
        if level is None:
            out.append((path, node))
            return
        for child, key in zip(level[0], level[2], strict=True):
            visit(child, (*path, key))

    visit(pytree, ())
    return out
