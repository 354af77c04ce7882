"""The gradient of attention, however it is written, is one kernel that has no matrix of scores in memory;
what it gives is JAX's."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import lamina

pytestmark = pytest.mark.usefixtures("attention_of_any_size")
_R = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return _R.standard_normal(shape).astype(np.float32)


def _einsum(m: Any, q: Any, k: Any, v: Any, change: Any = lambda m, scores: scores) -> Any:
    scores = change(m, m.numpy.einsum("bhqd,bhkd->bhqk", q, k) * 0.3)
    return m.numpy.einsum("bhqk,bhkd->bhqd", m.nn.softmax(scores, -1), v)


def _by_hand(m: Any, q: Any, k: Any, v: Any) -> Any:
    """With a maximum that has a gradient, and keys that were turned before."""
    np_ = m.numpy
    scores = q @ np_.swapaxes(k, -1, -2) / 3.0
    powers = np_.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)) @ v


def _by_logarithms(m: Any, q: Any, k: Any, v: Any) -> Any:
    return m.numpy.exp(m.nn.log_softmax(m.numpy.einsum("bhqd,bhkd->bhqk", q, k), -1)) @ v


def _capped(m: Any, q: Any, k: Any, v: Any) -> Any:
    return _einsum(m, q, k, v, lambda m, scores: 5 * m.numpy.tanh(scores / 5))


def _causal(m: Any, q: Any, k: Any, v: Any) -> Any:
    rows, columns = q.shape[2], k.shape[2]
    seen = m.numpy.arange(rows)[:, None] >= m.numpy.arange(columns)[None]
    return _einsum(m, q, k, v, lambda m, s: m.numpy.where(seen, s, -m.numpy.inf))


def _masked(m: Any, q: Any, k: Any, v: Any, seen: Any, bias: Any) -> Any:
    return _einsum(m, q, k, v, lambda m, s: m.numpy.where(seen, s + bias, -1e30))


def _dropped(m: Any, q: Any, k: Any, v: Any, kept: Any) -> Any:
    scores = m.numpy.einsum("bhqd,bhkd->bhqk", q, k)
    return (m.nn.softmax(scores, -1) * kept / 0.9) @ v


def _grouped(m: Any, q: Any, k: Any, v: Any) -> Any:
    scores = m.numpy.einsum("bhgqd,bkhd->bhgqk", q, k)
    return m.numpy.einsum("bhgqk,bkhd->bqhgd", m.nn.softmax(scores, -1), v)


def _values_first(m: Any, q: Any, k: Any, v: Any) -> Any:
    """Products whose operands and results lie the other way round."""
    scores = m.numpy.einsum("bkhd,bqhd->bhkq", k, q)
    return m.numpy.einsum("bkhd,bhkq->bhdq", v, m.nn.softmax(scores, 2))


def _shared_keys(m: Any, q: Any, k: Any, v: Any) -> Any:
    scores = m.numpy.einsum("bhqd,bkd->bhqk", q, k)
    return m.numpy.einsum("bhqk,bkd->bhqd", m.nn.softmax(scores, -1), v)


def _without_batch(m: Any, q: Any, k: Any, v: Any) -> Any:
    return m.nn.softmax(q @ k.T, -1) @ v


_SIZES = [(2, 3, 64, 64, 16, 16), (1, 2, 100, 257, 32, 48), (1, 1, 257, 100, 8, 8),
          (3, 1, 17, 16, 12, 20), (1, 2, 33, 70, 128, 128)]  # fmt: skip
_WAYS = [
    *(
        (_einsum, (_normal(b, h, n, d), _normal(b, h, s, d), _normal(b, h, s, w)))
        for b, h, n, s, d, w in _SIZES
    ),
    *(
        (way, (_normal(2, 2, 40, 32), _normal(2, 2, 70, 32), _normal(2, 2, 70, 16)))
        for way in (_by_hand, _by_logarithms, _capped, _causal)
    ),
    (
        _masked,
        (_normal(2, 3, 45, 16), _normal(2, 3, 70, 16), _normal(2, 3, 70, 16),
         _R.random((45, 70)) < 0.3, _normal(3, 1, 70)),
    ),
    (
        _dropped,
        (_normal(1, 2, 48, 16), _normal(1, 2, 48, 16), _normal(1, 2, 48, 16),
         (_R.random((1, 2, 48, 48)) < 0.9).astype(np.float32)),
    ),
    (_grouped, (_normal(2, 2, 3, 45, 32), _normal(2, 70, 2, 32), _normal(2, 70, 2, 48))),
    (_values_first, (_normal(2, 50, 2, 16), _normal(2, 70, 2, 16), _normal(2, 70, 2, 24))),
    (_shared_keys, (_normal(2, 3, 45, 16), _normal(2, 70, 16), _normal(2, 70, 16))),
    (_without_batch, (_normal(300, 16), _normal(60, 16), _normal(60, 16))),
]  # fmt: skip


def _gradient(m: Any, way: Any) -> Any:
    def loss(q: Any, k: Any, v: Any, *others: Any) -> Any:
        return m.numpy.sum(m.numpy.sin(way(m, q, k, v, *others)))

    return m.jit(m.grad(loss, (0, 1, 2)))


@pytest.mark.parametrize(("way", "arguments"), _WAYS)
def test_gradient_is_one_kernel_that_gives_jaxs(way: Any, arguments: tuple[Any, ...]) -> None:
    compiled = _gradient(lamina, way).lower(*arguments).compile()
    assert compiled.as_text("fused").count('lamina.kind = "attention_gradient"') == 1
    for got, want in zip(compiled(*arguments), _gradient(jax, way)(*arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("low", [-np.inf, -1e30])
@pytest.mark.parametrize(
    ("queries", "keys", "offset"), [(100, 300, 0), (45, 257, -5), (300, 100, 3), (64, 700, 600)]
)
def test_keys_that_nobody_sees_are_left_out(
    queries: int, keys: int, offset: int, low: float
) -> None:
    """Where each block of queries sees some keys more; with -5, the first ones see none, which makes
    all NaN that JAX makes NaN, or equal weights."""
    q, k, v = (_normal(1, 2, n, 16) for n in (queries, keys, keys))

    def masked(m: Any, q: Any, k: Any, v: Any) -> Any:
        seen = m.numpy.arange(queries)[:, None] + offset >= m.numpy.arange(keys)
        return _einsum(m, q, k, v, lambda m, s: m.numpy.where(seen, s, low))

    got = [lamina.jit(lambda *x: masked(lamina, *x))(q, k, v), *_gradient(lamina, masked)(q, k, v)]
    want = [masked(jax, q, k, v), *_gradient(jax, masked)(q, k, v)]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(ml_dtypes.bfloat16, 0.02), (np.float16, 0.002)])
@pytest.mark.parametrize("way", [_einsum, _by_hand, _causal])
def test_narrow_floats_have_scores_in_f32(way: Any, dtype: Any, tolerance: float) -> None:
    """The reference is f32 of the same numbers; what is rounded to 16 bits is the result alone."""
    narrow = [_normal(2, 2, n, 32).astype(dtype) for n in (40, 70, 70)]
    wide = [x.astype(np.float32) for x in narrow]
    attention = lamina.jit(lambda *x: way(lamina, *x)).lower(*narrow).compile()
    assert 'lamina.kind = "attention"' in attention.as_text("fused")
    gradient = _gradient(lamina, way).lower(*narrow).compile()
    assert 'lamina.kind = "attention_gradient"' in gradient.as_text("fused")
    got = [attention(*narrow), *gradient(*narrow)]
    for g, w in zip(got, [way(jax, *wide), *_gradient(jax, way)(*wide)], strict=True):
        assert np.asarray(g).dtype == dtype
        off = np.abs(np.asarray(g, np.float64) - np.asarray(w, np.float64)).max()
        assert off <= tolerance * np.abs(w).max()


def test_scores_are_never_in_memory() -> None:
    q, k, v = (_normal(1, 2, 2048, 64) for _ in range(3))
    compiled = _gradient(lamina, _einsum).lower(q, k, v).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 20 << 20  # a matrix is 32 MB
    for got, want in zip(compiled(q, k, v), _gradient(jax, _einsum)(q, k, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_result_and_gradients_of_one_program() -> None:
    """What is independent of the result is computed with it."""
    q, k, v, g = (_normal(2, 2, 64, 16) for _ in range(4))

    def both(m: Any) -> Any:
        def f(q: Any, k: Any, v: Any, g: Any) -> Any:
            out, back = m.vjp(lambda *x: _einsum(m, *x), q, k, v)
            return out, back(g)

        return m.jit(f)

    compiled = both(lamina).lower(q, k, v, g).compile()
    assert compiled.as_text("fused").count("lamina.kind") == 1
    leaves = lamina.tree.leaves(compiled(q, k, v, g))
    for got, want in zip(leaves, jax.tree.leaves(both(jax)(q, k, v, g)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_attention_of_nn_with_a_mask_and_fewer_heads_of_keys() -> None:
    q, k, v = _normal(2, 48, 4, 16), _normal(2, 80, 2, 16), _normal(2, 80, 2, 16)
    seen = _R.random((2, 1, 48, 80)) < 0.5

    def attention(m: Any, q: Any, k: Any, v: Any) -> Any:
        return m.nn.dot_product_attention(q, k, v, mask=seen, is_causal=True)

    compiled = _gradient(lamina, attention).lower(q, k, v).compile()
    assert "attention_gradient" in compiled.as_text("fused")
    for got, want in zip(compiled(q, k, v), _gradient(jax, attention)(q, k, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_layers_each_have_a_kernel() -> None:
    x, w = _normal(2, 64, 16), _normal(3, 16, 16) / 4

    def loss(m: Any) -> Any:
        def f(w: Any, x: Any) -> Any:
            for i in range(3):
                y = x @ w[i]
                x = x + m.nn.softmax(y @ m.numpy.swapaxes(x, 1, 2), -1) @ y
            return m.numpy.sum(x**2)

        return m.jit(m.grad(f))

    compiled = loss(lamina).lower(w, x).compile()
    assert compiled.as_text("fused").count("call @fused_attention_gradient") == 3
    assert compiled.as_text("fused").count("call @fused_attention_") == 6
    want = loss(jax)(w, x)
    np.testing.assert_allclose(compiled(w, x), want, atol=1e-4 * float(np.abs(want).max()))


def test_steps_of_a_loop() -> None:
    """A step's gradient, with a mask that was made before the loop."""
    q, k, v = _normal(1, 40, 16), _normal(1, 70, 16), _normal(1, 70, 16)

    def train(m: Any) -> Any:
        def f(q: Any, k: Any, v: Any) -> Any:
            seen = m.numpy.arange(40)[:, None] >= m.numpy.arange(70)

            def loss(q: Any) -> Any:
                scores = m.numpy.where(seen, q @ m.numpy.swapaxes(k, 1, 2) / 4, -1e30)
                return m.numpy.sum((m.nn.softmax(scores, -1) @ v) ** 2)

            def step(q: Any, _: Any) -> Any:
                return q - 0.01 * m.grad(loss)(q), None  # larger ones magnify rounding

            return m.lax.scan(step, q, None, length=5)[0]

        return m.jit(f)

    compiled = train(lamina).lower(q, k, v).compile()
    assert "call @fused_attention_gradient" in compiled.as_text("fused")
    np.testing.assert_allclose(compiled(q, k, v), train(jax)(q, k, v), rtol=1e-4, atol=5e-5)


def test_other_uses_of_scores_are_left_alone() -> None:
    """The probabilities are returned; a bias has a gradient."""
    q, k, v, bias = _normal(1, 2, 32, 16), _normal(1, 2, 48, 16), _normal(1, 2, 48, 16), _normal(32, 48)

    def with_bias(m: Any) -> Any:
        def loss(q: Any, bias: Any) -> Any:
            return m.numpy.sum(_einsum(m, q, k, v, lambda m, s: s + bias) ** 2)

        return m.jit(m.grad(loss, (0, 1)))

    compiled = with_bias(lamina).lower(q, bias).compile()
    assert "attention_gradient" not in compiled.as_text("fused")
    for got, want in zip(compiled(q, bias), with_bias(jax)(q, bias), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_large_scores_and_rows_that_see_nothing() -> None:
    """Scores in the thousands overflow nothing; queries without keys make all NaN that JAX's do."""
    q, k, v = _normal(1, 1, 40, 16) * 50, _normal(1, 1, 64, 16) * 50, _normal(1, 1, 64, 16)
    seen = np.tri(40, 64, -3, dtype=bool)

    def attention(m: Any, low: float) -> Any:
        return lambda m, *x: _einsum(m, *x, lambda m, s: m.numpy.where(seen, s, low))

    for low in (-1e30, -np.inf):
        got = _gradient(lamina, attention(lamina, low))(q, k, v)
        want = _gradient(jax, attention(jax, low))(q, k, v)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=2e-3, atol=2e-3)


def test_same_bits_with_any_number_of_threads() -> None:
    q, k, v = _normal(1, 1, 500, 32), _normal(1, 1, 300, 32), _normal(1, 1, 300, 32)
    compiled = _gradient(lamina, _einsum).lower(q, k, v).compile()
    once = [np.asarray(x) for x in compiled(q, k, v)]
    before = lamina.get_num_threads()
    lamina.set_num_threads(1)
    try:
        for a, b in zip(once, compiled(q, k, v), strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        lamina.set_num_threads(before)


def test_few_scores_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix that is in cache anyway: the kernel would take longer to compile, and to run."""
    monkeypatch.undo()
    q, k, v = (_normal(1, 2, 64, 16) for _ in range(3))
    fused = _gradient(lamina, _einsum).lower(q, k, v).compile().as_text("fused")
    assert "attention" not in fused.replace("jit_attention", "")


def test_long_chains_of_products_are_no_attention() -> None:
    """Each looked at only so far: such programs had overrun Python's stack."""

    def loss(w: Any, x: Any) -> Any:
        for _ in range(150):
            x = lamina.numpy.exp(-((x @ w) ** 2)) / (1 + x.sum())
        return x.sum()

    w = np.eye(8, dtype=np.float32)
    fused = lamina.jit(lamina.grad(loss)).lower(w, w).compile().as_text("fused")
    assert "attention" not in fused
