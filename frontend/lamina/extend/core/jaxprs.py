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
    """The jaxprs among an equation's parameters."""
    return (inner for _, inner in _jaxpr.subjaxprs(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of a jaxpr's equations."""
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
    """An equation."""
    return JaxprEqn(list(invars), list(outvars), primitive, params, source_info or UNKNOWN)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch along `axis`."""
    if axis is None:
        return aval
    shape = aval.shape
    assert shape[axis] == size, f"axis {axis} of {aval} is not of size {size}"
    return aval.update(shape=shape[:axis] + shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a batch of such values along `axis`."""
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(dtype: Any) -> np.dtype:
    """The dtype of derivatives: that of inexact values, float0 of others."""
    return dtypes.tangent_dtype(np.dtype(dtype))
