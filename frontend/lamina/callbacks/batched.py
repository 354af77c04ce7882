"""Batches of callbacks: one call for each lane, or one for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.loops import map as map_loop
from lamina.core.trace import get_aval
from lamina.interpreters.batching import batches_first, move_batch


def lane_by_lane(
    bind: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[Any], size: int
) -> tuple[list[Any], list[int]]:
    """One call for each lane, in a loop of the program."""
    moved = batches_first(args, dims)
    over = tuple(x for x, d in zip(moved, dims, strict=True) if d is not None)

    def one(lane: Sequence[Any]) -> list[Any]:
        given = iter(lane)
        return list(
            bind(*[x if d is None else next(given) for x, d in zip(moved, dims, strict=True)])
        )

    outs = map_loop(one, over)
    return list(outs), [0] * len(outs)


def unrolled(
    bind: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[Any], size: int
) -> tuple[list[Any], list[int]]:
    """One call for each lane, each an equation of its own."""
    from lamina import lax

    lanes = [
        bind(
            *[
                x if d is None else lax.index_in_dim(x, i, d, keepdims=False)
                for x, d in zip(args, dims, strict=True)
            ]
        )
        for i in range(size)
    ]
    outs = [
        lax.concatenate([lax.expand_dims(x, (0,)) for x in column], 0)
        for column in zip(*lanes, strict=True)
    ]
    return outs, [0] * len(outs)


def whole_batch(args: Sequence[Any], dims: Sequence[Any], size: int, unbatched: str) -> list[Any]:
    """Operands with the batch in front; what is not batched is left as it is ("keep"), given a
    dimension of one ("expand") or repeated ("broadcast")."""
    from lamina import lax

    out = []
    for x, d in zip(args, dims, strict=True):
        if d is not None or unbatched == "broadcast":
            out.append(move_batch(x, d, size))
        elif unbatched == "expand":
            out.append(
                lax.broadcast_in_dim(x, (1, *get_aval(x).shape), range(1, get_aval(x).ndim + 1))
            )
        else:
            out.append(x)
    return out
