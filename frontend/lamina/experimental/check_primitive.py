"""check_p: a check of the user's in a traced function, before checkify makes arrays of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import NOT_LINEAR, Primitive
from lamina.core.effects import Effect
from lamina.lax.batching_rules import at_front, batch_size

CHECK = Effect("check")
_REFUSED = (
    "Cannot compile a checkify.check which was not functionalized: apply checkify.checkify to the "
    "function that it stands in, inside of jit, scan and the like: jit(checkify(f))."
)


def _impl(pred: Any, *numbers: Any, site: Any, lanes: int, debug: bool) -> list[Any]:
    if not debug and not np.asarray(pred).all():
        at = np.unravel_index(np.argmin(np.asarray(pred)), np.shape(pred))
        raise site.kind(site.message([np.asarray(n)[at] for n in numbers]))
    return []


def _lowering(ctx: Any, *values: Any, site: Any, lanes: int, debug: bool) -> list[Any]:
    if not debug:
        raise ValueError(_REFUSED)
    return []


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    return check_p.bind(*primals, **params), []


def _batching(args: Any, dims: Any, *, lanes: int, **params: Any) -> tuple[list[Any], list[Any]]:
    size = batch_size(args, dims)
    moved = [at_front(x, d, size) for x, d in zip(args, dims)]
    return check_p.bind(*moved, lanes=lanes + 1, **params), []


check_p: Primitive = Primitive(
    "check",
    abstract_eval=lambda *avals, **_: [],
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    impl=_impl,
    effects=lambda params: frozenset((CHECK,)),
    multiple_results=True,
)
