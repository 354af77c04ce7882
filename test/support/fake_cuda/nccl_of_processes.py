"""The NCCL made of Python over several processes, which write what they send to files of a folder that all see.

Each rank does its own part, when the files of the others are there.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from support.fake_cuda.c_calls import set_word
from support.fake_cuda.driver import FakeDriver
from support.fake_cuda.nccl import (
    INVALID_ARGUMENT,
    SYSTEM_ERROR,
    TYPES,
    Call,
    Comm,
    FakeNccl,
    Launched,
    Ranks,
    combined,
    operand_size,
)
from support.fake_cuda.streams import NotReadyError

_SECONDS = 250


class FakeNcclOfProcesses(FakeNccl):
    """The calls for one of the processes."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.names: dict[Ranks, str] = {}
        self.count_of_splits: dict[Comm, int] = {}

    def _unique_id(self, cuda: FakeDriver, out: int) -> None:
        ctypes.memmove(out, os.urandom(64).hex().encode(), 128)

    def _ranks(self, name: str, size: int) -> Ranks:
        found = next((ranks for ranks, known in self.names.items() if known == name), None)
        if found is None:
            found = Ranks(size)
            self.names[found] = name
            (self.folder / name).mkdir(exist_ok=True)
        return found

    def _init_rank(self, cuda: FakeDriver, out: int, size: int, id_: Any, rank: int) -> int | None:
        name = ctypes.string_at(ctypes.addressof(id_), 128)
        self.by_id[name] = self._ranks(name.decode(), size)
        return super()._init_rank(cuda, out, size, id_, rank)

    def _complete(self, ranks: Ranks) -> int | None:
        for rank, comm in ranks.comms.items():
            self._write(ranks, f"rank-{rank}", b"%d %d" % (os.getpid(), comm.device))
        given = self._wait_for(ranks, [f"rank-{rank}" for rank in range(ranks.size)])
        if given is None:
            return self._refuse("not all ranks came to ncclCommInitRank", SYSTEM_ERROR)
        return None if len(set(given)) == ranks.size else self._refuse("two ranks are on one device")

    def _split(self, cuda: FakeDriver, comm: int, color: int, key: int, out: int, config: int | None) -> int | None:
        held: Comm = cuda.objects[comm]
        ranks = held.clique
        if ranks.open or config:
            return self._refuse("ncclCommSplit beside operations that are under way", INVALID_ARGUMENT)
        number = self.count_of_splits[held] = self.count_of_splits.get(held, 0) + 1
        self._write(ranks, f"split-{number}-{held.rank}", b"%d %d" % (color, key))
        set_word(out, 0)

        def finish() -> int | None:
            given = self._wait_for(ranks, [f"split-{number}-{rank}" for rank in range(ranks.size)])
            if given is None:
                return self._refuse("not all ranks came to ncclCommSplit", SYSTEM_ERROR)
            table = [tuple(map(int, text.split())) for text in given]
            members = sorted((k, rank) for rank, (c, k) in enumerate(table) if c == color)
            if color >= 0:
                new = self._ranks(f"{self.names[ranks][:32]}-{number}-{color}", len(members))
                self._make(cuda, out, new, [rank for _, rank in members].index(held.rank), held.device)
            return None

        self._here.group.append(finish)
        return None if self._here.depth else self._flush()

    def run(self, launched: Launched) -> None:
        ranks = launched.operation.comm.clique
        is_exchange = launched.operation.is_exchange
        if is_exchange:
            local = {one for message in launched.messages for one in ranks.messages[message]}
        else:
            local = set(ranks.operations[launched.number].values())
        for other in local - {launched}:  # on devices of this process, which nobody waits for
            while other in other.stream.queue and other.stream.queue[0] is not other:
                other.stream.step()
            self._give(other)
        self._give(launched)
        self._exchange_files(launched) if is_exchange else self._collect(launched)
        ranks.open.discard(launched)

    def _give(self, launched: Launched) -> None:
        """Writes what a rank sends."""
        operation, ranks = launched.operation, launched.operation.comm.clique
        for i, call in enumerate(operation.calls):
            size = operand_size(call, ranks.size) * np.dtype(TYPES[call.type]).itemsize
            name = f"op-{launched.number}-{operation.comm.rank}"
            asked = repr((*astuple(call)[:5], operation.capture)).encode() + b"\n"
            if operation.is_exchange:
                name, asked = _name(launched.messages[i]), b""
            if call.what != "recv":
                self._write(ranks, name, asked + operation.cuda.at(call.send, size).tobytes())

    def _collect(self, launched: Launched) -> None:
        operation, ranks = launched.operation, launched.operation.comm.clique
        (call,), cuda = operation.calls, operation.cuda
        given = self._read(ranks, [f"op-{launched.number}-{rank}" for rank in range(ranks.size)])
        asked, data = zip(*(one.split(b"\n", 1) for one in given), strict=True)
        assert len(set(asked)) == 1, f"ranks differ: {asked}"
        operands = [np.frombuffer(one, TYPES[call.type]) for one in data]
        result = combined(call, operands)[operation.comm.rank]
        cuda.at(call.receive, result.nbytes)[:] = np.frombuffer(result.tobytes(), np.uint8)

    def _exchange_files(self, launched: Launched) -> None:
        operation, ranks = launched.operation, launched.operation.comm.clique
        pairs = zip(operation.calls, launched.messages, strict=True)
        wanted: list[tuple[Call, Any]] = [pair for pair in pairs if pair[0].what == "recv"]
        for (call, _), data in zip(wanted, self._read(ranks, [_name(m) for _, m in wanted]), strict=True):
            operation.cuda.at(call.receive, len(data))[:] = np.frombuffer(data, np.uint8)

    # ---- files -----------------------------------------------------------------------------------
    def _write(self, ranks: Ranks, name: str, data: bytes) -> None:
        path = self.folder / self.names[ranks] / name
        if not path.exists():
            path.with_suffix(".new").write_bytes(data)
            path.with_suffix(".new").rename(path)

    def _read(self, ranks: Ranks, names: list[str]) -> list[bytes]:
        paths = [self.folder / self.names[ranks] / name for name in names]
        if not all(path.exists() for path in paths):
            raise NotReadyError
        return [path.read_bytes() for path in paths]

    def _wait_for(self, ranks: Ranks, names: list[str]) -> list[bytes] | None:
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            try:
                return self._read(ranks, names)
            except NotReadyError:
                time.sleep(0.005)
        return None


def _name(message: tuple[int, int, int]) -> str:
    return "message-" + "-".join(map(str, message))
