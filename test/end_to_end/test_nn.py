"""lamina.nn against JAX: values, dtypes, gradients, also where they are delicate."""

import functools

import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, assert_same, check, check_all

import lamina
from lamina import nn

X = np.array([-30.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.5, 30.0], np.float32)
M = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
ACTIVATIONS = """relu relu6 sigmoid softplus silu swish gelu elu leaky_relu celu selu log_sigmoid hard_tanh
hard_sigmoid hard_silu hard_swish soft_sign mish squareplus sparse_plus sparse_sigmoid identity tanh""".split()


def _nn(m):
    return m.module.nn


def test_activations():
    check_all(lambda m, x: {n: getattr(_nn(m), n)(x) for n in ACTIVATIONS}, X, jit=True, rtol=1e-5)
    check_all(lambda m, x: {n: getattr(_nn(m), n)(x) for n in ACTIVATIONS}, X.astype(np.float16), jit=True, rtol=5e-3,
              atol=1e-3)  # fmt: skip


def test_gradients_of_activations():
    def program(m, x):
        return {n: m.grad(lambda v, n=n: getattr(_nn(m), n)(v).sum())(x) for n in ACTIVATIONS}

    check_all(program, X, jit=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["relu", "sigmoid", "softplus", "gelu", "leaky_relu", "silu", "elu", "hard_tanh"]
)
def test_eager_scalars_and_integers(name):
    check(lambda m: getattr(_nn(m), name)(1.0))
    if name not in ("sigmoid", "silu"):  # these JAX refuses
        check(lambda m: getattr(_nn(m), name)(np.arange(-2, 3)))


def test_parameters_of_activations():
    check(lambda m: _nn(m).gelu(X, approximate=False), rtol=1e-4)
    check(
        lambda m: m.grad(lambda x: _nn(m).gelu(x, approximate=False).sum())(X), rtol=1e-4, atol=1e-5
    )
    check(lambda m: _nn(m).elu(X, 0.3))
    check(lambda m: _nn(m).celu(X, 2.0))
    check(lambda m: _nn(m).leaky_relu(X, 0.2))
    check(lambda m: _nn(m).squareplus(X, 2))
    check(lambda m: _nn(m).glu(M))
    check(lambda m: _nn(m).glu(M[:2], axis=0))
    with pytest.raises(ValueError, match="must be divisible by 2"):
        nn.glu(M, axis=0)


def test_relu():
    assert lamina.grad(nn.relu)(0.0) == 0.0 and lamina.grad(nn.relu)(1.0) == 1.0
    assert "max" in str(lamina.make_jaxpr(nn.relu)(X))
    check(lambda m: m.vmap(m.grad(_nn(m).relu))(X))
    check(lambda m: m.jvp(_nn(m).relu, (X,), (np.ones_like(X),)))
    check(lambda m: m.hessian(lambda x: (_nn(m).relu(x) ** 2).sum())(X[3:6]))


ROWS = np.array(
    [[1.0, 2.0, 3.0, -1.0], [100.0, 0.0, -100.0, 100.0], [-np.inf, 0.0, 1.0, -np.inf]], np.float32
)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_softmax_and_kin(name):
    for axis in (-1, 0, (0, 1)):
        check(lambda m, a=axis: getattr(_nn(m), name)(ROWS, axis=a))
    check(lambda m: getattr(_nn(m), name)(M, axis=1, where=M > -0.3), rtol=1e-4)
    check(lambda m: getattr(_nn(m), name)(np.full((2, 2), -np.inf, np.float32), axis=1))
    check(
        lambda m: m.grad(lambda x: (getattr(_nn(m), name)(x, axis=-1) * M[:, :1]).sum())(M),
        rtol=1e-4,
    )
    assert getattr(nn, name)(np.arange(3), axis=0).dtype == np.float32
    check(lambda m: m.jit(functools.partial(getattr(_nn(m), name), axis=-1))(ROWS.astype(np.float16)), rtol=2e-3,
          atol=2e-3)  # fmt: skip


def test_logsumexp():
    b = np.array([1.0, -2.0, 0.5, 0.0], np.float32)
    check(lambda m: _nn(m).logsumexp(M))
    check(lambda m: _nn(m).logsumexp(M, keepdims=True))
    check(lambda m: _nn(m).logsumexp(M, axis=1, b=b, return_sign=True), rtol=1e-4)
    check(lambda m: _nn(m).logsumexp(M, axis=1, b=b), rtol=1e-4)
    check(lambda m: _nn(m).logsumexp(ROWS, axis=0))
    check(lambda m: m.grad(_nn(m).logsumexp)(np.array([1000.0, 1000.0], np.float32)))
    check(lambda m: _nn(m).logmeanexp(M, axis=1))


def test_standardize():
    check(lambda m: _nn(m).standardize(M), rtol=1e-4, atol=1e-5)
    check(lambda m: _nn(m).standardize(M, axis=(0, 1), epsilon=0.1), rtol=1e-4, atol=1e-5)
    check(lambda m: _nn(m).standardize(M, mean=0.5, variance=2.0))


def test_one_hot():
    i = np.array([[0, 3], [-1, 1]])
    check(lambda m: _nn(m).one_hot(i, 3))
    check(lambda m: _nn(m).one_hot(i, 4, axis=0, dtype="int8"))
    check(lambda m: _nn(m).one_hot(i, 4, axis=1))
    check(lambda m: _nn(m).one_hot(2, 3))
    check(lambda m: m.vmap(lambda k: _nn(m).one_hot(k, 3))(i[:, 0]))


def test_attention():
    rng = np.random.default_rng(1)
    q, k, v = (
        rng.normal(size=(2, n, h, 8)).astype(np.float32) for n, h in ((5, 4), (6, 2), (6, 2))
    )
    check(lambda m: _nn(m).dot_product_attention(q, k, v), rtol=1e-4, atol=1e-5)
    check(lambda m: _nn(m).dot_product_attention(q[0], k[0], v[0], scale=0.3), rtol=1e-4, atol=1e-5)
    bias = rng.normal(size=(1, 4, 5, 6)).astype(np.float32)
    check(lambda m: _nn(m).dot_product_attention(q, k, v, bias, bias > -1), rtol=1e-4, atol=1e-5)
    check(
        lambda m: _nn(m).dot_product_attention(q, k[:, :5], v[:, :5], is_causal=True),
        rtol=1e-4,
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="shape should be"):
        nn.dot_product_attention(q, k[..., :4], v)


INITIALIZERS = """glorot_normal glorot_uniform lecun_normal lecun_uniform he_normal he_uniform xavier_normal
xavier_uniform kaiming_normal kaiming_uniform normal uniform truncated_normal""".split()


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name):
    def program(m):
        key = m.module.random.PRNGKey(3)
        return getattr(m.module.nn.initializers, name)()(key, (5, 7), m.np.float32)

    check(program, rtol=1e-6)


def test_other_initializers():
    def program(m):
        init, key = m.module.nn.initializers, m.module.random.key(0)
        return [
            init.zeros(key, (2,)), init.ones(key, (2, 3), m.np.float16), init.constant(4)(key, (2,)),
            init.variance_scaling(2.0, "fan_out", "normal")(key, (3, 3, 4, 5)),
            init.variance_scaling(1.0, "fan_geo_avg", "uniform", in_axis=0, out_axis=(1, 2))(key, (3, 4, 5)),
        ]  # fmt: skip

    assert_same(program(LAMINA), program(JAX), rtol=1e-6)
    with pytest.raises(ValueError, match="Must be at least 2D"):
        nn.initializers.he_normal()(lamina.random.key(0), (3,))
