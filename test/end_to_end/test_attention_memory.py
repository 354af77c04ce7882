"""Attention never has the scores of all queries in memory: a kernel of our own walks blocks of keys;
where it does not fit, scores that would fill the caches are made for a part of the queries."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import lamina

pytestmark = pytest.mark.usefixtures("attention_of_any_size")


def _checked(attention: Any, arguments: tuple[np.ndarray, ...]) -> Any:
    """The compiled program, whose result is JAX's."""
    program = lamina.jit(lambda *args: attention(lamina, *args))
    compiled = program.lower(*arguments).compile()
    want = jax.jit(lambda *args: attention(jax, *args))(*arguments)
    np.testing.assert_allclose(compiled(*arguments), want, rtol=1e-4, atol=1e-5)
    return compiled


@pytest.mark.parametrize("width", [16, 12])
def test_scores_of_all_queries_are_never_in_memory(width: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, n, width)).astype(np.float32) for n in (4096, 1024, 1024))
    bias = rng.standard_normal((4096, 1)).astype(np.float32)

    def attention(m: Any, q: Any, k: Any, v: Any, bias: Any) -> Any:
        np_ = m.numpy
        scores = np_.einsum("bhqd,bhkd->bhqk", q, k) * 0.25 + bias
        seen = np_.arange(4096)[:, None] >= np_.arange(1024)[None]
        return np_.einsum(
            "bhqk,bhkd->bhqd", m.nn.softmax(np_.where(seen, scores, -1e9), axis=-1), v
        )

    compiled = _checked(attention, (q, k, v, bias))
    memory = compiled.memory_analysis().temp_size_in_bytes
    if width == 16:
        assert 'lamina.kind = "attention"' in compiled.as_text("fused")
        assert memory == 0
    else:
        assert "stablehlo.while" in compiled.as_text("fused")
        assert memory < 36 << 20  # 64 MB with all


def test_odd_blocks_and_rows_without_keys() -> None:
    """Blocks that overlap, keys that are left over, heads between the dimensions, grouped queries,
    a mask from memory, and queries that see nothing, which are NaN."""
    rng = np.random.default_rng(1)
    q = rng.standard_normal((2, 2, 3, 45, 32)).astype(np.float32)
    k, v = (rng.standard_normal((2, 70, 2, width)).astype(np.float32) for width in (32, 48))
    seen = rng.random((45, 70)) < 0.3
    seen[7] = False

    def attention(m: Any, q: Any, k: Any, v: Any, seen: Any) -> Any:
        scores = m.numpy.einsum("bhgqd,bkhd->bhgqk", q, k)
        scores = m.numpy.where(seen, scores, -m.numpy.inf)
        return m.numpy.einsum("bhgqk,bkhd->bqhgd", m.nn.softmax(scores, axis=-1), v)

    compiled = _checked(attention, (q, k, v, seen))
    assert 'lamina.kind = "attention"' in compiled.as_text("fused")
