"""The processes that run programs together: which of them this is, and what devices each has."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from lamina.runtime import _runtime

if TYPE_CHECKING:
    from lamina.runtime.mpi import Mpi


class Processes(NamedTuple):
    """Processes that work together. Devices are numbered through, process by process."""

    rank: int
    devices: tuple[int, ...]  # how many each has; empty where this process is alone
    gpus: tuple[tuple[int, ...], ...] = ()  # of each the GPUs that are its own, by its driver's numbers

    @property
    def size(self) -> int:
        """How many there are."""
        return max(1, len(self.devices))

    def of_device(self, number: int) -> int:
        """The process that has this device."""
        return self._owner(number, self.devices)

    def of_gpu(self, gpu: int) -> int:
        """The process that has this GPU of all, which are numbered through."""
        return self._owner(gpu, map(len, self.gpus))

    def _owner(self, number: int, counts: Iterable[int]) -> int:
        for process, count in enumerate(counts):
            number -= count
            if number < 0:
                return process
        return self.rank

    def first_gpu(self, process: int) -> int:
        """The number of a process's first GPU among those of all."""
        return sum(map(len, self.gpus[:process]))

    def number_of_gpu(self, gpu: int) -> int:
        """The driver's number of a GPU of this process. Raises ValueError for another process's."""
        if not self.gpus:
            return gpu
        if self.of_gpu(gpu) != self.rank:
            raise ValueError(f"cuda:{gpu} is a GPU of process {self.of_gpu(gpu)}, and this is process {self.rank}")
        return self.gpus[self.rank][gpu - self.first_gpu(self.rank)]

    def gpu_of_number(self, number: int) -> int:
        """The number among those of all of the GPU that the driver here has under this number."""
        if not self.gpus:
            return number
        return self.first_gpu(self.rank) + self.gpus[self.rank].index(number)

    def own_gpu(self) -> int:
        """The driver's number of this process's first GPU. Raises RuntimeError where other processes have them all."""
        if not self.gpus:
            return 0
        if not self.gpus[self.rank]:
            raise RuntimeError(
                f"process {self.rank} has no GPU of its own: other processes have those that it sees "
                "(initialize(local_device_ids=...) says which are whose)"
            )
        return self.gpus[self.rank][0]

    def first_device(self) -> int:
        """The number of this process's first device."""
        return sum(self.devices[: self.rank])


ALONE = Processes(0, ())

_current = ALONE


def current() -> Processes:
    """The processes that this one works with."""
    return _current


_SPINNING_SECONDS = 100e-6
"""How long a thread that waits for messages keeps its CPU busy, where each process has one: longer than
messages take on one machine, shorter than anybody minds."""


class Facts(NamedTuple):
    """What processes tell each other when they meet."""

    devices: int
    host: str
    cpus: tuple[int, ...]  # those it may use
    gpus: int  # that its driver shows
    shown: str  # which those are, as the environment says
    own_gpus: tuple[int, ...] | None  # those that it is to have, where it says so


def _dealt(facts: list[Facts]) -> tuple[tuple[int, ...], ...]:
    """The GPUs of each process. Processes that see the same ones of a machine get equal shares, in their order."""
    found = []
    for each in facts:
        sharers = [one for one in facts if (one.host, one.shown, one.own_gpus) == (each.host, each.shown, None)]
        if each.own_gpus is not None:
            found.append(tuple(each.own_gpus))
            continue
        place = next(i for i, one in enumerate(sharers) if one is each)
        begin, end = (each.gpus * i // len(sharers) for i in (place, place + 1))
        found.append(tuple(range(begin, end)))
    return tuple(found)


def join(
    mpi: Mpi, devices: int, seconds: float, gpus: int = 0, own_gpus: tuple[int, ...] | None = None
) -> int:
    """Becomes one of MPI's processes, with so many devices; hears from the others how many they have.
    Gives how many processes use this one's CPUs. `gpus` is how many this one sees, of which `own_gpus` are to be
    its own: None for its share of them.

    Raises RuntimeError where one of them does not come within the seconds.
    """
    import json
    import socket

    global _current
    _runtime.join_processes(mpi.rank, mpi.size, **mpi.interface)
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    mine = Facts(devices, socket.gethostname(), cpus, gpus, shown, own_gpus)
    given = json.dumps(mine).encode()
    try:
        received = exchange("distributed.initialize", [given] * mpi.size, seconds)
    except RuntimeError:
        _runtime.leave_processes()
        raise
    facts = [json.loads(each) for each in received]
    all_facts = [Facts(n, host, tuple(cpus), *rest) for n, host, cpus, *rest in facts]
    sharers = sum((f.host, f.cpus) == (mine.host, mine.cpus) for f in all_facts)
    _runtime.set_spinning(_SPINNING_SECONDS if sharers <= len(mine.cpus) else 0)
    places.cache_clear()
    _current = Processes(mpi.rank, tuple(f.devices for f in all_facts), _dealt(all_facts))
    return sharers


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


def exchange(what: str, given: list[bytes], seconds: float = 0) -> list[bytes]:
    """given[p] goes to process p; the bytes that each process has for this one, in their order. `what`
    is what waits. Raises RuntimeError where one does not come within the seconds; 0: as long as
    collectives wait."""
    if _current is ALONE and len(given) == 1:
        return given
    return _runtime.exchange_with_processes(what, given, seconds)


def tell_all(what: str, value: Any) -> list[Any]:
    """The value that each process gives, in their order. `what` is what waits: all call it."""
    if _current is ALONE:
        return [value]
    given = [pickle.dumps(value)] * _current.size
    return [pickle.loads(each) for each in exchange(what, given)]


@functools.lru_cache(1024)
def places(devices: tuple[int, ...], on_gpus: bool = False) -> _runtime.Places | None:
    """Where these devices are, as a run is told; None where all are here."""
    where = list(map(_current.of_gpu if on_gpus else _current.of_device, devices))
    if all(process == _current.rank for process in where):
        return None
    return _runtime.Places(where, _current.rank)
