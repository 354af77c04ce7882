"""Types that are pytree nodes: their registration, by functions, decorators and dataclasses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from lamina.core import tree as _tree
from lamina.core import tree_paths
from lamina.core.tree_paths import GetAttrKey

T = TypeVar("T", bound=type)


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
