"""Pytree utilities under JAX's names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import optree

from lamina.core import tree as _tree
from lamina.core import tree_paths
from lamina.core.tree_paths import DictKey as DictKey
from lamina.core.tree_paths import FlattenedIndexKey as FlattenedIndexKey
from lamina.core.tree_paths import GetAttrKey as GetAttrKey
from lamina.core.tree_paths import KeyEntry as KeyEntry
from lamina.core.tree_paths import KeyPath as KeyPath
from lamina.core.tree_paths import SequenceKey as SequenceKey
from lamina.tree_registration import register_dataclass as register_dataclass
from lamina.tree_registration import register_pytree_node as register_pytree_node
from lamina.tree_registration import register_pytree_node_class as register_pytree_node_class
from lamina.tree_registration import register_pytree_with_keys as register_pytree_with_keys
from lamina.tree_registration import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from lamina.tree_registration import register_static as register_static
from lamina.tree_registration import static as static

PyTreeDef = _tree.PyTreeDef
_MISSING = object()

tree_flatten = _tree.flatten
tree_leaves = _tree.leaves
tree_structure = _tree.structure
tree_map = _tree.map


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves.

    treedef  a structure, from tree_structure or tree_flatten.
    leaves   as many values as it has leaves, in order.

    Raises ValueError for another number of leaves.

    >>> lamina.tree.unflatten(lamina.tree.structure((0, [0])), ["a", "b"])
    ('a', ['b'])
    """
    return _tree.unflatten(treedef, list(leaves))


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """functools.reduce over the leaves.

    function     takes what was combined so far and the next leaf.
    tree         a pytree.
    initializer  what to start from; without it the first leaf.
    is_leaf      called with each node; where it gives True the node is a leaf as it stands.

    Raises TypeError for a tree without leaves and no initializer.

    >>> lamina.tree.reduce(lambda total, x: total + x, [1, (2, 3)])
    6
    """
    leaves = _tree.leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true.

    tree     a pytree of values that have a truth value.
    is_leaf  called with each node; where it gives True the node is a leaf as it stands.

    >>> lamina.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return all(_tree.leaves(tree, is_leaf))


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The leaves combined by an associative operation, as a balanced tree of operations.

    operation  takes two values and gives one of their kind.
    tree       a pytree.
    identity   the result for a tree without leaves.
    is_leaf    called with each node; where it gives True the node is a leaf as it stands.

    Raises TypeError for a tree without leaves and no identity.

    >>> lamina.tree.reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    leaves = _tree.leaves(tree, is_leaf)
    if not leaves:
        if identity is _MISSING:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity

    def combined(lo: int, hi: int) -> Any:
        if hi - lo == 1:
            return leaves[lo]
        middle = (lo + hi) // 2
        return operation(combined(lo, middle), combined(middle, hi))

    return combined(0, len(leaves))


def tree_broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """full_tree with each leaf replaced by what stands at or above its place in prefix_tree.

    prefix_tree  a pytree whose leaves may stand where full_tree has whole subtrees.
    full_tree    a pytree, whose structure the result has.
    is_leaf      called with the nodes of both; where it gives True a node is a leaf.

    Raises ValueError where prefix_tree is no prefix of full_tree.

    >>> lamina.tree.broadcast((0, 1), ("a", ["b", "c"]))
    (0, [1, 1])
    """
    flat = _tree.broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return _tree.unflatten(_tree.structure(full_tree), flat)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every item is a leaf.

    iterable  of any values.
    is_leaf   called with each item; where it gives True the item is a leaf.

    >>> lamina.tree_util.all_leaves([1, 2.0]), lamina.tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    return all(
        (is_leaf is not None and is_leaf(item)) or not tree_paths.is_node_type(type(item))
        for item in iterable
    )


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of a structure's root.

    treedef  a structure, from tree_structure or tree_flatten.

    >>> children = lamina.tree_util.treedef_children(lamina.tree.structure((1, [2, 3])))
    >>> [child.num_leaves for child in children]
    [1, 2]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single node, with no children.

    treedef  a structure, from tree_structure or tree_flatten.

    >>> lamina.tree_util.treedef_is_leaf(lamina.tree.structure(3))
    True
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose items have these structures.

    treedefs  structures, from tree_structure or tree_flatten.

    >>> leaf = lamina.tree.structure(0)
    >>> lamina.tree_util.treedef_tuple([leaf, leaf]) == lamina.tree.structure((1, 2))
    True
    """
    return optree.treespec_tuple(tuple(treedefs), none_is_leaf=False, namespace=_tree.NAMESPACE)  # type: ignore[return-value]


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """A tree of trees turned inside out.

    outer_treedef        the structure of the outer tree.
    inner_treedef        that of the trees at its leaves; None: found from the first of them.
    pytree_to_transpose  the tree of trees.

    Raises TypeError where it does not have these structures.

    >>> outer, inner = lamina.tree.structure([0, 0]), lamina.tree.structure({"a": 0})
    >>> lamina.tree.transpose(outer, inner, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    if inner_treedef is None:
        first = outer_treedef.flatten_up_to(pytree_to_transpose)[0]
        inner_treedef = _tree.structure(first)
    flat = _tree.leaves(pytree_to_transpose)
    n_outer, n_inner = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(flat) != n_outer * n_inner:
        raise TypeError(
            f"Mismatch: the tree has {len(flat)} leaves, the structures ask for "
            f"{n_outer} x {n_inner}"
        )
    columns = [
        _tree.unflatten(outer_treedef, [flat[i * n_inner + j] for i in range(n_outer)])
        for j in range(n_inner)
    ]
    return _tree.unflatten(inner_treedef, columns)


# ---- paths -------------------------------------------------------------------------------------
def keystr(keys: Any, *, simple: bool = False, separator: str = "") -> str:
    """How to reach a leaf, written as in Python: ['a'][1].x.

    keys       a path, from tree_flatten_with_path.
    simple     only the names: a1x.
    separator  what to put between them.

    >>> path, _ = lamina.tree.leaves_with_path({"a": [5]})[0]
    >>> lamina.tree_util.keystr(path), lamina.tree_util.keystr(path, simple=True, separator="/")
    ("['a'][0]", 'a/0')
    """
    return separator.join(_simple(k) if simple else str(k) for k in keys)


def _simple(key: Any) -> str:
    for kind, name in ((SequenceKey, "idx"), (DictKey, "key"), (GetAttrKey, "name"),
                       (FlattenedIndexKey, "key")):  # fmt: skip
        if isinstance(key, kind):
            return str(getattr(key, name))
    return str(key)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """Pairs of (path, leaf), and the structure. A path is a tuple of keys.

    tree                a pytree.
    is_leaf             called with each node; where it gives True the node is a leaf.
    is_leaf_takes_path  is_leaf is called with path and node.

    >>> pairs, structure = lamina.tree.flatten_with_path({"a": 5})
    >>> pairs
    [((DictKey(key='a'),), 5)]
    """
    pairs = tree_paths.leaves_with_path(tree, is_leaf, is_leaf_takes_path)
    if not is_leaf_takes_path:
        return pairs, _tree.structure(tree, is_leaf)
    # The structure is that of leaves known by what they are: each is asked for once, in order.
    known = {id(leaf) for _, leaf in pairs}
    return pairs, _tree.structure(tree, lambda node: id(node) in known)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[Any, Any]]:
    """Pairs of (path, leaf). A path is a tuple of keys.

    tree                a pytree.
    is_leaf             called with each node; where it gives True the node is a leaf.
    is_leaf_takes_path  is_leaf is called with path and node.

    >>> lamina.tree.leaves_with_path([5])
    [((SequenceKey(idx=0),), 5)]
    """
    return tree_paths.leaves_with_path(tree, is_leaf, is_leaf_takes_path)


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """tree_map whose function takes the path first.

    f                   a function of a path and of as many values as there are trees.
    tree                a pytree, whose structure the result has.
    rest                trees that have at least this structure.
    is_leaf             called with each node of the first; where it gives True it is a leaf.
    is_leaf_takes_path  is_leaf is called with path and node.

    Raises ValueError where the structure of one of `rest` differs.

    >>> lamina.tree.map_with_path(lambda path, x: f"{lamina.tree_util.keystr(path)}={x}", {"a": 1})
    {'a': "['a']=1"}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_tree.flatten_up_to(treedef, r) for r in rest]
    values = [f(path, x, *xs) for (path, x), *xs in zip(pairs, *others, strict=True)]
    return _tree.unflatten(treedef, values)


# ---- nodes -------------------------------------------------------------------------------------
def is_tree_node(typ: type) -> bool:
    """Whether instances of a type are inner nodes of trees.

    typ  a class.

    >>> lamina.tree_util.is_tree_node(list), lamina.tree_util.is_tree_node(int)
    (True, False)
    """
    return tree_paths.is_node_type(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a node and its static data.

    tree  an inner node of a pytree.

    Raises ValueError for a leaf.

    >>> lamina.tree_util.flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """
    level = tree_paths.one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level[0], level[1]


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Pairs of key and child of a node, and its static data.

    tree  an inner node of a pytree.

    Raises ValueError for a leaf.

    >>> pairs, _ = lamina.tree_util.flatten_one_level_with_keys(["a"])
    >>> list(pairs)
    [(SequenceKey(idx=0), 'a')]
    """
    level = tree_paths.one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return tuple(zip(level[2], level[0], strict=True)), level[1]


class PyTreeRegistry:
    """What nodes trees have. There is one registry: default_registry."""

    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)
    flatten = staticmethod(_tree.flatten)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    is_node = staticmethod(is_tree_node)

    def flatten_one_level(self, tree: Any) -> tuple[Any, Any] | None:
        """The children of a node and its static data; None for a leaf."""
        level = tree_paths.one_level(tree)
        return None if level is None else (level[0], level[1])

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Any, Any] | None:
        """Pairs of key and child of a node, and its static data; None for a leaf."""
        level = tree_paths.one_level(tree)
        return None if level is None else (tuple(zip(level[2], level[0], strict=True)), level[1])


default_registry = PyTreeRegistry()


class Partial(functools.partial):  # type: ignore[type-arg]
    """functools.partial whose bound arguments are children of a tree node.

    Of a functools.partial it is a partial with that as its function: its arguments stay static.
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Closed(func)
        return super().__new__(cls, func, *args, **keywords)


class _Closed:
    """A functools.partial that another one does not merge with: equal to it, and called as it is."""

    def __init__(self, fun: functools.partial[Any]) -> None:
        self.fun = fun
        functools.update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == (other.fun if isinstance(other, _Closed) else other)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
