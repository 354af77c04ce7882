"""The argument `out_sharding` of functions that make arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from lamina.core.placed import ShardingTypeError, undecided
from lamina.core.trace import get_aval

F = TypeVar("F", bound=Callable[..., Any])


def takes_out_sharding(fun: F) -> F:
    """fun, whose result lies under `out_sharding` where that is given."""

    @functools.wraps(fun)
    def call(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        with undecided(out_sharding is not None):
            out = fun(*args, **kwargs)
        if out_sharding is None:
            return out
        from lamina.sharding.constraint import under

        return under(out, out_sharding)

    return call  # type: ignore[return-value]


def takes_terms(fun: F) -> F:
    """The same for a function that can give terms of a sum: `out_sharding` is handed to it where that asks for some."""
    whole = takes_out_sharding(fun)

    @functools.wraps(fun)
    def call(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if getattr(getattr(out_sharding, "spec", out_sharding), "unreduced", None):
            return fun(*args, out_sharding=out_sharding, **kwargs)
        return whole(*args, out_sharding=out_sharding, **kwargs)

    return call  # type: ignore[return-value]


def sum_over_parts(name: str, fun: Callable[..., Any], out_sharding: Any, *args: Any) -> Any:
    """Terms of a sum: what fun gives for the parts of args that each device has.

    Raises ShardingTypeError where args are split along other axes of the mesh than the result names."""
    from lamina import lax
    from lamina.core.manual_axes import UnreducedKind
    from lamina.sharding.explicit import in_types
    from lamina.sharding.shard_map import shard_map

    sharding = in_types(out_sharding, name)
    spec = sharding.spec
    if spec.unreduced_kind is not UnreducedKind.sum:
        raise NotImplementedError(f"{name} gives terms of sums alone. Got out_sharding={spec}")
    placed = [get_aval(x).placed for x in args]
    split = {n for p in placed if p is not None for names in p.dims for n in names}
    if split != spec.unreduced | set(spec.names()):
        raise ShardingTypeError(
            f"{name}: its arguments are split along {sorted(map(str, split))}, and out_sharding {spec} is to have "
            "terms along the axes over which is summed and to be split along the others: reshard the arguments, or ask "
            "for another out_sharding"
        )
    along = tuple(sorted(spec.unreduced, key=str))

    def on_parts(*parts: Any) -> Any:
        return lax.pcast(fun(*parts), along, to="unreduced")

    return shard_map(on_parts, mesh=sharding.mesh, out_specs=spec)(*args)
