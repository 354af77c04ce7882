"""Derivatives with respect to integers and booleans, which have dtype float0, in compiled programs."""

import jax
import numpy as np
import pytest

import lamina

X = np.arange(1, 4, dtype=np.float32)
COUNTS = np.arange(3)
NOTHING = np.zeros(3, [("float0", np.void, 0)])


def chosen(m, x):
    return m.jvp(lambda x: (x * 2, x > 2, m.numpy.argmax(x)), (x,), (x,))


def counted(m, x):
    def loop(x):
        return m.lax.while_loop(lambda c: c[1] < 5, lambda c: (c[0] * x, c[1] + 1), (x, 0))

    return m.jvp(loop, (x,), (x,))


PROGRAMS = {
    "results of jvp": lambda m: m.jit(lambda x: chosen(m, x))(X),
    "of a loop": lambda m: m.jit(lambda x: counted(m, x))(X),
    "ahead of time": lambda m: m.jit(lambda x: chosen(m, x)).lower(X).compile()(X),
    "gradient": lambda m: m.jit(m.grad(lambda i: (i * 1.0).sum(), allow_int=True))(COUNTS),
    "vjp": lambda m: m.jit(lambda x, i: m.vjp(lambda x, i: x * i, x, i)[1](x))(X, COUNTS),
    "a vjp function": lambda m: m.jit(lambda f, c: f(c))(m.vjp(lambda x, i: x * i, X, COUNTS)[1], X),
    "arguments": lambda m: m.jit(
        lambda x, i, t: m.jvp(lambda x, i: (x * i, i), (x, i), (x, t))
    )(X, COUNTS, NOTHING),
    "as it is": lambda m: [m.jit(lambda t, x: (x + 1, t))(NOTHING, X) for _ in range(3)],
    "donated": lambda m: m.jit(lambda t, x: (x + 1, t), donate_argnums=0)(NOTHING, X),
    "zeros like it": lambda m: (m.numpy.zeros_like(NOTHING), m.lax.full_like(NOTHING, 0, shape=(2,))),
    "a constant": lambda m: m.jit(lambda: NOTHING)(),
    "vmap": lambda m: m.vmap(lambda x: chosen(m, x))(np.stack([X, -X])),
    "vmap of jit": lambda m: m.jit(m.vmap(m.jit(lambda x: chosen(m, x))))(np.stack([X, -X])),
    "scan": lambda m: m.lax.scan(lambda c, x: (c, m.jvp(lambda x: (x, x > 2), (x,), (x,))), X[0], X),
    "cond": lambda m: m.jit(
        lambda x: m.lax.cond(x[0] > 0, lambda: chosen(m, x), lambda: chosen(m, -x))
    )(X),
    "linearize": lambda m: m.jit(lambda x, t: m.linearize(lambda x: (x, x > 2), x)[1](t))(X, X),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    theirs, ours = (m.tree.flatten(PROGRAMS[program](m)) for m in (jax, lamina))
    assert len(theirs[0]) == len(ours[0])
    for want, got in zip(theirs[0], ours[0], strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        if got.dtype != NOTHING.dtype:
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert any(got.dtype == NOTHING.dtype for got in ours[0])
