"""Random keys from their words and back: random_wrap, random_unwrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray, dtypes, get_aval
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis

_UINT32, _FLOAT64 = np.dtype(np.uint32), np.dtype(np.float64)


def random_wrap(words: Any, dtype: dtypes.KeyDType = dtypes.KEY) -> Any:
    """The keys of this dtype with these words, uint32[..., n]."""
    return random_wrap_p.bind(words, impl=dtype.impl)


def random_unwrap(keys: Any) -> Any:
    """The words of keys, uint32[..., n]."""
    return random_unwrap_p.bind(keys, impl=get_aval(keys).dtype.impl)  # type: ignore[attr-defined]


def _wrap_abstract_eval(words: ShapedArray, *, impl: str) -> ShapedArray:
    dtype = dtypes.KEYS[impl]
    if words.dtype != _UINT32 or words.shape[-1:] != (dtype.words,):
        raise TypeError(
            f"[random_wrap] expected uint32[..., {dtype.words}] for {dtype.name}, got "
            f"{words.str_long()}"
        )
    return ShapedArray(words.shape[:-1], dtype)


def _unwrap_abstract_eval(keys: ShapedArray, *, impl: str) -> ShapedArray:
    if keys.dtype != dtypes.KEYS[impl]:
        raise TypeError(f"[random_unwrap] expected an array of keys, got {keys.str_long()}")
    return ShapedArray((*keys.shape, dtypes.KEYS[impl].words), _UINT32)


def _wrap_lowering(ctx: Any, words: Any, *, impl: str) -> Any:
    shape, physical = ctx.avals_out[0].shape, dtypes.KEYS[impl].physical
    if physical == _UINT32:
        return hlo.reshape(words, shape)
    if physical.kind != "c":
        return hlo.bitcast_convert(words, shape, physical)
    # Two words to each part of a complex number.
    halves = hlo.bitcast_convert(hlo.reshape(words, (*shape, 2, 2)), (*shape, 2), _FLOAT64)
    return hlo.complex(*(hlo.reshape(_part(halves, shape, i), shape) for i in (0, 1)))


def _part(halves: Any, shape: tuple[int, ...], i: int) -> Any:
    starts, limits = [0] * len(shape) + [i], [*shape, i + 1]
    return hlo.slice(halves, starts, limits, [1] * len(starts))


def _unwrap_lowering(ctx: Any, keys: Any, *, impl: str) -> Any:
    shape, physical = ctx.avals_out[0].shape, dtypes.KEYS[impl].physical
    if physical == _UINT32:
        return hlo.reshape(keys, shape)
    if physical.kind != "c":
        return hlo.bitcast_convert(keys, shape, _UINT32)
    parts = [
        hlo.bitcast_convert(part, (*shape[:-1], 2), _UINT32)
        for part in (hlo.real(keys), hlo.imag(keys))
    ]
    return hlo.concatenate(parts, len(shape) - 1)


def _wrap_batching(args: Sequence[Any], dims: Sequence[int], *, impl: str) -> tuple[Any, int]:
    return random_wrap_p.bind(move_axis(args[0], dims[0], 0), impl=impl), 0


def _unwrap_batching(args: Sequence[Any], dims: Sequence[int], *, impl: str) -> tuple[Any, int]:
    return random_unwrap_p.bind(args[0], impl=impl), dims[0]


random_wrap_p = Primitive(
    "random_wrap",
    abstract_eval=_wrap_abstract_eval,
    lowering=_wrap_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_wrap_batching,
    placed=lambda of, out, *, impl: of.dims[0][:-1],
)

random_unwrap_p = Primitive(
    "random_unwrap",
    abstract_eval=_unwrap_abstract_eval,
    lowering=_unwrap_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_unwrap_batching,
    placed=lambda of, out, *, impl: (*of.dims[0], ()),
)
