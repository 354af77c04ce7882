"""An NCCL made of Python, for the driver made of Python: what `runtime/src/cuda/nccl.cpp` calls.

An operation is done when the streams of all its ranks have come to it, and refuses what the documentation forbids:
calls of one communicator in another order or with other counts, types or combiners on some ranks, streams and memory
of other devices, communicators that were aborted, captured launches beside direct ones, and captures that do not
belong together. Minima and maxima lose NaN, and sums are done from the last rank on, since no order is promised.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import INT, PTR, WORD, set_int, set_word
from support.fake_cuda.context import device_of
from support.fake_cuda.driver import FakeDriver
from support.fake_cuda.streams import NotReadyError, Stream

SUCCESS, UNHANDLED_CUDA_ERROR, SYSTEM_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = 0, 1, 2, 4, 5, 6
_WORDS = {1: b"unhandled cuda error", 2: b"unhandled system error", 4: b"invalid argument", 5: b"invalid usage",
          6: b"remote process exited or there was a network error"}  # fmt: skip
TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64,
          ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]  # fmt: skip
"""By the numbers of ncclDataType_t."""
_COMBINERS: list[Callable[[Any, Any], Any]] = [np.add, np.multiply, np.fmax, np.fmin]
"""By the numbers of ncclRedOp_t."""
_VERSION = 23203


class UniqueId(ctypes.Structure):
    """ncclUniqueId, which is given by value."""

    _fields_ = (("internal", ctypes.c_char * 128),)


Message = tuple[int, int, int]
"""Sender, receiver, and how many there were between them before."""


@dataclass(eq=False)
class Comm:
    """One rank's communicator."""

    clique: Ranks
    rank: int
    device: int
    issued: int = 0
    captured: int = 0
    messages: Counter[tuple[str, int, int]] = field(default_factory=Counter)  # by sender and receiver
    is_alive: bool = True
    async_error: int = 0
    last: bytes = b""


@dataclass(eq=False)
class Ranks:
    """The communicators that belong together, and their operations by number."""

    size: int
    comms: dict[int, Comm] = field(default_factory=dict)
    operations: dict[int, dict[int, Launched]] = field(default_factory=dict)  # collectives: number, rank
    messages: dict[Message, list[Launched]] = field(default_factory=dict)  # by those that send and receive them
    open: set[Launched] = field(default_factory=set)
    splits: dict[int, tuple[int, int]] = field(default_factory=dict)  # of each rank color and key


@dataclass(frozen=True)
class Call:
    """What one rank asks for. `parts`: send and receive calls of a group; else one collective."""

    what: str
    count: int
    type: int
    op: int
    root: int
    send: int
    receive: int


@dataclass(eq=False)
class Operation:
    """Calls of one rank that are one launch: work of a stream, which may be captured and launched again."""

    nccl: FakeNccl
    cuda: FakeDriver
    comm: Comm
    calls: tuple[Call, ...]
    capture: int | None = None

    @property
    def is_exchange(self) -> bool:
        """Whether it is one of sends and receives."""
        return self.calls[0].what in ("send", "recv")

    def launched_on(self, stream: Stream) -> Launched:
        comm, ranks = self.comm, self.comm.clique
        made = Launched(self, stream)
        ranks.open.add(made)
        if self.is_exchange:
            for call in self.calls:
                pair = (comm.rank, call.root) if call.what == "send" else (call.root, comm.rank)
                mine = call.what, *pair
                message = *pair, comm.messages[mine]
                comm.messages[mine] += 1
                made.messages.append(message)
                ranks.messages.setdefault(message, []).append(made)
        else:
            ranks.operations.setdefault(comm.issued, {})[comm.rank] = made
            made.number = comm.issued
            comm.issued += 1
        self.cuda.changed.notify_all()
        return made


@dataclass(eq=False)
class Launched:
    """An operation in a stream."""

    operation: Operation
    stream: Stream
    number: int = 0
    messages: list[Message] = field(default_factory=list)

    def __call__(self) -> None:
        comm = self.operation.comm
        if self in comm.clique.open and comm.is_alive:
            self.operation.nccl.run(self)

    def run_together(self) -> None:
        """What all ranks of this process want."""
        operation, comm = self.operation, self.operation.comm
        together = self._together()
        if together is None or operation.nccl.stalled & {one.operation.comm.rank for one in together}:
            raise NotReadyError
        for other in together:
            while other is not self and other.stream.queue and other.stream.queue[0] is not other:
                other.stream.step()
        operation.nccl.do(operation.cuda, comm.clique, [one.operation for one in together])
        comm.clique.open -= set(together)

    def _together(self) -> list[Launched] | None:
        """What is done at the same time, by rank; None where some rank has not asked for its part yet."""
        ranks = self.operation.comm.clique
        if not self.operation.is_exchange:
            there = ranks.operations[self.number]
            return [there[rank] for rank in range(ranks.size)] if len(there) == ranks.size else None
        found: dict[Launched, None] = {}
        new = [self]
        while new:
            one = new.pop()
            found[one] = None
            for message in one.messages:
                both = ranks.messages[message]
                if len(both) < 2:
                    return None
                new += [other for other in both if other not in found]
        return sorted(found, key=lambda one: one.operation.comm.rank)


@dataclass(eq=False)
class _Thread:
    """What one thread has said since ncclGroupStart."""

    depth: int = 0
    group: list[Any] = field(default_factory=list)  # what ncclGroupEnd does: functions, or sends and receives
    outs: dict[int, int] = field(default_factory=dict)


class FakeNccl:
    """The calls, by symbol, for `FakeDriver(libraries=...)`.

    `stalled`: the ranks whose device never comes to an operation. `asked`: the names of operations, in order.
    """

    def __init__(self, without: tuple[str, ...] = ()) -> None:
        self.without = without
        self.stalled: set[int] = set()
        self.asked: list[Call] = []
        self.comms: list[Comm] = []
        self.last = b""
        self.of_threads: dict[int, _Thread] = {}  # threads of C have no locals that outlive a call
        self.ids = itertools.count(1)
        self.by_id: dict[bytes, Ranks] = {}
        self.refused: list[str] = []

    def calls(self) -> dict[str, Any]:
        table: dict[str, tuple[tuple[Any, ...], Callable[..., int | None]]] = {
            "GetVersion": ((PTR,), lambda cuda, out: set_int(out, _VERSION)),
            "GetUniqueId": ((PTR,), self._unique_id),
            "CommInitRank": ((PTR, INT, UniqueId, INT), self._init_rank),
            "CommSplit": ((PTR, INT, INT, PTR, PTR), self._split),
            "CommAbort": ((PTR,), self._abort),
            "CommGetAsyncError": ((PTR, PTR), self._async_error),
            "GetErrorString": ((INT,), lambda cuda, code: _text(_WORDS.get(code, b"no error"))),
            "GetLastError": ((PTR,), self._last_error),
            "GroupStart": ((), self._group_start),
            "GroupEnd": ((), self._group_end),
            "AllReduce": ((PTR, PTR, WORD, INT, INT, PTR, PTR), self._reduction("all_reduce")),
            "ReduceScatter": ((PTR, PTR, WORD, INT, INT, PTR, PTR), self._reduction("reduce_scatter")),
            "AllGather": ((PTR, PTR, WORD, INT, PTR, PTR), self._all_gather),
            "Broadcast": ((PTR, PTR, WORD, INT, INT, PTR, PTR), self._broadcast),
            "Send": ((PTR, WORD, INT, INT, PTR, PTR), self._send),
            "Recv": ((PTR, WORD, INT, INT, PTR, PTR), self._receive),
        }
        return {f"nccl{name}": call for name, call in table.items() if f"nccl{name}" not in self.without}

    # ---- communicators ---------------------------------------------------------------------------
    def _unique_id(self, cuda: FakeDriver, out: int) -> None:
        name = b"%0128d" % next(self.ids)
        self.by_id[name] = Ranks(0)
        ctypes.memmove(out, name, 128)

    def _init_rank(self, cuda: FakeDriver, out: int, size: int, id_: UniqueId, rank: int) -> int | None:
        if not cuda.contexts:
            return self._refuse("no device is set")
        ranks = self.by_id.get(ctypes.string_at(ctypes.addressof(id_), 128))
        if ranks is None or not 0 <= rank < size or rank in ranks.comms or ranks.size not in (0, size):
            return self._refuse("ncclCommInitRank: no such rank", INVALID_ARGUMENT)
        if size > 1 and not self._here.depth:
            return self._refuse("ncclCommInitRank of several ranks by one thread outside of a group")
        ranks.size = size
        self._make(cuda, out, ranks, rank, device_of(cuda.contexts[-1]))
        self._here.group.append(lambda: self._complete(ranks))
        return None if self._here.depth else self._flush()

    def _make(self, cuda: FakeDriver, out: int, ranks: Ranks, rank: int, device: int) -> None:
        comm = Comm(ranks, rank, device)
        ranks.comms[rank] = comm
        self.comms.append(comm)
        set_word(out, cuda.handle(comm))

    def _complete(self, ranks: Ranks) -> int | None:
        if len(ranks.comms) != ranks.size:
            return self._refuse("not all ranks came to ncclCommInitRank: it would wait for ever", SYSTEM_ERROR)
        devices = [comm.device for comm in ranks.comms.values()]
        if len(set(devices)) != len(devices):
            return self._refuse("two ranks are on one device", INVALID_USAGE)
        return None

    def _split(self, cuda: FakeDriver, comm: int, color: int, key: int, out: int, config: int | None) -> int | None:
        held: Comm = cuda.objects[comm]
        if not held.is_alive or config:
            return self._refuse("ncclCommSplit of no communicator", INVALID_ARGUMENT)
        ranks = held.clique
        if ranks.open:
            return self._refuse("ncclCommSplit beside operations that are under way")
        table = ranks.splits
        set_word(out, 0)
        table[held.rank] = color, key

        def finish() -> int | None:
            if held.rank != max(table) or len(table) != ranks.size:
                return None if len(table) == ranks.size else self._refuse("not all ranks split")
            for one in sorted({c for c, _ in table.values()} - {-1}):
                members = sorted((k, r) for r, (c, k) in table.items() if c == one)
                new = Ranks(len(members))
                for rank, (_, old) in enumerate(members):
                    self._make(cuda, outs[old], new, rank, ranks.comms[old].device)
            table.clear()
            return None

        outs = self._here.outs
        outs[held.rank] = out
        self._here.group.append(finish)
        return None if self._here.depth else self._flush()

    def _abort(self, cuda: FakeDriver, comm: int) -> int | None:
        held: Comm = cuda.objects.pop(comm)
        held.is_alive = False
        return None

    def _async_error(self, cuda: FakeDriver, comm: int, out: int) -> None:
        set_int(out, cuda.objects[comm].async_error)

    def _last_error(self, cuda: FakeDriver, comm: int | None) -> int:
        return _text(cuda.objects[comm].last or self.last if comm else self.last)

    def _refuse(self, why: str, code: int = INVALID_USAGE) -> int:
        self.last = why.encode()
        self.refused.append(why)
        return code

    # ---- groups ----------------------------------------------------------------------------------
    @property
    def _here(self) -> _Thread:
        return self.of_threads.setdefault(threading.get_ident(), _Thread())

    def _group_start(self, cuda: FakeDriver) -> None:
        self._here.depth += 1

    def _group_end(self, cuda: FakeDriver) -> int | None:
        if not self._here.depth:
            return self._refuse("ncclGroupEnd without ncclGroupStart")
        self._here.depth -= 1
        return None if self._here.depth else self._flush()

    def _flush(self) -> int | None:
        waiting, self._here.group = self._here.group, []
        sends: dict[tuple[int, int], list[tuple[FakeDriver, Comm, Stream, Call]]] = {}
        for one in waiting:
            if isinstance(one, tuple):
                sends.setdefault((id(one[1]), id(one[2])), []).append(one)
            elif code := one():
                return code
        for given in sends.values():
            cuda, comm, stream, _ = given[0]
            self._issue(cuda, comm, stream, tuple(call for *_, call in given))
        return None

    # ---- operations ------------------------------------------------------------------------------
    def _reduction(self, what: str) -> Callable[..., int | None]:
        def call(
            cuda: FakeDriver, send: int, receive: int, count: int, type_: int, op: int, comm: int, stream: int
        ) -> int | None:
            return self._ask(cuda, Call(what, count, type_, op, 0, send, receive), comm, stream)

        return call

    def _all_gather(
        self, cuda: FakeDriver, send: int, receive: int, count: int, type_: int, comm: int, stream: int
    ) -> int | None:
        return self._ask(cuda, Call("all_gather", count, type_, 0, 0, send, receive), comm, stream)

    def _broadcast(
        self, cuda: FakeDriver, send: int, receive: int, count: int, type_: int, root: int, comm: int, stream: int
    ) -> int | None:
        return self._ask(cuda, Call("broadcast", count, type_, 0, root, send, receive), comm, stream)

    def _send(
        self, cuda: FakeDriver, send: int, count: int, type_: int, peer: int, comm: int, stream: int
    ) -> int | None:
        return self._ask(cuda, Call("send", count, type_, 0, peer, send, 0), comm, stream)

    def _receive(
        self, cuda: FakeDriver, receive: int, count: int, type_: int, peer: int, comm: int, stream: int
    ) -> int | None:
        return self._ask(cuda, Call("recv", count, type_, 0, peer, 0, receive), comm, stream)

    def _ask(self, cuda: FakeDriver, call: Call, comm: int, stream: int) -> int | None:
        held, on = cuda.objects.get(comm), cuda.objects.get(stream)
        if not isinstance(held, Comm) or not held.is_alive:
            return self._refuse(f"{call.what}: no communicator", INVALID_ARGUMENT)
        size = held.clique.size
        if not (0 <= call.type < len(TYPES) and 0 <= call.op < len(_COMBINERS) and 0 <= call.root < size):
            return self._refuse(f"{call.what}: no such type, operation or rank", INVALID_ARGUMENT)
        if not isinstance(on, Stream) or on.device != held.device:
            return self._refuse(f"{call.what}: the stream is of another device", INVALID_ARGUMENT)
        width = np.dtype(TYPES[call.type]).itemsize
        for address, times in (
            (call.send, size if call.what == "reduce_scatter" else 1),
            (call.receive, size if call.what == "all_gather" else 1),
        ):
            if address and (
                cuda.device_at(address) != held.device or address % width
                or cuda.at(address, times * call.count * width).size < call.count * width
            ):  # fmt: skip
                return self._refuse(f"{call.what}: memory of another device, or misaligned", INVALID_ARGUMENT)
        with cuda.lock:
            self.asked.append(call)
        if call.what in ("send", "recv"):
            if not self._here.depth:
                return self._refuse("a send or receive outside of a group may wait for ever")
            self._here.group.append((cuda, held, on, call))
            return None
        self._issue(cuda, held, on, (call,))
        return None

    def _issue(self, cuda: FakeDriver, comm: Comm, stream: Stream, calls: tuple[Call, ...]) -> None:
        capture = None
        if stream.captured is not None:
            capture = comm.captured
            comm.captured += 1
        stream.put(Operation(self, cuda, comm, calls, capture))

    def run(self, launched: Launched) -> None:
        """Does an operation of a stream. Raises NotReadyError where it has to wait for other ranks."""
        launched.run_together()

    def do(self, cuda: FakeDriver, ranks: Ranks, operations: list[Operation]) -> None:
        """Moves the data of one operation. All ranks must have asked for the same."""
        assert len({o.capture for o in operations}) == 1, "ranks of one operation are of several captures, or of none"
        if operations[0].is_exchange:
            self._exchange(cuda, operations)
            return
        assert [o.comm.rank for o in operations] == list(range(ranks.size))
        calls = [o.calls[0] for o in operations]
        assert len({(c.what, c.count, c.type, c.op, c.root) for c in calls}) == 1, f"ranks differ: {calls}"
        call, n = calls[0], ranks.size
        dtype = np.dtype(TYPES[call.type])

        def at(address: int, count: int) -> np.ndarray:
            return cuda.at(address, count * dtype.itemsize).view(dtype)

        sizes = [operand_size(c, n) if rank == c.root or c.what != "broadcast" else 0 for rank, c in enumerate(calls)]
        operands = [at(c.send, size).copy() for c, size in zip(calls, sizes, strict=True)]
        results = combined(call, operands)
        for one, result in zip(calls, results, strict=True):
            at(one.receive, result.size)[...] = result

    def _exchange(self, cuda: FakeDriver, operations: list[Operation]) -> None:
        sent: dict[tuple[int, int], list[np.ndarray]] = {}
        for one in operations:
            for call in one.calls:
                if call.what == "send":
                    size = call.count * np.dtype(TYPES[call.type]).itemsize
                    sent.setdefault((one.comm.rank, call.root), []).append(cuda.at(call.send, size).copy())
        for one in operations:
            for call in one.calls:
                if call.what == "recv":
                    data = sent[call.root, one.comm.rank].pop(0)
                    cuda.at(call.receive, data.size)[...] = data
        assert not any(sent.values()), "a send that nobody receives"


def operand_size(call: Call, ranks: int) -> int:
    """How many elements each rank gives."""
    return call.count * (ranks if call.what == "reduce_scatter" else 1)


def combined(call: Call, operands: list[np.ndarray]) -> list[np.ndarray]:
    """What each rank gets."""
    n = len(operands)
    if call.what == "broadcast":
        return [operands[call.root]] * n
    if call.what == "all_gather":
        return [np.concatenate(operands)] * n
    total = operands[-1]
    for operand in reversed(operands[:-1]):
        total = _COMBINERS[call.op](total, operand).astype(total.dtype)
    return list(total.reshape(n, -1)) if call.what == "reduce_scatter" else [total] * n


_texts: dict[bytes, Any] = {}


def _text(text: bytes) -> int:
    return ctypes.cast(_texts.setdefault(text, ctypes.create_string_buffer(text)), PTR).value or 0


fake_c.GIVE_TEXT.update({"ncclGetErrorString", "ncclGetLastError"})
