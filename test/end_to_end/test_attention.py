"""nn.dot_product_attention with all its arguments, and block-scaled products."""

import jax
import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

pytestmark = pytest.mark.usefixtures("attention_of_any_size")

_R = np.random.RandomState(0)
_Q = _R.randn(2, 5, 4, 8).astype(np.float32)
_K, _V = (_R.randn(2, 6, 2, 8).astype(np.float32) for _ in range(2))
_BIAS = _R.randn(1, 4, 5, 6).astype(np.float32)
_MASK = _R.rand(2, 1, 5, 6) > 0.3
_LENGTHS = {"query_seq_lengths": np.int32([2, 5]), "key_value_seq_lengths": np.int32([3, 6])}
_CALLS = [
    {}, {"bias": _BIAS, "scale": 0.3}, {"mask": _MASK}, {"is_causal": True}, _LENGTHS,
    {"local_window_size": 1}, {"local_window_size": (2, 0), "is_causal": True, "implementation": "xla"},
    {"bias": _BIAS, "mask": _MASK, "is_causal": True, "return_residual": True, **_LENGTHS},
]  # fmt: skip


def test_attention_is_jaxs():
    half = [x.astype(ml_dtypes.bfloat16) for x in (_Q, _K, _V)]

    def calls(nn):
        out = [nn.dot_product_attention(_Q, _K, _V, **kw) for kw in _CALLS]
        out.append(nn.dot_product_attention(_Q[0], _K[0], _V[0], _BIAS[0]))
        return out, nn.dot_product_attention(*half)

    got, want = lamina.jit(lambda: calls(lamina.nn))(), jax.jit(lambda: calls(jax.nn))()
    for tolerance, g, w in zip((2e-5, 3e-2), got, want, strict=True):
        for a, b in zip(lamina.tree.leaves(g), jax.tree.leaves(w), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            a, b = (np.asarray(x, np.float32) for x in (a, b))
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_widest_heads_of_16_bits(dtype):
    """Their blocks of keys, the last of which is smaller, have room on a task's stack."""
    q, k, v = (_R.randn(1, n, 1, 256).astype(dtype) for n in (60, 190, 190))
    got = lamina.jit(lamina.nn.dot_product_attention)(q, k, v)
    want = jax.nn.dot_product_attention(*(x.astype(np.float32) for x in (q, k, v)))
    np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=2e-2, atol=5e-3)


def test_gradient_of_attention_is_jaxs():
    def loss(nn):
        return lambda q, k, v, s: nn.dot_product_attention(q, k, v, scale=s, is_causal=True).sum()

    got = lamina.jit(lamina.grad(loss(lamina.nn), (0, 1, 2, 3)))(_Q, _K, _V, 0.4)
    want = jax.jit(jax.grad(loss(jax.nn), (0, 1, 2, 3)))(_Q, _K, _V, 0.4)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": _V[:, :3]}, "value shape should be"),
        ({"mask": _BIAS}, "mask dtype should be bool"),
        ({"query": _Q[:, :, :3]}, "must be a multiple of"),
        ({"query": _Q.astype(np.float16)}, "query dtype should be float32"),
        ({"query_seq_lengths": np.int32([1, 2, 3])}, "query_seq_lengths shape"),
        ({"implementation": "flash"}, "Unsupported implementation"),
    ],
)
def test_attention_refuses_what_jax_refuses(change, message):
    call = {"query": _Q, "key": _K, "value": _V} | change
    for nn in (jax.nn, lamina.nn):
        with pytest.raises(ValueError, match=message):
            nn.dot_product_attention(**call)


def test_block_scaled_products():  # JAX's run on no CPU: the truth is the product in float32
    x, y = _R.randn(2, 32, 64).astype(np.float32), _R.randn(2, 96, 64).astype(np.float32)
    dims = (((2,), (2,)), ((0,), (0,)))
    configs = {m: [lamina.nn.get_scaled_dot_general_config(m)] * 3 for m in ("mxfp8", "nvfp4")}

    def value_and_gradients(c):
        def loss(a, b):
            out = lamina.nn.scaled_dot_general(a, b, dims, configs=c)
            return (out * jnp.cos(jnp.arange(96.0))).sum(), out

        gradients, out = lamina.grad(loss, (0, 1), has_aux=True)(x, y)
        return (out, *gradients)

    got = lamina.jit(
        lambda: {m: value_and_gradients(c) for m, c in [*configs.items(), ("f32", None)]}
    )()
    for mode, tolerance in (("mxfp8", 0.05), ("nvfp4", 0.2)):
        for g, w in zip(got[mode], got["f32"], strict=True):
            assert np.linalg.norm(g - w) < tolerance * np.linalg.norm(w), mode


def test_scaled_matmul():
    a = _R.randn(2, 4, 64).astype(ml_dtypes.float8_e4m3fn)
    b = _R.randn(2, 5, 64).astype(ml_dtypes.float8_e4m3fn)
    scales = [2.0 ** _R.randint(-3, 3, (2, n, 4)) for n in (4, 5)]
    s, t = (x.astype(ml_dtypes.float8_e8m0fnu) for x in scales)
    got = lamina.nn.scaled_matmul(a, b, s, t)
    wide = [np.float32(v) * np.repeat(np.float32(u), 16, 2) for v, u in ((a, s), (b, t))]
    np.testing.assert_allclose(got, np.einsum("bmk,bnk->bmn", *wide), rtol=1e-2, atol=1e-2)
    with pytest.raises(ValueError, match="matching batch"):
        lamina.nn.scaled_matmul(a, b[:1], s, t)
    with pytest.raises(ValueError, match="Unsupported mode"):
        lamina.nn.get_scaled_dot_general_config("int8")
