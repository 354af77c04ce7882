"""Carried values that a loop's body gives back as they are: constants of the loop, and their own results.

vmap then batches them only where they were batched before, reverse mode stores no copy of them for each step,
and a loop's step has fewer values to hand on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from lamina.core.trace import Tracer

T = TypeVar("T")


def kept_carry(body: ClosedJaxpr, num_consts: int, num_carry: int) -> list[bool]:
    """For each carried value whether the body gives it back as it is. None, where it does so with all: a
    loop has something to carry."""
    carried = body.invars[num_consts : num_consts + num_carry]
    kept = [out is given for out, given in zip(body.outvars, carried, strict=False)]
    return [False] * num_carry if all(kept) else kept


def split_kept(values: Sequence[T], kept: Sequence[bool]) -> tuple[list[T], list[T]]:
    """(those that are kept, the others)"""
    pairs = list(zip(values, kept, strict=True))
    return [v for v, k in pairs if k], [v for v, k in pairs if not k]


def join_kept(kept_values: Sequence[Any], results: Sequence[Any], kept: Sequence[bool]) -> list[Any]:
    """The carry after a loop: what was kept, as arrays of their own, and what the loop gave."""
    rest = [iter(results), map(own_array, kept_values)]
    return [next(rest[k]) for k in kept]


def own_array(x: Any) -> Any:
    """What control flow hands through, as an array of its own."""
    from lamina import lax

    return x if isinstance(x, Tracer) else lax.copy(x)


def kept_as_constants(
    closed: ClosedJaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    kept: Sequence[bool],
    *,
    gives_carry: bool,
) -> tuple[ClosedJaxpr, list[Any]]:
    """A loop's body or condition to which kept values that it reads are constants, and all its constants.
    A body, which `gives_carry`, no longer gives those that are kept."""
    jaxpr, info = closed.jaxpr, closed.debug_info
    after = len(consts) + len(kept)
    constants, changing = split_kept(jaxpr.invars[len(consts) : after], kept)
    outvars = _without(jaxpr.outvars, kept) if gives_carry else jaxpr.outvars
    reads = {id(v) for v in (*outvars, *(v for eqn in jaxpr.eqns for v in eqn.invars))}
    read = [id(v) in reads for v in constants]
    invars = [
        *jaxpr.invars[: len(consts)],
        *itertools.compress(constants, read),
        *changing,
        *jaxpr.invars[after:],
    ]
    if len(info.arg_names) >= len(kept):
        names = tuple(_without(info.arg_names, kept))
        info = DebugInfo(info.kind, info.function, info.location, names, info.result_paths)
    return (
        ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, info), closed.consts),
        [*consts, *itertools.compress(split_kept(carry, kept)[0], read)],
    )


def _without(values: Sequence[T], kept: Sequence[bool]) -> list[T]:
    """Values of which the carried ones come first, without those that are kept."""
    return [*split_kept(values[: len(kept)], kept)[1], *values[len(kept) :]]
