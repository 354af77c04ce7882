"""Random keys from their words and back: random_wrap, random_unwrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray, dtypes
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis

_UINT32 = np.dtype(np.uint32)


def random_wrap(words: Any) -> Any:
    """The keys with these words, uint32[..., 2]."""
    return random_wrap_p.bind(words)


def random_unwrap(keys: Any) -> Any:
    """The words of keys, uint32[..., 2]."""
    return random_unwrap_p.bind(keys)


def _wrap_abstract_eval(words: ShapedArray) -> ShapedArray:
    if words.dtype != _UINT32 or words.shape[-1:] != (2,):
        raise TypeError(f"[random_wrap] expected uint32[..., 2], got {words.str_long()}")
    return ShapedArray(words.shape[:-1], dtypes.KEY)


def _unwrap_abstract_eval(keys: ShapedArray) -> ShapedArray:
    if keys.dtype != dtypes.KEY:
        raise TypeError(f"[random_unwrap] expected an array of keys, got {keys.str_long()}")
    return ShapedArray((*keys.shape, 2), _UINT32)


def _wrap_batching(args: Sequence[Any], dims: Sequence[int]) -> tuple[Any, int]:
    return random_wrap(move_axis(args[0], dims[0], 0)), 0


def _unwrap_batching(args: Sequence[Any], dims: Sequence[int]) -> tuple[Any, int]:
    return random_unwrap(args[0]), dims[0]


random_wrap_p = Primitive(
    "random_wrap",
    abstract_eval=_wrap_abstract_eval,
    lowering=lambda ctx, words: hlo.bitcast_convert(
        words, ctx.avals_out[0].shape, dtypes.KEY.physical
    ),
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_wrap_batching,
)

random_unwrap_p = Primitive(
    "random_unwrap",
    abstract_eval=_unwrap_abstract_eval,
    lowering=lambda ctx, keys: hlo.bitcast_convert(keys, ctx.avals_out[0].shape, _UINT32),
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_unwrap_batching,
)
