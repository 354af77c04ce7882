"""Bulk copies between global and shared memory, plain and by tensor maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.ptx.decode import Decoder, Do, Modifiers
from support.ptx.errors import PtxError, UnknownPtx
from support.ptx.machine import PARAM_BASE, Group, Wave
from support.ptx.mbarriers import at
from support.ptx.memory import PENDING, SET
from support.ptx.moves import space_of
from support.ptx.syntax import Address, Instruction

MAP_BYTES = 128
SWIZZLES = {0: 0, 1: 1, 2: 3, 3: 7}
"""By the number of a mode: which bits of the row go into the number of the piece of 16 bytes."""


@dataclass
class TensorMap:
    """An argument that is a tensor map: what `cuTensorMapEncodeTiled` would be told, the innermost dimension first."""

    pointer: Any
    element: int
    """Bytes."""
    sizes: Sequence[int]
    strides: Sequence[int]
    """In bytes, of all dimensions but the innermost."""
    box: Sequence[int]
    swizzle: int = 3
    rounds: bool = False
    """Whether f32 lose the bits that tf32 has not."""
    address: int = 0

    def __post_init__(self) -> None:
        wide = self.box[0] * self.element
        if self.swizzle and wide > (16 << self.swizzle):
            raise PtxError(f"a box of rows of {wide} bytes, more than its swizzle allows")
        assert (
            all(s % 16 == 0 for s in self.strides)
            and wide % 16 == 0
            and all(n <= 256 for n in self.box)
        )

    @property
    def bytes(self) -> int:
        return int(np.prod(self.box)) * self.element

    def places(self, first: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Of each element of a box, in order, the address, and whether it is in the tensor."""
        grid = np.indices(tuple(reversed(self.box)))[::-1]
        spots = [axis + start for axis, start in zip(grid, first, strict=True)]
        inside = np.all([(s >= 0) & (s < n) for s, n in zip(spots, self.sizes)], axis=0)
        steps = [self.element, *self.strides]
        address = self.address + sum(s * step for s, step in zip(spots, steps))
        return address.reshape(-1), inside.reshape(-1)

    def swizzled(self, target: int) -> np.ndarray:
        """Where in shared memory the box's pieces of 16 bytes are."""
        place = target + 16 * np.arange(self.bytes // 16)
        return place ^ ((place >> 7 & SWIZZLES[self.swizzle]) << 4)


def _map_at(m: Wave, address: int, what: object) -> TensorMap:
    window = m.spaces["param"]
    place = address - PARAM_BASE
    if not 0 <= place <= window.row - MAP_BYTES:
        raise UnknownPtx(f"{what}: the emulator knows tensor maps in a kernel's parameters only")
    return m.extra["maps"][int(window.data[place : place + 8].view(np.uint64)[0])]


def build(d: Decoder, one: Instruction, modifiers: Modifiers) -> Do:
    """What begins with cp.async.bulk."""
    if modifiers.has("commit_group"):
        modifiers.end()
        return lambda m, g: None
    if modifiers.has("wait_group"):
        modifiers.has("read")
        modifiers.end()
        return lambda m, g: (
            None
        )  # stores are done at once: what they read must be there when they are issued
    if not modifiers.has("tensor"):
        return _plain(d, one, modifiers)
    rank = int(modifiers.one(("1d", "2d", "3d", "4d", "5d"), "0d")[0])
    to, source = space_of(modifiers), space_of(modifiers)
    modifiers.has("tile")
    hint = modifiers.has("L2::cache_hint")
    loads = modifiers.has("mbarrier::complete_tx::bytes")
    stores = modifiers.has("bulk_group")
    modifiers.end()
    operands = list(one.operands)
    if hint:
        operands.pop()
    if loads and (to, source) == ("shared", "global"):
        return _load_box(d, one, operands, rank)
    if stores and (to, source) == ("global", "shared"):
        return _store_box(d, one, operands, rank)
    return modifiers.unknown()


def _tensor(d: Decoder, one: Instruction, operand: Any, rank: int) -> tuple[Any, list[Any]]:
    assert isinstance(operand, Address) and operand.coordinates is not None
    _, address = d.address(operand, one)
    coordinates = d.reads(operand.coordinates, "s32", one)
    assert len(coordinates) == rank
    return address, coordinates


def _load_box(d: Decoder, one: Instruction, operands: list[Any], rank: int) -> Do:
    _, target = d.address(operands[0], one)
    map_address, coordinates = _tensor(d, one, operands[1], rank)
    _, barrier = d.address(operands[2], one)

    def do(m: Wave, g: Group) -> None:
        targets, maps, barriers = target(m), map_address(m), barrier(m)
        starts = np.stack([c(m) for c in coordinates], axis=1)
        for lane in g.index:
            of = _map_at(m, int(maps[lane]), one)
            address, inside = of.places(starts[lane].tolist())
            memory, row = m.spaces["global"], int(m.row[lane])
            found = np.zeros(address.size, f"u{of.element}")
            place = memory.place(address[inside].astype(np.uint64), 0, of.element, one)
            found[inside] = memory.read(place, of.element, one)
            if of.rounds:
                found = (found + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
            _into(
                m,
                row,
                of.swizzled(int(targets[lane]) & 0xFFFFFFFF),
                found.view(np.uint8),
                int(barriers[lane]),
                lane,
                one,
            )

    return do


def _into(
    m: Wave,
    row: int,
    pieces: np.ndarray,
    bytes_: np.ndarray,
    barrier: int,
    lane: int,
    one: Instruction,
) -> None:
    """A copy to pieces of 16 bytes of shared memory, which ends when somebody waits for its barrier."""
    shared = m.spaces["shared"]
    place = shared.place(pieces.astype(np.uint64), row, 16, one)[:, None] + np.arange(16)
    states = shared.state[place]
    if (states == PENDING).any() or (states == 0).any():
        raise PtxError(
            f"{one}: a place that another copy is writing, or in no variable of shared memory"
        )
    if m.is_read(place):
        raise PtxError(f"{one}: race: a product still reads what the copy overwrites")
    if m.races.shared is not None:
        m.races.check(m.races.shared, shared, place[:, 0], 16, np.full(len(place), lane), True, None, one)
    shared.state[place] = PENDING
    to = at(m, row, barrier & 0xFFFFFFFF, np.array([lane]), one)

    def arrive() -> int:
        shared.data[place] = bytes_.reshape(-1, 16)
        shared.state[place] = SET
        m.brought(place, to.column, to.phase + 1)
        return bytes_.size

    to.copies.append(arrive)


def _store_box(d: Decoder, one: Instruction, operands: list[Any], rank: int) -> Do:
    map_address, coordinates = _tensor(d, one, operands[0], rank)
    _, source = d.address(operands[1], one)

    def do(m: Wave, g: Group) -> None:
        sources, maps = source(m), map_address(m)
        starts = np.stack([c(m) for c in coordinates], axis=1)
        for lane in g.index:
            of = _map_at(m, int(maps[lane]), one)
            shared, memory = m.spaces["shared"], m.spaces["global"]
            pieces = of.swizzled(int(sources[lane]) & 0xFFFFFFFF)
            place = shared.place(pieces.astype(np.uint64), int(m.row[lane]), 16, one)
            m.must_be_fenced(place, one)
            if m.races.shared is not None:
                m.races.check(m.races.shared, shared, place, 16, np.full(place.size, lane), False, None, one)
            words = shared.read(place, 16, one).reshape(-1).view(f"u{of.element}")
            address, inside = of.places(starts[lane].tolist())
            to = memory.place(address[inside].astype(np.uint64), 0, of.element, one)
            memory.write(to, of.element, words[inside], one)

    return do


def _plain(d: Decoder, one: Instruction, modifiers: Modifiers) -> Do:
    to, source = space_of(modifiers), space_of(modifiers)
    if not modifiers.has("mbarrier::complete_tx::bytes") or (to, source) != ("shared", "global"):
        modifiers.unknown()
    modifiers.end()
    _, target = d.address(one.operands[0], one)
    _, address = d.address(one.operands[1], one)
    size, (_, barrier) = d.read(one.operands[2], "u32", one), d.address(one.operands[3], one)

    def do(m: Wave, g: Group) -> None:
        targets, sources, sizes, barriers = target(m), address(m), size(m), barrier(m)
        for lane in g.index:
            pieces = np.arange(int(sizes[lane]) // 16)
            memory = m.spaces["global"]
            place = memory.place(sources[lane] + (16 * pieces).astype(np.uint64), 0, 16, one)
            found = memory.read(place, 16, one).view(np.uint8).reshape(-1)
            to_pieces = (int(targets[lane]) & 0xFFFFFFFF) + 16 * pieces
            _into(m, int(m.row[lane]), to_pieces, found, int(barriers[lane]), lane, one)

    return do
