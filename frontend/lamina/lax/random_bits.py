"""threefry2x32: the counter-based generator behind lamina.random, bit for bit as JAX defines it.

Threefry with 20 rounds turns a key (two words) and a counter (two words) into two random words
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray
from lamina.lax import hlo
from lamina.lax.checks import Accepted, check_accepted
from lamina.lax.elementwise_rules import (
    broadcast_shapes,
    elementwise_batching,
    spread_values,
)  # fmt: skip

_UINT32 = np.dtype(np.uint32)
_WORDS = Accepted(frozenset([_UINT32]), "uint32")
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key1: Any, key2: Any, x1: Any, x2: Any) -> list[Any]:
    """The two random words for each counter (x1, x2) under key (key1, key2), elementwise on uint32;
    keys may be scalars."""
    return threefry2x32_p.bind(key1, key2, x1, x2)


def threefry_2x32(keypair: tuple[Any, Any], count: Any) -> Any:
    """Random uint32 words of count's shape under a key of two uint32 scalars: the first half of
    `count` makes counters with the second half (and a 0, if the size is odd)."""
    shape = np.shape(count)
    size = math.prod(shape)
    flat = lax.reshape(count, (size,))
    if size % 2:
        flat = lax.pad(flat, np.uint32(0), [(0, 1, 0)])
    half = (size + 1) // 2
    halves = [lax.slice(flat, (i * half,), ((i + 1) * half,)) for i in range(2)]
    out = lax.concatenate(threefry2x32(*keypair, *halves), 0)
    return lax.reshape(lax.slice(out, (0,), (size,)), shape)


def _abstract_eval(*operands: ShapedArray) -> list[ShapedArray]:
    for i, x in enumerate(operands):
        check_accepted("threefry2x32", _WORDS, x, i)
    return [ShapedArray(broadcast_shapes("threefry2x32", operands), _UINT32)] * 2


def _lowering(ctx: Any, *operands: Any) -> list[Any]:
    key1, key2, x1, x2 = spread_values(ctx, operands)
    shape = ctx.avals_out[0].shape

    def word(value: int) -> Any:
        return hlo.full(value, shape, _UINT32)

    keys = [key1, key2, hlo.xor(hlo.xor(key1, key2), word(_PARITY))]
    x1, x2 = hlo.add(x1, keys[0]), hlo.add(x2, keys[1])
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x1 = hlo.add(x1, x2)
            high, low = hlo.shift_left(x2, word(r)), hlo.shift_right_logical(x2, word(32 - r))
            x2 = hlo.xor(hlo.or_(high, low), x1)
        x1 = hlo.add(x1, keys[(group + 1) % 3])
        x2 = hlo.add(hlo.add(x2, keys[(group + 2) % 3]), word(group + 1))
    return [x1, x2]


_batch_elementwise = elementwise_batching(lambda: threefry2x32_p)


def _batching(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int]]:
    out, d = _batch_elementwise(args, dims)
    return out, [d, d]


threefry2x32_p: Primitive = Primitive(
    "threefry2x32",
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_batching,
    multiple_results=True,
)
