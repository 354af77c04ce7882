"""reduce and reduce_window with any function of two elements.

What lax.add, max and so on do has primitives of its own. For others the function is traced on
scalars and becomes the body of the reduction. Derivatives, and batches of initial values, go by
halves: the elements are combined pairwise, by the function on whole arrays, until one is left.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.control_flow.tracing import avals_of, debug_info
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Tracer, tree
from lamina.core.jaxpr import ClosedJaxpr, eval_jaxpr
from lamina.interpreters.batching import batch_flat
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.staging import trace_to_jaxpr


# ---- user functions ----------------------------------------------------------------------------
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """The elements of operands over some axes combined by a function: StableHLO's reduce.

    operands      an array, or a tree of arrays of one shape.
    init_values   scalars, a tree like operands, with which combining starts.
    computation   a function of two trees of scalars that is associative: the order is not told.
    dimensions    the axes, which the results lack.
    out_sharding  how the results lie on devices, a sharding or None.

    Raises ValueError where init_values are no scalars or there is no such axis; TypeError where the
    computation gives other types.

    >>> print(lax.reduce(jnp.array([[1, 2], [3, 4]]), 1, lambda x, y: x * y, (1,)))
    [ 2 12]
    """
    from lamina import lax
    from lamina.lax.checks import canonical_axes
    from lamina.lax.windows import reduce_by

    if out_sharding is not None:
        raise NotImplementedError("reduce takes no out_sharding yet")
    flat, inits, in_tree, operand_tree = _flattened("reduce", operands, init_values)
    axes = canonical_axes("reduce", dimensions, len(np.shape(flat[0])))
    if len(flat) == 1 and not isinstance(computation, functools.partial):
        known = reduce_by(computation, flat[0], inits[0], axes)
        if known is not None:
            return tree.unflatten(operand_tree, [known])
    body = _traced("reduce", computation, inits, in_tree)
    if axes:
        out = reduce_p.bind(*flat, *inits, computation=body, dimensions=axes)
    else:
        shape = np.shape(flat[0])
        out = _on_arrays(body, [lax.broadcast_in_dim(i, shape, ()) for i in inits], flat)
    return tree.unflatten(operand_tree, out)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each window of operand combined by a function: pooling.

    operand            an array, or a tree of arrays of one shape.
    init_value         scalars, a tree like operand, with which combining starts and which padding
                       consists of.
    computation        an associative function of two trees of scalars; lax.add, max, min and mul
                       become programs that can be differentiated.
    window_dimensions  the sizes of a window, one for each axis.
    window_strides     how far it moves along each axis; None: ones.
    padding            "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis.
    base_dilation      spreads the operand by putting init_value between its elements; None: ones.
    window_dilation    spreads the window likewise; None: ones.

    Raises ValueError where there is not one number for each axis.

    >>> print(lax.reduce_window(jnp.array([1.0, 3, 2, 5]), -jnp.inf, lax.max, (2,), (2,), "VALID"))
    [3. 5.]
    """
    from lamina.lax.windows import reduce_window_by, window_parameters

    flat, inits, in_tree, operand_tree = _flattened("reduce_window", operand, init_value)
    params = window_parameters(np.shape(flat[0]), window_dimensions, window_strides, padding,
                               base_dilation, window_dilation)  # fmt: skip
    if len(flat) == 1 and not isinstance(computation, functools.partial):
        known = reduce_window_by(computation, flat[0], inits[0], params)
        if known is not None:
            return tree.unflatten(operand_tree, [known])
    body = _traced("reduce_window", computation, inits, in_tree)
    out = reduce_window_p.bind(*flat, *inits, computation=body, **params)
    return tree.unflatten(operand_tree, out)


def _flattened(name: str, operands: Any, inits: Any) -> tuple[list[Any], list[Any], Any, Any]:
    flat, operand_tree = tree.flatten(operands)
    flat_inits, init_tree = tree.flatten(inits)
    if operand_tree != init_tree:
        raise ValueError(
            f"[{name}] operands and init values have different structures: {operand_tree} and "
            f"{init_tree}"
        )
    if not flat:
        raise ValueError(f"[{name}] needs at least one operand")
    shapes = [np.shape(x) for x in flat]
    if any(s != shapes[0] for s in shapes):
        raise ValueError(f"[{name}] operands must have one shape, got {shapes}")
    if any(np.shape(i) != () for i in flat_inits):
        raise ValueError(f"[{name}] init values must be scalars, got shapes "
                         f"{[np.shape(i) for i in flat_inits]}")  # fmt: skip
    types = []
    for number, (x, init) in enumerate(zip(avals_of(flat, name), avals_of(flat_inits, name))):
        if isinstance(flat_inits[number], bool | int | float | complex):
            flat_inits[number] = np.asarray(flat_inits[number], x.dtype)[()]
            init = x
        types.append((x.dtype, init.dtype))
    if any(a != b for a, b in types):
        raise TypeError(f"[{name}] operands and init values have different dtypes: "
                        f"{[(a.name, b.name) for a, b in types]}")  # fmt: skip
    return flat, flat_inits, tree.flatten((inits, inits))[1], operand_tree


def _traced(name: str, computation: Callable[..., Any], inits: list[Any], in_tree: Any
            ) -> ClosedJaxpr:  # fmt: skip
    scalars = [ShapedArray((), a.dtype) for a in avals_of(inits, name)]

    def flat(*leaves: Any) -> list[Any]:
        return tree.flatten(computation(*tree.unflatten(in_tree, leaves)))[0]

    closed = trace_to_jaxpr(flat, scalars * 2, debug_info(computation, name))
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(
            f"[{name}] the computation {debug_info(computation, name).function} closes over traced "
            "values; pass what it needs as operands"
        )
    if [(a.shape, a.dtype) for a in closed.out_avals] != [(a.shape, a.dtype) for a in scalars]:
        raise TypeError(
            f"[{name}] the computation must give scalars like those it takes, "
            f"{', '.join(a.str_short() for a in scalars)}; it gives "
            f"{', '.join(a.str_short() for a in closed.out_avals)}"
        )
    return closed


# ---- by halves ---------------------------------------------------------------------------------
def _on_arrays(body: ClosedJaxpr, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The body applied to each pair of elements."""
    from lamina import lax

    shape = np.shape(left[0])
    size = int(np.prod(shape, dtype=np.int64))
    flat = [lax.reshape(x, (size,)) for x in (*left, *right)]
    outs, dims = batch_flat(
        lambda *xs: eval_jaxpr(body.jaxpr, body.consts, *xs), flat, [0] * len(flat), size
    )
    whole = [
        lax.broadcast_in_dim(out, (size,), ()) if d is None else out for out, d in zip(outs, dims)
    ]
    return [lax.reshape(out, shape) for out in whole]


def _halved(body: ClosedJaxpr, xs: Sequence[Any], inits: Sequence[Any]) -> list[Any]:
    """xs reduced along axis 0; inits are broadcast to what is left."""
    from lamina import lax

    rest = np.shape(xs[0])[1:]
    spread = [lax.broadcast_in_dim(i, rest, ()) if np.shape(i) != rest else i for i in inits]
    n = np.shape(xs[0])[0]
    if n == 0 or 0 in rest:
        return spread
    while n > 1:
        half = n // 2
        left, right = (
            [lax.slice_in_dim(x, start, start + half, 1, 0) for x in xs] for start in (0, half)
        )
        made = _on_arrays(body, left, right)
        if n % 2:
            tails = [lax.slice_in_dim(x, n - 1, n, 1, 0) for x in xs]
            made = [lax.concatenate([m, t], 0) for m, t in zip(made, tails)]
        xs, n = made, half + n % 2
    return _on_arrays(body, spread, [lax.squeeze(x, (0,)) for x in xs])


def _reduce_by_halves(*args: Any, computation: ClosedJaxpr, dimensions: tuple[int, ...]
                      ) -> list[Any]:  # fmt: skip
    from lamina import lax

    xs, inits = args[: len(args) // 2], args[len(args) // 2 :]
    shape = np.shape(xs[0])
    rest = [d for d in range(len(shape)) if d not in dimensions]
    size = int(np.prod([shape[d] for d in dimensions], dtype=np.int64))
    flat = [
        lax.reshape(lax.transpose(x, (*dimensions, *rest)), (size, *(shape[d] for d in rest)))
        for x in xs
    ]
    return _halved(computation, flat, inits)


def _windows_by_halves(
    *args: Any, computation: ClosedJaxpr, window_dimensions: Any, window_strides: Any,
    padding: Any, base_dilation: Any, window_dilation: Any,
) -> list[Any]:  # fmt: skip
    """Each place in the window is a strided slice of the padded operand."""
    from lamina import lax

    xs, inits = args[: len(args) // 2], args[len(args) // 2 :]
    config = [(low, high, base - 1) for (low, high), base in zip(padding, base_dilation)]
    padded = [lax.pad(x, i, config) for x, i in zip(xs, inits)]
    sizes = np.shape(padded[0])
    counts = [
        max(0, (n - (k - 1) * wide - 1) // s + 1)
        for n, k, s, wide in zip(sizes, window_dimensions, window_strides, window_dilation)
    ]
    if 0 in counts:
        return [lax.broadcast_in_dim(i, counts, ()) for i in inits]
    parts: list[list[Any]] = [[] for _ in xs]
    for place in itertools.product(*map(range, window_dimensions)):
        starts = [p * wide for p, wide in zip(place, window_dilation)]
        limits = [a + (c - 1) * s + 1 for a, c, s in zip(starts, counts, window_strides)]
        for x, found in zip(padded, parts):
            found.append(lax.slice(x, starts, limits, window_strides))
    return _halved(computation, [lax.stack(found) for found in parts], inits)


# ---- rules -------------------------------------------------------------------------------------
def _lower_body(ctx: Any, body: ClosedJaxpr) -> Callable[..., list[Any]]:
    from lamina.interpreters.lowering import constant, lower_body

    def emit(*scalars: Any) -> list[Any]:
        consts = [constant(c) for c in body.consts]
        return lower_body(ctx.module, body.jaxpr, consts, list(scalars))

    return emit


def _jvp(by_halves: Callable[..., list[Any]]) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        return jvp_flat(lambda *xs: by_halves(*xs, **params), primals, tangents)

    return rule


def _reduce_abstract_eval(
    *avals: ShapedArray, computation: ClosedJaxpr, dimensions: tuple[int, ...]
) -> list[ShapedArray]:
    shape = tuple(n for d, n in enumerate(avals[0].shape) if d not in dimensions)
    return [ShapedArray(shape, x.dtype) for x in avals[: len(avals) // 2]]


def _reduce_lowering(ctx: Any, *args: Any, computation: ClosedJaxpr, dimensions: Any) -> list[Any]:
    from lamina.lax import hlo

    half = len(args) // 2
    return hlo.reduce(args[:half], args[half:], dimensions, _lower_body(ctx, computation))


def _reduce_batching(args: Any, dims: Any, *, computation: ClosedJaxpr, dimensions: Any) -> Any:
    from lamina.lax.batching_rules import at_front, batch_size

    half, size = len(args) // 2, batch_size(args, dims)
    xs = [at_front(x, d, size) for x, d in zip(args[:half], dims[:half])]
    axes = tuple(d + 1 for d in dimensions)
    if any(d is not None for d in dims[half:]):
        return _one_by_one(reduce_p, args, dims, size, computation=computation,
                           dimensions=dimensions)  # fmt: skip
    out = reduce_p.bind(*xs, *args[half:], computation=computation, dimensions=axes)
    return out, [0] * len(out)


def _one_by_one(primitive: Primitive, args: Any, dims: Any, size: int, **params: Any) -> Any:
    """One application for each example: initial values of a reduction are scalars."""
    from lamina import lax
    from lamina.lax.batching_rules import at_front

    rows = zip(*(lax.unstack(at_front(x, d, size)) for x, d in zip(args, dims)))
    outs = [primitive.bind(*row, **params) for row in rows]
    return [lax.stack(parts) for parts in zip(*outs)], [0] * (len(args) // 2)


reduce_p: Primitive = Primitive(
    "reduce",
    abstract_eval=_reduce_abstract_eval,
    lowering=_reduce_lowering,
    jvp=_jvp(_reduce_by_halves),
    transpose=NOT_LINEAR,
    batching=_reduce_batching,
    multiple_results=True,
)


def _window_abstract_eval(*avals: ShapedArray, computation: ClosedJaxpr, **params: Any
                          ) -> list[ShapedArray]:  # fmt: skip
    from lamina.lax.window_shapes import reduce_window_shape_tuple

    shape = reduce_window_shape_tuple(avals[0].shape, **params)
    return [ShapedArray(shape, x.dtype) for x in avals[: len(avals) // 2]]


def _window_lowering(ctx: Any, *args: Any, computation: ClosedJaxpr, base_dilation: Any,
                     window_dilation: Any, **params: Any) -> list[Any]:  # fmt: skip
    from lamina.lax import hlo

    half = len(args) // 2
    return hlo.reduce_window(
        args[:half], args[half:], body=_lower_body(ctx, computation),
        base_dilations=base_dilation, window_dilations=window_dilation, **params,
    )  # fmt: skip


def _window_batching(args: Any, dims: Any, **params: Any) -> Any:
    from lamina.lax.batching_rules import at_front, batch_size

    half, size = len(args) // 2, batch_size(args, dims)
    if any(d is not None for d in dims[half:]):
        return _one_by_one(reduce_window_p, args, dims, size, **params)
    xs = [at_front(x, d, size) for x, d in zip(args[:half], dims[:half])]
    body = params.pop("computation")
    wider = {k: ((0, 0) if k == "padding" else 1, *v) for k, v in params.items()}
    out = reduce_window_p.bind(*xs, *args[half:], computation=body, **wider)
    return out, [0] * len(out)


reduce_window_p: Primitive = Primitive(
    "reduce_window",
    abstract_eval=_window_abstract_eval,
    lowering=_window_lowering,
    jvp=_jvp(_windows_by_halves),
    transpose=NOT_LINEAR,
    batching=_window_batching,
    multiple_results=True,
)
