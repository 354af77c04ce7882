"""What the rules of linear algebra share: batch axes in front, types, and calls of LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.core import Primitive, ShapedArray, dtypes
from lamina.lax import hlo
from lamina.lax.batching_rules import all_at_front
from lamina.lax.checks import Accepted

MATRIX_TYPES = Accepted(
    frozenset(np.dtype(d) for d in (np.float32, np.float64, np.complex64, np.complex128)),
    "float32, float64, complex64, complex128",
)
"""What LAPACK computes with."""


def check_matrix(name: str, x: ShapedArray, square: bool = False) -> None:
    """Raises unless x is (a batch of) matrices of a type that LAPACK knows."""
    check_type(name, x)
    if len(x.shape) < 2:
        raise ValueError(
            f"{name} requires an argument of at least 2 dimensions, got {x.str_long()}"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{name} requires square matrices: the last two sizes of {x.str_long()} differ"
        )


def check_type(name: str, x: ShapedArray) -> None:
    """Raises TypeError for a dtype that LAPACK does not compute with."""
    if x.dtype not in MATRIX_TYPES.dtypes:
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}: convert to one of "
            f"{MATRIX_TYPES.names}"
        )


def real_dtype(x: ShapedArray) -> np.dtype:
    """The dtype of real numbers of x's precision."""
    return dtypes.real_dtype(x.dtype)


def complex_dtype(x: ShapedArray) -> np.dtype:
    """The dtype of complex numbers of x's precision."""
    return np.result_type(x.dtype, np.complex64)


def batched_in_front(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """The batching rule of a primitive whose operands may have equal leading axes."""

    def rule(args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
        p = primitive()
        out = p.bind(*all_at_front(args, dims), **params)
        return (out, [0] * len(out)) if p.multiple_results else (out, 0)

    return rule


def lapack(
    routine: str, operands: Sequence[Any], results: Sequence[ShapedArray], **options: bool
) -> list[Any]:
    """IR values of a routine's results; zeros where there is nothing to compute."""
    if all(0 in of.shape for of in results):
        return [hlo.full(0, of.shape, of.dtype) for of in results]
    return hlo.lapack(routine, operands, results, **options)


def identity(of: ShapedArray) -> Any:
    """IR value: matrices with ones on the main diagonal."""
    rank = len(of.shape)
    rows, columns = (hlo.iota(of.shape, np.dtype(np.int32), rank - i) for i in (2, 1))
    return hlo.convert(hlo.compare(rows, columns, "EQ"), of.dtype)
