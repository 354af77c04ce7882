"""Random compositions of transformations over random small programs give what JAX gives."""

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.oracle.judge import LAMINA, assert_same, in_jax
from support.strategies.effort import examples

import lamina

W = np.linspace(-0.5, 0.7, 9).reshape(3, 3)
INPUT = np.array([0.3, -1.2, 0.8])


# ---- programs: functions of an array whose last size is 3, to one of the same shape ----------------
def _scan(m, x, y):
    carry, ys = m.lax.scan(lambda c, r: (m.np.tanh(c + r) * 0.9, c * r), x, m.np.stack([x, y, x * y]))
    return carry + ys[1]


def _custom(m, x):
    f = m.custom_jvp(lambda v: m.np.sin(v))
    f.defjvps(lambda t, out, v: t * (out + m.np.cos(v)))
    return f(x)


def _custom_vjp(m, x, y):
    @m.custom_vjp
    def f(a, b):
        return m.np.sin(a) * b

    f.defvjp(
        lambda a, b: (m.np.sin(a) * b, (m.np.cos(a), m.np.sin(a), b)),
        lambda res, g: (res[0] * g * res[2] * 1.5, res[1] * g),
    )
    return f(x, y)


def _checkpointed_scan(m, x, y):
    step = m.checkpoint(lambda c, r: (m.np.sin(c) * r + c, m.np.cos(r)))
    carry, ys = m.lax.scan(step, x, m.np.stack([x, y]))
    return carry * ys[0]


def _dots(m, x, y):
    policy = m.checkpoint_policies.dots_saveable
    return m.checkpoint(lambda a, b: m.np.tanh(a @ W) * m.np.sin(b @ W), policy=policy)(x, y)


def _scan_in_cond(m, x, y):
    def steps(a, b):
        return m.lax.scan(lambda c, r: (m.np.sin(c * r) + 0.3 * b, c * c), a, m.np.stack([b, a, a * b]))

    def taken(a, b):
        c, ys = steps(a, b)
        return c * ys[2]

    return m.lax.cond(m.np.sum(x) > -1, taken, lambda a, b: m.np.cos(a) * b, x, y)


def _complex(m, x, y):
    z = m.lax.complex(x, y) * (0.6 + 0.2j)
    w = m.np.exp(1j * z) / (2 + z * m.np.conj(z))
    return m.np.real(w) + m.np.imag(w * z) + m.np.abs(z + 2) * 0.1


def _integers(m, x, y):
    k = m.np.asarray(m.np.floor(x * 4), int)
    bits = (k ^ 5) & 3
    table = m.np.stack([y, y * y, m.np.sin(y), 1 - y])
    return m.np.take_along_axis(table, bits[None], 0)[0] * (k % 3)


def _solve(m, x, y):
    a = x[..., :, None] * y[..., None, :] * 0.1 + 2 * m.np.eye(3) + W * 0.1
    return m.np.linalg.solve(a, (x - y)[..., None])[..., 0] + m.np.linalg.slogdet(a)[1][..., None]


def _cholesky(m, x, y):
    a = x[..., :, None] * x[..., None, :] * 0.3 + 2 * m.np.eye(3)
    return (m.np.linalg.cholesky(a) @ y[..., None])[..., 0]


def _scatter(m, x, y):
    at = m.np.array([2, 0, 2])
    x = x.at[..., at].add(y).at[..., at[:2]].multiply(1.5 + x[..., :2], unique_indices=True)
    return x.at[..., 1].set(y[..., 0])


def _static(m, x, y):
    power = m.jit(lambda a, n, *, scale: scale * a**n, static_argnums=1, static_argnames="scale")
    inner = m.jit(lambda a, b: power(a, 2, scale=0.5) + m.jit(m.np.sin, inline=True)(b))
    return inner(x, y) * power(y, 3, scale=0.1)


def _reduced(m, x, y):
    both = m.np.stack([x, y, x * y])
    total = m.lax.reduce_window(both, np.float64(0), m.lax.add, (2, *[1] * x.ndim), (1,) * both.ndim, "VALID")
    return m.np.prod(1 + total * 0.3, 0) + m.lax.cummax(both, 0)[1] * 0.2


def _root(m, x, y):
    f = lambda v: v**3 + v - x * 0.5 - y  # noqa: E731
    solve = lambda f, start: m.lax.fori_loop(  # noqa: E731
        0, 30, lambda _, v: v - f(v) / (3 * v * v + 1), start)
    return m.lax.custom_root(f, m.np.zeros_like(x + y), solve, lambda g, b: b / g(m.np.ones_like(b)))


STEPS: dict[str, Callable[..., Any]] = {
    "scan_in_cond": _scan_in_cond,
    "complex": _complex,
    "integers": _integers,
    "solve": _solve,
    "cholesky": _cholesky,
    "scatter": _scatter,
    "static": _static,
    "reduced": _reduced,
    "root": lambda m, x, y: _root(m, x, y),
    "top_k": lambda m, x, y: m.lax.top_k(x * y, 3)[0] + m.np.sort(y, -1)[..., ::-1],
    "argsort": lambda m, x, y: m.np.take_along_axis(x, m.np.argsort(y, -1), -1) * 0.7,
    "convolve": lambda m, x, y: m.np.fft.irfft(m.np.fft.rfft(x, axis=-1) * m.np.fft.rfft(y, axis=-1), 3, axis=-1),
    "associative": lambda m, x, y: m.lax.associative_scan(lambda a, b: a * b + 0.1 * b, x, axis=-1) + y,
    "logsumexp": lambda m, x, y: x - 0.5 * m.np.log(m.np.sum(m.np.exp(x + y), -1, keepdims=True)),
    "vmapped": lambda m, x, y: m.vmap(lambda a, b: m.np.sin(a) * b, -1, -1)(x, y) + m.vmap(
        lambda a: a - m.lax.pmean(a, "k"), -1, -1, axis_name="k")(x),
    "gradient": lambda m, x, y: m.grad(lambda v: m.np.sum(m.np.sin(v) * y))(x),
    "jacobian": lambda m, x, y: m.np.sum(m.jacfwd(lambda v: v * v * y)(x), tuple(range(x.ndim))),
    "mapped": lambda m, x, y: m.lax.map(lambda r: m.np.tanh(r[0]) * r[1], (m.np.stack([x, y]), m.np.stack([y, x])))[0],
    "sin": lambda m, x, y: m.np.sin(x),
    "tanh": lambda m, x, y: m.np.tanh(x) * 1.5,
    "exp": lambda m, x, y: m.np.exp(-(x**2)),
    "sqrt": lambda m, x, y: m.np.sqrt(x * x + 1),
    "log": lambda m, x, y: m.np.log1p(y * y) - x,
    "cube": lambda m, x, y: 0.3 * x**3,
    "logistic": lambda m, x, y: m.lax.logistic(x - y),
    "add": lambda m, x, y: x + y,
    "mul": lambda m, x, y: x * y,
    "div": lambda m, x, y: x / (2 + y * y),
    "max": lambda m, x, y: m.np.maximum(x, 0.5 * y - 0.1),
    "where": lambda m, x, y: m.np.where(x > y, x * 2, y),
    "center": lambda m, x, y: x - m.np.mean(x, -1, keepdims=True),
    "scale": lambda m, x, y: x * m.np.sum(y, -1, keepdims=True),
    "largest": lambda m, x, y: x - m.np.max(x, -1, keepdims=True) * 0.5,
    "softmax": lambda m, x, y: m.np.exp(x) / m.np.sum(m.np.exp(x), -1, keepdims=True),
    "matmul": lambda m, x, y: x @ W,
    "einsum": lambda m, x, y: m.np.einsum("...i,ij,...j->...i", x, W, y),
    "outer": lambda m, x, y: (x[..., :, None] * y[..., None, :]).sum(-2),
    "cumsum": lambda m, x, y: m.np.cumsum(x, -1) * 0.5,
    "sort": lambda m, x, y: m.np.sort(x, axis=-1) + y,
    "reverse": lambda m, x, y: x[..., ::-1] * y,
    "concatenate": lambda m, x, y: m.np.concatenate([y[..., 1:], x[..., :1]], -1),
    "update": lambda m, x, y: x.at[..., 1].add(y[..., 0] * 2),
    "gather": lambda m, x, y: x[..., np.array([2, 0, 0])] + y,
    "argmax": lambda m, x, y: x + m.np.argmax(y, -1, keepdims=True) * y,
    "pad": lambda m, x, y: m.np.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)])[..., 2:5] + y,
    "stop": lambda m, x, y: m.lax.stop_gradient(x) * y,
    "jit": lambda m, x, y: m.jit(lambda a, b: m.np.sin(a) * b)(x, y) + m.jit(lambda a: a * 2)(y),
    "cond": lambda m, x, y: m.lax.cond(m.np.sum(x) > 0, lambda a, b: a * b, lambda a, b: m.np.cos(a), x, y),
    "switch": lambda m, x, y: m.lax.switch(m.np.argmax(m.np.sum(y)) + 1, [
        lambda v: v, lambda v: v * v, lambda v: v[..., :1] + v], x),
    "fori": lambda m, x, y: m.lax.fori_loop(0, 3, lambda i, c: m.np.sin(c) + 0.1 * i * y, x),
    "scan": _scan,
    "custom_jvp": lambda m, x, y: _custom(m, x),
    "checkpoint": lambda m, x, y: m.checkpoint(lambda a, b: m.np.sin(m.np.cos(a) * b))(x, y),
    "checkpointed_scan": _checkpointed_scan,
    "checkpointed_cond": lambda m, x, y: m.checkpoint(lambda a: m.lax.cond(
        m.np.sum(a) > 0, lambda v: m.np.sin(v) * v, lambda v: m.np.exp(-v * v), a))(x),
    "dots": _dots,
}  # fmt: skip
REVERSE_ONLY = {
    "custom_vjp": _custom_vjp,
    "custom_vjp_in_scan": lambda m, x, y: m.lax.scan(
        lambda c, r: (_custom_vjp(m, c, r), None), x, m.np.stack([x, y]))[0],
    "custom_vjp_in_cond": lambda m, x, y: m.lax.cond(
        m.np.sum(y) > 0, lambda a: _custom_vjp(m, a, y), lambda a: a * y, x),
    "checkpointed_custom_vjp": lambda m, x, y: m.checkpoint(
        lambda a: _custom_vjp(m, a, m.np.sin(y)) + _custom_vjp(m, y, a))(x),
}  # fmt: skip
FORWARD_ONLY = {
    "while": lambda m, x, y: m.lax.while_loop(
        lambda c: (c[0] < 3) | (m.np.sum(c[1]) > 100), lambda c: (c[0] + 1, c[1] * 0.5 + m.np.sin(y)), (0, x)
    )[1],
    "dynamic_fori": lambda m, x, y: m.lax.fori_loop(
        0, m.np.asarray(m.np.sum(x * x), int) % 3, lambda i, c: c * m.np.cos(y), x),
}  # fmt: skip

# ---- transformations: from such a function to another ----------------------------------------------
FORWARD: dict[str, Callable[..., Any]] = {
    "jit": lambda m, f: m.jit(f),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (m.np.cos(x),))[1],
    "linearize": lambda m, f: lambda x: m.linearize(f, x)[1](x * 0.5 + 1),
    "vmap": lambda m, f: lambda x: m.vmap(f)(m.np.stack([x, x * 0.5, 1 - x])).sum(0),
    "vmap1": lambda m, f: lambda x: m.vmap(f, 1, -1)(m.np.stack([x, -x], 1)).sum(-1),
    "jacfwd": lambda m, f: lambda x: m.np.sum(m.jacfwd(f)(x), tuple(range(x.ndim))),
}
REVERSE: dict[str, Callable[..., Any]] = {
    "grad": lambda m, f: m.grad(lambda x: m.np.sum(f(x) * m.np.arange(3.0))),
    "value_and_grad": lambda m, f: lambda x: sum(m.value_and_grad(lambda v: m.np.sum(f(v)))(x)),
    "vjp": lambda m, f: lambda x: m.vjp(f, x)[1](m.np.sin(x))[0],
    "jacrev": lambda m, f: lambda x: m.np.sum(m.jacrev(f)(x), tuple(range(x.ndim))),
    "hvp": lambda m, f: lambda x: m.jvp(m.grad(lambda v: m.np.sum(f(v) ** 2)), (x,), (x,))[1],
}
ALL = {**FORWARD, **REVERSE}
# What never differentiates forwards.
BACKWARD = {k: ALL[k] for k in ("jit", "vmap", "vmap1", "grad", "value_and_grad", "vjp", "jacrev")}


def build(m: Any, steps: Any, transforms: Any) -> Callable[[Any], Any]:
    table = {**STEPS, **FORWARD_ONLY, **REVERSE_ONLY}

    def f(x):
        values = [x]
        for name, i, j in steps:
            values.append(table[name](m, values[i % len(values)], values[j % len(values)]))
        return values[-1] + 0.1 * values[len(values) // 2]

    for name in transforms:
        f = ALL[name](m, f)
    return f


def agree(steps: Any, transforms: Any) -> None:
    # Every jaxpr that is made on the way is type-checked.
    with lamina.enable_x64(True), jax.enable_x64(True), lamina.config.enable_checks(True):
        want = in_jax(lambda m: build(m, steps, transforms)(INPUT))
        got = build(LAMINA, steps, transforms)(INPUT)
        assert_same(got, want, rtol=1e-8, atol=1e-9, weak=False)


def _steps(names: list[str]) -> Any:
    one = st.tuples(st.sampled_from(sorted(names)), st.integers(0, 5), st.integers(0, 5))
    return st.lists(one, min_size=1, max_size=4)


@given(_steps([*STEPS]), st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=3))
@settings(max_examples=examples(14))
@example([("scan", 0, 0), ("cond", 1, 0)], ["grad", "vmap", "jit"])
@example([("sort", 0, 0), ("fori", 1, 0)], ["hvp", "jit"])
@example([("scan_in_cond", 0, 0)], ["grad", "grad", "grad"])
def test_compiled_compositions(steps, transforms):
    agree(steps, [*transforms, "jit"])


@given(_steps([*STEPS, *REVERSE_ONLY]), st.lists(st.sampled_from(sorted(BACKWARD)), min_size=1, max_size=3))
@settings(max_examples=examples(8))
@example([("custom_vjp_in_scan", 0, 0), ("checkpointed_custom_vjp", 1, 0)], ["grad", "vmap", "grad"])
@example([("checkpointed_custom_vjp", 0, 0), ("custom_vjp_in_cond", 1, 0)], ["vjp", "vmap1", "jit"])
def test_compiled_reverse_compositions(steps, transforms):
    agree(steps, [*transforms, "jit"])


@given(_steps([*STEPS, *FORWARD_ONLY]), st.lists(st.sampled_from(sorted(FORWARD)), min_size=1, max_size=3))
@settings(max_examples=examples(8))
@example([("while", 0, 0)], ["vmap", "jvp"])
@example([("dynamic_fori", 0, 0)], ["jacfwd"])
def test_compiled_forward_compositions(steps, transforms):
    agree(steps, [*transforms, "jit"])


@given(_steps([*STEPS]), st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=2))
@settings(max_examples=examples(6))
def test_eager_compositions(steps, transforms):
    agree(steps, transforms)


def test_every_step_under_every_transformation():
    """Each pair, several steps in one program to save compilations. By default a
    quarter of the pairs; all with LAMINA_TEST_EXAMPLES."""
    names = sorted(STEPS)
    for k, transform in enumerate(sorted(ALL)):
        for n, at in enumerate(range(0, len(names), 6)):
            if (n + k) % 4 and "LAMINA_TEST_EXAMPLES" not in os.environ:
                continue
            part = names[at : at + 6]
            agree([(n, 0, i + k) for i, n in enumerate(part)], [transform, "jit"])
