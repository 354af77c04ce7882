"""Attention: softmax of scaled products of queries and keys, applied to values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core.type_promotion import wider_type
from lamina.nn.normalization import logsumexp, softmax
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, ArrayLike, check_arraylike


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query key^T scale + bias) value, heads side by side: attention (Vaswani et al., 2017,
    "Attention is all you need").

    query                  floats of shape (batch, T, heads, H), or without batch.
    key, value             (batch, S, key heads, H), or without batch; heads is a multiple of key
                           heads.
    bias                   added to scores; broadcasts to (batch, heads, T, S).
    mask                   booleans that broadcast likewise: True where a position is seen.
    scale                  of scores; None: 1 / sqrt(H).
    is_causal              position t sees those up to t.
    query_seq_lengths      int32 (batch,): queries beyond give zeros.
    key_value_seq_lengths  int32 (batch,): keys beyond are not seen.
    local_window_size      (left, right), or one number for both: how far a position sees.
    implementation         None or "xla": what lamina compiles. "cudnn" raises RuntimeError here.
    return_residual        also gives the logarithms of softmax's sums, (batch, T, heads).

    The result has query's shape. Raises ValueError for shapes and dtypes that do not go together.

    >>> query, key = jnp.zeros((1, 1, 1, 2)), jnp.zeros((1, 2, 1, 2))
    >>> value = jnp.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 1, 2)
    >>> print(lamina.nn.dot_product_attention(query, key, value)[0, 0, 0])
    [2. 3.]
    """
    check_arraylike("dot_product_attention", query, key, value)
    if implementation == "cudnn":
        raise RuntimeError("dot_product_attention: cuDNN needs a CUDA device")
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    shape = np.shape(query)
    q, k, v = (_with_rank_4(x) for x in (query, key, value))
    bias, mask = (None if x is None else _with_rank_4(x) for x in (bias, mask))
    lengths = [None if x is None else jnp.asarray(x)
               for x in (query_seq_lengths, key_value_seq_lengths)]  # fmt: skip
    if k.ndim != 4:
        raise ValueError(f"key ndim should be 4, but got {k.ndim}")
    batch, size, heads, width = k.shape
    _check("value", v, (batch, size, heads, width), k.dtype)
    _check("query", q, (batch, -1, -1, width), k.dtype)
    _check("mask", mask, (-1,) * 4, np.dtype(bool))
    _check("bias", bias, (-1,) * 4, None)
    _check("query_seq_lengths", lengths[0], (batch,), np.dtype(np.int32))
    _check("key_value_seq_lengths", lengths[1], (batch,), np.dtype(np.int32))
    if q.shape[2] % heads:
        raise ValueError(
            "The number of query heads must be a multiple of key/value heads, but got "
            f"{q.shape[2]} vs {heads}"
        )
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    out, residual = _attend(
        q,
        k,
        v,
        bias,
        mask,
        lengths[0],
        lengths[1],
        1 / np.sqrt(width).item() if scale is None else scale,
        is_causal=bool(is_causal),
        window=None if local_window_size is None else tuple(local_window_size),
    )
    out = jnp.reshape(out, shape)
    return (out, jnp.reshape(residual, shape[:-1])) if return_residual else out


def _with_rank_4(x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    return jnp.reshape(x, (1,) * (4 - x.ndim) + x.shape)


def _check(name: str, x: Any, shape: tuple[int, ...], dtype: np.dtype | None) -> None:
    """Raises ValueError unless x has this shape (-1: any size) and dtype."""
    if x is None:
        return
    if x.ndim != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {x.ndim}")
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}")
    if any(want not in (-1, got) for want, got in zip(shape, x.shape, strict=True)):
        raise ValueError(
            f"{name} shape should be {list(shape)}: but got {x.shape}. Sizes are key's (-1 stands for "
            "any): query, key and value have one batch, key and value one length, heads and width, "
            "query key's width"
        )


@compiled(static=("is_causal", "window"))
def _attend(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, query_lengths: Any, key_lengths: Any, scale: Any,
    *, is_causal: bool, window: tuple[int, ...] | None,
) -> tuple[Array, Array]:  # fmt: skip
    groups = q.shape[2] // k.shape[2]
    if groups > 1:
        k, v = (jnp.repeat(x, groups, axis=2) for x in (k, v))
    wide = wider_type(q.dtype, np.dtype(np.float32))
    logits = jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=wide)
    logits = logits * jnp.asarray(scale, wide)
    if bias is not None:
        logits = (logits + bias).astype(wide)
    seen = _seen(q.shape[1], k.shape[1], mask, query_lengths, key_lengths, is_causal, window)
    if seen is not None:
        logits = jnp.where(seen, logits, jnp.asarray(-0.7 * np.finfo(wide).max, wide))
    logits = lax.convert_element_type(logits, np.float32)
    weights = lax.convert_element_type(softmax(logits), k.dtype)
    out = jnp.einsum("bnts,bsnh->btnh", weights, v)
    if query_lengths is not None:
        inside = jnp.arange(q.shape[1]) < query_lengths[:, None]
        out = out * inside[:, :, None, None].astype(out.dtype)
    residual = lax.convert_element_type(logsumexp(logits, axis=-1), k.dtype)
    return out, lax.stop_gradient(jnp.swapaxes(residual, 1, 2))


def _seen(
    rows: int, columns: int, mask: Any, query_lengths: Any, key_lengths: Any, is_causal: bool,
    window: tuple[int, ...] | None,
) -> Array | None:  # fmt: skip
    """Which keys a query sees, to be broadcast to (batch, heads, T, S); None: all."""
    parts = [] if mask is None else [mask]
    at, of = jnp.arange(rows)[:, None], jnp.arange(columns)
    if is_causal:
        parts.append(of <= at)
    if window is not None:
        parts.append(jnp.logical_and(at <= of + window[0], at >= of - window[1]))
    if query_lengths is not None:
        parts.append(at < query_lengths[:, None, None, None])
    if key_lengths is not None:
        parts.append(of < key_lengths[:, None, None, None])
    return functools.reduce(jnp.logical_and, parts) if parts else None
