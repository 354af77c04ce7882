"""The two arms of an `if` that wait for each other take turns: who waits in vain lets the other go on,
and where both do is a deadlock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from support.simt import emulator as simt

WAIT = "nvvm.mbarrier.try_wait.parity"


class Turns:
    """Two roles that take turns: one works at a time."""

    def __init__(self) -> None:
        self.locks = [threading.Semaphore(0), threading.Semaphore(0)]
        self.ended = [False, False]
        self.waited = 0  # times in a row that nobody got on
        self.error: BaseException | None = None

    def run(self, roles: Sequence[Callable[[], Any]]) -> None:
        threads = [
            threading.Thread(target=self._play, args=(n, role)) for n, role in enumerate(roles)
        ]
        for thread in threads:
            thread.start()
        self.locks[0].release()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _play(self, number: int, role: Callable[[], Any]) -> None:
        self.locks[number].acquire()
        try:
            if self.error is None:
                with np.errstate(all="ignore"):
                    self.number = number
                    role()
        except BaseException as error:
            self.error = self.error or error
        self.ended[number] = True
        self.locks[1 - number].release()

    def give_way(self) -> None:
        self.waited += 1
        mine = self.number
        if self.waited > 2 or self.ended[1 - mine]:
            raise simt.SimtError("a deadlock: a barrier that nobody arrives at any more")
        self.locks[1 - mine].release()
        self.locks[mine].acquire()
        self.number = mine
        if self.error is not None:
            raise simt.SimtError("the other role failed")


def takes_turns(op: Any) -> bool:
    """Whether both arms of an `if` wait at barriers in shared memory."""
    return all(len(r.blocks) and any(_waits(b) for b in r.blocks) for r in op.regions)


def _waits(block: Any) -> bool:
    return any(
        view.operation.name == WAIT or any(_waits(b) for r in view.operation.regions for b in r.blocks)
        for view in block.operations
    )
