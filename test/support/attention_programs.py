"""Attention that the tests of kernels for GPUs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import lamina
import lamina.numpy as jnp
from support.cuda_program import Program

_RANDOM = np.random.default_rng(0)
_BF16 = ml_dtypes.bfloat16


def x(*shape: int, dtype: Any = _BF16) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


def heads(**options: Any) -> Callable:
    def function(q, k, v, *more):
        return lamina.nn.dot_product_attention(q, k, v, *more, **options)

    return function


def masked(q, k, v, mask):
    return lamina.nn.dot_product_attention(q, k, v, mask=mask)


def some_see_nothing_at_first(q, k, v):
    scores = jnp.matmul(q, k.T, preferred_element_type=np.float32)
    i, j = jnp.arange(q.shape[0])[:, None], jnp.arange(k.shape[0])
    return lamina.nn.softmax(jnp.where(j >= i, scores, -np.inf)).astype(q.dtype) @ v


def kernel_of(program: Program) -> tuple[str, Any]:
    ((name, kernel),) = [(n, k) for n, k in program.kernels.items() if "attention" in n]
    return name, kernel
