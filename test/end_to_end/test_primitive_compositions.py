"""Rows of primitive_samples under two transformations: grad of vmap and vmap of grad are a loop of
gradients; jvp of vmap and vmap of jvp a loop of jvps. Many rows make one program.

By default one row of most primitives; all rows with LAMINA_TEST_EXAMPLES.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from support.samples.functions import direction, has_derivative, inexact, mine, x64
from support.samples.primitives import ROWS
from support.samples.sample import Sample

import lamina
from lamina import lax
from lamina.core import dtypes, tree

pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")

LANES = 3
PER_PROGRAM = 12


# Seconds to compile: programs of loops and tables.
_LONG = {"igamma", "igammac", "regularized_incomplete_beta"}


def _chosen() -> list[Sample]:
    fit = [s for s in ROWS if has_derivative(s) and s.vmap and s.specs]
    wide = {s.primitive for s in fit if s.widen}
    fit = [s for s in fit if s.widen or s.primitive not in wide]
    if os.environ.get("LAMINA_TEST_EXAMPLES"):
        return fit
    one_each = {s.primitive: s for s in reversed(fit) if s.primitive.name not in _LONG}
    return list(one_each.values())[::-1]


ALL = _chosen()
GROUPS = [ALL[i : i + PER_PROGRAM] for i in range(0, len(ALL), PER_PROGRAM)]


class _Case:
    """A sample as a function of its inexact arguments, and lanes of points, tangents, cotangents."""

    def __init__(self, sample: Sample) -> None:
        examples = [sample.arrays(wide=sample.widen, seed=i) for i in range(LANES)]
        active = inexact(examples[0])
        rest = examples[0]
        out_avals = tree.leaves(lamina.eval_shape(mine(sample), *rest))
        outs = [i for i, a in enumerate(out_avals) if dtypes.is_inexact(a.dtype)]

        def f(*xs: Any) -> list[Any]:
            full: list[Any] = list(rest)
            for i, x in zip(active, xs, strict=True):
                full[i] = x
            results = mine(sample)(*full)
            return [results[i] for i in outs]

        rng = np.random.default_rng(5)
        lanes = range(LANES)
        self.f = f
        self.points = tuple(np.stack([examples[k][i] for k in lanes]) for i in active)
        self.tangents = tuple(
            np.stack([direction(rng, rest[i]) for _ in lanes]) for i in active
        )
        self.cotangents = [np.stack([direction(rng, out_avals[i]) for _ in lanes]) for i in outs]

    def data(self) -> tuple[Any, Any, Any]:
        return self.points, self.tangents, self.cotangents

    def results(self, points: Any, tangents: Any, cotangents: Any) -> dict[str, Any]:
        """Each way to get there; the loops last."""
        pull = lambda xs, cts: lamina.vjp(self.f, *xs)[1](cts)  # noqa: E731
        push = lambda xs, ts: lamina.jvp(self.f, xs, ts)[1]  # noqa: E731
        batched = lamina.vmap(self.f)
        return {
            "vmap of grad": lamina.vmap(pull)(points, cotangents),
            "grad of vmap": lamina.vjp(batched, *points)[1](cotangents),
            "vmap of jvp": lamina.vmap(push)(points, tangents),
            "jvp of vmap": lamina.jvp(batched, points, tangents)[1],
            "grads": lax.map(lambda at: pull(*at), (points, cotangents)),
            "jvps": lax.map(lambda at: push(*at), (points, tangents)),
        }


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0].primitive}..{g[-1].primitive}")
def test_two_transformations(group: list[Sample]) -> None:
    with x64(True), np.errstate(all="ignore"):
        cases = [_Case(s) for s in group]
        every = lamina.jit(lambda data: [c.results(*d) for c, d in zip(cases, data, strict=True)])
        for sample, got in zip(group, every([c.data() for c in cases]), strict=True):
            for way, loop in (
                ("vmap of grad", "grads"), ("grad of vmap", "grads"),
                ("vmap of jvp", "jvps"), ("jvp of vmap", "jvps"),
            ):  # fmt: skip
                for a, b in zip(tree.leaves(got[way]), tree.leaves(got[loop]), strict=True):
                    assert a.dtype == b.dtype, f"{way} of {sample}"
                    wide = np.complex128 if np.iscomplexobj(a) else np.float64
                    tol = max(1e-8, 4 * float(lamina.numpy.finfo(a.dtype).eps))
                    np.testing.assert_allclose(
                        np.asarray(a).astype(wide), np.asarray(b).astype(wide),
                        rtol=tol, atol=tol / 10, err_msg=f"{way} of {sample}",
                    )  # fmt: skip
