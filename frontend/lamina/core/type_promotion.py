"""What dtypes have in common: the promotion lattice, with weak types.

It is JAX's "type promotion semantics" (JEP 9407): Python scalars are weak and never widen a type of
their own category; any integer with any float gives that float.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.core.dtypes import (
    FLOAT8,
    FLOAT46,
    PYTHON_SCALARS,
    KeyPromotionError,
    bfloat16,
    canonicalize,
    float0,
    from_short_name,
    int2,
    int4,
    is_integer,
    is_key,
    uint2,
    uint4,
)  # fmt: skip
from lamina.errors import TypePromotionError

_b, _u1, _u2, _u4, _u8, _i1, _i2, _i4, _i8, _f2, _f4, _f8, _c8, _c16 = map(
    from_short_name, "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 c64 c128".split()
)

# Nodes are dtypes and the weak Python types; an edge leads to the next wider type. The join of two
# nodes is their least common upper bound.
_LATTICE: dict[Any, tuple[Any, ...]] = {
    _b: (int,),
    int: (uint2, uint4, _u1, int2, int4, _i1),
    **dict.fromkeys((int2, int4, uint2, uint4), ()),
    _u1: (_i2, _u2),
    _u2: (_i4, _u4),
    _u4: (_i8, _u8),
    _u8: (float,),
    _i1: (_i2,),
    _i2: (_i4,),
    _i4: (_i8,),
    _i8: (float,),
    float: (*FLOAT8, *FLOAT46, bfloat16, _f2, complex),
    **dict.fromkeys((*FLOAT8, *FLOAT46), ()),
    bfloat16: (_f4,),
    _f2: (_f4,),
    _f4: (_f8, _c8),
    _f8: (_c16,),
    complex: (_c8,),
    _c8: (_c16,),
    _c16: (),
}


@functools.cache
def _upper_bounds(node: Any) -> frozenset:
    found, todo = {node}, [node]
    while todo:
        for nxt in _LATTICE[todo.pop()]:
            if nxt not in found:
                found.add(nxt)
                todo.append(nxt)
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def _join(nodes: frozenset) -> Any:
    if len(nodes) == 1:
        return next(iter(nodes))
    common = frozenset.intersection(*(_upper_bounds(n) for n in nodes))
    least = [c for c in common if common <= _upper_bounds(c)]
    if len(least) != 1:
        raise TypePromotionError(_no_join(nodes))
    return least[0]


def _no_join(nodes: Iterable[Any]) -> str:
    names = ", ".join(sorted(n.__name__ if isinstance(n, type) else n.name for n in nodes))
    text = f"Input dtypes ({names}) have no available implicit dtype promotion path. "
    kinds = [
        (FLOAT8, "8-bit floats"), (FLOAT46, "4-bit and 6-bit floats"),
        ((int2, int4, uint2, uint4), "2-bit and 4-bit integers"),
    ]  # fmt: skip
    for members, kind in kinds:
        if any(n in members for n in nodes):
            text += f"To avoid unintended promotion, {kind} do not support implicit promotion. "
            break
    return text + "Try explicitly casting inputs to the desired output type: x.astype(dtype)."


def _node(dtype: np.dtype, weak: bool) -> Any:
    if dtype == float0:
        raise TypeError(
            "an operation was given an array of dtype float0: these are the tangents of integers and "
            "booleans, and nothing can be computed with them. numpy.zeros_like(x, dtype=float) makes "
            "zeros of it."
        )
    if not weak:
        return dtype
    if dtype == _b:
        return dtype
    return int if is_integer(dtype) else (complex if dtype.kind == "c" else float)


@functools.lru_cache(maxsize=4096)
def _promote(types: tuple[tuple[np.dtype, bool], ...], _x64: bool) -> tuple[np.dtype, bool]:
    dtypes = {d for d, _ in types}
    if len(dtypes) == 1 and not all(weak for _, weak in types):
        return next(iter(dtypes)), False
    key = next(filter(is_key, dtypes), None)
    if key is not None:
        raise KeyPromotionError(f"dtype={key.name} is not a valid dtype for type promotion.")
    node = _join(frozenset(_node(d, w) for d, w in types))
    if isinstance(node, type):
        return canonicalize(PYTHON_SCALARS[node]), True
    return canonicalize(node), False


def _check_strict(types: Sequence[tuple[np.dtype, bool]]) -> None:
    strong = {d for d, weak in types if not weak}
    if strong and (
        len(strong) > 1 or _promote(tuple(types), config.enable_x64.value)[0] not in strong
    ):
        nodes = {_node(d, weak) for d, weak in types}
        weak = [str(n) for n in nodes if isinstance(n, type)]
        ordered = sorted(strong, key=lambda d: (d.kind, d.itemsize, d.name))
        names = (*sorted(weak), *(d.name for d in ordered))
        raise TypePromotionError(
            f"Input dtypes {names} have no available implicit dtype promotion path when "
            "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output "
            "type, or set jax_numpy_dtype_promotion=standard."
        )


def wider_type(a: np.dtype, b: np.dtype) -> np.dtype:
    """The common dtype of two, for a function's own computation: in every mode of promotion."""
    return _promote(((a, False), (b, False)), config.enable_x64.value)[0]


def promote_types(*types: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """Joins (dtype, weak_type) pairs; gives the common (dtype, weak_type).

    Raises TypePromotionError where there is no implicit path (float8 with anything, say), or where
    only values with equal dtypes may be combined.
    """
    if config.numpy_dtype_promotion.value == "strict":
        _check_strict(types)
    return _promote(types, config.enable_x64.value)
