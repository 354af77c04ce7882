"""Products of matrices and vectors, with the arguments that the array API standard gives them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from lamina import lax
from lamina.numpy import diagonals, manipulation, products
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.linalg.arguments import check_square
from lamina.numpy.promotion import Array, ArrayLike, DTypeLike, check_arraylike, promote_dtypes


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements.

    x1, x2  arrays that broadcast together
    axis    where the vectors are

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    check_arraylike("jnp.linalg.cross", x1, x2)
    x1, x2 = asarray(x1), asarray(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]}"
        )
    return products.cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices in the last two axes.

    x       an array of at least two axes
    offset  which diagonal

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    check_arraylike("jnp.linalg.diagonal", x)
    return diagonals.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None,
           preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The matrix product.

    x1, x2                  vectors, matrices (m, k) and (k, n), or stacks of them
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    return products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged.

    x  an array of at least two axes

    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return manipulation.matrix_transpose(x)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of each element of one vector with each of the other.

    x1, x2  vectors; ValueError of other arrays

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = asarray(x1), asarray(x2)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={len(x1.shape)} "
            f"x2.ndim={len(x2.shape)}"
        )
    return products.outer(x1, x2)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None,
              preferred_element_type: DTypeLike | None = None, out_sharding: None = None
              ) -> Array:  # fmt: skip
    """The sum over pairs of axes.

    x1, x2                  arrays
    axes                    how many axes, or a pair of lists of them
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give
    out_sharding            how the result is laid out over a mesh

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of the diagonal of matrices in the last two axes.

    x       an array of at least two axes
    offset  which diagonal
    dtype   the dtype of the sum

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return products.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The product of vectors, the first one conjugated.

    x1, x2                  arrays that broadcast together
    axis                    where the vectors are
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    return products.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


@compiled(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """a times itself n times; of its inverse for negative n. By repeated squaring.

    a  square matrices (..., n, n)
    n  a static int

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    """
    from lamina.numpy.linalg.solving import inv

    check_arraylike("jnp.linalg.matrix_power", a)
    a = asarray(a)
    check_square("matrix_power", a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return lax.linalg.matrices.eye(a.shape, a.dtype)
    while n % 2 == 0:
        a, n = products.matmul(a, a), n // 2
    out = a
    while n := n // 2:
        a = products.matmul(a, a)
        if n % 2:
            out = products.matmul(out, a)
    return out


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of matrices (vectors at the ends) in the order that takes the least work.

    arrays     at least two, of which each can be multiplied by the next
    precision  how exact products of floats are, as in lax.dot_general

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 1)), jnp.ones(1)]).tolist()
    [3.0, 3.0]
    """
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    xs = [asarray(x) for x in promote_dtypes(*arrays)]
    ranks = [len(x.shape) for x in xs]
    if len(xs) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(xs)}")
    if any(r != 2 for r in ranks[1:-1]) or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last "
            f"array which may be 1 or 2 dimensional. Got array shapes {[x.shape for x in xs]}"
        )
    sizes = [xs[0].shape[0] if ranks[0] == 2 else 1, *(x.shape[0] for x in xs[1:])]
    sizes.append(xs[-1].shape[1] if ranks[-1] == 2 else 1)

    # Cormen et al., "Introduction to Algorithms", 15.2.
    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Least work for the product of arrays i to j, and where to cut it."""
        if i == j:
            return 0, i
        return min(
            (best(i, k)[0] + best(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
            for k in range(i, j)
        )

    def product(i: int, j: int) -> Array:
        if i == j:
            return xs[i]
        k = best(i, j)[1]
        return products.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(xs) - 1)
