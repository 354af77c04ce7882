"""Products of warpgroups, whose factors are in shared memory as descriptors say; the sums are there once waited for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from support.ptx.bulk import SWIZZLES
from support.ptx.decode import Decoder, Do, Modifiers
from support.ptx.errors import PtxError, UnknownPtx
from support.ptx.machine import POISON, Group, Step, Wave
from support.ptx.matrices import ELEMENTS, inverse, left_places, sum_places, wide
from support.ptx.syntax import Instruction, Register, Vector

_LANES, _WARPS = 128, 4
_MODES = {0: 0, 1: 3, 2: 2, 3: 1}
"""A descriptor's number of a swizzle -> a tensor map's."""


@dataclass
class Sums:
    """What a register will hold, and for each lane of which group it is; -1 where it already does."""

    values: np.ndarray
    group: np.ndarray


class Products:
    """Of a wave: the sums that are not there yet, and how many groups each lane has closed."""

    def __init__(self, lanes: int) -> None:
        self.sums: dict[int, Sums] = {}
        self.closed = np.zeros(lanes, np.int64)
        self.fenced = np.zeros(lanes, bool)
        self.reading: list[tuple[np.ndarray, int, int]] = []
        """Pieces of shared memory, the first lane of the warpgroup that reads them, its group."""


def products_of(m: Wave) -> Products:
    if "products" not in m.extra:
        m.extra["products"] = Products(m.lanes)
    return m.extra["products"]


def _groups(m: Wave, g: Group, what: object) -> np.ndarray:
    """The first lanes of the warpgroups, which must be whole."""
    first = g.index[g.index % 32 == 0]
    whole = g.mask.reshape(-1, 32).all(axis=1)
    if not whole[m.warp[g.index]].all() or m.padded % _LANES:
        raise PtxError(f"{what}: not all threads of a warpgroup are here")
    starts = first[m.thread[first] % _LANES == 0]
    if starts.size * _LANES != g.index.size:
        raise PtxError(f"{what}: not all warps of a warpgroup are here")
    return starts


def _wgmma(d: Decoder, one: Instruction) -> Do | Step:
    modifiers = Modifiers(one)
    kind = modifiers.one(("fence", "commit_group", "wait_group", "mma_async"))
    modifiers.has("sync")
    if not modifiers.has("aligned"):
        modifiers.unknown()
    if kind == "mma_async":
        return Step(_product(d, one, modifiers), str(one), members=_warpgroup)
    modifiers.end()
    number = int(one.operands[0].text, 0) if kind == "wait_group" else 0  # type: ignore[union-attr]

    def do(m: Wave, g: Group) -> None:
        products = products_of(m)
        if kind == "fence":
            products.fenced = products.fenced | g.mask
        elif kind == "commit_group":
            products.closed = products.closed + g.mask
            products.fenced = products.fenced & ~g.mask
        else:
            _wait(m, products, g, number)

    return Step(do, str(one), members=_warpgroup)


def _warpgroup(m: Wave) -> np.ndarray:
    return np.full(m.lanes, np.uint32(0xFFFFFFFF))


def _wait(m: Wave, products: Products, g: Group, number: int) -> None:
    for register, sums in products.sums.items():
        ready = g.mask & (sums.group >= 0) & (sums.group < products.closed - number)
        if ready.any():
            m.regs[register] = np.where(ready, sums.values, m.regs[register])
            sums.group = np.where(ready, -1, sums.group)
    left = []
    for places, lane, group in products.reading:
        if not (g.mask[lane] and group < products.closed[lane] - number):
            left.append((places, lane, group))
        else:
            m.races.products_read(places * 16, lane // 32 + np.arange(_WARPS))
    products.reading = left


def _product(d: Decoder, one: Instruction, modifiers: Modifiers) -> Do:
    right, left, result = modifiers.last(), modifiers.last(), modifiers.last()
    shape = next((p for p in modifiers.left if re.fullmatch(r"m64n\d+k\d+", p)), "")
    if not shape or not {result, left, right} <= set(ELEMENTS):
        modifiers.left += [result, left, right]
        modifiers.unknown()
    modifiers.left.remove(shape)
    modifiers.end()
    _, columns, depth = (int(n) for n in re.findall(r"\d+", shape))
    sums, first, second, scale, *flags = one.operands
    signs = [int(f.text, 0) for f in flags[:2]]  # type: ignore[union-attr]
    turned = [int(f.text, 0) for f in flags[2:]]  # type: ignore[union-attr]
    assert isinstance(sums, Vector)
    from_registers = isinstance(first, Vector)
    turn_left = 0 if from_registers or not turned else turned[0]
    turn_right = turned[-1] if turned else 0
    numbers = [d.register(r.name, one)[0] for r in sums.items if isinstance(r, Register)]
    reads = [d.read(r, "b32", one) for r in sums.items]
    keeps = d.read(scale, "pred", one)
    a = d.reads(first, "b32", one) if from_registers else [d.read(first, "b64", one)]
    b = d.read(second, "b64", one)
    size = np.dtype(ELEMENTS[left]).itemsize
    per = 4 // size
    packed = result == "f16"
    order = inverse(left_places, 16, depth, per)
    places, back = sum_places(16, columns), inverse(sum_places, 16, columns)

    def do(m: Wave, g: Group) -> None:
        products = products_of(m)
        starts = _groups(m, g, one)
        if not products.fenced[g.index].all():
            raise PtxError(f"{one}: no wgmma.fence before it")
        before = []
        for number, read in zip(numbers, reads):
            held = products.sums.get(number)
            value = read(m)
            before.append(value if held is None else np.where(held.group >= 0, held.values, value))
        words = np.stack([value[g.index] for value in before], axis=1)
        kind = np.float16 if packed else ELEMENTS[result]
        old = words.view(kind).reshape(-1, 16 * columns)[:, back].reshape(-1, 64, columns)
        keep = keeps(m)[starts]
        if from_registers:
            held = np.stack([read(m)[g.index] for read in a], axis=1)
            x = held.view(ELEMENTS[left]).reshape(-1, 16 * depth)[:, order].reshape(-1, 64, depth)
        else:
            x = _matrix(m, starts, a[0](m), 64, depth, size, left, turn_left, one)
        y = _matrix(m, starts, b(m), columns, depth, size, right, turn_right, one)
        total = wide(np.ascontiguousarray(x), left) @ wide(y, right).swapaxes(1, 2)
        if signs and signs[0] * signs[1] < 0:
            total = -total
        total = total + np.where(keep[:, None, None], old.astype(total.dtype), 0)
        found = total.astype(kind).reshape(-1, 16 * columns)[:, places]
        new = np.ascontiguousarray(found).reshape(g.index.size, -1).view(np.uint32)
        for n, number in enumerate(numbers):
            held_sums = products.sums.get(number)
            if held_sums is None:
                held_sums = products.sums[number] = Sums(
                    np.zeros(m.lanes, np.uint32), np.full(m.lanes, -1)
                )
            values, group = held_sums.values.copy(), held_sums.group.copy()
            values[g.index], group[g.index] = new[:, n], products.closed[g.index]
            products.sums[number] = Sums(values, group)
            m.regs[number] = np.where(g.mask, POISON[4], m.regs[number])

    return do


def _matrix(
    m: Wave, starts: np.ndarray, descriptors: np.ndarray, rows: int, depth: int, size: int, type_: str, turned: int,
    what: Instruction,
) -> np.ndarray:  # fmt: skip
    """The factors that descriptors show to warpgroups: rows by depth."""
    bits = descriptors[starts]
    mine = descriptors.reshape(-1, _LANES)[starts // _LANES]
    if (mine != bits[:, None]).any():
        raise PtxError(f"{what}: a descriptor that is not the same in a warpgroup")
    mode = int(bits[0] >> np.uint64(62))
    if (bits >> np.uint64(62) != mode).any() or (bits >> np.uint64(49) & np.uint64(7)).any():
        raise UnknownPtx(f"{what}: the emulator does not know offsets of bases in descriptors")
    start, across, strip = (
        ((bits >> np.uint64(low) & np.uint64(0x3FFF)).astype(np.int64) << 4)[:, None, None]
        for low in (0, 16, 32)
    )
    r, c = np.arange(rows)[:, None], np.arange(depth)[None, :]
    swizzle = _MODES[mode]
    width = 16 << swizzle
    if turned:
        if size != 2 or not swizzle:
            raise UnknownPtx(f"{what}: the emulator does not know this layout of a factor")
        per = width // 2
        address = start + r // per * across + r % per * 2 + c // 8 * strip + c % 8 * width
    elif swizzle:
        address = start + r // 8 * strip + r % 8 * width + c * size
    else:
        address = start + r // 8 * strip + r % 8 * 16 + c * size // 16 * across + c * size % 16
    address = address ^ ((address >> 7 & SWIZZLES[swizzle]) << 4)
    shared = m.spaces["shared"]
    block = np.broadcast_to(m.row[starts][:, None, None], address.shape)
    place = shared.place(address.reshape(-1).astype(np.uint64), block.reshape(-1), size, what)
    m.must_be_fenced(place, what)
    found = shared.read(place, size, what).view(ELEMENTS[type_]).reshape(address.shape)
    products = products_of(m)
    for n, lane in enumerate(starts):
        pieces = np.unique(place.reshape(starts.size, -1)[n] // 16)
        readers = np.repeat(lane + 32 * np.arange(_WARPS), pieces.size)  # each warp must know of what it reads
        m.races.check_product(shared, np.tile(pieces * 16, _WARPS), readers, what)
        products.reading.append((pieces, int(lane), int(products.closed[lane])))
    return found


OPS = {"wgmma": _wgmma}
