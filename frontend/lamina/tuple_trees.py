"""Trees that stand beside others: of flags, of what is kept for each leaf.

Tuples may stand for any containers in them, so that no container of a user's is made around values
that it might not take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lamina.core import tree
from lamina.core.library import library


def mirrored(structure: Any, leaves: Iterable[Any]) -> Any:
    """A tree of these leaves: tuples, lists and dicts are as in the structure, other containers
    are tuples."""
    return _mirrored(structure, iter(leaves))


def _mirrored(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure.is_leaf():
        return next(leaves)
    parts = [_mirrored(child, leaves) for child in structure.children()]
    if structure.type is list:
        return parts
    if structure.type is dict:
        return dict(zip(structure.entries(), parts, strict=True))
    return None if structure.type is type(None) else tuple(parts)


def flags_of(prefix: Any, args: Sequence[Any], name: str, function: str) -> list[bool] | None:
    """What a tree of bools says of each leaf of the arguments, or None where it says nothing: it is
    None, or True.

    It is a prefix of the arguments' tree, whose containers need as many children, and dicts the
    keys, of those they stand for. Raises ValueError where it is not.
    """
    if prefix is None or prefix is True:
        return None
    found: list[bool] = []
    full_name = f"the {name} argument to {library}.{function}"
    _spread(prefix, tree.structure(tuple(args)), name, full_name, found)
    return found


def _spread(prefix: Any, structure: Any, where: str, full_name: str, found: list[bool]) -> None:
    if isinstance(prefix, bool):
        found.extend([prefix] * structure.num_leaves)
        return
    shape = tree.structure(prefix, is_leaf=lambda x: x is not prefix)
    if shape.is_leaf():
        raise ValueError(
            f"{full_name} must be a tree of bools, like a tuple-tree (made of bools and tuples only), "
            f"but {where} is {prefix!r} of type {type(prefix).__name__}"
        )
    must = f"{full_name} must form a tree prefix of the corresponding values"
    if structure.is_leaf():
        raise ValueError(
            f"{must} (up to container types), but {where} is a container while the corresponding "
            "part of the values is a leaf; use a single bool there instead"
        )
    parts = tree.leaves(prefix, is_leaf=lambda x: x is not prefix)
    children = structure.children()
    if len(parts) != len(children):
        raise ValueError(
            f"{must} (up to container types, so containers need only match in their number of "
            f"children), but {where} has {len(parts)} children while the corresponding container has "
            f"{len(children)}"
        )
    if shape.type is dict and structure.type is dict and shape.entries() != structure.entries():
        raise ValueError(
            f"{must}, but {where} is a dict with keys {shape.entries()} while the corresponding dict "
            f"has keys {structure.entries()}"
        )
    for i, (part, child) in enumerate(zip(parts, children, strict=True)):
        _spread(part, child, f"{where}[{i}]", full_name, found)
