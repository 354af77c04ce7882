"""Pytree utilities under JAX's names."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from lamina.core import tree as _tree
from lamina.core import tree_paths
from lamina.core.tree_paths import DictKey as DictKey
from lamina.core.tree_paths import FlattenedIndexKey as FlattenedIndexKey
from lamina.core.tree_paths import GetAttrKey as GetAttrKey
from lamina.core.tree_paths import KeyEntry as KeyEntry
from lamina.core.tree_paths import KeyPath as KeyPath
from lamina.core.tree_paths import SequenceKey as SequenceKey

PyTreeDef = _tree.PyTreeDef
T = TypeVar("T", bound=type)
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


# ---- registration ------------------------------------------------------------------------------
def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Hashable]] | None = None,
) -> None:
    """Makes instances of a class inner nodes of trees.

    nodetype                the class.
    flatten_func            instance -> (children, hashable static data)
    unflatten_func          (static data, children) -> instance
    flatten_with_keys_func  instance -> (pairs of key and child, static data)

    Raises ValueError if the class is registered already.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> lamina.tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.x, p.y), None), lambda _, children: Pair(*children))
    >>> lamina.tree.leaves(Pair(1, 2))
    [1, 2]
    """

    def flatten(x: Any) -> tuple[Any, ...]:
        parts = flatten_func(x)
        if not (isinstance(parts, tuple) and len(parts) == 2 and isinstance(parts[0], Iterable)):
            raise ValueError(
                f"the flatten function of pytree node type {nodetype} must return a tuple "
                f"(iterable of children, static data), got {parts!r}"
            )
        return tuple(parts[0]), parts[1]

    with warnings.catch_warnings():
        # A class derived from a namedtuple may be taken apart in another way than these are.
        warnings.filterwarnings("ignore", "PyTree type .* is a subclass of", UserWarning)
        optree.register_pytree_node(nodetype, flatten, unflatten_func, namespace=_tree.NAMESPACE)
    if flatten_with_keys_func is not None:
        with_keys = flatten_with_keys_func
        tree_paths.register_keys(nodetype, lambda x: tuple(k for k, _ in with_keys(x)[0]))
    from lamina.runtime import register_node

    register_node(nodetype, flatten)


def register_pytree_node_class(cls: T) -> T:
    """Class decorator: uses the methods tree_flatten and (class method) tree_unflatten.

    cls  the class. tree_flatten() gives (children, hashable static data), and
         tree_unflatten(static data, children) an instance.

    Returns the class. Raises ValueError if it is registered already.

    >>> @lamina.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> lamina.tree.map(lambda x: x + 1, Box(1)).x
    2
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Any, Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Any, Hashable]] | None = None,
) -> None:
    """register_pytree_node of a class that names its children.

    nodetype           the class.
    flatten_with_keys  instance -> (pairs of key and child, hashable static data)
    unflatten_func     (static data, children) -> instance
    flatten_func       instance -> (children, static data); by default from flatten_with_keys.

    Raises ValueError if the class is registered already.

    >>> class Scaled:
    ...     def __init__(self, scale):
    ...         self.scale = scale
    >>> lamina.tree_util.register_pytree_with_keys(
    ...     Scaled, lambda s: (((lamina.tree_util.GetAttrKey("scale"), s.scale),), None),
    ...     lambda _, children: Scaled(*children))
    >>> lamina.tree_util.keystr(lamina.tree.leaves_with_path(Scaled(2))[0][0])
    '.scale'
    """

    def flatten(x: Any) -> tuple[Any, Hashable]:
        pairs, aux = flatten_with_keys(x)
        return tuple(child for _, child in pairs), aux

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: T) -> T:
    """Class decorator: uses the methods tree_flatten_with_keys and (class method) tree_unflatten,
    and tree_flatten where there is one.

    cls  the class. tree_flatten_with_keys() gives (pairs of key and child, hashable static data),
         and tree_unflatten(static data, children) an instance.

    Returns the class. Raises ValueError if it is registered already.

    >>> @lamina.tree_util.register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((lamina.tree_util.GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> lamina.tree.leaves_with_path(Named(5))
    [((GetAttrKey(name='x'),), 5)]
    """
    flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten,  # type: ignore[attr-defined]
                              flatten)  # fmt: skip
    return cls


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Makes a dataclass an inner node of trees.

    nodetype     the dataclass.
    data_fields  names of the fields that are children.
    meta_fields  names of those that are static: hashable, and part of the structure.
    drop_fields  names of those that are neither, and that an instance is made without.

    Without data_fields and meta_fields those marked `static` in their metadata are static.
    Returns the class. Raises ValueError where the fields named are not those of __init__.

    >>> import dataclasses
    >>> @lamina.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = lamina.tree.static(default="dense")
    >>> lamina.tree.leaves(Layer(0.5))
    [0.5]
    """
    import dataclasses

    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: data_fields and meta_fields must both be specified"
                        f" when either is specified. Got {data_fields=} {meta_fields=}.")  # fmt: skip
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError("register_dataclass: data_fields and meta_fields are required when "
                            f"nodetype is not a dataclass. Got nodetype={nodetype}.")  # fmt: skip
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in drop_fields]
        if late := [f.name for f in fields if not f.init]:
            raise ValueError(
                f"register_dataclass: {late} are fields of {nodetype} with init=False, which "
                "can't be given when an instance is made: name them in drop_fields"
            )
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if overlap := {*data} & {*meta}:
        raise ValueError(
            f"data_fields and meta_fields must not overlap. Overlapping fields: {overlap}"
        )
    if dataclasses.is_dataclass(nodetype):
        wanted = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(drop_fields)
        _check_fields({*data, *meta}, wanted)

    def flatten(x: Any) -> tuple[Any, Hashable]:
        return tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta)

    def unflatten(aux: Any, children: Any) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, aux, strict=True))
        )

    register_pytree_node(nodetype, flatten, unflatten)
    keys = tuple(map(GetAttrKey, data))
    tree_paths.register_keys(nodetype, lambda _: keys)
    return nodetype


def _check_fields(given: set[str], wanted: set[str]) -> None:
    if given == wanted:
        return
    text = (
        "data_fields and meta_fields must include all dataclass fields with `init=True` and only "
        "them."
    )
    if missing := wanted - given:
        text += f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
    if unexpected := given - wanted:
        text += f" Unexpected fields: {unexpected}."
    raise ValueError(text)


def register_static(cls: T) -> T:
    """Makes instances of a hashable class nodes without children: part of the structure.

    cls  the class; two instances of the same structure are equal and have the same hash.

    Returns the class. Raises ValueError if it is registered already.

    >>> @lamina.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> lamina.tree.leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda aux, _: aux)
    return cls


def static(**kwargs: Any) -> Any:
    """dataclasses.field, marked as static for register_dataclass.

    kwargs  the arguments of dataclasses.field.

    >>> lamina.tree.static(default=3).metadata["static"]
    True
    """
    import dataclasses

    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


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
