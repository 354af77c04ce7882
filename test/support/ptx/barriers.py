"""Barriers of a block and of a warp, and fences."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.ptx.decode import Decoder, Do, Modifiers, Read
from support.ptx.errors import PtxError
from support.ptx.machine import WAITS, Barrier, Group, Step, Wave
from support.ptx.syntax import Instruction


def arrive(
    m: Wave,
    g: Group,
    number: np.ndarray,
    count: np.ndarray | None,
    waits: bool,
    text: str,
    finish: Any = None,
) -> None:
    """Threads come to barriers of their blocks, by number."""
    if g.all and count is None and waits and not m.barriers and (number == number[0]).all():
        m.blocks_meet(g)
        if finish is not None:
            finish(m, g.index)
        return
    rows, numbers = m.row[g.index], number[g.index]
    keys = sorted(set(zip(rows.tolist(), numbers.tolist())))
    for key in keys:
        mine = g.index[(rows == key[0]) & (numbers == key[1])]
        need = 0 if count is None else int(count[mine[0]])
        barrier = m.barriers.setdefault(key, Barrier(text, need))
        if barrier.count != need:
            raise PtxError(
                f"{text}: {need} threads expected at a barrier where others expect {barrier.count}"
            )
        barrier.arrived += mine.size
        barrier.knowledge = np.maximum(barrier.knowledge, m.hand_in(mine))
        if waits:
            m.status[mine] = WAITS
            barrier.waiting = np.concatenate([barrier.waiting, mine])
            barrier.finish = finish
        m.release(key)


def _bar(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    if modifiers.has("warp"):
        if not modifiers.has("sync"):
            modifiers.unknown()
        modifiers.end()
        return Step(
            lambda m, g: m.warps_meet(g), str(one), members=d.read(one.operands[0], "u32", one)
        )
    if modifiers.has("cluster"):
        return _cluster(d, one, modifiers)
    modifiers.has("cta")
    kind = modifiers.one(("sync", "arrive", "red"))
    modifiers.has("aligned")
    if kind == "red":
        return _reduce(d, one, modifiers)
    modifiers.end()
    number = d.read(one.operands[0], "u32", one)
    count: Read | None = d.read(one.operands[1], "u32", one) if len(one.operands) > 1 else None
    text, waits = str(one), kind == "sync"

    def do(m: Wave, g: Group) -> None:
        arrive(m, g, number(m), None if count is None else count(m), waits, text)

    return Step(do, text, "wait")


def _reduce(d: Decoder, one: Instruction, modifiers: Modifiers) -> Step:
    type_ = modifiers.last()
    kind = modifiers.one(("popc", "and", "or"))
    modifiers.end()
    write = d.write(one.operands[0], type_, one)
    number, value = d.read(one.operands[1], "u32", one), d.read(one.operands[-1], "pred", one)
    count = d.read(one.operands[2], "u32", one) if len(one.operands) > 3 else None
    text = str(one)

    def finish(m: Wave, who: np.ndarray) -> None:
        mask = np.zeros(m.lanes, bool)
        mask[who] = True
        yes = np.bincount(m.row[who], value(m)[who], m.blocks.size)[m.row]
        total = np.bincount(m.row[who], minlength=m.blocks.size)[m.row]
        found = {"popc": yes.astype(np.uint32), "and": yes == total, "or": yes > 0}[kind]
        write(m, Group(mask), found)

    def do(m: Wave, g: Group) -> None:
        arrive(m, g, number(m), None if count is None else count(m), True, text, finish)

    return Step(do, text, "wait")


def _cluster(d: Decoder, one: Instruction, modifiers: Modifiers) -> Step:
    """Of clusters of one block: arrival notes, waiting is a barrier of the block."""
    kind = modifiers.one(("arrive", "wait"))
    modifiers.has("aligned")
    modifiers.one(("relaxed", "release", "acquire"))
    modifiers.end()
    text = str(one)
    number = 1 << 20

    def do(m: Wave, g: Group) -> None:
        if kind == "wait":
            arrive(m, g, np.full(m.lanes, number), None, True, text)

    return Step(do, text, "wait")


def _fence(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    if modifiers.has("proxy"):
        kind = modifiers.one(("async", "alias", "tensormap::generic"))
        while modifiers.has(
            "global",
            "shared",
            "shared::cta",
            "shared::cluster",
            "acquire",
            "release",
            "gpu",
            "sys",
            "cta",
            "cluster",
        ):
            pass
        modifiers.end()
        return lambda m, g: m.proxy_fence(g) if kind == "async" else None
    modifiers.one(("sc", "acq_rel", "acquire", "release", "mbarrier_init"))
    while modifiers.has("cta", "cluster", "gpu", "sys", "sync_restrict::shared::cta", "release"):
        pass
    modifiers.end()
    return lambda m, g: m.fence(g)


OPS = {"bar": _bar, "barrier": _bar, "fence": _fence}
