"""Batching: runs a function on arrays with one more dimension, as if on each slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.core import axes, dtypes
from lamina.core.avals import ShapedArray
from lamina.core.axes import Axis
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, jaxpr_as_fun
from lamina.core.primitive import OWED, Primitive
from lamina.core.trace import Trace, Tracer, current_trace, get_aval, set_current_trace, swap_trace
from lamina.interpreters.mapped_types import Element, is_vmappable, to_element
from lamina.interpreters.staging import raise_leaked, trace_to_jaxpr

Dim = int | None


class VmapTracer(Tracer):
    """A batch of values: `value` holds them along dimension `dim`."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self._trace, self.value, self.dim = trace, value, dim

    @property
    def aval(self) -> ShapedArray:
        return get_aval(self.value).without_axis(self.dim)

    def origin_note(self) -> str:
        if isinstance(self.value, Tracer):
            return self.value.origin_note()
        lanes = self.value.shape[self.dim]
        return (
            f"It is one of {lanes} lanes of a vmap, which run as one program: Python sees no value "
            "that holds for all. (in_axes=None keeps an argument the same in all of them.)"
        )

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval.str_long()}, batched={get_aval(self.value).str_long()})"


class BatchTrace(Trace):
    """Applies batching rules; the batches are values of the parent trace."""

    __slots__ = ("axis",)

    def __init__(self, parent: Trace, axis: Axis) -> None:
        super().__init__(parent)
        self.axis = axis

    def name(self) -> str:
        return "one that is mapped (vmap)"

    def unpack(self, x: Any) -> tuple[Any, Dim]:
        """A value and its batch dimension (None if it is the same for the whole batch)."""
        if type(x) is VmapTracer:
            # The same axis: a user's rule of derivatives runs after the function that was mapped, in a
            # trace of its own, and may close over values of that function.
            made_by = x._trace
            if made_by is self or (isinstance(made_by, BatchTrace) and made_by.axis is self.axis):
                return x.value, x.dim
            if not x._trace.alive:
                raise_leaked(x)
        return x, None

    def lanes_of(self, x: Any, dim: Dim) -> Any:
        """One lane of an array with its batch along `dim`, as this trace's function sees it."""
        return x if dim is None else VmapTracer(self, x, dim)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values, dims = [], []
        for x in args:
            v, d = self.unpack(x)
            values.append(v)
            dims.append(d)
        axis = self.axis
        named = axis.name is not None and axis.name in axes.used_by(primitive, params)
        old, old_axis = swap_trace(self.parent), axes.swap_batching(axis)
        try:
            if not named and all(d is None for d in dims):
                return primitive.bind(*values, **params)
            if named and primitive.axis_batching is not None:
                out, out_dims = primitive.axis_batching(axis, values, dims, **params)
            elif primitive.batching is OWED:
                raise NotImplementedError(f"Batching rule for '{primitive}' not implemented")
            else:
                out, out_dims = primitive.batching(values, dims, **params)
        finally:
            axes.swap_batching(old_axis)
            swap_trace(old)
        if primitive.multiple_results:
            return [self._wrap(x, d) for x, d in zip(out, out_dims, strict=True)]
        return self._wrap(out, out_dims)

    def _wrap(self, value: Any, dim: Dim) -> Any:
        return value if dim is None else VmapTracer(self, value, dim)


def batch_flat(
    fun: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[Dim],
    axis: Axis | int,
) -> tuple[list[Any], list[Dim]]:
    """Results and their batch dimensions of a function of flat arguments. An int is the size of an
    axis without a name. Values of mapped types have a spec as their dimension; as results they are
    Elements."""
    axis = Axis(None, axis) if isinstance(axis, int) else axis
    trace = BatchTrace(current_trace(), axis)
    names = () if axis.name is None else ((axis.name, axis.size),)
    try:
        with set_current_trace(trace), axes.bind(names, spread=axis.spmd_name):
            outs = fun(*[to_element(trace, x, d) for x, d in zip(args, dims, strict=True)])
            pairs = [
                (Element(x, trace), None) if is_vmappable(x) else trace.unpack(x) for x in outs
            ]
    finally:
        trace.ended()
    return [x for x, _ in pairs], [d for _, d in pairs]


def move_batch(x: Any, dim: Dim, axis_size: int, to: int = 0) -> Any:
    """The batch with its dimension at `to`; an unbatched value is broadcast."""
    from lamina import lax

    if dim is None:
        shape, dtype = get_aval(x).shape, get_aval(x).dtype
        if dtype == dtypes.float0 and not isinstance(x, Tracer):
            return np.zeros((*shape[:to], axis_size, *shape[to:]), dtype)
        dims = [i for i in range(len(shape) + 1) if i != to]
        return lax.broadcast_in_dim(x, (*shape[:to], axis_size, *shape[to:]), dims)
    if dim == to:
        return x
    order = [i for i in range(get_aval(x).ndim) if i != dim]
    order.insert(to, dim)
    return lax.transpose(x, order)


def batch_jaxpr(
    closed: ClosedJaxpr, axis_size: int, batched: Sequence[bool], instantiate: Sequence[bool] | bool
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr on batches: batched inputs and results hold the batch in dimension 0.

    The axis is the one that the running batching rule eliminates, with its name if it has one.
    Results are batched where they depend on a batched input or where `instantiate` says so. Also
    gives which results are batched.
    """
    n_out = len(closed.jaxpr.outvars)
    force = [instantiate] * n_out if isinstance(instantiate, bool) else list(instantiate)
    out_batched: list[bool] = []
    here = axes.batching()
    axis = Axis(here.name, axis_size, here.spmd_name)

    def fun(*args: Any) -> list[Any]:
        dims = [0 if b else None for b in batched]
        outs, out_dims = batch_flat(jaxpr_as_fun(closed), args, dims, axis)
        out_batched[:] = [d is not None or f for d, f in zip(out_dims, force, strict=True)]
        return [
            move_batch(x, d, axis_size) if b else x
            for x, d, b in zip(outs, out_dims, out_batched, strict=True)
        ]

    avals = [
        a.with_axis(0, axis_size, axis.spmd_name) if b else a
        for a, b in zip(closed.in_avals, batched, strict=True)
    ]
    info = closed.jaxpr.debug_info
    out = trace_to_jaxpr(
        fun, avals, DebugInfo("vmap", info.function, info.location, info.arg_names)
    )
    return out, out_batched


def batches_first(args: Sequence[Any], dims: Sequence[Dim]) -> list[Any]:
    """A batching rule's arguments, those that are batched with that dimension in front."""
    return [
        x if d is None else move_batch(x, d, get_aval(x).shape[d])
        for x, d in zip(args, dims, strict=True)
    ]


def batched_size(args: Sequence[Any], dims: Sequence[Dim]) -> int:
    """The batch size of a batching rule's arguments."""
    sizes = (get_aval(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    return next(sizes, axes.batching().size)


# What libraries import from here, beside the transformation itself.
from lamina.interpreters.batching_rules import (  # noqa: E402
    axis_primitive_batchers as axis_primitive_batchers,
)
from lamina.interpreters.batching_rules import bdim_at_front as bdim_at_front  # noqa: E402
from lamina.interpreters.batching_rules import broadcast as broadcast  # noqa: E402
from lamina.interpreters.batching_rules import defbroadcasting as defbroadcasting  # noqa: E402
from lamina.interpreters.batching_rules import defvectorized as defvectorized  # noqa: E402
from lamina.interpreters.batching_rules import (  # noqa: E402
    fancy_primitive_batchers as fancy_primitive_batchers,
)
from lamina.interpreters.batching_rules import moveaxis as moveaxis  # noqa: E402
from lamina.interpreters.batching_rules import not_mapped as not_mapped  # noqa: E402
from lamina.interpreters.batching_rules import primitive_batchers as primitive_batchers  # noqa: E402
from lamina.interpreters.mapped_types import register_vmappable as register_vmappable  # noqa: E402
from lamina.interpreters.mapped_types import unregister_vmappable as unregister_vmappable  # noqa: E402
