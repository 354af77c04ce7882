"""Pytrees, on optree, with JAX's conventions: None is an empty node, dict keys are sorted."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

NAMESPACE = "lamina"
PyTreeDef = optree.PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree in order, and its structure.

    tree     a pytree: tuples, lists, dicts (sorted by key where the keys can be), None and
             instances of registered classes, nested.
    is_leaf  called with each node; where it gives True the node is a leaf as it stands.

    >>> lamina.tree.flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    return optree.tree_flatten(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)  # type: ignore[return-value]


def unflatten(treedef: PyTreeDef, leaves: Sequence[Any]) -> Any:
    """The tree with this structure and these leaves; its dicts have their keys in order."""
    try:
        treedef = _in_order(treedef)
    except TypeError:  # static parts without a hash
        treedef = treedef.transform(_node_in_order)
    return optree.tree_unflatten(treedef, leaves)


# optree's structures are equal whatever the order of keys that they came with.
@functools.lru_cache(maxsize=4096)
def _in_order(treedef: PyTreeDef) -> PyTreeDef:
    return treedef.transform(_node_in_order)


def _node_in_order(node: PyTreeDef) -> PyTreeDef:
    if node.type not in (dict, collections.defaultdict):
        return node
    children = dict.fromkeys(node.entries(), optree.treespec_leaf())
    if node.type is dict:
        return optree.treespec_dict(children, namespace=NAMESPACE)
    made: Any = optree.tree_unflatten(node, [None] * len(children))
    factory = made.default_factory
    return optree.treespec_defaultdict(factory, children, namespace=NAMESPACE)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree in order; None has none.

    tree     a pytree.
    is_leaf  called with each node; where it gives True the node is a leaf as it stands.

    >>> lamina.tree.leaves([1, (2, None)])
    [1, 2]
    """
    return optree.tree_leaves(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree: what remains of it without its leaves.

    tree     a pytree.
    is_leaf  called with each node; where it gives True the node is a leaf as it stands.

    >>> lamina.tree.structure([1, (2, 3)]).num_leaves
    3
    """
    return optree.tree_structure(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)


def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Applies f to each leaf, and to what stands in its place in the other trees.

    f        a function of as many values as there are trees.
    tree     a pytree, whose structure the result has.
    rest     trees that have at least this structure.
    is_leaf  called with each node of the first; where it gives True the node is a leaf.

    Raises ValueError where the structure of one of `rest` differs.

    >>> lamina.tree.map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    flat, treedef = flatten(tree, is_leaf)
    try:
        others = [flatten_up_to(treedef, r) for r in rest]
    except ValueError:
        from lamina.core.tree_differences import prefix_difference

        found = next(filter(None, (prefix_difference(treedef, r) for r in rest)), None)
        if found is None:
            raise
        raise ValueError(found) from None
    return unflatten(treedef, [f(*xs) for xs in zip(flat, *others, strict=True)])


def flatten_up_to(treedef: PyTreeDef, tree: Any) -> list[Any]:
    """The subtrees of `tree` at the leaves of `treedef`; ValueError if the structures differ."""
    return treedef.flatten_up_to(tree)


def register_node(
    kind: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]
) -> None:
    """Makes instances of `kind` nodes: flatten gives (children, static part), unflatten takes
    (static part, children)."""
    optree.register_pytree_node(kind, flatten, unflatten, namespace=NAMESPACE)


def paths(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[str]:
    """For each leaf, how to reach it from the root, as in Python: ['a'][1].x."""
    if is_leaf is None:
        try:
            return list(_paths_of(structure(tree)))
        except TypeError:  # static parts of its nodes have no hash
            pass
    accessors = optree.tree_accessors(tree, is_leaf, none_is_leaf=False, namespace=NAMESPACE)
    return [a.codify("") for a in accessors]


@functools.lru_cache(256)
def _paths_of(treedef: PyTreeDef) -> tuple[str, ...]:
    return tuple(a.codify("") for a in treedef.accessors())


def where_no_prefix(
    prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None, at: str = ""
) -> str:
    """Of a tree that is no prefix, how to reach the outermost node at which it differs."""
    same = type(prefix) is type(tree) and not (is_leaf is not None and is_leaf(prefix))
    if same and isinstance(prefix, (tuple, list)) and len(prefix) == len(tree):
        parts = [(f"{at}[{i}]", *pair) for i, pair in enumerate(zip(prefix, tree, strict=True))]
    elif same and isinstance(prefix, dict) and prefix.keys() == tree.keys():
        parts = [(f"{at}[{key!r}]", prefix[key], tree[key]) for key in prefix]
    else:
        return at
    for path, one, other in parts:
        try:
            broadcast_prefix(one, other, is_leaf)
        except ValueError:
            return where_no_prefix(one, other, is_leaf, path)
    return at


def broadcast_prefix(
    prefix: Any,
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    is_leaf_of_tree: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """A leaf of `prefix` for each leaf of `tree`, where `prefix` is a tree prefix of it."""
    out: list[Any] = []

    def spread(value: Any, subtree: Any) -> None:
        out.extend([value] * len(leaves(subtree, is_leaf_of_tree)))

    prefix_leaves, prefix_def = flatten(prefix, is_leaf)
    for value, subtree in zip(prefix_leaves, flatten_up_to(prefix_def, tree), strict=True):
        spread(value, subtree)
    return out
