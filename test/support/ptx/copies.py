"""cp.async: copies into shared memory that end some time before their group is waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from support.ptx import bulk
from support.ptx.decode import Decoder, Do, Modifiers
from support.ptx.errors import PtxError
from support.ptx.machine import Group, Wave
from support.ptx.memory import PENDING, SET
from support.ptx.moves import load, space_of
from support.ptx.syntax import Instruction


@dataclass
class Copy:
    """One instruction's copies that are under way."""

    lanes: np.ndarray
    place: np.ndarray
    bytes: np.ndarray
    group: np.ndarray


class Copies:
    """Of a wave: what is under way, and how many groups each thread has closed."""

    def __init__(self, lanes: int) -> None:
        self.pending: list[Copy] = []
        self.closed = np.zeros(lanes, np.int64)

    def end(self, m: Wave, g: Group, before: np.ndarray) -> None:
        """The copies of the group's threads come in that belong to groups before these."""
        left = []
        for copy in self.pending:
            over = g.mask[copy.lanes] & (copy.group < before[copy.lanes])
            if not over.any():
                left.append(copy)
                continue
            shared, size = m.spaces["shared"], copy.bytes.shape[1]
            place = copy.place[over][:, None] + np.arange(size)
            m.races.wrote(copy.place[over], size, copy.lanes[over])
            if m.code.proxies:
                m.wrote(copy.place[over], size, copy.lanes[over])
            shared.data[place] = copy.bytes[over]
            shared.state[place] = SET
            shared.changes += 1
            if not over.all():
                keep = ~over
                left.append(
                    Copy(copy.lanes[keep], copy.place[keep], copy.bytes[keep], copy.group[keep])
                )
        self.pending = left


def copies_of(m: Wave) -> Copies:
    if "copies" not in m.extra:
        m.extra["copies"] = Copies(m.lanes)
    return m.extra["copies"]


def _cp(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    if not modifiers.has("async"):
        modifiers.unknown()
    if modifiers.has("bulk"):
        return bulk.build(d, one, modifiers)
    if modifiers.has("commit_group"):
        modifiers.end()

        def commit(m: Wave, g: Group) -> None:
            copies = copies_of(m)
            copies.closed = copies.closed + g.mask

        return commit
    if modifiers.has("wait_group", "wait_all"):
        modifiers.end()
        everything = one.parts[-1] == "wait_all"
        number = 0 if everything else int(one.operands[0].text, 0)  # type: ignore[union-attr]

        def wait(m: Wave, g: Group) -> None:
            copies = copies_of(m)
            copies.end(m, g, copies.closed + (1 if everything else -number))

        return wait
    return _copy(d, one, modifiers)


def _copy(d: Decoder, one: Instruction, modifiers: Modifiers) -> Do:
    modifiers.one(("ca", "cg"))
    to, source = space_of(modifiers), space_of(modifiers)
    hint = modifiers.has("L2::cache_hint")
    modifiers.one(("L2::64B", "L2::128B", "L2::256B"))
    modifiers.end()
    if (to, source) != ("shared", "global"):
        modifiers.unknown()
    operands = list(one.operands)
    if hint:
        operands.pop()
    _, target = d.address(operands[0], one)
    _, address = d.address(operands[1], one)
    size = int(operands[2].text, 0)  # type: ignore[union-attr]
    given = d.read(operands[3], "u32", one) if len(operands) > 3 else None
    d.code.unit = min(d.code.unit, size)

    def do(m: Wave, g: Group) -> None:
        copies, shared = copies_of(m), m.spaces["shared"]
        bytes_ = np.zeros((m.lanes, size), np.uint8)
        count = np.full(m.lanes, size) if given is None else given(m).astype(np.int64)
        for length in np.unique(count[g.index]):
            some = Group(g.mask & (count == length))
            if length > size:
                raise PtxError(f"{one}: {length} of {size} bytes")
            if length == size:
                bytes_[some.index] = load(m, some, "global", address(m), size, one)
            elif length:
                for n in range(length):  # the rest is zeros
                    bytes_[some.index, n] = load(
                        m, some, "global", address(m) + np.uint64(n), 1, one
                    )[:, 0]
        place = shared.place(target(m)[g.index], m.row[g.index], size, one)
        states = place[:, None] + np.arange(size)
        if (shared.state[states] == PENDING).any():
            raise PtxError(f"{one}: another copy to the place is under way")
        if (shared.state[states] == 0).any():
            raise PtxError(f"{one}: a place in no variable of shared memory")
        m.watch(shared, place, size, g.index, bytes_[g.index], one)
        shared.state[states] = PENDING
        copies.pending.append(Copy(g.index, place, bytes_[g.index], copies.closed[g.index]))

    return do


OPS = {"cp": _cp}
