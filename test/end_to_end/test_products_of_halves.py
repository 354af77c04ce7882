"""Batched products of f16, whose sums a task keeps in f32 beside what it widens, on caches of all sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lamina
from lamina import lax
from lamina.backends import target as targets
from lamina.backends.machine.choice import named

_HOST = targets.Target.host()
_BATCHED = (((2,), (2,)), ((0,), (0,)))


@pytest.mark.parametrize("caches", ["262144", "1048576", "2097152", "16777216"])
@pytest.mark.parametrize("m, n, k", [(240, 256, 160), (200, 300, 100), (512, 512, 64), (16, 700, 600)])
def test_a_task_has_room_for_what_it_keeps(
    caches: str, m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = named(f"reference,l2_bytes={caches}")
    monkeypatch.setattr(targets, "_host", lambda: replace(_HOST, machine=machine))
    random = np.random.default_rng(m)
    a, b = (random.normal(size=(4, side, k)).astype(np.float16) for side in (m, n))
    got = lamina.jit(lambda a, b: lax.dot_general(a, b, _BATCHED))(a, b)
    exact = np.einsum("bmk,bnk->bmn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(np.asarray(got), exact, rtol=2e-3, atol=0.05)
