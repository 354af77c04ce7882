"""Carried values of loops: their types must be the same after each step."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import tree
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import DebugInfo
from lamina.core.tree_differences import tree_differences
from lamina.core.type_promotion import promote_types


def fixpoint(start: Sequence[bool], step: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The least assignment above `start` that `step` does not enlarge."""
    now = list(start)
    while True:
        new = [a or b for a, b in zip(now, step(now), strict=True)]
        if new == now:
            return now
        now = new


def promote_weak_carry(
    init: list[Any], avals: list[ShapedArray], out: Sequence[ShapedArray], same_structure: bool
) -> tuple[list[Any], list[ShapedArray]]:
    """Gives weakly typed initial values the type that the body gives them."""
    from lamina import lax

    if not same_structure or len(out) != len(init):
        return init, avals
    new_init, new_avals = [], []
    for x, a, o in zip(init, avals, out, strict=True):
        if (
            a.weak_type
            and a != o
            and a.shape == o.shape
            and promote_types((a.dtype, True), (o.dtype, o.weak_type))[0] == o.dtype
        ):
            x = lax.convert_element_type(x, o.dtype)
            a = ShapedArray(a.shape, o.dtype, False)
        new_init.append(x)
        new_avals.append(a)
    return new_init, new_avals


def check_carry(
    what: str,
    info: DebugInfo,
    out_tree: tree.PyTreeDef,
    in_tree: tree.PyTreeDef,
    out: Sequence[ShapedArray],
    expected: Sequence[ShapedArray],
) -> None:
    """Raises TypeError, naming the function and the entry as its author would write it, where a
    step changes the carry's structure or types. `info` tells of the body, whose first argument is
    the carry."""
    names = info.arg_names[: len(expected)]
    if out_tree != in_tree:
        root = re.split(r"[.\[]", names[0])[0] if names else "the carry"
        found = "\n".join(
            f"The input carry {root}{path} is {a} but the corresponding component of the carry "
            f"output is {b}, so {why}."
            for path, a, b, why in tree_differences(in_tree, out_tree)
        )
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, but "
            f"they differ in {info.place()}:\n\n{found}\n\nRevise the function so that the carry "
            "output has the same pytree structure as the carry input."
        )
    wrong = [
        f"The input carry {name} has type {e.str_long()} but the corresponding output carry "
        f"component has type {o.str_long()}, so {difference_of_types(e, o)} do not match."
        for name, o, e in zip(names, out, expected, strict=True)
        if not same_type(o, e)
    ]
    if wrong:
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they differ "
            f"in {info.place()}:\n\n" + "\n".join(wrong) + "\n\nRevise the function so that all "
            "output types match the corresponding input types."
        )


def difference_of_types(a: ShapedArray, b: ShapedArray) -> str:
    """Which of dtype and shape are not the same, for messages."""
    if a.dtype != b.dtype and a.shape != b.shape:
        return "the dtypes and the shapes"
    return "the dtypes" if a.dtype != b.dtype else "the shapes"
