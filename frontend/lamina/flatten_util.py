"""Pytrees as vectors: ravel_pytree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.core import tree

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a tree one after another in a vector of their common dtype, and the function
    that makes such a vector a tree of the same structure, shapes and dtypes again.

    pytree  a tree of arrays.

    That function raises TypeError for a vector of another dtype (where the leaves had one dtype
    alone it takes any) and ValueError for one of another size.

    >>> vector, unravel = lamina.flatten_util.ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> print(vector, unravel(2 * vector)["b"])
    [1. 1. 3.] 6.0
    """
    leaves, treedef = tree.flatten(pytree)
    if not leaves:
        return jnp.zeros(0), lambda _: tree.unflatten(treedef, [])
    shapes = [jnp.shape(x) for x in leaves]
    dtypes = [jnp.result_type(x) for x in leaves]
    sizes = [math.prod(s) for s in shapes]
    common = jnp.result_type(*leaves)
    alike = all(d == common for d in dtypes)
    ends = list(np.cumsum(sizes))
    flat = jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(common) for x in leaves])

    def unravel(vector: Any) -> Any:
        vector = jnp.asarray(vector)
        if not alike and vector.dtype != common:
            raise TypeError(
                f"unravel function given array of dtype {vector.dtype.name}, but expected dtype "
                f"{common.name}"
            )
        if vector.shape != (ends[-1],):
            raise ValueError(
                f"unravel function given array of shape {tuple(vector.shape)}, but expected shape "
                f"{(int(ends[-1]),)}"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex to real, where the leaf was real
            parts = [
                jnp.reshape(vector[int(end) - n : int(end)], shape)
                for end, n, shape in zip(ends, sizes, shapes, strict=True)
            ]
            if not alike:
                parts = [p.astype(d) for p, d in zip(parts, dtypes, strict=True)]
        return tree.unflatten(treedef, parts)

    return flat, unravel
