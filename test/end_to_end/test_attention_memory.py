"""Attention whose scores would fill the caches does a part of the queries at a time."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import lamina


def test_scores_of_all_queries_are_never_in_memory() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, n, 16)).astype(np.float32) for n in (4096, 1024, 1024))
    bias = rng.standard_normal((4096, 1)).astype(np.float32)

    def attention(m: Any, q: Any, k: Any, v: Any, bias: Any) -> Any:
        np_ = m.numpy
        scores = np_.einsum("bhqd,bhkd->bhqk", q, k) * 0.25 + bias
        seen = np_.arange(4096)[:, None] >= np_.arange(1024)[None]
        return np_.einsum(
            "bhqk,bhkd->bhqd", m.nn.softmax(np_.where(seen, scores, -1e9), axis=-1), v
        )

    program = lamina.jit(lambda *args: attention(lamina, *args))
    compiled = program.lower(q, k, v, bias).compile()
    assert "stablehlo.while" in compiled.as_text("fused")
    assert compiled.memory_analysis().temp_size_in_bytes < 36 << 20  # 64 MB with all
    want = jax.jit(lambda *args: attention(jax, *args))(q, k, v, bias)
    np.testing.assert_allclose(compiled(q, k, v, bias), want, rtol=1e-4, atol=1e-5)
