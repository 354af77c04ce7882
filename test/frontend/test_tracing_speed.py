"""Tracing and lowering stay fast, and grow with the program and not faster."""

import time

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina.jaxpr_io import parse_jaxpr

X = np.ones((8, 8), np.float32)


def unrolled(steps):
    def f(x, w):
        for _ in range(steps):
            x = jnp.sin(x) * 1.1 + jnp.cos(x @ w)
        return x

    return f


def seconds(work, tries=3):
    """The least time of several tries: others share the machine."""
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def test_thousand_equations_are_traced_and_lowered_within_a_second():
    f = unrolled(200)
    assert len(lamina.jit(lambda x, w: f(x, w)).trace(X, X).jaxpr.eqns) == 1000
    assert seconds(lambda: lamina.jit(lambda x, w: f(x, w)).lower(X, X)) < 1.0


def test_gradients_grow_with_the_number_of_steps():
    def traced(steps):
        f = unrolled(steps)
        return lamina.jit(lamina.grad(lambda x, w: f(x, w).sum())).trace(X, X)

    sizes = [len(traced(n).jaxpr.eqns) for n in (50, 100, 200)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 20 * 200
    assert seconds(lambda: traced(200)) < 1.5
    assert seconds(lambda: traced(400)) < 4 * seconds(lambda: traced(100)) * 1.8


def test_nested_jits_are_lowered_once_each():
    # A chain of n functions that call each other twice is n private functions, not 2**n.
    def level(inner):
        return lamina.jit(lambda x: inner(x) * inner(x + 1))

    f = jnp.sin
    for _ in range(14):
        f = level(f)
    text = []
    assert seconds(lambda: text.append(lamina.jit(f).lower(1.0).as_text()), tries=1) < 5.0
    assert text[0].count("func.func private") <= 14


def test_printing_shares_repeated_programs():
    def level(inner):
        return lamina.jit(lambda x: inner(x) * inner(x + 1))

    f = jnp.sin
    for _ in range(12):
        f = level(f)
    text = str(lamina.make_jaxpr(f)(1.0))
    assert len(text) < 10_000
    assert str(parse_jaxpr(text)) == text


def test_tracing_a_second_call_costs_nothing():
    f = lamina.jit(unrolled(100))
    f.trace(X, X)
    assert seconds(lambda: f.trace(X, X)) < 0.01
