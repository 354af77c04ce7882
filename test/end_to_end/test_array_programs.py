"""Random array programs give in f32 what JAX gives in f64, up to rounding; so do their gradients, and
maps of them."""

import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from support.strategies.array_programs import Program
from support.strategies.array_steps import program
from support.strategies.effort import examples

import lamina


def _values(m: Any, p: Program) -> Callable[..., Any]:
    return p.function(m)


def _gradients(m: Any, p: Program) -> Callable[..., Any]:
    numbers = [at for at, v in enumerate(p.arguments) if v.kind == "f"]
    f = p.function(m)

    def total(*args: Any) -> Any:
        floats = [r for r in f(*args) if r.size and r.dtype.kind == "f"]
        return sum((m.numpy.sum(m.numpy.cos(r) / r.size) for r in floats), m.numpy.sum(args[0]))

    return m.grad(total, argnums=tuple(numbers))


def _mapped(m: Any, p: Program) -> Callable[..., Any]:
    """Of the arguments and of themselves turned round, one beside the other."""

    def pairs(*args: Any) -> Any:
        return m.vmap(p.function(m))(*[m.numpy.stack([a, m.numpy.flip(a)]) for a in args])

    return pairs


@pytest.mark.parametrize("seed", range(examples(9)))
@pytest.mark.parametrize("what", [_values, _gradients, _mapped])
def test_programs_give_what_jax_gives(what: Any, seed: int) -> None:
    draw = random.Random(f"{what.__name__} {seed}").choice
    p = program(draw, draw([4, 8, 14]))
    args = p.drawn(seed)
    got = lamina.jit(what(lamina, p))(*args)
    with jax.enable_x64(True):
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in args]
        want = jax.jit(what(jax, p))(*wide)
    for g, w in zip(got, want, strict=True):
        _assert_close(np.asarray(g), np.asarray(w), p)


def _assert_close(got: np.ndarray, want: np.ndarray, p: Program) -> None:
    assert got.shape == want.shape, str(p)
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, str(p))
    else:
        size = np.max(np.abs(want), initial=0.01, where=np.isfinite(want))
        np.testing.assert_allclose(got.astype(np.float64), want, 0, 2e-3 * size, err_msg=str(p))
