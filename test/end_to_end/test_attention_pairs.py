"""Attention of bf16 in tile registers and without them, on odd shapes, layouts and masks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.attention_on_cpus import TARGETS

import lamina
from lamina.backends import target as targets

pytestmark = pytest.mark.usefixtures("attention_of_any_size")

# Names of the operands' and the result's dimensions, extents (q queries, k keys, of widths d and e), and
# which keys are seen.
_CASES: dict[str, tuple[str, dict[str, int], str]] = {
    "blocks": ("bhqd,bhkd,bhke->bhqe", dict(b=1, h=2, q=256, k=384, d=64, e=64), "causal"),
    "parts overlap": ("bqd,bkd,bke->bqe", dict(b=2, q=205, k=100, d=32, e=48), ""),
    "odd keys": ("bqhd,bkhd,bkhe->bqhe", dict(b=2, h=2, q=45, k=67, d=80, e=16), "window"),
    "few queries": ("qd,kd,ke->qe", dict(q=16, k=33, d=16, e=16), ""),
    "turned": ("hdq,hdk,hke->hqe", dict(h=3, q=70, k=131, d=48, e=32), "late"),
    "wide": ("hqd,hdk,hke->hqe", dict(h=2, q=96, k=255, d=256, e=256), ""),
    "groups": ("bhgqd,bkhd,bkhe->bqhge", dict(b=2, h=2, g=3, q=45, k=70, d=32, e=48), "causal"),
}


def _operands(name: str) -> list[np.ndarray]:
    letters, extents, _ = _CASES[name]
    rng = np.random.default_rng(len(name))
    shapes = [[extents[c] for c in part] for part in letters.split("->")[0].split(",")]
    return [rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in shapes]


def _seen(m: Any, name: str) -> Any:
    """Which keys each query sees; keys that no query of a block does are left out."""
    _, extents, mask = _CASES[name]
    i, j = m.arange(extents["q"])[:, None], m.arange(extents["k"])[None]
    return {"causal": i >= j, "window": (i >= j) & (i < j + 40), "late": j >= 20, "": j >= 0}[mask]


def _attention(name: str, m: Any, softmax: Any) -> Any:
    q, k, v, out = _CASES[name][0].replace("->", ",").split(",")
    scores = "".join(c for c in q if c not in "qd") + "qk"

    def f(a: Any, b: Any, c: Any) -> Any:
        products = m.einsum(f"{q},{k}->{scores}", a, b) * 0.25
        if _CASES[name][2]:
            products = m.where(_seen(m, name), products, -m.inf)
        return m.einsum(f"{scores},{v}->{out}", softmax(products), c)

    return f


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _check(name: str) -> lamina.stages.Compiled:
    operands = _operands(name)
    attention = lamina.jit(_attention(name, lamina.numpy, lamina.nn.softmax))
    compiled = attention.lower(*operands).compile()
    assert 'lamina.kind = "attention"' in compiled.as_text("fused")
    got = np.asarray(compiled(*operands), np.float64)
    want = _attention(name, np, _softmax)(*(x.astype(np.float64) for x in operands))
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)
    return compiled


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", _CASES)
def test_attention(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_host", lambda: TARGETS[target])
    compiled = _check(name)
    if name == "blocks":  # tasks have all they need on their stacks
        assert compiled.memory_analysis().temp_size_in_bytes == 0


@pytest.mark.parametrize("target", TARGETS)
def test_infinite_and_nan(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that sees nothing is NaN, and so is one of which a score is; others are as they were.
    What is hidden by -inf has no weight."""
    monkeypatch.setattr(targets, "_host", lambda: TARGETS[target])
    q, k, v = _operands("parts overlap")
    q[0, 3], q[1, 150, 7] = np.nan, np.inf
    seen = np.random.default_rng(0).random((205, 100)) < 0.5
    seen[40], seen[41, :99] = False, False

    def attention(m: Any, softmax: Any) -> Any:
        def f(q: Any, k: Any, v: Any) -> Any:
            scores = m.where(seen, m.einsum("bqd,bkd->bqk", q, k), -m.inf)
            return m.einsum("bqk,bkd->bqd", softmax(scores), v)

        return f

    got = np.asarray(lamina.jit(attention(lamina.numpy, lamina.nn.softmax))(q, k, v), np.float64)
    with np.errstate(invalid="ignore"):
        want = attention(np, _softmax)(*(x.astype(np.float64) for x in (q, k, v)))
    assert np.isnan(want[0, 3]).all() and np.isnan(want[:, 40]).all() and np.isnan(want[1, 150]).all()
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)
