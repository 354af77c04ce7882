"""Modes in which dtypes or ranks are promoted only where the user says so: what is refused, and that
functions' own arithmetic is not."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina
from lamina import numpy as lnp

X, N = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int32)
ALLOWED = {
    "linspace": lambda m: m.np.linspace(-1, 1, 4) + 1,
    "vectorize": lambda m: m.np.vectorize(lambda x: x + m.np.linspace(-1, 1, 3))(0.5),
    "ediff1d": lambda m: m.np.ediff1d(X, to_end=N, to_begin=N),
    "int and float literal": lambda m: m.np.asarray(X) * 2 + 0.5,
    "mean": lambda m: m.np.mean(N) + m.np.var(N),
    "quantile": lambda m: m.np.quantile(X, m.np.float32(0.5)),
    "nanstd": lambda m: m.np.nanstd(X),
    "softmax": lambda m: m.module.nn.softmax(X),
    "isclose": lambda m: m.np.isclose(X, X),
    "convolve": lambda m: m.np.convolve(X, X),
    "select": lambda m: m.np.select([N > 1], [X], 0),
}
REFUSED = {
    "int and float": lambda m: m.np.asarray(X) + m.np.asarray(N),
    "int and float number": lambda m: m.np.asarray(N) + 0.5,
    "bool": lambda m: m.np.asarray(N) + True,
    "widths": lambda m: m.np.int8(1) + m.np.int16(1),
    "comparison": lambda m: m.np.asarray(N) < m.np.asarray(X),
    "where": lambda m: m.np.where(N > 1, m.np.asarray(N), m.np.asarray(X)),
    "concatenate": lambda m: m.np.concatenate([N, X]),
    "matmul": lambda m: m.np.asarray(N) @ m.np.asarray(X),
    "update": lambda m: m.np.asarray(N).at[0].set(1.5),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_strict_dtypes_allow(case: str) -> None:
    with lamina.numpy_dtype_promotion("strict"), jax.numpy_dtype_promotion("strict"):
        oracle.check(ALLOWED[case], rtol=1e-5)


@pytest.mark.parametrize("case", REFUSED)
def test_strict_dtypes_refuse_in_jax_s_words(case: str) -> None:
    said = []
    with lamina.numpy_dtype_promotion("strict"), jax.numpy_dtype_promotion("strict"):
        for m in (oracle.JAX, oracle.LAMINA):
            with pytest.raises(m.module.errors.TypePromotionError if m.name == "lamina" else ValueError) as e:
                REFUSED[case](m)
            said.append(sorted(re.findall(r"[a-z]+\d*", str(e.value).partition("have no")[0])))
    assert said[0] == said[1]  # JAX names the dtypes in any order


RANKS = {
    "polyfit": lambda m: m.np.polyfit(X, np.stack([X, X * X], 1), 1),
    "polyfit with covariance": lambda m: m.np.polyfit(np.arange(6.0), np.arange(6.0) ** 2, 1, cov=True)[1],
    "trapezoid": lambda m: m.np.trapezoid(np.ones((3, 4), np.float32), dx=X),
    "scalars": lambda m: m.np.ones((2, 3)) * 2 + m.np.float32(1),
    "vectorize": lambda m: m.np.vectorize(lambda x, y: x + y)(1.0, np.ones((2, 3), np.float32)),
    "outer": lambda m: m.np.outer(X, X),
    "resize": lambda m: importlib.import_module(f"{m.name}.image").resize(np.eye(4), (3, 2), "cubic"),
    "stft": lambda m: m.module.scipy.signal.stft(np.arange(90.0, dtype=np.float32), nperseg=32)[2],
}


@pytest.mark.parametrize("case", RANKS)
def test_ranks_that_are_a_function_s_own_affair(case: str) -> None:
    with lamina.numpy_rank_promotion("raise"), jax.numpy_rank_promotion("raise"):
        oracle.check(RANKS[case], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "program",
    [
        lambda m: m.np.ones(2) + m.np.ones((1, 2)),
        lambda m: m.np.add(m.np.ones(2), m.np.ones((1, 2))),
        lambda m: m.jit(lambda x: x * m.np.ones((1, 2)))(m.np.ones(2)),
        lambda m: importlib.import_module(f"{m.name}.scipy.stats").norm.pdf(m.np.ones(2), m.np.ones((1, 2))),
        lambda m: m.np.vectorize(lambda x, y: x + y)(m.np.ones(4), m.np.ones((3, 4))),
        lambda m: m.np.vectorize(m.np.matmul, signature="(n,m),(m,k)->(n,k)")(
            m.np.ones((2, 3)), m.np.ones((5, 3, 4))
        ),
    ],
)
def test_ranks_of_the_user_s(program: Any) -> None:
    for m in (oracle.JAX, oracle.LAMINA):
        with m.module.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="jax_numpy_rank_promotion"):
            program(m)
        with m.module.numpy_rank_promotion("allow"):
            program(m)


def test_ranks_are_warned_of_in_jax_s_words() -> None:
    said = []
    for m in (oracle.JAX, oracle.LAMINA):
        x, y = m.np.ones(2), m.np.ones((1, 2))
        with m.module.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x + y
        said.append(str(caught[0].message).partition(". ")[0])
    assert said[0] == said[1]


# ---- vectorize's errors --------------------------------------------------------------------------
ONES = np.ones((2, 3), np.float32)
VECTORIZED = {
    "no tuple": (lambda x, y: x, "(n,m),(m,k)->(n,k),()", (ONES, ONES.T)),
    "results": (lambda x, y: (x, y), "(),()->(),(),()", (1, 2)),
    "too many": (lambda x, y: (x, y), "(),()->()", (1, 2)),
    "rank": (lambda x, y: x[None], "(n,m),(m,k)->(n,k)", (ONES, ONES.T)),
    "size of result": (lambda x, y: x @ y, "(n,m),(m,k)->(n,n)", (ONES, np.ones((3, 4)))),
    "size": (lambda x, y: x @ y, "(n,m),(m,k)->(n,k)", (ONES, ONES)),
    "dimensions": (lambda x, y: x @ y, "(n,m),(m,k)->(n,k)", (ONES[0], ONES.T)),
    "arguments": (lambda x, y: x @ y, "(n,m),(m,k)->(n,k)", (ONES,)),
    "none": (lambda x, y: x, "(k),(k)->(k)", (ONES[0], None)),
}


@pytest.mark.parametrize("case", VECTORIZED)
def test_what_is_wrong_with_a_vectorized_call(case: str) -> None:
    f, signature, args = VECTORIZED[case]
    said = []
    for m in (oracle.JAX, oracle.LAMINA):
        with pytest.raises((TypeError, ValueError)) as e:
            m.np.vectorize(f, signature=signature)(*args)
        said.append((e.type, str(e.value).partition(":")[0], "signature=" in str(e.value)))
    assert said[0] == said[1]


# ---- enable_x64 in the middle --------------------------------------------------------------------
@pytest.mark.parametrize("x64", [False, True])
def test_a_gradient_of_what_is_computed_in_64_bits(x64: bool) -> None:
    def gradient(m: Any) -> Any:
        def f(x: Any) -> Any:
            with m.module.enable_x64(True):
                return m.np.sin(m.np.asarray(x, np.float64))

        with m.module.enable_x64(x64):
            value, slope = m.value_and_grad(f)(0.5)
            return value, slope, m.jit(m.grad(f))(0.5), m.grad(m.grad(f))(0.5)

    value, slope, *_ = oracle.check(gradient)
    assert (value.dtype, slope.dtype) == (np.float64, np.float64 if x64 else np.float32)
    with lamina.enable_x64(x64):
        assert lamina.config.x64_enabled == x64


def test_float0_is_no_operand() -> None:
    nothing = np.zeros((), lamina.float0)
    for made in (lnp.zeros((2,), lamina.float0), lnp.full((2,), 0, lamina.float0)):
        assert (made.dtype, made.shape) == (lamina.float0, (2,))
    for f in (lambda: lnp.ones(()) + nothing, lambda: lnp.add(nothing, 1.0)):
        with pytest.raises(TypeError, match="float0"):
            f()
