"""Loops that are one kernel: which of them LLVM's vectoriser is asked to look at."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.backends.cpu import kernel as kernel_module
from lamina.backends.llvm_codegen import LOOPS_OF_VECTORS, CodegenOptions

X = np.linspace(-1, 1, 400, dtype=np.float32).reshape(20, 20)


def stencil(x):
    """Its loops are written over vectors."""
    return lax.fori_loop(0, 9, lambda _, u: u.at[1:-1, 1:-1].set(0.5 * (u[:-2, 1:-1] + u[2:, 1:-1])), x)


def of_columns(x):
    """So are those that gather a column."""
    return lax.fori_loop(0, 20, lambda i, u: jnp.minimum(u, u[:, i][:, None] + u[i]), x)


def of_elements(x):
    """LLVM may make vectors of the outer loop, whose steps are of an element."""
    return lax.fori_loop(0, 400, lambda i, u: u.at[i].set(x.ravel()[i] * 2), jnp.zeros(400))


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> list[CodegenOptions]:
    """What LLVM is told for each kernel."""
    seen: list[CodegenOptions] = []
    real = kernel_module.emit

    def noting(text, machine, given, **rest):
        seen.append(given)
        return real(text, machine, given, **rest)

    monkeypatch.setattr(kernel_module, "emit", noting)
    monkeypatch.setenv("LAMINA_COMPILE_WORKERS", "0")
    monkeypatch.setenv("LAMINA_CACHE", "0")
    return seen


@pytest.mark.parametrize("f", [stencil, of_columns])
def test_loops_over_vectors_are_not_looked_at_again(f, options: list[CodegenOptions]) -> None:
    lamina.jit(f, target="cpu:x86-64-v4").lower(X).compile()
    assert LOOPS_OF_VECTORS in options


def test_loops_over_elements_are(options: list[CodegenOptions]) -> None:
    lamina.jit(of_elements).lower(X).compile()
    assert LOOPS_OF_VECTORS not in options
    assert any(each.vectorise for each in options)


def test_they_compute_the_same() -> None:
    u = X.copy()
    for _ in range(9):
        v = u.copy()
        v[1:-1, 1:-1] = np.float32(0.5) * (u[:-2, 1:-1] + u[2:, 1:-1])
        u = v
    np.testing.assert_allclose(lamina.jit(stencil)(X), u, rtol=1e-6)
    d = X.copy()
    for i in range(20):
        d = np.minimum(d, d[:, i][:, None] + d[i])
    np.testing.assert_allclose(lamina.jit(of_columns)(X), d, rtol=1e-6)
