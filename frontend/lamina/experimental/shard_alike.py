"""Arrays that are to lie alike, wherever the partitioner puts them. JAX had this up to 0.11."""

from __future__ import annotations

from typing import Any

from lamina.core import Primitive, get_aval, tree
from lamina.core.tangents import Zero
from lamina.lax.batching_rules import at_front, batch_size, move_axis

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """x and y, whose arrays are to be split over a mesh in the same way, array by array.

    x  a tree of arrays.
    y  a tree of the same structure, whose arrays have the same shapes; their dtypes may be others.

    In a program that is partitioned, what is known of either says how both lie. Raises ValueError where structures
    or shapes differ.

    >>> alike = lamina.experimental.shard_alike.shard_alike
    >>> print(lamina.jit(lambda x: alike(x, jnp.zeros(3))[1])(jnp.arange(3)))
    [0. 0. 0.]
    """
    leaves, structure = tree.flatten(x)
    others, other_structure = tree.flatten(y)
    if structure != other_structure:
        raise ValueError(f"Trees should be equal. Got x_tree: {structure}, y_tree: {other_structure}")
    for one, other in zip(leaves, others, strict=True):
        shapes = get_aval(one).shape, get_aval(other).shape
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {shapes[0]} and `y` leaf shape: "
                f"{shapes[1]}"
            )
    pairs = [shard_alike_p.bind(one, other) for one, other in zip(leaves, others, strict=True)]
    return tree.unflatten(structure, [p[0] for p in pairs]), tree.unflatten(structure, [p[1] for p in pairs])


def _lowering(ctx: Any, *values: Any) -> list[Any]:
    if ctx.module.annotations is not None:
        ctx.module.annotations.group(values)
    return list(values)


def _of_derivatives(values: Any) -> list[Any]:
    """Tangents or cotangents lie alike where there are both."""
    return list(values) if any(type(v) is Zero for v in values) else shard_alike_p.bind(*values)


def _batching(args: Any, dims: Any) -> tuple[list[Any], list[int]]:
    size = batch_size(args, dims)
    to = next(d for d in dims if d is not None)
    moved = [move_axis(at_front(x, d, size), 0, to) if d != to else x for x, d in zip(args, dims, strict=True)]
    return shard_alike_p.bind(*moved), [to, to]


shard_alike_p: Primitive = Primitive(
    "shard_alike",
    multiple_results=True,
    abstract_eval=lambda x, y: [x, y],
    lowering=_lowering,
    jvp=lambda primals, tangents: (shard_alike_p.bind(*primals), _of_derivatives(tangents)),
    transpose=lambda cts, *_: _of_derivatives(cts),
    batching=_batching,
)
