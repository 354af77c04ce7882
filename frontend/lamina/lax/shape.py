"""Changes of shape: broadcast_in_dim reshape transpose squeeze rev copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, undecided, without
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis, past
from lamina.lax.checks import canonical_axes, canonical_shape, is_array, static_ints


# ---- user functions ----------------------------------------------------------------------------
def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """operand repeated to fill `shape`: its axis i becomes axis broadcast_dimensions[i].

    operand               an array of any dtype.
    shape                 of the result.
    broadcast_dimensions  an axis of the result for each of operand's, rising. Axes of size 1 are
                          spread, others must have their size in `shape`.
    out_sharding          how the result lies on devices, a sharding or None.

    Raises TypeError where sizes do not fit or broadcast_dimensions do not rise.

    >>> print(lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,)))
    [[1 1 1]
     [2 2 2]]
    """
    if out_sharding is not None:
        with undecided():
            out = broadcast_in_dim(operand, shape, broadcast_dimensions)
        return lax.under(out, out_sharding)
    shape = canonical_shape(shape)
    dims = static_ints("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if is_array(operand) and operand.shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """operand repeated along new leading axes.

    operand       an array or a number.
    sizes         of the new axes: the result has shape (*sizes, *operand.shape).
    out_sharding  how the result lies on devices, a sharding or None.

    Raises TypeError where a size is negative.

    >>> print(lax.broadcast(jnp.array([1, 2]), (3,)))
    [[1 2]
     [1 2]
     [1 2]]
    """
    sizes, shape = canonical_shape(sizes), np.shape(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, as NumPy counts; ValueError if none.

    shapes  tuples of ints, or an int for a vector's

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    known = [canonical_shape((s,) if isinstance(s, int | np.integer) else s) for s in shapes]
    try:
        return np.broadcast_shapes(*known)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={known}") from None


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """x with leading axes of size 1, so that it has this rank; x itself where it has it or more.

    x     an array or a number.
    rank  the number of axes of the result.

    >>> lax.broadcast_to_rank(jnp.ones((2, 3)), 4).shape
    (1, 1, 2, 3)
    """
    return broadcast(x, (1,) * (rank - len(np.shape(x))))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """array with axes of size 1 put in.

    array       an array or a number.
    dimensions  where in the result the new axes are; negative ones count from its end.

    Raises ValueError where the result has no such axis or one is named twice.

    >>> lax.expand_dims(jnp.ones((2, 3)), (0, 3)).shape
    (1, 2, 3, 1)
    """
    shape = np.shape(array)
    rank = len(shape) + len(dimensions)
    new = set(canonical_axes("expand_dims", dimensions, rank))
    kept = tuple(i for i in range(rank) if i not in new)
    sizes = iter(shape)
    return broadcast_in_dim(array, [1 if i in new else next(sizes) for i in range(rank)], kept)


def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """The elements of operand in row-major order in another shape.

    operand     an array.
    new_sizes   of the result; their product is operand's number of elements. None may be -1.
    dimensions  the order in which operand's axes are read, if it is not the usual one: those of
                lax.transpose.
    out_sharding  how the result lies on devices, a sharding or None.

    Raises TypeError where the number of elements would change.

    >>> print(lax.reshape(jnp.arange(6), (2, 3)))
    [[0 1 2]
     [3 4 5]]
    >>> print(lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0)))
    [1 3 2 4]
    """
    if out_sharding is not None:
        with undecided():
            out = reshape(operand, new_sizes, dimensions)
        return lax.under(out, out_sharding)
    sizes = canonical_shape(new_sizes)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if is_array(operand) and operand.shape == sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=sizes)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """operand with neighbouring axes merged into one.

    operand          an array.
    start_dimension  the first axis that is merged.
    stop_dimension   the axis before which merging stops; None: all to the end. Negative ones count
                     from the end, as in slices.

    Raises ValueError where the first comes after the last.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """operand with its axes in another order.

    operand      an array.
    permutation  of operand's axes: axis i of the result is axis permutation[i] of operand.

    Raises TypeError where permutation does not name each axis once.

    >>> lax.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = static_ints("transpose", "permutation", permutation)
    if is_array(operand) and order == tuple(range(len(operand.shape))):
        return operand
    return transpose_p.bind(operand, permutation=order)


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """array without some of its axes of size 1.

    array       an array.
    dimensions  the axes that go; negative ones count from the end.

    Raises ValueError where one of them has another size or is not there.

    >>> lax.squeeze(jnp.ones((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    dims = canonical_axes("squeeze", dimensions, len(np.shape(array)))
    if not dims and is_array(array):
        return array
    return squeeze_p.bind(array, dimensions=tuple(sorted(dims)))


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """operand read backwards along the named axes.

    operand     an array.
    dimensions  the axes; negative ones count from the end.

    Raises ValueError where there is no such axis.

    >>> print(lax.rev(jnp.array([[1, 2], [3, 4]]), (1,)))
    [[2 1]
     [4 3]]
    """
    dims = canonical_axes("rev", dimensions, len(np.shape(operand)))
    return rev_p.bind(operand, dimensions=dims) if dims or not is_array(operand) else operand


def copy(x: Any) -> Array:
    """x as a new array, with memory of its own.

    x  an array or a number.

    >>> x = jnp.ones(3)
    >>> lax.copy(x) is x
    False
    """
    return copy_p.bind(x)


# ---- broadcast_in_dim --------------------------------------------------------------------------
def _broadcast_in_dim_abstract_eval(
    x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> ShapedArray:
    dims = broadcast_dimensions
    if len(dims) != len(x.shape):
        raise TypeError(
            f"[broadcast_in_dim] broadcast_dimensions needs an entry for each axis of "
            f"{x.str_short()}, got {dims}"
        )
    if (
        any(a >= b for a, b in zip(dims, dims[1:]))
        or dims
        and not (0 <= dims[0] and dims[-1] < len(shape))
    ):
        raise TypeError(
            "[broadcast_in_dim] broadcast_dimensions must be strictly increasing axes of the "
            f"result, got {dims} for shape {shape}"
        )
    for size, d in zip(x.shape, dims):
        if size != 1 and size != shape[d]:
            raise TypeError(
                "[broadcast_in_dim] operand sizes must be 1 or those of the result: "
                f"{x.str_short()} can't spread over {shape} with broadcast_dimensions {dims}"
            )
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_in_dim_lowering(ctx: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    return ctx.module.spreads.spread(x, shape, broadcast_dimensions)


def _broadcast_in_dim_transpose(ct: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    spread = [d for size, d in zip(x.aval.shape, broadcast_dimensions) if size != shape[d]]
    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    return [reshape(lax.reduce_sum(ct, (*new, *spread)), x.aval.shape)]


def _broadcast_in_dim_batching(
    args: Any, dims: Any, *, shape: Any, broadcast_dimensions: Any
) -> Any:
    x = move_axis(args[0], dims[0], 0)
    return broadcast_in_dim(x, (x.shape[0], *shape), (0, *past(0, broadcast_dimensions))), 0


def _broadcast_in_dim_placed(
    of: Operands, out: ShapedArray, *, shape: Any, broadcast_dimensions: Any
) -> Dims:
    found: list[Any] = [()] * len(shape)
    for size, names, d in zip(of.avals[0].shape, of.dims[0], broadcast_dimensions):
        found[d] = names if size == shape[d] else ()
    return tuple(found)


broadcast_in_dim_p: Primitive = Primitive(
    "broadcast_in_dim",
    abstract_eval=_broadcast_in_dim_abstract_eval,
    placed=_broadcast_in_dim_placed,
    lowering=_broadcast_in_dim_lowering,
    jvp=LINEAR,
    transpose=_broadcast_in_dim_transpose,
    batching=_broadcast_in_dim_batching,
)


# ---- reshape -----------------------------------------------------------------------------------
def _reshape_abstract_eval(x: ShapedArray, *, new_sizes: tuple[int, ...]) -> ShapedArray:
    if math.prod(new_sizes) != x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (total size "
            f"{math.prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
        )
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_lowering(ctx: Any, x: Any, *, new_sizes: tuple[int, ...]) -> Any:
    return ctx.module.spreads.reshape(x, new_sizes)


def _reshape_transpose(ct: Any, x: Any, *, new_sizes: tuple[int, ...]) -> list[Any]:
    return [reshape(ct, x.aval.shape)]


def _reshape_batching(args: Any, dims: Any, *, new_sizes: tuple[int, ...]) -> tuple[Any, int]:
    x = move_axis(args[0], dims[0], 0)
    return reshape(x, (x.shape[0], *new_sizes)), 0


def _reshape_placed(of: Operands, out: ShapedArray, *, new_sizes: tuple[int, ...]) -> Dims:
    """Each device keeps the elements that it has, where a sharding can say so of the new dimensions; all else
    would need data to move."""
    x, dims = of.avals[0], of.dims[0]
    found: list[Any] = [()] * len(new_sizes)
    for before, after in _same_elements(x.shape, new_sizes):
        if not any(dims[d] for d in before):
            continue
        parts = _factors([(x.shape[d], dims[d]) for d in before], x.placed.mesh.shape)
        names = _as_dimensions(parts, [new_sizes[d] for d in after])
        if names is None:
            raise ShardingTypeError(
                f"This reshape is not supported. {x.str_short()} as {new_sizes} would lie on devices in a way "
                "that no sharding says. Please specify the sharding of the output via the `out_sharding` argument"
            )
        for d, of_dimension in zip(after, names, strict=True):
            found[d] = of_dimension
    return tuple(found)


class _Factor(NamedTuple):
    """A factor of the number of elements: what an axis of the mesh splits, or what lies in one part (no name)."""

    size: int
    name: Any = None
    of_one: bool = False
    """Whether the dimension has one element."""


def _factors(dimensions: Sequence[tuple[int, tuple[Any, ...]]], sizes: Any) -> list[_Factor]:
    """The factors of dimensions from the outermost to the innermost. Neighbours without names are one."""
    factors: list[_Factor] = []
    for size, names in dimensions:
        factors += [_Factor(sizes[name], name, size == 1) for name in names]
        inside = size // math.prod(sizes[name] for name in names)
        if inside == 1:
            continue
        if factors and factors[-1].name is None:
            inside *= factors.pop().size
        factors.append(_Factor(inside))
    return factors


def _as_dimensions(factors: Sequence[_Factor], sizes: Sequence[int]) -> list[tuple[Any, ...]] | None:
    """The names of dimensions of these sizes that are made of the factors, in their order; None where a name would
    come to stand behind elements that lie in one part, or to split a dimension that it does not divide."""
    left = list(reversed(factors))
    out: list[tuple[Any, ...]] = []
    for size in sizes:
        names: list[Any] = []
        if size == 1:
            while left and left[-1].of_one:
                names.append(left.pop().name)
        inside = False
        while size > 1 and left:
            factor = left.pop()
            if factor.name is not None:
                if (inside and factor.size > 1) or size % factor.size:
                    return None
                names.append(factor.name)
                size //= factor.size
                continue
            inside = True
            here = math.gcd(factor.size, size)
            if here < min(factor.size, size):
                return None
            size //= here
            if here < factor.size:
                left.append(_Factor(factor.size // here))
        out.append(tuple(names))
    return out


def _same_elements(
    before: tuple[int, ...], after: tuple[int, ...]
) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of dimensions of two shapes that have the same elements. Sizes of 1 go along."""
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        run: tuple[list[int], list[int]] = ([], [])
        n = m = 1
        while True:
            if n == m and run[0] and run[1]:
                break
            if i < len(before) and (n <= m or j == len(after)):
                run[0].append(i)
                n, i = n * before[i], i + 1
            elif j < len(after):
                run[1].append(j)
                m, j = m * after[j], j + 1
            else:
                break
        runs.append(run)
    return runs


reshape_p: Primitive = Primitive(
    "reshape",
    abstract_eval=_reshape_abstract_eval,
    placed=_reshape_placed,
    lowering=_reshape_lowering,
    jvp=LINEAR,
    transpose=_reshape_transpose,
    batching=_reshape_batching,
)


# ---- transpose ---------------------------------------------------------------------------------
def _transpose_abstract_eval(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(len(x.shape))):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {x.shape}."
        )
    return ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)


def _transpose_lowering(ctx: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
    return hlo.transpose(x, permutation)


def _transpose_transpose(ct: Any, x: Any, *, permutation: tuple[int, ...]) -> list[Any]:
    back = sorted(range(len(permutation)), key=permutation.__getitem__)
    return [transpose(ct, back)]


def _transpose_batching(args: Any, dims: Any, *, permutation: tuple[int, ...]) -> tuple[Any, int]:
    (x,), (d,) = args, dims
    return transpose(x, (d, *past(d, permutation))), 0


transpose_p: Primitive = Primitive(
    "transpose",
    abstract_eval=_transpose_abstract_eval,
    placed=lambda of, out, *, permutation: tuple(of.dims[0][d] for d in permutation),
    lowering=_transpose_lowering,
    jvp=LINEAR,
    transpose=_transpose_transpose,
    batching=_transpose_batching,
)


# ---- squeeze -----------------------------------------------------------------------------------
def _squeeze_abstract_eval(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}"
        )
    sizes = tuple(s for i, s in enumerate(x.shape) if i not in dimensions)
    return ShapedArray(sizes, x.dtype, x.weak_type)


def _squeeze_lowering(ctx: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return ctx.module.spreads.reshape(x, ctx.avals_out[0].shape)


def _squeeze_transpose(ct: Any, x: Any, *, dimensions: tuple[int, ...]) -> list[Any]:
    return [reshape(ct, x.aval.shape)]


def _squeeze_batching(args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> tuple[Any, int]:
    return squeeze(move_axis(args[0], dims[0], 0), past(0, dimensions)), 0


squeeze_p: Primitive = Primitive(
    "squeeze",
    abstract_eval=_squeeze_abstract_eval,
    placed=lambda of, out, *, dimensions: without(of.dims[0], dimensions),
    lowering=_squeeze_lowering,
    jvp=LINEAR,
    transpose=_squeeze_transpose,
    batching=_squeeze_batching,
)


# ---- rev ---------------------------------------------------------------------------------------
def _rev_lowering(ctx: Any, x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return hlo.reverse(x, dimensions)


def _rev_batching(args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> tuple[Any, int]:
    return rev(args[0], past(dims[0], dimensions)), dims[0]


rev_p: Primitive = Primitive(
    "rev",
    abstract_eval=lambda x, *, dimensions: x,
    lowering=_rev_lowering,
    jvp=LINEAR,
    transpose=lambda ct, x, *, dimensions: [rev(ct, dimensions)],
    batching=_rev_batching,
)


# ---- copy --------------------------------------------------------------------------------------
copy_p: Primitive = Primitive(
    "copy",
    abstract_eval=lambda x: x,
    lowering=lambda ctx, x: x,
    jvp=LINEAR,
    transpose=lambda ct, x: [ct],
    batching=lambda args, dims: (copy(args[0]), dims[0]),
)
