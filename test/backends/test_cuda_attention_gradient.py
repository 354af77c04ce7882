"""Attention's gradient without scores in memory for GPUs: emulated against the CPU's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp

_RANDOM = np.random.default_rng(0)
_BF16 = ml_dtypes.bfloat16
_F32 = np.float32


def _x(*shape: int, dtype: Any = _BF16) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(dtype)


def gradient(function: Callable) -> Callable:
    """Of a function of q, k, v and more, given that of its result and those."""

    def gradients(g, q, k, v, *more):
        return lamina.vjp(lambda *qkv: function(*qkv, *more), q, k, v)[1](g)

    return gradients


def _attention(**options: Any) -> Callable:
    return gradient(lambda q, k, v, *more: lamina.nn.dot_product_attention(q, k, v, *more, **options))


def _tf32(function: Callable) -> Callable:
    def rounded(*arguments):
        with lamina.default_matmul_precision("tensorfloat32"):
            return function(*arguments)

    return rounded


def _plain(q, k, v):
    return lamina.nn.softmax(q @ k.T * np.asarray(0.2, q.dtype)) @ v


def _dropped(q, k, v, keep):
    scores = jnp.tanh((q @ k.T).astype(_F32) * 0.3)
    return jnp.where(keep, lamina.nn.softmax(scores) / 0.75, 0).astype(q.dtype) @ v


def _of(queries: int, keys: int, width: int, values: int, dtype: Any) -> tuple[np.ndarray, ...]:
    shapes = (queries, values), (queries, width), (keys, width), (keys, values)
    return tuple(_x(*shape, dtype=dtype) for shape in shapes)


# name -> (function, arguments)
PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "causal": (_attention(is_causal=True), tuple(_x(1, 130, 2, 24) for _ in range(4))),
    "groups_bias": (_attention(scale=0.3), (_x(2, 20, 4, 24), _x(2, 20, 4, 24), _x(2, 70, 2, 24),
                                            _x(2, 70, 2, 24), _x(1, 4, 20, 70))),
    "f16_odd": (gradient(_plain), _of(33, 65, 21, 39, np.float16)),
    "tf32": (_tf32(gradient(_plain)), _of(70, 33, 24, 40, _F32)),
    "dropped": (gradient(_dropped), (*_of(40, 72, 16, 32, _BF16), _RANDOM.random((40, 72)) > 0.25)),
    "wide": (gradient(_plain), _of(17, 40, 136, 160, _BF16)),
}  # fmt: skip


@functools.cache
def _program(name: str) -> Program:
    function, arguments = PROGRAMS[name]
    return Program(function, *arguments)


def _kernel(program: Program) -> Any:
    (kernel,) = [k for n, k in program.kernels.items() if "attention_gradient" in n]
    return kernel


@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated(name: str) -> None:
    function, arguments = PROGRAMS[name]
    program = _program(name)
    kernel = _kernel(program)
    rows = {"causal": 130, "groups_bias": 2 * 4 * 20}.get(name, arguments[0].shape[0])
    assert kernel.scratch_bytes < 8 * 4 * (rows + 64), "no scores"
    found, wanted = program.run(measures=True), lamina.jit(function)(*arguments)
    tolerance = 1e-2 if name == "tf32" else 2e-2
    for one, other in zip(found, wanted, strict=True):
        one, other = (np.asarray(x).astype(_F32) for x in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    assert not program.conflicts("cp.async", "ldmatrix")


def test_scores_of_f32_are_not_rounded() -> None:
    """They are multiplied by bf16, in three parts: all but the results is as exact as the program."""
    g, q, k, v = (x[0, :, 0].astype(np.float64) for x in PROGRAMS["causal"][1])
    scores = np.where(np.tri(130, dtype=bool), q @ k.T / np.sqrt(24), -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    powers /= powers.sum(1, keepdims=True)
    dp = (g @ v.T).astype(_BF16).astype(np.float64)
    ds = powers * (dp - (powers * dp).sum(1, keepdims=True)) / np.sqrt(24)
    for found, exact in zip(_program("causal").run(), (ds @ k, ds.T @ q), strict=False):
        assert np.mean(found[0, :, 0] == exact.astype(_BF16)) > 0.98


def test_same_bits_at_every_run() -> None:
    first, second = _program("tf32").run(), _program("tf32").run()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype, arch", [(_F32, "sm_90a"), (np.float16, "sm_75")])
def test_otherwise_products_do_it(dtype: Any, arch: str) -> None:
    """f32 that is exact, and GPUs without such tensor cores."""
    arrays = [lamina.ShapeDtypeStruct(x.shape, dtype) for x in _of(32, 64, 16, 16, dtype)]
    program = Program(gradient(_plain), *arrays, arch=arch)
    assert not any("mma" in kernel.ptx for kernel in program.kernels.values())


def test_scores_that_a_mask_hides_are_left_out() -> None:
    """Zero times NaN would be NaN."""
    function, (g, q, k, v) = PROGRAMS["causal"]
    k, v = k.copy(), v.copy()
    k[:, 128:] = v[:, 128:] = np.nan
    dq, dk, dv = (np.asarray(x, _F32)[0, :, 0] for x in Program(function, g, q, k, v).run())
    assert np.isfinite(dq[:128]).all() and np.isnan(dq[128:]).all()
    g, q = g.copy(), q.copy()
    g[:, :64] = q[:, :64] = np.nan
    k[:, 128:] = v[:, 128:] = 0
    dq, dk, dv = (np.asarray(x, _F32)[0, :, 0] for x in Program(function, g, q, k, v).run())
    assert np.isnan(dk[:64]).all() and np.isfinite(dk[64:]).all() and np.isfinite(dv[64:]).all()
