"""Derivatives of functions that choose elements, of arrays that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina as lm
import lamina.numpy as lnp
from lamina import lax

CHOICES: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: lax.sort(x, dimension=-1),
    "sort of two": lambda x: lax.sort((x, 2 * x), dimension=-1, num_keys=1)[1],
    "top_k": lambda x: lax.top_k(x, min(2, x.shape[-1]))[0],
    "none of top_k": lambda x: lax.top_k(x, 0)[0],
    "cummax": lambda x: lax.cummax(x, axis=x.ndim - 1),
    "max pool": lambda x: lax.reduce_window(
        x, -np.inf, lax.max, (1,) * x.ndim, (1,) * x.ndim, "VALID"
    ),
    "padded max pool": lambda x: lax.reduce_window(
        x, -np.inf, lax.max, (1,) * x.ndim, (1,) * x.ndim, [(1, 0)] * x.ndim
    ),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 3), (2, 0, 5)])
def test_derivatives_of_nothing(shape: tuple[int, ...], name: str) -> None:
    choose, x = CHOICES[name], np.zeros(shape, np.float32)
    out, tangent = lm.jvp(choose, (x,), (x,))
    assert tangent.shape == out.shape and tangent.dtype == out.dtype
    assert not np.asarray(tangent).any()
    _, pull = lm.vjp(choose, x)
    (back,) = lm.jit(pull)(lnp.ones_like(out))
    assert back.shape == shape and back.dtype == x.dtype
