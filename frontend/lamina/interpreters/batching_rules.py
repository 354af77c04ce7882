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
    """The batch with its dimension in front.

    x     a batch, or a value that is the same for all of it.
    bdim  where its dimension is; None for such a value, which is repeated.
    size  of the batch.

    >>> lamina.interpreters.batching.bdim_at_front(jnp.ones((3, 4)), 1, 4).shape
    (4, 3)
    """
    from lamina.interpreters.batching import move_batch

    return move_batch(x, bdim, size)


def broadcast(x: Any, size: int, axis: int) -> Any:
    """x repeated along a new dimension.

    x     an array.
    size  of the new dimension.
    axis  where it is.

    >>> lamina.interpreters.batching.broadcast(jnp.ones(3), 4, 1).shape
    (3, 4)
    """
    from lamina.interpreters.batching import move_batch

    return move_batch(x, None, size, to=axis)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """x with one dimension elsewhere, the others in their order.

    x            an array.
    source       which dimension.
    destination  where it goes.

    >>> lamina.interpreters.batching.moveaxis(jnp.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    from lamina.interpreters.batching import move_batch

    return x if source == destination else move_batch(x, source, 0, to=destination)


def defvectorized(primitive: Primitive) -> None:
    """Says that a primitive works element by element, so that a batch needs nothing else: its operands are
    batched along one dimension, and so is the result.

    primitive  the primitive.

    Calls raise ValueError where operands are batched along different dimensions; `defbroadcasting` moves them.

    >>> halved_p = lamina.extend.core.Primitive("halved")
    >>> _ = halved_p.def_impl(lambda x: x / 2)
    >>> lamina.interpreters.batching.defvectorized(halved_p)
    >>> lamina.vmap(halved_p.bind)(jnp.array([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """

    def rule(args: Any, dims: Any, **params: Any) -> Any:
        if len(set(dims)) != 1:
            raise ValueError(f"'{primitive}' is vectorised: its operands must be batched alike")
        out = primitive.bind(*args, **params)
        return out, [dims[0]] * len(out) if primitive.multiple_results else dims[0]

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """Says that a primitive works element by element on operands of one shape, or scalars: those of a batch
    are brought to the front, those that are the same for all of it repeated.

    primitive  the primitive.

    >>> difference_p = lamina.extend.core.Primitive("difference")
    >>> _ = difference_p.def_impl(lambda x, y: x - y)
    >>> lamina.interpreters.batching.defbroadcasting(difference_p)
    >>> lamina.vmap(difference_p.bind, (0, None))(jnp.array([2.0, 4.0]), jnp.float32(1)).tolist()
    [1.0, 3.0]
    """

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
