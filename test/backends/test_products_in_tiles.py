"""Products whose tiles the shared function multiplies, and what follows on each tile, against NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.passes.kernels.cpu.gemm.product_shape import SHARED
from lamina.runtime.executable import LoadError

_RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _always_shared():
    """Whatever this machine would choose."""
    with lamina.enable_x64(True), lamina.config.matrix_products("shared"):
        yield


def _x(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


def _compiled(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return lamina.jit(function).lower(*arguments).compile(**options)


def _is_in_tiles(compiled: Any) -> bool:
    """Whether a kernel of its own, beside other ops, calls the shared function."""
    return "lamina.library" not in compiled.as_text("fused") and SHARED in compiled.as_text("llvm")


_AFTER: dict[str, Callable[[Any, Any, Any], Any]] = {
    "row": lambda y, row, whole: jnp.maximum(y + row, 0),
    "whole": lambda y, row, whole: y * whole - row,
    "function": lambda y, row, whole: jnp.tanh(y / 8),
    "bool": lambda y, row, whole: y > whole,
    "int8": lambda y, row, whole: jnp.clip(y, -100, 100).astype(np.int8),
    "several": lambda y, row, whole: (jnp.exp(-jnp.abs(y)), y + whole),
    "sum of rows": lambda y, row, whole: jnp.sum(y * y, axis=-1),
    "transposed": lambda y, row, whole: jnp.sin(y).swapaxes(-1, -2),
}


@settings(max_examples=int(os.environ.get("LAMINA_TEST_EXAMPLES", 30)), deadline=None)
@given(
    dtype=st.sampled_from((np.float32, np.float64)), order=st.sampled_from(("nn", "nt", "tn", "tt")),
    after=st.sampled_from(list(_AFTER)), before=st.sampled_from(("", "a", "b")), batch=st.sampled_from(((), (3,))),
    m=st.integers(16, 300), n=st.integers(16, 300), k=st.integers(16, 300),
)  # fmt: skip
def test_of_any_sizes(dtype, order, after, before, batch, m, n, k):
    def function(a: Any, b: Any, row: Any, whole: Any) -> Any:
        a = a.swapaxes(-1, -2) if order[0] == "t" else a
        b = b.swapaxes(-1, -2) if order[1] == "t" else b
        return _AFTER[after]((2 * a if before == "a" else a) @ (b / 2 if before == "b" else b), row, whole)

    a = _x(*batch, *((m, k) if order[0] == "n" else (k, m)), dtype=dtype)
    b = _x(*batch, *((k, n) if order[1] == "n" else (n, k)), dtype=dtype)
    row, whole = _x(n, dtype=dtype), _x(*batch, m, n, dtype=dtype)
    found = _compiled(function, a, b, row, whole)(a, b, row, whole)
    with lamina.disable_jit():  # products by themselves, in f64
        wanted = function(*(x.astype(np.float64) for x in (a, b, row, whole)))
    for one, other in zip(lamina.tree.leaves(found), lamina.tree.leaves(wanted), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        if other.dtype in (np.bool_, np.int8):
            assert np.mean(abs(one.astype(int) - other.astype(int)) > 0) < 1e-3
        else:
            scale = np.abs(other).max() * (1e-4 if dtype == np.float32 else 1e-11)
            np.testing.assert_allclose(one, other, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=scale)


@pytest.mark.parametrize("m, n", [(128, 512), (301, 509), (1000, 64), (33, 1999)])
def test_what_follows_is_in_the_same_kernel(m, n):
    a, b, c = _x(m, 150), _x(150, n), _x(n)
    compiled = _compiled(lambda a, b, c: jnp.tanh(a @ b + c), a, b, c)
    assert _is_in_tiles(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b, c)), np.tanh(a @ b + c), rtol=1e-9, atol=1e-11)


def test_what_follows_overwrites_an_operand():
    """The sums may not be where what is added still lies."""
    a, b, c = _x(200, 150), _x(150, 170), _x(200, 170)
    compiled = lamina.jit(lambda a, b, c: c - 0.5 * (a @ b), donate_argnums=2).lower(a, b, c).compile()
    assert _is_in_tiles(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b, jnp.asarray(c))), c - 0.5 * (a @ b), rtol=1e-9, atol=1e-11)


def test_infinities_and_nans_stay_where_they_are():
    a, b = _x(100, 64), _x(64, 90)
    a[3, 5], b[7, 80] = np.nan, np.inf
    compiled = _compiled(lambda a, b: -(a @ b), a, b)
    assert _is_in_tiles(compiled)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), -(a @ b), rtol=1e-9, atol=1e-11)


def test_in_a_loop_of_the_program():
    a, b = _x(150, 150) / 20, _x(150, 160)

    def function(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, 4, lambda i, b: jnp.tanh(a @ b), b)

    wanted = b
    for _ in range(4):
        wanted = np.tanh(a @ wanted)
    np.testing.assert_allclose(np.asarray(_compiled(function, a, b)(a, b)), wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_on_any_processor(level):
    a, b = _x(90, 280), _x(280, 137)
    compiled = _compiled(lambda a, b: jnp.abs(a @ b), a, b, target=f"cpu:{level}")
    try:
        found = np.asarray(compiled(a, b))
    except LoadError as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(found, abs(a @ b), rtol=1e-9, atol=1e-11)


def test_code_for_the_shape_where_the_user_wants_it():
    a, b = _x(128, 128), _x(128, 128)
    with lamina.config.matrix_products("kernel"):
        compiled = _compiled(lambda a, b: jnp.abs(a @ b), a, b)
    assert SHARED not in compiled.as_text("llvm")
    np.testing.assert_allclose(np.asarray(compiled(a, b)), abs(a @ b), rtol=1e-9, atol=1e-11)


def test_terms_of_several_dimensions():
    a, b = _x(60, 9, 20), _x(9, 20, 70)
    compiled = _compiled(lambda a, b: jnp.exp(jnp.tensordot(a, b, 2) / 20), a, b)
    assert _is_in_tiles(compiled)
    wanted = np.exp(np.tensordot(a, b, 2) / 20)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), wanted, rtol=1e-9, atol=1e-11)
    apart = _compiled(lambda a, b: jnp.abs(jnp.einsum("mjk,kjn->mn", a, b)), a, b.swapaxes(0, 1).copy())
    found = np.asarray(apart(a, b.swapaxes(0, 1).copy()))
    np.testing.assert_allclose(found, abs(np.tensordot(a, b, 2)), rtol=1e-9, atol=1e-11)
