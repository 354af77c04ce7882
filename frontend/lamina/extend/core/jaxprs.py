"""Small questions that libraries ask of jaxprs and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lamina.core import dtypes
from lamina.core import jaxpr as _jaxpr
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import Jaxpr, JaxprEqn
from lamina.core.source_info import UNKNOWN, SourceInfo


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters, an iterator.

    params  the parameters, a dict.

    >>> closed = lamina.make_jaxpr(lamina.jit(lambda x: x * 2))(1.0)
    >>> len(list(lamina.extend.core.jaxprs_in_params(closed.eqns[0].params)))
    1
    """
    return (inner for _, inner in _jaxpr.subjaxprs(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of a jaxpr's equations, an iterator.

    jaxpr  a Jaxpr.

    >>> closed = lamina.make_jaxpr(lamina.jit(lambda x: x * 2))(1.0)
    >>> len(list(lamina.extend.core.subjaxprs(closed.jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Any,
    params: dict[str, Any],
    effects: Any = (),
    source_info: SourceInfo | None = None,
) -> JaxprEqn:
    """An equation of a jaxpr.

    invars, outvars  its operands, Vars and Literals, and the Vars that it defines.
    primitive        a Primitive,
    params           and its parameters.
    effects          what it does beside.
    source_info      where it comes from; None: nowhere.

    >>> equation = lamina.make_jaxpr(lambda x: x * 2)(1.0).eqns[0]
    >>> lamina.extend.core.new_jaxpr_eqn(
    ...     equation.invars, equation.outvars, equation.primitive, equation.params
    ... ).primitive
    mul
    """
    return JaxprEqn(list(invars), list(outvars), primitive, params, source_info or UNKNOWN)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch.

    size  of the batch.
    axis  along which it lies; None: aval itself.
    aval  the type of the batch.

    >>> aval = lamina.typeof(jnp.ones((5, 2)))
    >>> lamina.extend.core.mapped_aval(5, 0, aval).shape
    (2,)
    """
    if axis is None:
        return aval
    shape = aval.shape
    assert shape[axis] == size, f"axis {axis} of {aval} is not of size {size}"
    return aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a batch of such values.

    size  of the batch.
    axis  along which it is to lie; None: aval itself.
    aval  the type of an example.

    >>> aval = lamina.typeof(jnp.ones(2))
    >>> lamina.extend.core.unmapped_aval(5, 0, aval).shape
    (5, 2)
    """
    if axis is None:
        return aval
    return aval.with_axis(axis, size)


def primal_dtype_to_tangent_dtype(dtype: Any) -> np.dtype:
    """The dtype of derivatives: that of floats and complex numbers, float0 of others.

    dtype  of the value.

    >>> lamina.extend.core.primal_dtype_to_tangent_dtype("int32") == lamina.float0
    True
    """
    return dtypes.tangent_dtype(np.dtype(dtype))
