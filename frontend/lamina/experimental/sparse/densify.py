"""todense: sparse arrays as dense ones, also in functions that `sparsify` traces as functions of dense arrays."""

from __future__ import annotations

from typing import Any

from lamina import numpy as jnp
from lamina.core.primitive import Primitive
from lamina.core.trace import Tracer
from lamina.experimental.sparse.base import JAXSparse

todense_p: Primitive = Primitive(
    "todense",
    abstract_eval=lambda x: x,
    lowering=lambda ctx, x: x,
    jvp=lambda primals, tangents: (todense_p.bind(*primals), tangents[0]),
    transpose=lambda ct, x: [ct],
    batching=lambda args, dims: (todense_p.bind(*args), dims[0]),
    impl=lambda x: x,
)
"""An identity, which says where the operand may be sparse and the result is dense."""


def todense(arr: Any) -> Any:
    """A sparse array as a dense one; a dense one as it is.

    arr  an array or a sparse one.

    >>> sparse = lamina.experimental.sparse
    >>> print(sparse.todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p.bind(arr) if isinstance(arr, Tracer) else jnp.asarray(arr)
