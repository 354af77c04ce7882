"""Attention whose scores are large: what origins are rounded by must not show in the weights of keys of different
steps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program

import lamina


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_large_scores(arch: str) -> None:
    random = np.random.default_rng(0)
    q, k, v = (random.normal(size=(1, 512, 1, 64)).astype(np.float16) for _ in range(3))
    q, k = (q * 8 + 100).astype(np.float16), (k / 4 + 20).astype(np.float16)  # scores near 16,000
    (found,) = Program(lamina.nn.dot_product_attention, q, k, v, arch=arch).run()
    wide = [x.astype(np.float64)[0, :, 0] for x in (q, k, v)]
    scores = wide[0] @ wide[1].T / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ wide[2]
    np.testing.assert_allclose(found[0, :, 0].astype(np.float64), wanted, atol=4e-3)


def test_blocks_of_128_queries() -> None:
    random = np.random.default_rng(1)
    q, k, v = (random.normal(size=(4, 127, 28, 40)).astype(np.float16) for _ in range(3))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return lamina.nn.dot_product_attention(q, k, v, is_causal=True)

    program = Program(attention, q, k, v, arch="sm_80")
    blocks = [launch.grid for one in program.kernels.values() for launch in one.launches]
    assert blocks == [(4 * 28, 1, 1)]
    (found,) = program.run()
    wanted = np.asarray(lamina.jit(attention)(q, k, v))
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), atol=4e-3)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_scores_beyond_what_f32_knows_to_one(arch: str, kind: Any) -> None:
    random = np.random.default_rng(2)
    size = 3e4 if kind is np.float16 else 1e15  # scores near 1e10 and 1e31
    q = np.full((1, 128, 1, 64), size).astype(kind)
    k = np.full((1, 256, 1, 64), size).astype(kind)
    k[0, :128] /= 2  # what the first keys weigh is forgotten
    k[0, 200:] /= 4
    v = random.normal(size=(1, 256, 1, 64)).astype(kind)
    (found,) = Program(lamina.nn.dot_product_attention, q, k, v, arch=arch).run()
    wanted = v.astype(np.float64)[0, 128:200, 0].mean(0)
    np.testing.assert_allclose(found[0, :, 0].astype(np.float64), np.tile(wanted, (128, 1)), atol=4e-3)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_rows_without_keys_weigh_all_alike(arch: str) -> None:
    random = np.random.default_rng(3)
    q, k, v = (random.normal(size=(1, 256, 1, 64)).astype(np.float16) for _ in range(3))
    mask = np.ones((1, 1, 256, 256), bool)
    mask[:, :, 7] = False
    mask[:, :, 100, :200] = False

    def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return lamina.nn.dot_product_attention(q, k, v, mask=mask)

    (found,) = Program(attention, q, k, v, mask, arch=arch).run()
    wanted = np.asarray(lamina.jit(attention)(q, k, v, mask))
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), atol=4e-3)
    alike = v.astype(np.float64)[0, :, 0].mean(0)
    np.testing.assert_allclose(found[0, 7, 0].astype(np.float64), alike, atol=4e-3)
