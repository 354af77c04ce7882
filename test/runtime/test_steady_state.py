"""Calls that come again take no new memory: no page is touched for the first time."""

from __future__ import annotations

import resource

import lamina
import lamina.numpy as jnp


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_no_page_faults():
    x = jnp.ones((512, 512))  # results and temporaries of 256 pages
    program = lamina.jit(lambda x: (jnp.tanh(x @ x) + x, jnp.sort(x, 1), jnp.cumsum(x, 0).sum()))
    for _ in range(20):
        lamina.block_until_ready(program(x))
    before = faults()
    for _ in range(100):
        lamina.block_until_ready(program(x))
    assert faults() - before < 256
