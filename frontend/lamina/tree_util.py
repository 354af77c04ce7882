"""Pytree utilities under JAX's names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from lamina.core import tree as _tree

PyTreeDef = _tree.PyTreeDef
T = TypeVar("T", bound=type)
_MISSING = object()

tree_flatten = _tree.flatten
tree_leaves = _tree.leaves
tree_structure = _tree.structure
tree_map = _tree.map


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves."""
    return _tree.unflatten(treedef, list(leaves))


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """functools.reduce over the leaves."""
    leaves = _tree.leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true."""
    return all(_tree.leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef, pytree: Any) -> Any:
    """A tree of trees turned inside out."""
    flat = _tree.leaves(pytree)
    n_outer, n_inner = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(flat) != n_outer * n_inner:
        raise TypeError(
            f"Mismatch: the tree has {len(flat)} leaves, the structures ask for "
            f"{n_outer} x {n_inner}"
        )
    columns = [
        outer_treedef.unflatten([flat[i * n_inner + j] for i in range(n_outer)])
        for j in range(n_inner)
    ]
    return inner_treedef.unflatten(columns)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Makes instances of a class inner nodes of trees.

    flatten_func    instance -> (children, hashable static data)
    unflatten_func  (static data, children) -> instance
    Raises ValueError if the class is registered already.
    """

    def flatten(x: Any) -> tuple[Any, ...]:
        children, aux = flatten_func(x)
        return tuple(children), aux

    optree.register_pytree_node(nodetype, flatten, unflatten_func, namespace=_tree.NAMESPACE)
    from lamina.runtime import register_node

    register_node(nodetype, flatten)


def register_pytree_node_class(cls: T) -> T:
    """Class decorator: uses the methods tree_flatten and (class method) tree_unflatten."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
) -> type:
    """Makes a dataclass an inner node: data_fields are children, meta_fields static."""
    import dataclasses

    if data_fields is None:
        fields = [f for f in dataclasses.fields(nodetype) if f.init]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields or ())

    def flatten(x: Any) -> tuple[Any, Hashable]:
        return tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta)

    def unflatten(aux: Any, children: Any) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, aux, strict=True))
        )

    register_pytree_node(nodetype, flatten, unflatten)
    return nodetype


def register_static(cls: T) -> T:
    """Makes instances of a hashable class nodes without children: part of the structure."""
    register_pytree_node(cls, lambda x: ((), x), lambda aux, _: aux)
    return cls


def keystr(path: Any) -> str:
    """How to reach a leaf, as in Python: ['a'][1].x."""
    return path.codify("")


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """Pairs of (path, leaf), and the structure."""
    accessors, leaves, treedef = optree.tree_flatten_with_accessor(
        tree, is_leaf, none_is_leaf=False, namespace=_tree.NAMESPACE
    )
    return list(zip(accessors, leaves, strict=True)), treedef  # type: ignore[return-value]


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[Any, Any]]:
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """tree_map whose function takes the path first."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf)
    others = [_tree.flatten_up_to(treedef, r) for r in rest]
    return treedef.unflatten(
        [f(path, x, *xs) for (path, x), *xs in zip(pairs, *others, strict=True)]
    )


class Partial(functools.partial):  # type: ignore[type-arg]
    """functools.partial whose bound arguments are children of a tree node."""


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
