"""Structures of pytrees as JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

import optree

from lamina.core import tree, tree_paths
from lamina.core.library import library

T = TypeVar("T")

_by_type: dict[type, tuple[str, Callable[[Any], bytes]]] = {}
_by_name: dict[str, tuple[type, Callable[[bytes], Any], Callable[[Any, Any], Any]]] = {}


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Lets exported functions have such named tuples among arguments and results. Gives the type,
    so that it can decorate.

    nodetype         the named tuple's class.
    serialized_name  what it is called in what is stored; the reader must register the same.

    Raises ValueError where the name or the type is registered already.

    >>> import collections
    >>> Pair = collections.namedtuple("Pair", ["first", "second"])
    >>> name = "help.of.register_namedtuple_serialization.Pair"
    >>> lamina.export.register_namedtuple_serialization(Pair, serialized_name=name) is Pair
    True
    """
    if not optree.is_namedtuple_class(nodetype):
        raise ValueError(f"Use `register_pytree_node_serialization` for {nodetype}.")
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: b"",
        deserialize_auxdata=lambda _: nodetype,
        from_children=lambda _, children: nodetype(*children),
    )


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type[T]:
    """Lets exported functions have such pytree nodes among arguments and results. Gives the type,
    so that it can decorate.

    nodetype             a class registered with tree_util.
    serialized_name      what it is called in what is stored; the reader must register the same.
    serialize_auxdata    a node's static data to bytes,
    deserialize_auxdata  and back.
    from_children        (static data, children) -> the node; None: as the type is registered.

    Raises ValueError where the name or the type is registered already, or the type is no node.

    >>> @lamina.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    ...     def tree_flatten(self):
    ...         return (self.content,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> lamina.export.register_pytree_node_serialization(
    ...     Box, serialized_name="help.of.register_pytree_node_serialization.Box",
    ...     serialize_auxdata=lambda aux: b"", deserialize_auxdata=lambda data: None,
    ... ) is Box
    True
    """
    if serialized_name in _by_name or nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for {nodetype} as {serialized_name!r}"
        )
    if not tree_paths.is_node_type(nodetype):
        raise ValueError(
            f"If `from_children` is not present, you must call first "
            f"`{library}.tree_util.register_pytree_node` for {nodetype}"
        )
    if from_children is None:
        entry: Any = optree.register_pytree_node.get(nodetype, namespace=tree.NAMESPACE)
        from_children = entry.unflatten_func
    _by_type[nodetype] = serialized_name, serialize_auxdata
    _by_name[serialized_name] = nodetype, deserialize_auxdata, from_children
    return nodetype


def to_json(structure: tree.PyTreeDef) -> Any:
    """What `from_json` reads. ValueError for nodes of types that nobody registered for this."""
    return _describe(tree.unflatten(structure, [_LEAF] * structure.num_leaves))


def from_json(described: Any) -> tree.PyTreeDef:
    """The structure. Raises ValueError for what `to_json` did not give."""
    try:
        built = _build(described)
    except (TypeError, AttributeError, IndexError, RecursionError) as e:
        raise ValueError("this describes no structure") from e
    return tree.structure(built)


_LEAF = 0


def _describe(node: Any) -> Any:
    kind = type(node)
    if kind is int:
        return "*"
    if node is None:
        return None
    if kind in (list, tuple):
        return [kind.__name__, [_describe(x) for x in node]]
    if kind is dict:
        if not all(isinstance(k, str) for k in node):
            raise ValueError(f"exported functions take dicts with string keys, got {list(node)}")
        return ["dict", {k: _describe(v) for k, v in node.items()}]
    if kind not in _by_type:
        raise ValueError(
            f"Cannot serialize a pytree node of type {kind}: call "
            f"{library}.export.register_pytree_node_serialization or register_namedtuple_serialization"
        )
    name, to_bytes = _by_type[kind]
    level = tree_paths.one_level(node)
    assert level is not None
    data = base64.b64encode(to_bytes(level[1])).decode()
    return ["node", name, data, [_describe(x) for x in level[0]]]


def _build(described: Any) -> Any:
    if described == "*":
        return _LEAF
    if described is None:
        return None
    kind, *rest = described
    if kind == "dict":
        return {k: _build(v) for k, v in rest[0].items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_build(x) for x in rest[0])
    if kind != "node":
        raise ValueError(f"there are no pytree nodes of kind {kind!r}")
    name, data, children = rest
    if name not in _by_name:
        raise ValueError(
            f"a pytree node was stored as {name!r}, for which no type is registered: call "
            f"{library}.export.register_pytree_node_serialization"
        )
    _, from_bytes, from_children = _by_name[name]
    return from_children(
        from_bytes(base64.b64decode(data)), tuple(_build(child) for child in children)
    )
