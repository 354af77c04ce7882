"""What is to be one kernel with the row in cache is one: reductions, losses and their gradients."""

from __future__ import annotations

import re

import pytest

import lamina
import lamina.numpy as jnp
from lamina import nn
from lamina.backends.stages import run_fuse, run_optimize
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.instrumentation import Instrumentation
from lamina.scipy.special import logsumexp

ROWS, COLUMNS = 64, 1000
X = jnp.ones((ROWS, COLUMNS))
LABELS = jnp.zeros(ROWS, jnp.int32)
R = jnp.ones(ROWS)


def one_hot(x, labels):
    return -jnp.sum(nn.one_hot(labels, COLUMNS) * nn.log_softmax(x), -1)


def taken(x, labels):
    return -jnp.take_along_axis(nn.log_softmax(x), labels[:, None], 1)[:, 0]


def pullback(f):
    return lambda x, c: lamina.vjp(f, x)[1](c)[0]


def batch_norm(x):
    mean, variance = jnp.mean(x, 0), jnp.var(x, 0)
    return (x - mean) / jnp.sqrt(variance + 1e-5), mean, variance


def row_variance(x):
    return jnp.var(x, 1)


def row_logsumexp(x):
    return logsumexp(x, 1)


ONE = {
    "softmax": (nn.softmax, X),
    "softmax, gradient": (pullback(nn.softmax), X, X),
    "log_softmax": (nn.log_softmax, X),
    "log_softmax, gradient": (pullback(nn.log_softmax), X, X),
    "variance": (row_variance, X),
    "logsumexp": (row_logsumexp, X),
    "logsumexp, gradient": (pullback(row_logsumexp), X, R),
    "batch norm statistics": (lambda x: (jnp.mean(x, 0), jnp.var(x, 0)), X),
    "batch norm": (batch_norm, X),
    "cross-entropy": (one_hot, X, LABELS),
    "cross-entropy, gradient": (lamina.grad(lambda *a: one_hot(*a).mean()), X, LABELS),
    "argmax": (lambda x: jnp.argmax(x, 1), X),
    "f of pairs": (lambda x, y: jnp.sum(jnp.abs(x[:, None] - y[None]), 1), R, R),
    "scan": (lambda x: jnp.cumsum(x, 1), X),
}
FEW = {  # more than one, but rows are read once and no intermediate of their size is made
    "variance, gradient": (2, pullback(row_variance), X, R),
    "mean of cross-entropy": (2, lamina.value_and_grad(lambda *a: one_hot(*a).mean()), X, LABELS),
    "cross-entropy of labels": (4, taken, X, LABELS),
    "its gradient": (2, lamina.grad(lambda *a: taken(*a).mean()), X, LABELS),
    "both": (4, lamina.value_and_grad(lambda *a: taken(*a).mean()), X, LABELS),
}


def kernels(function, *args) -> tuple[list[str], str]:
    """The kernels that @main calls, and the fused program."""
    with context(), ir.Location.unknown():
        module = parse(lamina.jit(function).lower(*args).as_text())
        run_optimize(module, Instrumentation())
        run_fuse(module, Instrumentation())
        text = str(module)
    main = text[: text.index("func.func private")]
    return re.findall(r"call @(\w+)", main), main


@pytest.mark.parametrize("name", ONE)
def test_one_kernel(name: str) -> None:
    found, main = kernels(*ONE[name])
    assert len(found) == 1, main


def test_random_numbers_are_made_in_one_pass() -> None:
    """What is before it derives the key's words."""
    found, main = kernels(lambda key: lamina.random.normal(key, (64000,)), lamina.random.key(0))
    assert len(found) <= 3, main
    assert "64000xui32>" not in main


@pytest.mark.parametrize("name", FEW)
def test_rows_stay_in_cache(name: str) -> None:
    count, *program = FEW[name]
    found, main = kernels(*program)
    assert len(found) <= count, main
    made = re.findall(r"(%\d+):?\d* = call .* -> .*tensor<64x1000xf32>", main)
    returned = main[main.index("return") :]
    assert all(name in returned for name in made), main


def test_attention_is_divided_among_threads():
    x = jnp.ones((1, 8, 512, 64))
    attention = lamina.jit(lambda q, k, v: nn.softmax(q @ k.swapaxes(-1, -2)) @ v)
    texts = attention.lower(x, x, x).compile()
    assert "fused_attention_0" in texts.as_text("fused")
    assert "lamina_parallel_for" in texts.as_text("asm")
