"""Attention in one kernel for GPUs: emulated against the CPU's, which keeps all scores."""

from __future__ import annotations

import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from support.attention_programs import heads, kernel_of, masked, some_see_nothing_at_first, x
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp

_RANDOM = np.random.default_rng(0)
_BF16 = ml_dtypes.bfloat16


def _plain(q, k, v):
    return lamina.nn.softmax(q @ k.T * np.float16(0.2)) @ v


def _scaled(q, k, v):
    return lamina.nn.softmax(q @ k.T * _BF16(0.1)) @ v


def _some_see_nothing(q, k, v):
    """Those have the mean of all values: nothing is left out."""
    scores = (q @ k.T * np.float16(0.2)).astype(np.float32)
    i, j = jnp.arange(q.shape[0])[:, None], jnp.arange(k.shape[0])
    return lamina.nn.softmax(jnp.where(j + 3 <= i, scores, -1e38)).astype(q.dtype) @ v


def _tf32(function: Callable) -> Callable:
    def rounded(*arguments):
        with lamina.default_matmul_precision("tensorfloat32"):
            return function(*arguments)

    return rounded


def _as_tf32(x: np.ndarray) -> np.ndarray:
    """The nearest floats of 19 bits, which is what such products multiply."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0xFFF) + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)).view(np.float32)


def _sum_of_heads(q, k, v):
    return lamina.nn.softmax(jnp.where(jnp.arange(40) % 3 > 0, q @ k.T, -jnp.inf)) @ v


# name -> (function, arguments)
PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "causal": (heads(is_causal=True), (x(1, 70, 2, 32), x(1, 70, 2, 32), x(1, 70, 2, 32))),
    "groups_bias": (heads(scale=0.3), (x(2, 20, 4, 24), x(2, 70, 2, 24), x(2, 70, 2, 24),
                                            x(1, 4, 20, 70))),
    "mask": (masked, (x(1, 9, 2, 16), x(1, 130, 2, 16), x(1, 130, 2, 16),
                       _RANDOM.random((1, 2, 9, 130)) > 0.3)),
    "f16_odd": (_some_see_nothing, (x(33, 21, dtype=np.float16), x(65, 21, dtype=np.float16),
                         x(65, 39, dtype=np.float16))),
    "f32_causal": (heads(is_causal=True), tuple(x(1, 70, 2, 24, dtype=np.float32) for _ in range(3))),
    "f32_wide": (_sum_of_heads, (x(33, 70, dtype=np.float32), x(40, 70, dtype=np.float32),
                                 x(40, 129, dtype=np.float32))),
    "tf32_causal": (_tf32(heads(is_causal=True)), tuple(x(1, 70, 2, 24, dtype=np.float32) for _ in range(3))),
    "tf32_wide": (_tf32(_sum_of_heads), (x(33, 70, dtype=np.float32), x(40, 70, dtype=np.float32),
                                         x(40, 129, dtype=np.float32))),
    "wide": (_scaled, (x(33, 200), x(65, 200), x(65, 248))),
    "wide_odd": (_scaled, (x(33, 131), x(65, 131), x(65, 249))),
    "infinite": (some_see_nothing_at_first, (x(130, 16), x(130, 16), x(130, 16))),
}  # fmt: skip


@functools.cache
def _program(name: str) -> Program:
    function, arguments = PROGRAMS[name]
    return Program(function, *arguments, arch="sm_90")  # without wgmma


@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated(name: str) -> None:
    function, arguments = PROGRAMS[name]
    program = _program(name)
    (launch,) = kernel_of(program)[1].launches
    assert kernel_of(program)[1].scratch_bytes == 0, launch
    given = map(_as_tf32, arguments) if name.startswith("tf32") else arguments
    wanted = np.asarray(lamina.jit(function)(*given)).astype(np.float32)
    found = program.run(measures=True)[0].astype(np.float32)
    tolerance = 2e-2 if "f32" not in name else 2e-5 if name.startswith("f32") else 2e-3
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 2)
    assert not program.conflicts("cp.async", "ldmatrix")


def test_keys_that_no_query_sees_are_left_out() -> None:
    q, k, v = PROGRAMS["causal"][1]
    v = v.copy()
    v[:, 64:] = np.nan  # zero times that would be NaN
    program = Program(PROGRAMS["causal"][0], q, k, v)
    (found,) = program.run()
    seen = np.isfinite(found.astype(np.float32)).all((0, 2, 3))
    np.testing.assert_array_equal(seen, np.arange(70) < 64)


def test_queries_that_see_nothing_are_nan() -> None:
    def nothing(q, k, v):
        scores = jnp.where(jnp.arange(16)[:, None] > 3, (q @ k.T).astype(np.float32), -np.inf)
        return lamina.nn.softmax(scores).astype(q.dtype) @ v

    arguments = x(16, 16), x(16, 16), x(16, 16)
    (found,) = Program(nothing, *arguments).run()
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)).all(1), np.arange(16) <= 3)


def test_without_tensor_cores_scores_are_in_memory() -> None:
    arrays = [lamina.ShapeDtypeStruct((64, 16), np.float16)] * 3
    (kernel,) = Program(_plain, *arrays, arch="sm_75").kernels.values()
    assert len(kernel.launches) > 1 and "mma" not in kernel.ptx
