"""Barriers in shared memory: they count arrivals and bytes of copies, and turn over a phase when both are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from support.ptx.decode import Decoder, Do, Modifiers
from support.ptx.errors import PtxError
from support.ptx.machine import Group, Step, Wave
from support.ptx.memory import SET
from support.ptx.moves import ORDERS, SCOPES, space_of
from support.ptx.syntax import Instruction, Register

_MOST = (1 << 20) - 1


@dataclass
class MBarrier:
    """One barrier; `copies` are those under way that will say here how many bytes they brought."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0
    knowledge: np.ndarray | int = 0
    """What those know who arrived in this phase and before."""
    told: np.ndarray | int = 0
    """What those know who wait for the phases that are over."""
    column: int = -1
    """Its clock among those of the block's warps."""
    copies: list[Callable[[], int]] = field(default_factory=list)
    maker: int = -1
    made: int = 0
    """The thread that made it, and its warp's time."""

    def turn(self, m: Wave) -> None:
        """A new phase if everything is in."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            told = np.zeros(m.races.known.shape[1], np.int32)
            before = np.asarray(self.knowledge)
            told[: before.size if before.ndim else None] = before
            told[self.column] = self.phase
            self.told = self.knowledge = told
            m.wake()
            m.spaces["shared"].changes += 1

    def learn(self, knowledge: np.ndarray) -> None:
        """Somebody arrives who knows so much: at least as many clocks as those before."""
        new, old = np.array(knowledge), np.asarray(self.knowledge)
        if old.ndim:
            new[: old.size] = np.maximum(new[: old.size], old)
        self.knowledge = new

    def arrive(self, m: Wave, number: int, what: object) -> None:
        while number:
            if self.pending == 0:
                raise PtxError(
                    f"{what}: more arrivals than the barrier's {self.count} while bytes are missing"
                )
            step = min(number, self.pending)
            self.pending -= step
            number -= step
            self.turn(m)

    def bring(self, m: Wave) -> None:
        """Some of the copies end, in an order drawn at random."""
        left = []
        for n in m.random.permutation(len(self.copies)):
            if m.random.random() < 0.25:
                left.append(self.copies[n])
                continue
            self.bytes -= self.copies[n]()
        self.copies = left
        self.turn(m)


def barriers_of(m: Wave) -> dict[tuple[int, int], MBarrier]:
    return m.extra.setdefault("mbarriers", {})


def at(m: Wave, row: int, address: int, lanes: np.ndarray, what: object) -> MBarrier:
    """The barrier at an address of a block's shared memory, which these threads must know to be made."""
    found = barriers_of(m).get((row, address))
    if found is None:
        raise PtxError(f"{what}: there is no barrier at {address:#x}")
    if not m.races.know(lanes, found.maker, found.made).all():
        raise PtxError(f"{what}: race: nothing orders this after mbarrier.init at {address:#x}")
    return found


def _each(m: Wave, g: Group, address: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """The block, the address and the lanes, for each barrier that a group names."""
    keys: dict[tuple[int, int], list[int]] = {}
    for lane in g.index:
        keys.setdefault((int(m.row[lane]), int(address[lane]) & 0xFFFFFFFF), []).append(int(lane))
    return [(row, place, np.array(lanes)) for (row, place), lanes in keys.items()]


def _mbarrier(d: Decoder, one: Instruction) -> Do | Step:
    modifiers = Modifiers(one)
    kind = modifiers.one(
        ("init", "inval", "arrive", "expect_tx", "complete_tx", "try_wait", "test_wait")
    )
    if kind == "arrive":
        expects = modifiers.has("expect_tx")
    if not modifiers.has("b64"):
        modifiers.unknown()
    modifiers.one(ORDERS)
    modifiers.one(SCOPES)
    if space_of(modifiers) not in (None, "shared"):
        modifiers.unknown()
    parity = modifiers.has("parity")
    modifiers.end()
    if kind in ("try_wait", "test_wait"):
        return _wait(d, one, parity)
    if kind == "arrive":
        return _arrive(d, one, expects)
    _, address = d.address(one.operands[0], one)
    value = d.read(one.operands[1], "u32", one) if len(one.operands) > 1 else None

    def do(m: Wave, g: Group) -> None:
        numbers = value(m) if value is not None else np.zeros(m.lanes, np.uint32)
        for row, place, lanes in _each(m, g, address(m)):
            shared = m.spaces["shared"]
            where = shared.place(np.array([place]), row, 8, one)[0]
            if kind == "init":
                if (shared.state[where : where + 8] == 0).any():
                    raise PtxError(f"{one}: a place in no variable of shared memory")
                count = int(numbers[lanes[0]])
                if not 1 <= count <= _MOST:
                    raise PtxError(f"{one}: a barrier of {count} arrivals")
                maker, times = int(lanes[0]), m.extra.setdefault("made", Counter())
                column = m.races.column(place, times[row, place])
                times[row, place] += 1
                barriers_of(m)[row, place] = MBarrier(
                    count, count, column=column, maker=maker, made=m.races.time(maker)
                )
                shared.state[where : where + 8] = SET
            elif kind == "inval":
                at(m, row, place, lanes, one)
                del barriers_of(m)[row, place]
            else:
                barrier = at(m, row, place, lanes, one)
                total = int(numbers[lanes].astype(np.int64).sum())
                barrier.bytes += total if kind == "expect_tx" else -total
                barrier.turn(m)

    return do


def _arrive(d: Decoder, one: Instruction, expects: bool) -> Do:
    operands = list(one.operands)
    to = operands.pop(0)
    write = d.write(to, "b64", one) if not (isinstance(to, Register) and to.name == "_") else None
    _, address = d.address(operands.pop(0), one)
    value = d.read(operands[0], "u32", one) if operands else None

    def do(m: Wave, g: Group) -> None:
        tokens = np.zeros(m.lanes, np.uint64)
        numbers = value(m).astype(np.int64) if value is not None else np.ones(m.lanes, np.int64)
        for row, place, lanes in _each(m, g, address(m)):
            barrier = at(m, row, place, lanes, one)
            tokens[lanes] = barrier.phase
            barrier.learn(m.hand_in(lanes))
            if expects:
                barrier.bytes += int(numbers[lanes].sum())
            barrier.arrive(m, lanes.size if expects else int(numbers[lanes].sum()), one)
        if write is not None:
            write(m, g, tokens)

    return do


def _wait(d: Decoder, one: Instruction, parity: bool) -> Step:
    write = d.write(one.operands[0], "pred", one)
    _, address = d.address(one.operands[1], one)
    value = d.read(one.operands[2], "u32" if parity else "b64", one)

    def do(m: Wave, g: Group) -> None:
        found = np.zeros(m.lanes, bool)
        given = value(m)
        for row, place, lanes in _each(m, g, address(m)):
            barrier = at(m, row, place, lanes, one)
            barrier.bring(m)
            over = (
                barrier.phase & 1 != given[lanes] & 1 if parity else barrier.phase != given[lanes]
            )
            found[lanes] = over
            if over.any():
                m.take(lanes[over], barrier.told)
        write(m, g, found)
        if not found[g.index].all():
            m.nap(Group(g.mask & ~found))

    return Step(do, str(one), "wait")


OPS = {"mbarrier": _mbarrier}
