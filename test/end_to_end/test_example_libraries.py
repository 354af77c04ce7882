"""example_libraries (stax, optimizers) against JAX's."""

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as jax_optimizers
from jax.example_libraries import stax as jax_stax

import lamina
import lamina.numpy as jnp
from lamina.example_libraries import optimizers, stax

LAYERS = {
    "dense": (lambda s: s.Dense(5), (4, 3)),
    "convolution": (lambda s: s.Conv(3, (3, 2), (2, 1), "SAME"), (2, 7, 6, 2)),
    "general": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NHWC"), 3, (2, 2)), (2, 2, 5, 6)),
    "transposed": (lambda s: s.ConvTranspose(3, (3, 2), (2, 2), "SAME"), (2, 4, 3, 2)),
    "transposed rows": (lambda s: s.Conv1DTranspose(3, (3,)), (2, 4, 2)),
    "norm": (lambda s: s.BatchNorm(), (3, 4, 4, 2)),
    "norm of columns": (lambda s: s.BatchNorm(axis=0, center=False), (6, 2)),
    "maxima": (lambda s: s.MaxPool((2, 2), (2, 2)), (2, 5, 6, 2)),
    "means": (lambda s: s.AvgPool((3, 2), padding="SAME"), (2, 5, 6, 2)),
    "sums, channels first": (lambda s: s.SumPool((2, 2), spec="NCHW"), (2, 2, 5, 6)),
    "dropout": (lambda s: s.Dropout(0.6), (4, 5)),
    "elementwise": (
        lambda s: s.serial(*(getattr(s, n) for n in "Tanh Gelu Elu Selu LeakyRelu Softplus".split())),
        (3, 4),
    ),
    "parallel": (
        lambda s: s.serial(
            s.FanOut(3),
            s.parallel(s.Dense(4), s.serial(s.Dense(4), s.Sigmoid), s.Identity),
            s.FanInConcat(),
            s.FanOut(2),
            s.parallel(s.Exp, s.Relu),
            s.FanInSum,
            s.Softmax,
        ),
        (2, 3),
    ),
    "shape": (lambda s: s.serial(s.Flatten, s.shape_dependent(lambda n: s.Dense(n[-1]))), (2, 3, 2)),
}  # fmt: skip


def run_layer(lib, module, make, shape):
    init, apply = make(module)
    out_shape, params = init(lib.random.key(1), shape)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    run = lib.jit(lambda params, x: apply(params, x, rng=lib.random.key(2)))
    return tuple(out_shape), params, run(params, x)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    out_shape, params, out = run_layer(lamina, stax, make, shape)
    expected_shape, expected_params, expected = run_layer(jax, jax_stax, make, shape)
    assert out_shape == expected_shape == out.shape
    got, wanted = lamina.tree.leaves(params), jax.tree.leaves(expected_params)
    assert [x.shape for x in got] == [x.shape for x in wanted]
    for x, y in zip([*got, out], [*wanted, expected], strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def test_a_batch_of_any_size_and_no_key():
    init, _ = stax.serial(stax.Conv(4, (3, 3)), stax.MaxPool((2, 2)), stax.Flatten, stax.Dense(2))
    assert init(lamina.random.key(0), (-1, 6, 6, 1))[0] == (-1, 2)
    with pytest.raises(ValueError, match="PRNG key"):
        stax.Dropout(0.5)[1]((), jnp.ones(3))


OPTIMIZERS = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,),
    "rmsprop": (0.1,), "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}  # fmt: skip
SCHEDULES = {
    "constant": (0.1,), "exponential_decay": (0.1, 3, 0.5), "inverse_time_decay": (0.1, 3, 0.5, True),
    "polynomial_decay": (0.1, 4, 0.01, 2.0), "piecewise_constant": ([1, 3], [0.1, 0.2, 0.3]),
}  # fmt: skip


def run_optimizer(lib, module, optimizer):
    params = {"w": lib.numpy.array([[1.0, -2], [0.5, 3], [0, 0]]), "b": (lib.numpy.array([1.0, 2]),)}
    init, update, get_params = optimizer

    def loss(p):
        return ((p["w"] @ p["b"][0]) ** 2).sum() + (p["w"] ** 4).sum()

    @lib.jit
    def gradient(params):
        return module.clip_grads(lib.grad(loss)(params), 5.0)

    opt_state = init(params)
    for i in range(3):
        opt_state = update(i, gradient(get_params(opt_state)), opt_state)
    marked = module.unpack_optimizer_state(opt_state)
    assert isinstance(marked["b"][0], module.JoinPoint)
    return lib.tree.leaves(get_params(module.pack_optimizer_state(marked)))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    got = run_optimizer(lamina, optimizers, getattr(optimizers, name)(*OPTIMIZERS[name]))
    wanted = run_optimizer(jax, jax_optimizers, getattr(jax_optimizers, name)(*OPTIMIZERS[name]))
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    got = getattr(optimizers, name)(*SCHEDULES[name])
    wanted = getattr(jax_optimizers, name)(*SCHEDULES[name])
    np.testing.assert_allclose([got(i) for i in range(6)], [wanted(i) for i in range(6)], rtol=1e-6)
    x = optimizers.adam(got).init_fn(jnp.ones(2))
    assert optimizers.adam(got).update_fn(0, jnp.ones(2), x).packed_state[0][0].shape == (2,)


def test_what_optimizers_refuse():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, [jnp.ones(2)], init({"a": jnp.ones(2)}))
    with pytest.raises(ValueError, match="one shorter"):
        optimizers.piecewise_constant([1], [2])
    with pytest.raises(TypeError):
        optimizers.make_schedule(jnp.ones(2))
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state([1.0])
