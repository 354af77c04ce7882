"""The processes that run programs together: which of them this is, and what devices each has."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, NamedTuple

from lamina.runtime import _runtime

if TYPE_CHECKING:
    from lamina.runtime.mpi import Mpi


class Processes(NamedTuple):
    """Processes that work together. Devices are numbered through, process by process."""

    rank: int
    devices: tuple[int, ...]  # how many each has; empty where this process is alone

    @property
    def size(self) -> int:
        """How many there are."""
        return max(1, len(self.devices))

    def of_device(self, number: int) -> int:
        """The process that has this device."""
        for process, count in enumerate(self.devices):
            number -= count
            if number < 0:
                return process
        return self.rank

    def first_device(self) -> int:
        """The number of this process's first device."""
        return sum(self.devices[: self.rank])


ALONE = Processes(0, ())

_current = ALONE


def current() -> Processes:
    """The processes that this one works with."""
    return _current


def join(mpi: Mpi, devices: int, seconds: float) -> None:
    """Becomes one of MPI's processes, with so many devices; hears from the others how many they have.

    Raises RuntimeError where one of them does not come within the seconds.
    """
    global _current
    _runtime.join_processes(mpi.rank, mpi.size, **mpi.interface)
    try:
        counts = gather("distributed.initialize", str(devices).encode(), seconds)
    except RuntimeError:
        _runtime.leave_processes()
        raise
    places.cache_clear()
    _current = Processes(mpi.rank, tuple(map(int, counts)))


def leave() -> None:
    """This process is alone again."""
    global _current
    _runtime.leave_processes()
    places.cache_clear()
    _current = ALONE


def _alone_in_child() -> None:
    # A forked child may not call MPI.
    if _current is not ALONE:
        leave()


os.register_at_fork(after_in_child=_alone_in_child)


def gather(what: str, given: bytes, seconds: float = 0) -> list[bytes]:
    """The bytes that every process gives, in their order; `what` is what waits for them."""
    return _runtime.gather_from_processes(what, given, seconds)


@functools.lru_cache(1024)
def places(devices: tuple[int, ...]) -> _runtime.Places | None:
    """Where these devices are, as a run is told; None where all are here."""
    where = [_current.of_device(d) for d in devices]
    if all(process == _current.rank for process in where):
        return None
    return _runtime.Places(where, _current.rank)
