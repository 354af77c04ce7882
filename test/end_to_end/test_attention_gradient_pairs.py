"""The gradient of attention of bf16 in tile registers and without them, on odd shapes, layouts and masks."""

from __future__ import annotations

from typing import Any

import jax
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
    "rows behind the last": ("bqd,bkd,bke->bqe", dict(b=2, q=205, k=100, d=32, e=48), ""),
    "odd keys": ("bqhd,bkhd,bkhe->bqhe", dict(b=2, h=2, q=45, k=67, d=80, e=16), "window"),
    "few": ("qd,kd,ke->qe", dict(q=16, k=33, d=16, e=16), ""),
    "turned": ("hdq,hdk,hke->hqe", dict(h=3, q=70, k=131, d=48, e=32), "late"),
    "values turned": ("hqd,hkd,hek->hqe", dict(h=2, q=96, k=255, d=128, e=128), ""),
    "groups": ("bhgqd,bkhd,bkhe->bqhge", dict(b=2, h=2, g=3, q=45, k=70, d=32, e=48), "causal"),
    "in parts": ("qd,kd,ke->qe", dict(q=700, k=90, d=32, e=32), ""),
    "some in tiles": ("hqd,hkd,hke->hqe", dict(h=2, q=50, k=70, d=24, e=32), ""),
}


def _operands(name: str) -> list[np.ndarray]:
    """q, k, v, and the gradient with respect to the result."""
    letters, extents, _ = _CASES[name]
    rng = np.random.default_rng(len(name))
    parts = letters.replace("->", ",").split(",")
    shapes = [[extents[c] for c in part] for part in parts]
    return [rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in shapes]


def _seen(m: Any, name: str) -> Any:
    """Which keys each query sees; keys that no query of a block does are left out."""
    _, extents, mask = _CASES[name]
    i, j = m.arange(extents["q"])[:, None], m.arange(extents["k"])[None]
    return {"causal": i >= j, "window": (i >= j) & (i < j + 40), "late": j >= 20, "": j >= 0}[mask]


def _gradient(name: str, m: Any, scores_in: str | None = None) -> Any:
    """With scores of `scores_in` from the products on until they are probabilities."""
    q, k, v, out = _CASES[name][0].replace("->", ",").split(",")
    scores = "".join(c for c in q if c not in "qd") + "qk"

    def attention(a: Any, b: Any, c: Any) -> Any:
        products = m.numpy.einsum(f"{q},{k}->{scores}", a, b) * 0.25
        if scores_in:
            products = products.astype(scores_in)
        if _CASES[name][2]:
            products = m.numpy.where(_seen(m.numpy, name), products, -m.numpy.inf)
        return m.numpy.einsum(f"{scores},{v}->{out}", m.nn.softmax(products).astype(c.dtype), c)

    return m.jit(lambda a, b, c, g: m.vjp(attention, a, b, c)[1](g))


def _check(name: str, scores_in: str | None = None) -> None:
    operands = _operands(name)
    compiled = _gradient(name, lamina, scores_in).lower(*operands).compile()
    assert compiled.as_text("fused").count('lamina.kind = "attention_gradient"') == 1
    want = _gradient(name, jax)(*(x.astype(np.float32) for x in operands))
    for got, expected in zip(compiled(*operands), want, strict=True):
        assert np.asarray(got).dtype == ml_dtypes.bfloat16
        off = np.abs(np.asarray(got, np.float64) - np.asarray(expected, np.float64)).max()
        assert off <= 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", _CASES)
def test_gradient(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is f32 of the same numbers."""
    monkeypatch.setattr(targets, "_host", lambda: TARGETS[target])
    _check(name)


@pytest.mark.parametrize("name", ["blocks", "rows behind the last"])
def test_scores_that_the_program_widens(name: str) -> None:
    _check(name, "float32")


@pytest.mark.parametrize("target", TARGETS)
def test_infinite_and_nan(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a query makes NaN is NaN of keys, and of no other query; an infinite gradient of the last
    query, behind which there are rows that are none, makes infinite what JAX makes so."""
    monkeypatch.setattr(targets, "_host", lambda: TARGETS[target])
    q, k, v, g = _operands("rows behind the last")
    q[0, 3] = np.nan
    g[1, -1, 5] = np.inf
    got = _gradient("rows behind the last", lamina)(q, k, v, g)
    wide = [x.astype(np.float32) for x in (q, k, v, g)]
    want = _gradient("rows behind the last", jax)(*wide)
    for x, y in zip(got, want, strict=True):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        np.testing.assert_array_equal(np.isinf(x), np.isinf(y))
        np.testing.assert_allclose(x, y, rtol=0.02, atol=0.02)


def test_same_bits_with_any_number_of_threads() -> None:
    operands = _operands("in parts")
    compiled = _gradient("in parts", lamina).lower(*operands).compile()
    once = [np.asarray(x) for x in compiled(*operands)]
    before = lamina.get_num_threads()
    lamina.set_num_threads(1)
    try:
        for a, b in zip(once, compiled(*operands), strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        lamina.set_num_threads(before)
