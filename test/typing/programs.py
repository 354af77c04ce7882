"""Typed programs as users write them: what type checkers say of each result is asserted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import Array, lax

Params = dict[str, Array]
x = jnp.ones(3)


def loss(params: Params, x: Array, y: Array) -> Array:
    return jnp.mean((jnp.dot(x, params["w"]) + params["b"] - y) ** 2)


def scaled(x: Array, factor: int = 2, *, shift: float = 0.0) -> Array:
    return x * factor + shift


class State(NamedTuple):
    position: Array
    steps: int


params: Params = {"w": jnp.zeros(3), "b": jnp.zeros(())}

# Arrays: functions, operators, methods, properties.
assert_type(x, Array)
assert_type(jnp.array([1.0, 2.0]), Array)
assert_type(jnp.asarray(np.ones(2)), Array)
assert_type(jnp.arange(3), Array)
assert_type(jnp.linspace(0, 1, 5), Array)
assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
assert_type(jnp.where(x > 0, x, 0.0), Array)
assert_type(jnp.where(x > 0), tuple[Array, ...])
assert_type(jnp.concatenate([x, x]), Array)
assert_type(jnp.exp(1.0), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.maximum(x, 0), Array)
assert_type(jnp.einsum("i,i->", x, x), Array)
assert_type(jnp.unique(x), Array)
assert_type(jnp.linalg.solve(jnp.eye(3), x), Array)
assert_type(jnp.linalg.svd(jnp.eye(3), compute_uv=False), Array)
assert_type(jnp.linalg.svd(jnp.eye(3)).S, Array)
assert_type(jnp.fft.fft(x), Array)
assert_type(-x + 1 - 2.5 * x / x**2 % 3, Array)
assert_type(1 / x, Array)
assert_type(x @ x, Array)
assert_type(x == 1, Array)
assert_type((x < 1) & ~(x > 2), Array)
assert_type(x[0], Array)
assert_type(x[None, ::2], Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, np.dtype[Any])
assert_type(x.ndim + x.size, int)
assert_type(x.T, Array)
assert_type(x.sum(axis=0, keepdims=True), Array)
assert_type(x.astype(jnp.int32).reshape(3, 1).mean(), Array)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.at[1:].add(x[1:], mode="drop"), Array)
assert_type(x.block_until_ready(), Array)
assert_type(float(x[0]), float)
assert_type(np.asarray(x).shape, tuple[Any, ...])
assert_type([row for row in x], list[Array])
assert_type(lax.dot_general(x, x, (((0,), (0,)), ((), ()))), Array)
assert_type(lamina.nn.relu(x), Array)
assert_type(lamina.random.normal(lamina.random.key(0), (3,)), Array)

# jit: the function's signature, with stages.
fast = lamina.jit(scaled)
assert_type(fast(x, 3, shift=1.0), Array)
assert_type(lamina.jit(loss)(params, x, x), Array)
assert_type(fast.lower(x).as_text(), str)
assert_type(fast.lower(x).compile().as_text("fused"), str)
assert_type(fast.trace(x).lower().as_text(), str)
fast.clear_cache()


@lamina.jit
def squared(x: Array) -> Array:
    return x * x


@lamina.jit(static_argnums=1)
def power(x: Array, n: int) -> Array:
    return x**n


@partial(lamina.jit, static_argnames=("n",))
def repeated(x: Array, n: int) -> Array:
    return jnp.tile(x, n)


class Model:
    weights: Array = x

    @lamina.jit(static_argnums=0)
    def apply(self, x: Array) -> Array:
        return x @ self.weights

    @partial(lamina.jit, static_argnums=0)
    def steps(self, x: Array) -> Array:
        return x


assert_type(squared(x), Array)
assert_type(power(x, 3), Array)
assert_type(power.lower(x, 3).as_text(), str)
repeated(x, n=2)
assert_type(Model().apply(x), Array)
Model().steps(x)

# Derivatives: of the first argument's type.
assert_type(lamina.grad(loss)(params, x, x), dict[str, Array])
assert_type(lamina.value_and_grad(loss)(params, x, x), tuple[Array, dict[str, Array]])
assert_type(lamina.jit(lamina.value_and_grad(loss))(params, x, x), tuple[Array, dict[str, Array]])
assert_type(lamina.grad(loss, argnums=(1, 2))(params, x, x), tuple[Any, ...])
assert_type(lamina.grad(jnp.sin)(1.0), Array)
lamina.grad(lambda x: x**2)(2.0)
lamina.grad(lambda x, y: jnp.sum(x.T @ y), argnums=1)(x, x)


def with_aux(x: Array) -> tuple[Array, dict[str, int]]:
    return x.sum(), {"size": x.size}


def of_float(x: float) -> float:
    return x * x


assert_type(lamina.grad(with_aux, has_aux=True)(x), tuple[Array, dict[str, int]])
assert_type(lamina.value_and_grad(with_aux, has_aux=True)(x), tuple[tuple[Array, dict[str, int]], Array])
assert_type(lamina.grad(of_float)(2.0), Array)
assert_type(lamina.jvp(squared, (x,), (x,)), tuple[Array, Array])
value, pull = lamina.vjp(squared, x)
assert_type(value, Array)
pull(value)
value, push = lamina.linearize(squared, x)
assert_type(push(x), Array)
assert_type(lamina.jacfwd(squared)(x), Array)
assert_type(lamina.jacobian(squared)(x), Array)
assert_type(lamina.hessian(squared)(x), Array)
lamina.jacrev(loss)(params, x, x)["w"]

# Other transformations.
assert_type(lamina.vmap(scaled, in_axes=(0, None))(x, 2), Array)
assert_type(lamina.vmap(lamina.grad(loss), in_axes=(None, 0, 0))(params, x, x), dict[str, Array])
assert_type(lamina.pmap(squared)(jnp.ones((1, 3))), Array)
assert_type(lamina.checkpoint(scaled)(x, factor=3), Array)
assert_type(lamina.named_call(scaled, name="scale")(x), Array)
assert_type(lamina.eval_shape(squared, x).shape, tuple[int, ...])


@partial(lamina.checkpoint, policy=lamina.checkpoint_policies.dots_saveable)
def layer(x: Array) -> Array:
    return jnp.sin(x)


@lamina.checkpoint(prevent_cse=False)
def block(x: Array) -> Array:
    return jnp.sin(x)


@lamina.custom_jvp
def f(x: Array) -> Array:
    return jnp.sin(x)


@f.defjvp
def f_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return f(*primals), jnp.cos(primals[0]) * tangents[0]


@lamina.custom_vjp
def g(x: Array, y: Array) -> Array:
    return jnp.sin(x) * y


def g_fwd(x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    return g(x, y), (x, y)


def g_bwd(kept: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
    x, y = kept
    return jnp.cos(x) * y * ct, jnp.sin(x) * ct


g.defvjp(g_fwd, g_bwd)


@partial(lamina.custom_vjp, nondiff_argnums=(0,))
def applied(fun: Callable[[Array], Array], x: Array) -> Array:
    return fun(x)


applied.defvjp(lambda fun, x: (fun(x), None), lambda fun, kept, ct: (ct,))
assert_type(block(x), Array)
layer(x)
assert_type(f(x), Array)
assert_type(g(x, x), Array)
assert_type(lamina.jit(g)(x, x), Array)
applied(jnp.sin, x)

# Control flow.
def added(i: int, x: Array) -> Array:
    return x + i


assert_type(lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), Array)
# Lambdas: what they are given follows from the operands.
assert_type(lax.cond(x[0] > 0, lambda x: x + 1, lambda x: x * 2, x), Array)
assert_type(lax.cond(True, lambda x, y: (x, y), lambda x, y: (y, x), x, x), tuple[Array, Array])
assert_type(lax.cond(True, lambda p: p["w"], lambda p: p["w"] + p["b"], params), Array)
assert_type(lax.cond(True, lambda p, y: {"w": p["w"] * y, "b": p["b"]}, lambda p, y: p, params, 2.0), Params)
assert_type(lax.cond(True, lambda a, b, c: a + b * c, lambda a, b, c: a, x, x, 2), Array)
assert_type(lax.cond(True, lambda: x[0], lambda: 2.0), Array)
assert_type(lax.cond(True, lambda x: x, lambda x: -x, operand=x), Array)
assert_type(lamina.vjp(lambda p: p["w"] * 2, params)[0], Array)
assert_type(lamina.linearize(lambda x: x * 2, x)[0], Array)
assert_type(lax.cond(True, squared, squared, 2.0), Array)
assert_type(lax.switch(1, [jnp.sin, jnp.cos], x), Array)
lax.fori_loop(0, 3, lambda i, x: x + i, x)
assert_type(lax.fori_loop(0, 3, added, 1.0), Array)
lax.while_loop(lambda x: x < 10, lambda x: x + 1, 0)
assert_type(
    lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2), (x[0], x)), tuple[Array, Array]
)
assert_type(lax.scan(lambda c, x: (c + x, c * x), 0.0, x), tuple[Array, Array])
assert_type(lax.map(jnp.sin, x), Array)
assert_type(lax.associative_scan(jnp.add, x), Array)


def move(state: State, by: Array) -> tuple[State, Array]:
    return State(state.position + by, state.steps), state.position


assert_type(lax.scan(move, State(x[0], 0), x), tuple[State, Array])
assert_type(lax.scan(move, State(x[0], 0), np.ones(3)), tuple[State, Array])
assert_type(lax.stop_gradient(params), dict[str, Array])
assert_type(lamina.device_put(np.ones(2)), Array)
assert_type(lamina.device_put(params), dict[str, Array])
assert_type(lamina.block_until_ready(params), dict[str, Array])


def untyped(x: Any, y: Any) -> Any:
    return x + y


lamina.jit(untyped)(x, y=2)
lamina.grad(untyped)(1.0, 2.0)
lamina.vmap(untyped)(x, x)
lax.fori_loop(0, 3, untyped, x)
