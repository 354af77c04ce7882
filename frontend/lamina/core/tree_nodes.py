"""The types of nodes of pytrees, seen as a table: how each is taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import optree

from lamina.core import tree


class NodeType(NamedTuple):
    """to_iter    node -> (children, static data)
    from_iter  (static data, children) -> node
    """

    to_iter: Callable[[Any], tuple[Iterable[Any], Hashable]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class NodeTypes(Mapping[type, NodeType]):
    """A view of the types that are registered: nothing is stored in it."""

    def __getitem__(self, kind: type) -> NodeType:
        found = _registered().get(kind)
        if found is None:
            raise KeyError(kind)

        def to_iter(node: Any) -> tuple[Iterable[Any], Hashable]:
            children, data = found.flatten_func(node)[:2]  # a third is the keys of the children
            return children, tuple(data) if isinstance(data, list) else data  # those of a dict

        return NodeType(to_iter, found.unflatten_func)

    def __contains__(self, kind: object) -> bool:
        return kind in _registered()

    def __iter__(self) -> Iterator[type]:
        return iter(_registered())

    def __len__(self) -> int:
        return len(_registered())


def _registered() -> Mapping[type, Any]:
    registry: Any = optree.register_pytree_node
    found: Mapping[type, Any] = registry.get(namespace=tree.NAMESPACE)
    return found


node_types = NodeTypes()
