"""Every row of primitive_samples: types, values, derivatives, cotangents and batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from primitive_samples import ROWS
from sample import Sample
from sample_functions import direction, has_derivative, inexact, mine, x64

import lamina
from lamina.core import dtypes, tree

pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
]

BATCH = 3
_RTOL = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-5, "complex64": 1e-5,
         "float16": 4e-3, "bfloat16": 3e-2}  # fmt: skip


def theirs(sample: Sample) -> Any:
    return lambda *args: jax.tree.leaves(sample.function(jax.lax, *args))


def run(fun: Any, *args: Any) -> list[np.ndarray]:
    """The results of a function compiled as a whole."""
    return [np.asarray(x) for x in lamina.jit(fun)(*args)]


def assert_close(
    got: Sequence[Any], want: Sequence[Any], rtol: float = 0.0, what: str = ""
) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, what
        if dtypes.is_inexact(a.dtype):
            tol = (
                max(rtol, _RTOL[a.dtype.name])
                if a.dtype.itemsize < 8 or rtol > 1e-3
                else _RTOL[a.dtype.name]
            )
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            scale = np.max(np.abs(b.astype(wide)[np.isfinite(b.astype(wide))]), initial=0.0)
            np.testing.assert_allclose(
                a.astype(wide), b.astype(wide), rtol=tol, atol=tol * min(scale, 1.0), err_msg=what
            )
        else:
            np.testing.assert_array_equal(a, b, err_msg=what)


def sample_id(sample: Sample) -> str:
    return str(sample)


@pytest.mark.parametrize("sample", ROWS, ids=sample_id)
def test_type_and_value(sample: Sample) -> None:
    args = sample.arrays()
    avals = tree.leaves(lamina.eval_shape(mine(sample), *args))
    with np.errstate(all="ignore"):
        want = theirs(sample)(*args)
    got = run(mine(sample), *args)
    assert [(a.shape, a.dtype) for a in avals] == [(x.shape, x.dtype) for x in got]
    assert [(a.shape, a.dtype) for a in avals] == [(x.shape, x.dtype) for x in want]
    assert_close(got, want, sample.rtol, "against JAX")
    if sample.numpy is not None:
        with np.errstate(all="ignore"):
            reference = jax.tree.leaves(sample.numpy(*args))
        assert_close(
            got,
            [np.asarray(r, a.dtype) for r, a in zip(reference, got)],
            sample.rtol,
            "against NumPy",
        )


@pytest.mark.parametrize("sample", [s for s in ROWS if has_derivative(s)], ids=sample_id)
def test_derivatives(sample: Sample) -> None:
    """jvp = JAX's = finite differences, and <vjp(ct), t> = <ct, jvp(t)>."""
    with x64(sample.widen), np.errstate(all="ignore"):
        args = sample.arrays(wide=sample.widen)
        active = inexact(args)
        rng = np.random.default_rng(7)
        tangents = [direction(rng, args[i]) for i in active]
        out_avals = tree.leaves(lamina.eval_shape(mine(sample), *args))
        outs = [i for i, a in enumerate(out_avals) if dtypes.is_inexact(a.dtype)]
        cotangents = [direction(rng, out_avals[i]) for i in outs]

        def of_active(fun: Any) -> Any:
            def inner(*xs: Any) -> list[Any]:
                full = list(args)
                for i, x in zip(active, xs):
                    full[i] = x
                results = fun(*full)
                return [results[i] for i in outs]

            return inner

        def both(*xs: Any) -> list[Any]:
            primals, ts, cts = (
                xs[: len(active)],
                xs[len(active) : 2 * len(active)],
                xs[2 * len(active) :],
            )
            _, out_tangents = lamina.jvp(of_active(mine(sample)), primals, ts)
            _, pullback = lamina.vjp(of_active(mine(sample)), *primals)
            return [*out_tangents, *pullback(list(cts))]

        points = [args[i] for i in active]
        results = run(both, *points, *tangents, *cotangents)
        got, pulled = results[: len(outs)], results[len(outs) :]
        if sample.jax_jvp:
            # As one program: op by op, each op would be compiled.
            of_jax = jax.jit(lambda p, t: jax.jvp(of_active(theirs(sample)), p, t)[1])
            want = of_jax(tuple(points), tuple(tangents))
            assert_close(got, want, sample.rtol, "jvp against JAX")
        assert [p.dtype for p in pulled] == [p.dtype for p in points]
        if not sample.smooth:
            return
        # Real parts: functions between real and complex numbers are linear over the reals only.
        left = sum(np.sum(ct * t).real for ct, t in zip(cotangents, got))
        right = sum(np.sum(p * t).real for p, t in zip(pulled, tangents))
        tol = 1e-8 if sample.widen else 1e-3
        np.testing.assert_allclose(
            left, right, rtol=tol, atol=tol, err_msg="<ct, jvp(t)> = <vjp(ct), t>"
        )
        if sample.widen:
            eps = 1e-6
            f = lamina.jit(of_active(mine(sample)))
            ahead = f(*(x + np.asarray(eps * t, x.dtype) for x, t in zip(points, tangents)))
            behind = f(*(x - np.asarray(eps * t, x.dtype) for x, t in zip(points, tangents)))
            for a, b, t in zip(ahead, behind, got):
                slope = (np.asarray(a) - np.asarray(b)) / (2 * eps)
                slope = np.where(np.isnan(slope), t, slope)  # a gather's fill value
                np.testing.assert_allclose(
                    t, slope, rtol=1e-5, atol=1e-5, err_msg="finite differences"
                )


def batched_dims(ranks: Sequence[int]) -> list[tuple[int | None, ...]]:
    """Ways to batch: everything in front, everything at the end, each operand alone."""
    ways: list[tuple[int | None, ...]] = [tuple(0 for _ in ranks), tuple(ranks)]
    for i, rank in enumerate(ranks):
        at = rank if i % 2 else 0
        ways.append(tuple(at if j == i else None for j in range(len(ranks))))
    if len(ranks) > 2:
        ways.append((None, *(0 for _ in ranks[1:])))
    return list(dict.fromkeys(ways))


@pytest.mark.parametrize("sample", [s for s in ROWS if s.vmap and s.specs], ids=sample_id)
def test_vmap(sample: Sample) -> None:
    """vmap = a Python loop over the examples."""
    examples = [sample.arrays(seed=i) for i in range(BATCH)]
    one = lamina.jit(mine(sample))
    for dims in batched_dims([len(s.shape) for s in sample.specs]):
        args = [
            examples[0][i] if d is None else np.stack([e[i] for e in examples], d)
            for i, d in enumerate(dims)
        ]
        got = run(lamina.vmap(mine(sample), in_axes=dims), *args)
        loop = [
            [
                np.asarray(x)
                for x in one(*(examples[0 if d is None else k][i] for i, d in enumerate(dims)))
            ]
            for k in range(BATCH)
        ]
        want = [np.stack(column) for column in zip(*loop)]
        assert_close(got, want, sample.rtol, f"in_axes={dims}")
