"""Carried values of loops: their types must be the same after each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray, same_type


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
            and (
                o.weak_type or dtypes.promote_types((a.dtype, True), (o.dtype, False))[0] == o.dtype
            )
        ):
            x = lax.convert_element_type(x, o.dtype)
            a = ShapedArray(a.shape, o.dtype, False)
        new_init.append(x)
        new_avals.append(a)
    return new_init, new_avals


def check_carry(
    function: str,
    what: str,
    init: Any,
    out_tree: tree.PyTreeDef,
    in_tree: tree.PyTreeDef,
    out: Sequence[ShapedArray],
    expected: Sequence[ShapedArray],
) -> None:
    """Raises TypeError, naming the entry, where a step changes the carry's structure or types."""
    if out_tree != in_tree:
        raise TypeError(
            f"{what}: the input and output carry of {function} must have the same pytree structure, "
            f"but the input carry has structure {in_tree} and the output carry {out_tree}.\n"
            "Revise the function so that the carry output has the same structure as the input."
        )
    paths = tree.paths(init)
    wrong = [
        f"  * the input carry{p} has type {e.str_short()} but the corresponding output carry has "
        f"type {o.str_short()}" + _difference(e, o)
        for p, o, e in zip(paths, out, expected, strict=True)
        if not same_type(o, e)
    ]
    if wrong:
        raise TypeError(
            f"{what}: the input and output carry of {function} must have equal types, but they "
            "differ:\n" + "\n".join(wrong) + "\nRevise the function so that all output types match "
            "the corresponding input types."
        )


def _difference(e: ShapedArray, o: ShapedArray) -> str:
    if e.dtype != o.dtype and e.shape != o.shape:
        return ", so the dtypes and shapes do not match"
    return ", so the dtypes do not match" if e.dtype != o.dtype else ", so the shapes do not match"
