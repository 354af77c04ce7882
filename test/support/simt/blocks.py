"""The emulator's blocks that wait for each other: each goes on by itself, in an order drawn at random.

A kernel in which a loop repeats an atomic operation waits for other blocks. Its blocks take turns, and
change at every atomic operation and whenever one waits in vain. If all that are left wait, that is a
deadlock. `seed` draws another order.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from support.simt import emulator as simt

seed = 0


class Blocks:
    """Blocks of a launch that take turns: one works at a time."""

    def __init__(self, count: int) -> None:
        self.turns = [threading.Semaphore(0) for _ in range(count)]
        self.waiting: dict[int, bool] = dict.fromkeys(range(count), False)  # of those that go on
        self.error: BaseException | None = None
        self.chance = random.Random(seed)

    def run(self, work: Callable[[int], None]) -> None:
        threads = [
            threading.Thread(target=self._play, args=(n, work)) for n in range(len(self.turns))
        ]
        for thread in threads:
            thread.start()
        self._wake_one()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _play(self, number: int, work: Callable[[int], None]) -> None:
        self.turns[number].acquire()
        try:
            if self.error is None:
                with np.errstate(all="ignore"):
                    work(number)
        except BaseException as error:
            self.error = self.error or error
        del self.waiting[number]
        self.waiting = dict.fromkeys(self.waiting, False)
        self._wake_one()

    def _wake_one(self) -> None:
        if self.waiting:
            self.turns[self.chance.choice(list(self.waiting))].release()

    def give_way(self, number: int, in_vain: bool) -> None:
        """Another block may go on; `in_vain`: this one saw nothing of what it waits for."""
        self.waiting[number] = in_vain
        if all(self.waiting.values()):
            self.error = self.error or simt.SimtError("a deadlock: all blocks wait for another")
        if not in_vain:
            self.waiting = dict.fromkeys(self.waiting, False)
        self._wake_one()
        self.turns[number].acquire()
        if self.error is not None:
            raise self.error


def wait(block: Any) -> bool:
    """Whether a kernel has a loop that repeats an atomic operation."""
    return any(
        (view.operation.name == "scf.while" and has_atomic(view.operation))
        or any(wait(inner) for region in view.operation.regions for inner in region.blocks)
        for view in block.operations
    )


def has_atomic(op: Any) -> bool:
    """Whether an atomic operation is right in one of the op's regions."""
    return any(
        view.operation.name == "memref.atomic_rmw"
        for region in op.regions for block in region.blocks for view in block.operations
    )  # fmt: skip


def run(launch: Any) -> None:
    """Runs a launch whose blocks wait for each other."""
    blocks = Blocks(launch.blocks)
    body = launch.function.regions[0].blocks[0]

    def one(number: int) -> None:
        mine = copy.copy(launch)  # values of its own, and the same memory
        mine.values = dict(launch.values)
        mine.give_way = lambda in_vain=False: blocks.give_way(number, in_vain)
        mine.do(body, launch.block == number)

    blocks.run(one)
