"""Locks that a forked child finds free, and what they guard whole.

A child has one thread. A lock that another thread held is never given back there, and what that thread
was about to change stays half done. So whoever forks takes such locks first.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol


class Lock(Protocol):
    """What `threading`'s locks have."""

    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


_locks: list[Lock] = []
_held: list[Lock] = []


def new_lock() -> threading.RLock:
    """A lock that forks take. Its holder may take it again: a signal's handler may fork."""
    lock = threading.RLock()
    take_with_forks(lock)
    return lock


def take_with_forks(lock: Lock) -> None:
    """Makes this one of the locks that forks take. It stays one for as long as the process lives."""
    _locks.append(lock)


def _take_all() -> None:
    """Takes the locks, in whichever order other threads do: who has some and must wait for another gives
    them back first."""
    awaited: Lock | None = None
    while True:
        taken: list[Lock] = []
        if awaited is not None:
            awaited.acquire()
            taken.append(awaited)
        for lock in _locks:
            if lock is awaited:
                continue
            if not lock.acquire(blocking=False):
                awaited = lock
                break
            taken.append(lock)
        else:
            _held.extend(taken)
            return
        for lock in taken:
            lock.release()


def _release_all() -> None:
    while _held:
        _held.pop().release()


os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)
