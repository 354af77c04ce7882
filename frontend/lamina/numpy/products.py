"""Linear algebra products: dot matmul vdot inner outer tensordot trace kron cross.

All are `dot_general` with axes chosen, so that each is one library call or one kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.placed import undecided
from lamina.core.trace import get_aval
from lamina.lax.convert import convert as convert_weakly
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.diagonals import diagonal
from lamina.numpy.manipulation import moveaxis, ravel
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_shapes,
    broadcast_to_shape,
    canonical_axes,
    check_arraylike,
    promote_args,
    promote_dtypes,
    refuse_out,
    requested_dtype,
)  # fmt: skip

Precision = Any


def _operands(name: str, a: ArrayLike, b: ArrayLike, preferred: DTypeLike | None
              ) -> tuple[Array, Array, np.dtype | None]:  # fmt: skip
    check_arraylike(name, a, b)
    a, b = (asarray(x) for x in promote_dtypes(a, b))
    return a, b, None if preferred is None else requested_dtype(preferred, name)


def _dot_general(name: str, a: Array, b: Array, dims: Any, precision: Precision,
                 preferred: np.dtype | None) -> Array:  # fmt: skip
    """The product; weakly typed if both operands are and no accumulation type is asked for."""
    for i, j in zip(*dims[0], strict=True):
        if a.shape[i] != b.shape[j]:
            raise TypeError(
                f"{name} requires that the sizes summed over are equal: axis {i} of the first operand, "
                f"{get_aval(a).str_short()}, is {a.shape[i]}, axis {j} of the second, "
                f"{get_aval(b).str_short()}, is {b.shape[j]}"
            )
    dtype = a.dtype
    out = lax.dot_general(
        a, b, dims, precision=precision, preferred_element_type=preferred or dtype
    )
    weak = get_aval(a).weak_type and get_aval(b).weak_type and preferred is None
    return convert_weakly(out, out.dtype, weak)


def dot(a: ArrayLike, b: ArrayLike, *, precision: Precision = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The product of vectors or matrices; in general over a's last and b's second last axis.

    a, b                    arrays or numbers
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give
    out_sharding            how the result is laid out over a mesh

    Raises TypeError where the sizes summed over differ.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b, preferred = _operands("dot", a, b, preferred_element_type)
    if not a.shape or not b.shape:
        contracted: Any = ((), ())
    else:
        contracted = ((len(a.shape) - 1,), (max(len(b.shape) - 2, 0),))
    with undecided(out_sharding is not None):
        out = _dot_general("dot", a, b, (contracted, ((), ())), precision, preferred)
    return out if out_sharding is None else lax.under(out, out_sharding, "dot_general")


def matmul(a: ArrayLike, b: ArrayLike, *, precision: Precision = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The matrix product over the last two axes, others broadcast. Scalars are refused.

    a, b                    vectors, matrices (m, k) and (k, n), or stacks of them
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give
    out_sharding            how the result is laid out over a mesh

    Raises ValueError for scalars, TypeError where the sizes summed over differ.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    a, b, preferred = _operands("matmul", a, b, preferred_element_type)
    for i, x in enumerate((a, b)):
        if not x.shape:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0"
            )
    a_vector, b_vector = len(a.shape) == 1, len(b.shape) == 1
    a_batch = () if a_vector else a.shape[:-2]
    b_batch = () if b_vector else b.shape[:-2]
    batch = broadcast_shapes(a_batch, b_batch)
    # Each outer axis is shared by both operands, or free in one of them: then nothing is repeated.
    shared: tuple[list[int], list[int]] = ([], [])
    dropped: tuple[list[int], list[int]] = ([], [])
    order: list[tuple[str, int]] = []  # where each outer axis of the result comes from
    for i in range(len(batch)):
        j, k = i - len(batch) + len(a_batch), i - len(batch) + len(b_batch)
        in_a, in_b = j >= 0, k >= 0
        if in_a and in_b and a_batch[j] == b_batch[k]:
            order.append(("shared", len(shared[0])))
            shared[0].append(j)
            shared[1].append(k)
        elif not in_b or (in_a and a_batch[j] != 1):
            order.append(("a", j))
            if in_b:
                dropped[1].append(k)
        else:
            order.append(("b", k))
            if in_a:
                dropped[0].append(j)
    a, shared_a, free_a = _without(a, dropped[0], shared[0], [n for o, n in order if o == "a"])
    b, shared_b, free_b = _without(b, dropped[1], shared[1], [n for o, n in order if o == "b"])
    contracted = ((len(a.shape) - 1,), (len(b.shape) - (1 if b_vector else 2),))
    with undecided(out_sharding is not None):
        out = _dot_general("matmul", a, b, (contracted, (shared_a, shared_b)), precision, preferred)
    # The result has the shared axes, a's free ones, a's rows, b's free ones, b's columns.
    rows, columns = (not a_vector), (not b_vector)
    start_b = len(shared_a) + len(free_a) + rows
    position = {"shared": 0, "a": len(shared_a), "b": start_b}
    seen = {"shared": 0, "a": 0, "b": 0}
    permutation = []
    for origin, _ in order:
        permutation.append(position[origin] + seen[origin])
        seen[origin] += 1
    permutation += [start_b - 1] * rows + [len(out.shape) - 1] * columns
    out = lax.transpose(out, permutation)
    return out if out_sharding is None else lax.under(out, out_sharding, "dot_general")


def _without(x: Array, dropped: list[int], shared: list[int], free: list[int]
             ) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """x without some axes of size 1, and the new numbers of the shared and free ones."""
    kept = [i for i in range(len(x.shape)) if i not in dropped]
    return (lax.squeeze(x, dropped) if dropped else x,
            tuple(kept.index(i) for i in shared), tuple(kept.index(i) for i in free))  # fmt: skip


def vdot(a: ArrayLike, b: ArrayLike, *, precision: Precision = None,
         preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The dot product of the flattened arrays, the first one conjugated.

    a, b                    arrays with equally many elements
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 2])).tolist()
    (5+0j)
    """
    from lamina.numpy.arithmetic import conj

    check_arraylike("vdot", a, b)
    if get_aval(a).dtype.kind == "c":
        a = conj(a)
    return dot(
        ravel(a), ravel(b), precision=precision, preferred_element_type=preferred_element_type
    )


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Precision = None,
           preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The dot products of vectors along an axis, the first conjugated, other axes broadcast.

    x1, x2                  arrays whose axes agree or broadcast
    axis                    where the vectors are
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    from lamina.numpy.arithmetic import conj

    check_arraylike("vecdot", x1, x2)
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(
            f"vecdot requires that the axis has matching sizes, got {x1.shape[-1]} and "
            f"{x2.shape[-1]}"
        )
    out = matmul(
        lax.expand_dims(conj(x1), (len(x1.shape) - 1,)),
        lax.expand_dims(x2, (len(x2.shape),)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.squeeze(out, (len(out.shape) - 2, len(out.shape) - 1))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors in the last axes, other axes broadcast.

    x1, x2  arrays (..., m, n) and (..., n)

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    x1, x2 = check_arraylike("matvec", x1, x2)
    _check_cores("matvec", (x1, 2, "n,m"), (x2, 1, "m"))
    out = matmul(x1, lax.expand_dims(x2, (np.ndim(x2),)))
    return lax.squeeze(out, (len(out.shape) - 1,))


def _check_cores(name: str, *operands: tuple[Any, int, str]) -> None:
    for x, rank, letters in operands:
        if np.ndim(x) < rank:
            raise ValueError(
                f"{name}: input with shape {np.shape(x)} does not have enough dimensions for all core "
                f"dimensions ({letters})"
            )


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of conjugated vectors and matrices in the last axes, other axes broadcast.

    x1, x2  arrays (..., n) and (..., n, m)

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    from lamina.numpy.arithmetic import conj

    x1, x2 = check_arraylike("vecmat", x1, x2)
    _check_cores("vecmat", (x1, 1, "n"), (x2, 2, "n,m"))
    out = matmul(lax.expand_dims(conj(x1), (np.ndim(x1) - 1,)), x2)
    return lax.squeeze(out, (len(out.shape) - 2,))


def inner(a: ArrayLike, b: ArrayLike, *, precision: Precision = None,
          preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The sum of products over the last axes of both.

    a, b                    arrays whose last axes have one size, or numbers
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b, preferred = _operands("inner", a, b, preferred_element_type)
    dims = ((len(a.shape) - 1,), (len(b.shape) - 1,)) if a.shape and b.shape else ((), ())
    return _dot_general("inner", a, b, (dims, ((), ())), precision, preferred)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all pairs of elements, as a matrix.

    a, b  arrays, which are flattened
    out   must be None: arrays cannot be written to

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    refuse_out("outer", out)
    a, b = promote_args("outer", ravel(a), ravel(b))
    product = lax.bitwise_and if a.dtype == np.bool_ else lax.mul
    return product(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Precision = None,
              preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The sum of products over axes: the last n of a and first n of b, or two lists of axes.

    a, b                    arrays
    axes                    how many axes, or a pair of axes or of lists of them
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give
    out_sharding            how the result is laid out over a mesh

    Raises TypeError or ValueError where the axes do not go together.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    a, b, preferred = _operands("tensordot", a, b, preferred_element_type)
    if not isinstance(axes, (tuple, list)) and np.ndim(axes) == 0:
        count = operator.index(axes)
        if count > min(len(a.shape), len(b.shape)):
            raise TypeError(
                f"Number of tensordot axes (axes {count}) exceeds input ranks "
                f"({a.shape} and {b.shape})"
            )
        first = tuple(range(len(a.shape) - count, len(a.shape)))
        second = tuple(range(count))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        if any(isinstance(i, str) for i in axes):
            raise TypeError(
                f"tensordot requires both axes to be ints, tuples or lists, got {axes[0]!r} and "
                f"{axes[1]!r}"
            )
        lists = [tuple(i) if isinstance(i, Sequence) else (i,) for i in axes]
        if len(lists[0]) != len(lists[1]):
            raise TypeError(
                f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}."
            )
        first, second = (
            canonical_axes(i, len(x.shape)) for i, x in zip(lists, (a, b), strict=True)
        )
    else:
        raise TypeError(f"tensordot requires axes to be a pair of axes or an integer, got {axes!r}")
    with undecided(out_sharding is not None):
        out = _dot_general("tensordot", a, b, ((first, second), ((), ())), precision, preferred)
    return out if out_sharding is None else lax.under(out, out_sharding, "dot_general")


def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: None = None) -> Array:  # fmt: skip
    """The sum over a diagonal (see `diagonal`).

    a             an array of at least two axes
    offset        which diagonal
    axis1, axis2  the axes of the matrices
    dtype         the dtype of the sum
    out           must be None: arrays cannot be written to

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    check_arraylike("trace", a)
    return _sum_of_diagonal(asarray(a), operator.index(offset), axis1, axis2, dtype)


@compiled(static=("offset", "axis1", "axis2", "dtype"))
def _sum_of_diagonal(a: Array, offset: int, axis1: int, axis2: int, dtype: DTypeLike | None) -> Array:
    from lamina.numpy.reductions import sum as sum_

    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype=dtype)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: a with each element replaced by its product with b.

    a, b  arrays

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    check_arraylike("kron", a, b)
    return _kron(*(asarray(x) for x in promote_dtypes(a, b)))


@compiled
def _kron(a: Array, b: Array) -> Array:
    ndim = max(len(a.shape), len(b.shape))
    a_sizes, b_sizes = ((1,) * (ndim - len(x.shape)) + tuple(x.shape) for x in (a, b))
    wide_a = lax.reshape(a, tuple(n for m in a_sizes for n in (m, 1)))
    wide_b = lax.reshape(b, tuple(n for m in b_sizes for n in (1, m)))
    product = lax.mul(wide_a, wide_b)
    return lax.reshape(product, tuple(m * n for m, n in zip(a_sizes, b_sizes, strict=True)))


def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:  # fmt: skip
    """The cross product of vectors of 3 components.

    axisa, axisb, axisc  where these are in a, in b and in the result; `axis` names all three.

    Raises ValueError for vectors of another size.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (asarray(x) for x in promote_dtypes(a, b))
    return _cross(a, b, operator.index(axisa), operator.index(axisb), operator.index(axisc))


@compiled(static=("axisa", "axisb", "axisc"))
def _cross(a: Array, b: Array, axisa: int, axisb: int, axisc: int) -> Array:
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("Dimension must be 3 for cross product")
    outer_shape = broadcast_shapes(a.shape[:-1], b.shape[:-1])

    def component(x: Array, i: int) -> Array:
        return broadcast_to_shape(
            lax.index_in_dim(x, i, len(x.shape) - 1, keepdims=False), outer_shape
        )

    def minor(i: int, j: int) -> Array:
        return lax.sub(
            lax.mul(component(a, i), component(b, j)), lax.mul(component(a, j), component(b, i))
        )

    parts = [lax.expand_dims(minor(i, j), (len(outer_shape),)) for i, j in ((1, 2), (2, 0), (0, 1))]
    out = lax.concatenate(parts, len(outer_shape))
    return moveaxis(lax.convert_element_type(out, out.dtype), -1, axisc)  # not weak, as in JAX
