"""Batching rules of primitives, as libraries register them; shown by `batching` (JAX's names)."""

from __future__ import annotations

from typing import Any

from lamina.core import axes
from lamina.core.primitive import Primitive
from lamina.core.rule_tables import RuleTable, set_rule
from lamina.core.trace import get_aval

not_mapped = None
"""The batch dimension of an operand that is the same for the whole batch."""

primitive_batchers = RuleTable("batching")
"""rule(args, dims, **params) -> (out, out dim), or lists of both with multiple_results."""


def _with_names(primitive: Primitive, rule: Any) -> Any:
    """The rule as it is; the primitive now says that it uses the names in its parameters."""
    if primitive.axis_names is None:
        set_rule(primitive, "axis_names", _names_in)
    return rule


def _names_in(params: dict[str, Any]) -> list[Any]:
    given = [params[key] for key in ("axis_name", "axes") if key in params]
    names = [n for x in given for n in (x if isinstance(x, (tuple, list)) else (x,))]
    return [n for n in names if n is not None and not isinstance(n, int)]


axis_primitive_batchers = RuleTable("axis_batching", _with_names)
"""rule(axis, args, dims, **params), for primitives with a named axis (parameter `axis_name` or
`axes`) when that axis is batched; axis.name, axis.size."""


fancy_primitive_batchers = RuleTable(
    "batching",
    lambda _, rule: lambda args, dims, **params: rule(axes.batching(), args, dims, **params),
)
"""rule(axis, args, dims, **params): rules that want to know the axis that is batched, too."""


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """The batch with its dimension in front; an unbatched value is repeated."""
    from lamina.interpreters.batching import move_batch

    return move_batch(x, bdim, size)


def broadcast(x: Any, size: int, axis: int) -> Any:
    """x repeated along a new dimension."""
    from lamina.interpreters.batching import move_batch

    return move_batch(x, None, size, to=axis)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """x with one dimension elsewhere."""
    from lamina.interpreters.batching import move_batch

    return x if source == destination else move_batch(x, source, 0, to=destination)


def defvectorized(primitive: Primitive) -> None:
    """The primitive works element by element: its operands are batched along one dimension, and so
    is the result."""

    def rule(args: Any, dims: Any, **params: Any) -> Any:
        if len(set(dims)) != 1:
            raise ValueError(f"'{primitive}' is vectorised: its operands must be batched alike")
        out = primitive.bind(*args, **params)
        return out, [dims[0]] * len(out) if primitive.multiple_results else dims[0]

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """The primitive works element by element on operands of one shape, or scalars."""

    def rule(args: Any, dims: Any, **params: Any) -> Any:
        from lamina import lax
        from lamina.interpreters.batching import batched_size, move_batch

        size = batched_size(args, dims)
        ranks = [get_aval(x).ndim - (d is not None) for x, d in zip(args, dims, strict=True)]
        rank = max(ranks)
        moved = []
        for x, d, own in zip(args, dims, ranks, strict=True):
            x = move_batch(x, d, size)
            missing = rank - own
            if missing:
                shape = get_aval(x).shape
                x = lax.reshape(x, (size, *[1] * missing, *shape[1:]))
            moved.append(x)
        return primitive.bind(*moved, **params), 0

    primitive_batchers[primitive] = rule
