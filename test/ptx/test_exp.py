"""exp of f32 as GPUs are given it, over its whole range."""

from __future__ import annotations

import numpy as np
from support.cuda_program import Program

import lamina.numpy as jnp

_UNITS = 3  # of which the instruction itself has two


def test_exp_is_right_to_some_units() -> None:
    x = np.linspace(-87.3, 88.7, 40_000).astype(np.float32)
    (found,) = Program(jnp.exp, x).run()
    wanted = np.exp(x.astype(np.float64))
    units = np.spacing(wanted.astype(np.float32)).astype(np.float64)
    assert (abs(found - wanted) <= _UNITS * units).all()


def test_exp_at_the_ends() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 89, 1e30, -104, -1e30, 1e-40], np.float32)
    (found,) = Program(jnp.exp, x).run()
    inf = np.inf
    np.testing.assert_array_equal(found, np.array([inf, 0, np.nan, 1, 1, inf, inf, 0, 0, 1], np.float32))
