"""Every row of primitive_samples: types, values, derivatives, cotangents and batches. Several rows
make one program in each library: compiling is what costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from support.samples.functions import direction, has_derivative, inexact, mine, x64
from support.samples.primitives import ROWS
from support.samples.sample import Sample

import lamina
from lamina.core import dtypes, tree

pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
]

BATCH = 3
PER_PROGRAM = 12
_RTOL = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-5, "complex64": 1e-5,
         "float16": 4e-3, "bfloat16": 3e-2}  # fmt: skip


def theirs(sample: Sample) -> Any:
    return lambda *args: jax.tree.leaves(sample.function(jax.lax, *args))


def together(jit: Any, functions: Sequence[Any]) -> Any:
    """One jitted function of a list of argument lists, that gives a list of lists of results."""
    compiled = jit(lambda args: [f(*a) for f, a in zip(functions, args, strict=True)])
    return lambda args: [[np.asarray(x) for x in xs] for xs in compiled(args)]


def groups(rows: Sequence[Sample], size: int = PER_PROGRAM) -> Any:
    """A parameter `samples`: rows by the dozen. `-k name` finds the dozen with that primitive."""
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    names = [" ".join(dict.fromkeys(str(s.primitive) for s in part)) for part in parts]
    return pytest.mark.parametrize("samples", parts, ids=names)


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


@groups(ROWS)
def test_type_and_value(samples: list[Sample]) -> None:
    args = [s.arrays() for s in samples]
    avals = [tree.leaves(lamina.eval_shape(mine(s), *a)) for s, a in zip(samples, args)]
    with np.errstate(all="ignore"):
        wanted = together(jax.jit, [theirs(s) for s in samples])(args)
    found = together(lamina.jit, [mine(s) for s in samples])(args)
    for sample, given, types, got, want in zip(samples, args, avals, found, wanted, strict=True):
        expected = [(a.shape, a.dtype) for a in types]
        assert expected == [(x.shape, x.dtype) for x in got], str(sample)
        assert expected == [(x.shape, x.dtype) for x in want], str(sample)
        assert_close(got, want, sample.rtol, f"{sample} against JAX")
        if sample.numpy is not None:
            with np.errstate(all="ignore"):
                reference = jax.tree.leaves(sample.numpy(*given))
            assert_close(
                got,
                [np.asarray(r, a.dtype) for r, a in zip(reference, got)],
                sample.rtol,
                f"{sample} against NumPy",
            )


class _Derivatives:
    """A sample as a function of its inexact arguments; a point, tangents and cotangents."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.args = sample.arrays(wide=sample.widen)
        self.active = inexact(self.args)
        rng = np.random.default_rng(7)
        out_avals = tree.leaves(lamina.eval_shape(mine(sample), *self.args))
        self.outs = [i for i, a in enumerate(out_avals) if dtypes.is_inexact(a.dtype)]
        self.points = [self.args[i] for i in self.active]
        self.tangents = [direction(rng, x) for x in self.points]
        self.cotangents = [direction(rng, out_avals[i]) for i in self.outs]

    def of_active(self, fun: Any) -> Any:
        def inner(*xs: Any) -> list[Any]:
            full = list(self.args)
            for i, x in zip(self.active, xs, strict=True):
                full[i] = x
            results = fun(*full)
            return [results[i] for i in self.outs]

        return inner

    def mine(self, *xs: Any) -> list[Any]:
        return self.of_active(mine(self.sample))(*xs)

    def data(self) -> tuple[Any, ...]:
        return tuple(self.points), tuple(self.tangents), self.cotangents

    def push_and_pull(self, points: Any, tangents: Any, cotangents: Any) -> list[Any]:
        _, out_tangents = lamina.jvp(self.mine, points, tangents)
        _, pullback = lamina.vjp(self.mine, *points)
        return [*out_tangents, *pullback(list(cotangents))]

    def push_in_jax(self, points: Any, tangents: Any, _: Any) -> list[Any]:
        if not self.sample.jax_jvp:
            return []
        return jax.jvp(self.of_active(theirs(self.sample)), points, tangents)[1]

    def moved(self, eps: float) -> list[Any]:
        return [
            x + np.asarray(eps * t, x.dtype)
            for x, t in zip(self.points, self.tangents, strict=True)
        ]

    def check(self, results: list[Any], of_jax: list[Any], slopes: list[Any]) -> None:
        sample, n = self.sample, len(self.outs)
        got, pulled = results[:n], results[n:]
        if sample.jax_jvp:
            assert_close(got, of_jax, sample.rtol, f"jvp of {sample} against JAX")
        assert [p.dtype for p in pulled] == [p.dtype for p in self.points], str(sample)
        if not sample.smooth:
            return
        # Real parts: functions between real and complex numbers are linear over the reals only.
        left = sum(np.sum(ct * t).real for ct, t in zip(self.cotangents, got))
        right = sum(np.sum(p * t).real for p, t in zip(pulled, self.tangents))
        tol = 1e-8 if sample.widen else 1e-3
        np.testing.assert_allclose(
            left, right, rtol=tol, atol=tol, err_msg=f"<ct, jvp(t)> = <vjp(ct), t> of {sample}"
        )
        if sample.widen:
            for slope, t in zip(slopes, got, strict=True):
                slope = np.where(np.isnan(slope), t, slope)  # a gather's fill value
                np.testing.assert_allclose(
                    t, slope, rtol=1e-5, atol=1e-5, err_msg=f"finite differences of {sample}"
                )


_DERIVED = sorted((s for s in ROWS if has_derivative(s)), key=lambda s: s.widen)
_NARROW = sum(not s.widen for s in _DERIVED)


@groups(_DERIVED[:_NARROW])
def test_narrow_derivatives(samples: list[Sample]) -> None:
    derivatives(samples)


@groups(_DERIVED[_NARROW:])
def test_derivatives(samples: list[Sample]) -> None:
    derivatives(samples)


def derivatives(samples: list[Sample]) -> None:
    """jvp = JAX's = finite differences, and <vjp(ct), t> = <ct, jvp(t)>."""
    with x64(samples[0].widen), np.errstate(all="ignore"):
        cases = [_Derivatives(s) for s in samples]
        data = [c.data() for c in cases]
        results = together(lamina.jit, [c.push_and_pull for c in cases])(data)
        of_jax = together(jax.jit, [c.push_in_jax for c in cases])(data)
        values = together(lamina.jit, [c.mine for c in cases])
        eps = 1e-6
        ahead, behind = (values([c.moved(by) for c in cases]) for by in (eps, -eps))
        for case, got, want, up, down in zip(cases, results, of_jax, ahead, behind, strict=True):
            case.check(got, want, [(a - b) / (2 * eps) for a, b in zip(up, down, strict=True)])


def batched_dims(ranks: Sequence[int]) -> list[tuple[int | None, ...]]:
    """Ways to batch: everything in front, everything at the end, each operand alone."""
    ways: list[tuple[int | None, ...]] = [tuple(0 for _ in ranks), tuple(ranks)]
    for i, rank in enumerate(ranks):
        at = rank if i % 2 else 0
        ways.append(tuple(at if j == i else None for j in range(len(ranks))))
    if len(ranks) > 2:
        ways.append((None, *(0 for _ in ranks[1:])))
    return list(dict.fromkeys(ways))


class _Batches:
    """A sample, its arguments for each lane, and those of each way to batch it."""

    def __init__(self, sample: Sample) -> None:
        self.one = mine(sample)
        self.examples = [sample.arrays(seed=i) for i in range(BATCH)]
        self.ways = batched_dims([len(s.shape) for s in sample.specs])
        self.args = [
            [
                self.examples[0][i] if d is None else np.stack([e[i] for e in self.examples], d)
                for i, d in enumerate(dims)
            ]
            for dims in self.ways
        ]

    def batched(self, *args: Any) -> list[Any]:
        return [
            x
            for dims, given in zip(self.ways, args, strict=True)
            for x in lamina.vmap(self.one, in_axes=dims)(*given)
        ]

    def lane(self, number: int) -> list[Any]:
        """The arguments of one lane of one way: numbers count lanes, way after way."""
        dims, k = self.ways[number // BATCH % len(self.ways)], number % BATCH
        return [self.examples[0 if d is None else k][i] for i, d in enumerate(dims)]


@groups([s for s in ROWS if s.vmap and s.specs], size=8)
def test_vmap(samples: list[Sample]) -> None:
    """vmap = a Python loop over the examples."""
    cases = [_Batches(s) for s in samples]
    found = together(lamina.jit, [c.batched for c in cases])([c.args for c in cases])
    one = together(lamina.jit, [c.one for c in cases])
    lanes = [
        one([c.lane(n) for c in cases]) for n in range(BATCH * max(len(c.ways) for c in cases))
    ]
    for i, (sample, case, got) in enumerate(zip(samples, cases, found, strict=True)):
        width = len(got) // len(case.ways)
        for w, dims in enumerate(case.ways):
            loop = [lanes[BATCH * w + k][i] for k in range(BATCH)]
            want = [np.stack(column) for column in zip(*loop, strict=True)]
            assert_close(
                got[w * width : (w + 1) * width], want, sample.rtol, f"{sample} in_axes={dims}"
            )
