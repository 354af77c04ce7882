"""Attention: softmax of scaled products of queries and keys, applied to values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.nn.normalization import softmax
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
) -> Array:
    """softmax(query key^T scale + bias) value, heads side by side.

    query has shape (batch, T, heads, H), key and value (batch, S, key heads, H), or all without
    batch; heads is a multiple of key heads. bias and the boolean mask broadcast to
    (batch, heads, T, S). scale is 1 / sqrt(H) by default. With is_causal position t sees those up
    to t.
    """
    check_arraylike("dot_product_attention", query, key, value)
    q, k, v = (jnp.asarray(x) for x in (query, key, value))
    batched = len(q.shape) == 4
    if not batched:
        q, k, v = (x[None] for x in (q, k, v))
    if (
        len(q.shape) != 4
        or k.shape != v.shape
        or len(k.shape) != 4
        or q.shape[3] != k.shape[3]
        or (q.shape[0] != k.shape[0] or q.shape[2] % k.shape[2])
    ):
        raise ValueError(
            "dot_product_attention: query (batch, T, heads, H) does not go with key and value "
            f"(batch, S, key heads, H): got {np.shape(query)}, {np.shape(key)} and "
            f"{np.shape(value)}"
        )
    out = _attend(
        q,
        k,
        v,
        bias,
        mask,
        scale=1 / np.sqrt(q.shape[3]).item() if scale is None else scale,
        is_causal=bool(is_causal),
    )
    return out if batched else out[0]


@compiled(static=("scale", "is_causal"))
def _attend(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, *, scale: float, is_causal: bool
) -> Array:
    groups = q.shape[2] // k.shape[2]
    if groups > 1:
        k, v = (jnp.repeat(x, groups, axis=2) for x in (k, v))
    logits = jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=np.float32) * scale
    if bias is not None:
        logits = logits + bias
    if mask is not None or is_causal:
        seen = jnp.tri(q.shape[1], k.shape[1], dtype=bool) if is_causal else jnp.asarray(True)
        seen = seen if mask is None else jnp.logical_and(seen, mask)
        logits = jnp.where(seen, logits, jnp.asarray(-0.7 * np.finfo(np.float32).max, logits.dtype))
    weights = lax.convert_element_type(softmax(logits), k.dtype)
    return jnp.einsum("bnts,bsnh->btnh", weights, v)
