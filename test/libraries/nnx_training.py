"""flax.nnx: a net with state trained by Adam, split and merged, copies of a layer under vmap."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

rng = np.random.default_rng(0)
x = jnp.asarray(rng.normal(size=(16, 6)).astype("float32"))
y = jnp.asarray(rng.integers(0, 3, 16))


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(6, 8, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.second = nnx.Linear(8, 3, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.second(self.dropout(nnx.relu(self.norm(self.first(x)))))


net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(net, optimizer):
    def loss(net):
        return optax.softmax_cross_entropy_with_integer_labels(net(x), y).mean()

    value, gradient = nnx.value_and_grad(loss)(net)
    optimizer.update(net, gradient)
    return value


losses = [float(step(net, optimizer)) for _ in range(4)]
net.eval()
graph, params, rest = nnx.split(net, nnx.Param, ...)
doubled = nnx.merge(graph, jax.tree.map(lambda v: 2 * v, params), rest)


@nnx.vmap(in_axes=0, out_axes=0)
def make(rngs):
    return nnx.Linear(6, 2, rngs=rngs)


@nnx.vmap(in_axes=(0, None))
def apply(layer, x):
    return layer(x)


layers = make(nnx.Rngs(1).fork(split=3))


@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def through(x, layer):
    return jnp.tanh(layer(x))


stack = nnx.vmap(lambda rngs: nnx.Linear(6, 6, rngs=rngs))(nnx.Rngs(2).fork(split=3))
print(
    json.dumps(
        {
            "losses": losses,
            "calls": int(net.calls[...]),
            "scores": net(x).tolist(),
            "doubled": doubled(x).tolist(),
            "several": apply(layers, x).tolist(),
            "scanned": through(x, stack).tolist(),
            "mean": net.norm.mean[...].tolist(),
        }
    )
)
