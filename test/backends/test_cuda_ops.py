"""Ops with kernels of their own for GPUs (`gpu-write-kernels`): each emulated against the CPU."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.cuda_program import Program
from support.ptx import PtxError

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.dialects.context import context
from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.scan import look_back
from lamina.passes.kernels.gpu.sort import merge_sort as sort
from lamina.passes.kernels.gpu.sort import radix_sort
from lamina.passes.stablehlo.analysis import sort_order

_RANDOM, _MORE = np.random.default_rng(0), np.random.default_rng(1)
_PLACES = _RANDOM.integers(-40, 60, 3000).astype(np.int32)


def _x(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


_MIXED = _x(2, 3000)
_MIXED[0, ::7], _MIXED[0, 3::7], _MIXED[1, ::11] = 0, -0.0, np.nan


_POSITIVE = _x(2, 20, 20)
_POSITIVE = _POSITIVE @ _POSITIVE.swapaxes(1, 2) + 9 * np.eye(20, dtype=np.float32)
_POSITIVE[1, 7, 7] = -1  # has no factor


_SQUARE = _x(2, 5, 5)
_SQUARE[1] = np.roll(np.eye(5), 1, 0)  # usual shifts don't change it


def _pooled(x):
    return lax.reduce_window(x, -np.inf, lax.max, (3, 3), (2, 2), "SAME")


def _eigenvectors(x):
    v, w = lax.linalg.eigh(x)
    return jnp.abs(v), w


def _singular_vectors(x):
    """Of a matrix of rank 2: what is the same by any algorithm."""
    u, s, vt = lax.linalg.svd(x)
    return s, jnp.abs(u[:, :2]), u @ u.T, jnp.abs(vt[:2])


def _triangle(x):
    """What of a Schur form is the same by any algorithm."""
    t, z = lax.linalg.schur(x)
    pairs = jnp.diagonal(t, -1, 1, 2)
    return z @ t @ z.mT, z @ z.mT, jnp.tril(t, -2), pairs[:, 1:] * pairs[:, :-1]


def _eigenvalues(x):
    """The same for eigenvalues and vectors of both sides, and their lengths."""
    w, left, right = lax.linalg.eig(x)
    ends = x @ right - right * w[:, None], left.conj().mT @ x - w[..., None] * left.conj().mT
    return *ends, jnp.abs(right * right.conj()).sum(1), w.sum(1), (w * w).sum(1)


# name -> (function, arguments)
OPS: dict[str, tuple[Callable, tuple]] = {
    "sort_long": (lambda x: jnp.argsort(x, axis=1), (_MIXED,)),
    "sort_many_short": (lambda x: jnp.sort(x, axis=0), (_MIXED.T[:40, :].repeat(50, 1),)),
    "radix_sort": (lambda x: jnp.argsort(x, axis=1), (_MIXED.repeat(2, 1)[1:, :4200].astype(np.float16),)),
    "radix_sort_bytes": (lambda k, x: lax.sort((k, x), num_keys=1)[1],
                         (_MORE.integers(0, 9, 400).astype(np.uint8), _MORE.random(400) > 0.5)),
    "top_k": (lambda x: lax.top_k(x, 5), (_MIXED[:, :100],)),
    "scatter_add": (lambda i, u: jnp.zeros(50).at[i].add(u), (_PLACES, _x(3000))),
    "scatter_windows": (lambda i, u: jnp.ones((50, 4)).at[i].multiply(u),
                        (_PLACES[:50], _x(50, 4))),
    "scatter_overlapping": (
        lambda x, i, u: lax.scatter_add(
            x, i, u, lax.ScatterDimensionNumbers((1,), (), (0,)), mode="drop"),
        (_x(60), _PLACES[:40, None], _x(40, 5))),
    "scatter_integers": (lambda i: jnp.zeros(50, np.int32).at[i].max(i), (_PLACES,)),
    "scatter_one": (lambda x, i: x.at[i].set(2.0), (_x(9, 5), np.int32(3))),
    "fft": (lambda x: jnp.fft.fft(x), (_x(3, 360).astype(np.complex64),)),
    "fft_columns": (lambda x: jnp.fft.ifft2(x), (_x(2, 12, 40) * np.complex64(1j),)),
    "fft_long": (lambda x: jnp.fft.fft(x), (_x(4100).astype(np.complex64)[:4096],)),
    "cholesky": (lax.linalg.cholesky, (_POSITIVE,)),
    "triangular": (
        lambda a, b: lax.linalg.triangular_solve(jnp.tril(a), b, left_side=True, lower=True),
        (_POSITIVE, _x(2, 20, 40))),
    "tridiagonal": (lax.linalg.tridiagonal_solve, (_x(7), _x(7), _x(7), _x(7, 3))),
    "lu": (lax.linalg.lu, (_x(2, 9, 12),)),
    "qr": (lambda x: lax.linalg.qr(x, full_matrices=False), (_x(2, 14, 6),)),
    "qr_pivoting": (lax.linalg.geqp3, (_x(7, 5), np.array([0, 0, 1, 0, 1], np.int32))),
    "tridiagonal_form": (lambda x: lax.linalg.tridiagonal(x, lower=False), (_POSITIVE[:, :5, :5],)),
    "eigh": (_eigenvectors, (_POSITIVE[:, :5, :5],)),
    "svd": (_singular_vectors, (_x(7, 2) @ _x(2, 4),)),
    "schur": (_triangle, (_SQUARE,)),
    "eig": (_eigenvalues, (_SQUARE,)),
    "eig_complex": (_eigenvalues, (_SQUARE[:, :3, :3] * np.complex64(1 + 1j) + 1j * _SQUARE[:, 2:5, 2:5],)),
    "scan": (lambda x: jnp.cumsum(x, axis=1), (_x(2, 3002),)),
    "scan_reverse": (lambda x: lax.cumprod(x, axis=1, reverse=True), (_x(2, 1100),)),
    "scan_columns": (lambda x: lax.cummax(x, axis=0), (_x(300, 7),)),
    "look_back": (lambda x: jnp.cumsum(x, axis=1), (_MORE.normal(size=(2, 30002)).astype(np.float32),)),
    "look_back_reverse": (lambda x: lax.cummax(x, reverse=True),
                          (_MORE.integers(-99, 99, 18000).astype(np.int8),)),
    "scan_narrow": (lambda x: jnp.cumsum(x), (np.ones(1100, jnp.bfloat16),)),
    "select_and_scatter": (lambda x: lamina.grad(lambda y: jnp.sum(_pooled(y) ** 2))(x),
                           (_x(11, 14),)),
}  # fmt: skip


@contextlib.contextmanager
def thresholds(name: str) -> Iterator[None]:
    """In programs of such a name rows of any length are sorted by bits, or their scans look back."""
    with pytest.MonkeyPatch.context() as patch:
        if "radix" in name:
            patch.setattr(sort, "is_faster", lambda *of: True)
        if "look_back" in name:
            patch.setattr(look_back, "L2_ELEMENTS", 1)
            patch.setattr(look_back, "_GROUP", 3)
        yield


@functools.cache
def _program(name: str) -> Program:
    function, arguments = OPS[name]
    with thresholds(name):
        return Program(function, *arguments)


@pytest.mark.parametrize("name", OPS)
def test_emulated(name: str) -> None:
    function, arguments = OPS[name]
    wanted = lamina.tree.leaves(lamina.jit(function)(*arguments))
    for found, value in zip(_program(name).run(), wanted, strict=True):
        found, value = (np.asarray(x).astype(np.result_type(x, np.int8)) for x in (found, value))
        atol = 1e-4 if name == "look_back" else 5e-6
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=atol)


def test_look_back_has_the_same_bits_in_any_order() -> None:
    program = _program("look_back")
    (wanted,) = program.run()
    try:
        for program.seed in (1, 2):
            np.testing.assert_array_equal(program.run()[0], wanted)
    finally:
        program.seed = 0


def test_look_back_needs_what_is_published() -> None:
    program = _program("look_back")
    ((symbol, kernel),) = program.kernels.items()
    lines = kernel.ptx.split("\n")
    published = [n for n, line in enumerate(lines) if re.search(r"\b(atom|red)\.\S*\.or\.", line)]
    assert len(published) == 3  # totals, what is waited for, and prefixes
    for place in (published[0], published[2]):
        with pytest.raises(PtxError, match="deadlock"):
            program.run({symbol: "\n".join(lines[:place] + lines[place + 1 :])})


def test_long_rows_are_sorted_by_bits() -> None:
    f32, i32 = (ir.Type.parse(name, context()) for name in ("f32", "i32"))
    by_float = [sort_order.Key(0, sort_order.FLOAT)]

    def is_faster(rows: int, length: int, *elements: Any) -> bool:
        merges = (-(-length // 2048) - 1).bit_length()
        return radix_sort.is_faster(rows, length, elements, by_float, merges)

    assert is_faster(1, 1 << 24, f32) and is_faster(64, 1 << 18, f32, i32)
    assert not is_faster(1, 1 << 14, f32) and not is_faster(1 << 14, 4096, f32)


def test_float_sums_have_the_cpu_s_bits() -> None:
    function, arguments = OPS["scatter_add"]
    np.testing.assert_array_equal(
        _program("scatter_add").run()[0], np.asarray(lamina.jit(function)(*arguments))
    )


def test_sums_of_narrow_floats_are_kept_wide() -> None:
    ones = np.ones((3, 700), jnp.bfloat16)  # 256 + 1 is 256
    (found,) = Program(lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (1,)), ones).run()
    np.testing.assert_array_equal(found.astype(np.float32), 700)
