"""Optimisers as three functions.

    init, update, get_params = optimizers.adam(1e-3)
    state = init(params)                                      # params: any pytree
    state = update(step, lamina.grad(loss)(get_params(state)), state)

A step size is a number, or a function of the number of the step (a schedule).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from lamina import numpy as jnp
from lamina import tree, tree_util
from lamina.example_libraries.schedules import constant as constant
from lamina.example_libraries.schedules import exponential_decay as exponential_decay
from lamina.example_libraries.schedules import inverse_time_decay as inverse_time_decay
from lamina.example_libraries.schedules import make_schedule as make_schedule
from lamina.example_libraries.schedules import piecewise_constant as piecewise_constant
from lamina.example_libraries.schedules import polynomial_decay as polynomial_decay

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip


class OptimizerState(NamedTuple):
    """The state of each parameter, flat; the structure of the parameters, those of the states."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda defs, packed: OptimizerState(packed[0], *defs),
)


class Optimizer(NamedTuple):
    """init(params) -> state, update(step, gradient, state) -> state, params(state) -> params."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def _pack(states: list[Any], structure: Any) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(tuple(f[0] for f in flat), structure, tuple(f[1] for f in flat))


def _unpack(state: OptimizerState) -> list[Any]:
    return [tree.unflatten(d, s) for d, s in zip(state.subtree_defs, state.packed_state)]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Makes an optimiser of pytrees out of one of arrays.

    opt_maker  gives (init, update, get_params) for one array: init(x) -> state,
               update(step, gradient, state) -> state, get_params(state) -> x.

    The update raises TypeError where the gradient's structure is not that of the parameters.

    >>> @lamina.example_libraries.optimizers.optimizer
    ... def descent(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * g, lambda x: x
    >>> init, update, get_params = descent(0.5)
    >>> print(get_params(update(0, {"w": 2.0}, init({"w": 3.0}))))
    {'w': 2.0}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init_one, update_one, params_of_one = opt_maker(*args, **kwargs)

        def init(params: Any) -> OptimizerState:
            leaves, structure = tree.flatten(params)
            return _pack([init_one(x) for x in leaves], structure)

        def update(step: Any, gradient: Any, state: OptimizerState) -> OptimizerState:
            gradients, structure = tree.flatten(gradient)
            if structure != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    f"parameter tree structure with which it was initialized: parameter tree "
                    f"{state.tree_def} and grad tree {structure}."
                )
            new = _pack(
                [update_one(step, g, s) for g, s in zip(gradients, _unpack(state), strict=True)],
                structure,
            )
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match "
                        f"its input structure: input {before} and output {after}."
                    )
            return new

        def get_params(state: OptimizerState) -> Any:
            return tree.unflatten(state.tree_def, [params_of_one(s) for s in _unpack(state)])

        return Optimizer(init, update, get_params)

    return make


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent: x - step_size * gradient.

    step_size  a number, or a schedule: a function of the step's number.

    >>> init, update, get_params = lamina.example_libraries.optimizers.sgd(0.5)
    >>> print(get_params(update(0, 2.0, init(3.0))))
    2.0
    """
    size = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - size(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent along a velocity: v = mass * v + gradient, x - step_size * v.

    step_size  a number, or a schedule.
    mass       the share of the velocity that is left in each step.

    >>> init, update, get_params = lamina.example_libraries.optimizers.momentum(0.5, mass=0.9)
    >>> print(get_params(update(1, 2.0, update(0, 2.0, init(3.0)))).round(3))
    0.1
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return (lambda x: (x, jnp.zeros_like(x))), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum, which looks ahead along the velocity.

    step_size  a number, or a schedule.
    mass       the share of the velocity that is left in each step.

    >>> init, update, get_params = lamina.example_libraries.optimizers.nesterov(0.5, mass=0.9)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    1.1
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return (lambda x: (x, jnp.zeros_like(x))), update, _first


def _zeros_beside(count: int) -> Callable[[Any], Any]:
    return lambda x: (x, *(jnp.zeros_like(x) for _ in range(count)))


def _inverse_root(squares: Any) -> Any:
    return jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Steps that shrink with the sum of squared gradients (Duchi, Hazan and Singer, 2011).

    step_size  a number, or a schedule.
    momentum   the share of the velocity that is left in each step.

    >>> init, update, get_params = lamina.example_libraries.optimizers.adagrad(0.5)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    2.95
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return _zeros_beside(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Gradients divided by the root of their running mean square.

    step_size  a number, or a schedule.
    gamma      the share of the mean square that stays in each step.
    eps        what is added to it.

    >>> init, update, get_params = lamina.example_libraries.optimizers.rmsprop(0.1)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    2.684
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _zeros_beside(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """rmsprop whose steps go along a velocity.

    step_size  a number, or a schedule.
    gamma      the share of the mean square that stays in each step.
    eps        what is added to it.
    momentum   the share of the velocity that is left in each step.

    >>> init, update, get_params = lamina.example_libraries.optimizers.rmsprop_momentum(0.1)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    2.684
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _zeros_beside(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma & Ba, 2015): running means of the gradient and its square, corrected for their
    start.

    step_size  a number, or a schedule.
    b1, b2     the shares of the two means that stay in each step.
    eps        what is added to the root of the mean square.

    >>> init, update, get_params = lamina.example_libraries.optimizers.adam(0.1)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    2.9
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - size(i) * mean / (jnp.sqrt(square) + eps), m, v

    return _zeros_beside(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam by the largest gradient of late in place of the mean square (Kingma & Ba, 2015).

    step_size  a number, or a schedule.
    b1, b2     the shares of the mean and of the largest gradient that stay in each step.
    eps        what is added to the latter.

    >>> init, update, get_params = lamina.example_libraries.optimizers.adamax(0.1)
    >>> print(get_params(update(0, 2.0, init(3.0))).round(3))
    2.9
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        step = size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - step * m / (largest + eps), m, largest

    return _zeros_beside(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """adagrad that keeps one number for each row of each axis, not for each parameter (Anil et al.,
    2019, arXiv:1901.11150).

    step_size  a number, or a schedule.
    momentum   the share of the velocity that is left in each step.

    >>> init, update, get_params = lamina.example_libraries.optimizers.sm3(0.5)
    >>> x = update(0, jnp.ones((2, 2)), init(jnp.zeros((2, 2))))
    >>> print(get_params(x).round(3))
    [[-0.05 -0.05]
     [-0.05 -0.05]]
    """
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        shape, x = x.shape, jnp.atleast_1d(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, rows, shape = state
        others = [tuple(b for b in range(x.ndim) if b != a) for a in range(x.ndim)]
        g = jnp.reshape(g, x.shape)
        least = functools.reduce(jnp.minimum, map(jnp.expand_dims, rows, others))
        squares = least + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, m, [squares.max(axes) for axes in others], shape

    return init, update, lambda state: state[0].reshape(state[3])


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all leaves.

    tree  a tree of arrays of floats.

    >>> print(lamina.example_libraries.optimizers.l2_norm({"a": jnp.array([3.0]), "b": 4.0}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The gradient, made shorter where its l2_norm exceeds a bound.

    grad_tree  a tree of arrays of floats.
    max_norm   the bound.

    >>> print(lamina.example_libraries.optimizers.clip_grads(jnp.array([3.0, 4.0]), 1.0).round(3))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Where in a tree of parameters the state of one of them hangs."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of parameters with a JoinPoint for each, which holds its state: for saving.

    opt_state  the state that init or update gave.

    >>> optimizers = lamina.example_libraries.optimizers
    >>> state = optimizers.momentum(0.1, 0.9)[0]({"w": 3.0})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    (3.0, Array(0., dtype=float32, weak_type=True))
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(s) for s in _unpack(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of unpack_optimizer_state.

    marked_pytree  a tree whose leaves are JoinPoints; TypeError where one is not.

    >>> optimizers = lamina.example_libraries.optimizers
    >>> init, _, get_params = optimizers.momentum(0.1, 0.9)
    >>> saved = optimizers.unpack_optimizer_state(init({"w": 3.0}))
    >>> get_params(optimizers.pack_optimizer_state(saved))
    {'w': 3.0}
    """
    leaves, structure = tree.flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"a JoinPoint was expected as a leaf, not {leaf!r}")
    return _pack([leaf.subtree for leaf in leaves], structure)
