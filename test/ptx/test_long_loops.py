"""Loops over so many elements that a thread does several items: some of their blocks, the last one among them."""

from __future__ import annotations

import functools
import unittest.mock

import numpy as np
import pytest
from support.cuda_program import Program
from support.ptx.launch import Program as Emulated

_ITEMS = 512 * 256  # one for each thread of as many blocks as fill a GPU


@pytest.mark.parametrize("items", [2 * _ITEMS, 2 * _ITEMS + 263, 4 * _ITEMS + 1])
def test_each_element_is_done_once(items: int) -> None:
    x = np.arange(4 * items, dtype=np.float32)
    program = Program(lambda x: x * 3 + 1, x)
    (kernel,) = program.kernels.values()
    (launch,) = kernel.launches
    (blocks, *_), (threads, *_) = launch.grid, launch.block
    each = 4 * threads * (items // _ITEMS)
    assert blocks == -(-x.size // each)
    chosen = (0, blocks - 2, blocks - 1)
    whole = functools.partialmethod(Emulated.launch, blocks=chosen)
    with unittest.mock.patch.object(Emulated, "launch", whole):
        (found,) = program.run()
    wanted = (x * 3 + 1).view(np.uint8)
    untouched = np.ones(blocks, bool)
    untouched[list(chosen)] = False
    done = ~np.repeat(untouched, each)[: x.size]
    np.testing.assert_array_equal(found[done], wanted.view(np.float32)[done])
    assert (found[~done].view(np.uint8) == 77).all()
