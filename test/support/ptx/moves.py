"""Between registers, and between registers and memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.ptx.decode import DTYPES, WORD, Decoder, Do, Modifiers, size_of
from support.ptx.errors import PtxError
from support.ptx.machine import LOCAL_BASE, PARAM_BASE, SHARED_BASE, Group, Step, Wave
from support.ptx.memory import Space
from support.ptx.syntax import SIZES, Immediate, Instruction, Register, Vector

SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "param",
    "param::entry",
    "param::func",
    "const",
)
ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "sc")
SCOPES = ("cta", "cluster", "gpu", "sys")
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
           "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B", "L2::evict_last", "L2::evict_normal",
           "L2::evict_first", "unified")  # fmt: skip


def parts(m: Wave, space: str | None, address: np.ndarray, lanes: np.ndarray, size: int, what: object) -> Iterator[
    tuple[Space, np.ndarray, np.ndarray]
]:  # fmt: skip
    """The spaces that addresses of some lanes are in: the space, the places, which of the lanes."""
    if space is not None:
        found = m.spaces[space]
        rows = m.row[lanes] if space == "shared" else lanes if space == "local" else 0
        yield found, found.place(address, rows, size, what), np.arange(lanes.size)
        return
    window = address >> np.uint64(48)
    for number, name, base in (
        (0, "global", 0),
        (1, "shared", SHARED_BASE),
        (2, "local", LOCAL_BASE),
        (4, "param", PARAM_BASE),
    ):
        which = np.flatnonzero(window == number)
        if which.size:
            for of, place, _ in parts(
                m, name, address[which] - np.uint64(base), lanes[which], size, what
            ):
                yield of, place, which
    if (window > 4).any() or (window == 3).any():
        raise PtxError(f"{what}: {int(address[(window > 4) | (window == 3)][0]):#x} is no address")


def load(
    m: Wave, g: Group, space: str | None, address: np.ndarray, size: int, what: object, weak: bool = True
) -> np.ndarray:
    """Rows of bytes, one for each lane of the group. `weak`: blocks don't wait for each other by it."""
    at = address if g.all else address[g.index]
    found = np.empty((g.index.size, size), np.uint8)
    for of, place, which in parts(m, space, at, g.index, size, what):
        words = of.read(place, size, what)
        bytes_ = np.ascontiguousarray(words).view(np.uint8).reshape(-1, size)
        m.watch(of, place, size, g.index[which], None, what, weak)
        if which.size == g.index.size:
            return bytes_
        found[which] = bytes_
    return found


def store(
    m: Wave, g: Group, space: str | None, address: np.ndarray, bytes_: np.ndarray, what: object, weak: bool = True
) -> None:
    """Rows of bytes, one for each lane of the group."""
    size = bytes_.shape[1]
    at = address if g.all else address[g.index]
    for of, place, which in parts(m, space, at, g.index, size, what):
        if of.name == "param":
            raise PtxError(f"{what}: a kernel's parameters can't be written")
        mine = bytes_ if which.size == g.index.size else bytes_[which]
        words = np.ascontiguousarray(mine).view(WORD[min(size, 8)])
        m.watch(of, place, size, g.index[which], mine, what, weak)
        of.write(place, size, words if size > 8 else words[:, 0], what)


def expanded(m: Wave, g: Group, values: np.ndarray) -> np.ndarray:
    """Values of the group's lanes -> one for each lane of the wave."""
    if g.all:
        return np.ascontiguousarray(values)
    found = np.zeros(m.lanes, values.dtype)
    found[g.index] = values
    return found


def space_of(modifiers: Modifiers) -> str | None:
    found = modifiers.one(SPACES) or None
    return {"shared::cta": "shared", "shared::cluster": "shared", "const": "global", "param::entry": "param",
            "param::func": "param"}.get(found or "", found)  # fmt: skip


def _access(d: Decoder, one: Instruction) -> tuple[str | None, str, int, bool]:
    """Space, type, how many, and whether it is weak."""
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    weak = modifiers.one(ORDERS, "weak") == "weak"
    modifiers.one(SCOPES)
    space = space_of(modifiers)
    while modifiers.has(*_CACHES, "level::cache_hint", "L2::cache_hint"):
        pass
    count = int(modifiers.one(("v2", "v4", "v8"), "v1")[1:])
    modifiers.end()
    d.code.unit = min(d.code.unit, size_of(type_) * count)
    return space, type_, count, weak


def _ld(d: Decoder, one: Instruction) -> Do:
    space, type_, count, weak = _access(d, one)
    of_variable, address = d.address(one.operands[1], one)
    space = of_variable if space == "param" and of_variable else space
    writes = d.writes(one.operands[0], type_, one)
    assert len(writes) == count
    size, dtype = size_of(type_), DTYPES[type_]

    def do(m: Wave, g: Group) -> None:
        bytes_ = load(m, g, space, address(m), size * count, one, weak)
        values = bytes_.view(dtype)
        for n, write in enumerate(writes):
            write(m, g, expanded(m, g, values[:, n]))

    return do


def _st(d: Decoder, one: Instruction) -> Do:
    space, type_, count, weak = _access(d, one)
    of_variable, address = d.address(one.operands[0], one)
    space = of_variable if space == "param" and of_variable else space
    reads = d.reads(one.operands[1], type_, one)
    assert len(reads) == count

    def do(m: Wave, g: Group) -> None:
        columns = [read(m) if g.all else read(m)[g.index] for read in reads]
        values = columns[0][:, None] if count == 1 else np.stack(columns, axis=1)
        store(m, g, space, address(m), np.ascontiguousarray(values).view(np.uint8), one, weak)

    return do


def _mov(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.last()
    modifiers.end()
    to, source = one.operands
    if isinstance(to, Vector) or isinstance(source, Vector):
        return _packed(d, one, type_)
    read, write = d.read(source, type_, one), d.write(to, type_, one)
    return lambda m, g: write(m, g, read(m))


def _packed(d: Decoder, one: Instruction, type_: str) -> Do:
    to, source = one.operands
    items = to.items if isinstance(to, Vector) else source.items  # type: ignore[union-attr]
    part = f"b{8 * SIZES[type_] // len(items)}"
    word = WORD[SIZES[part]]
    if isinstance(to, Vector):
        if type_ == "b128":
            modifiers = Modifiers(one)
            modifiers.unknown()
        read, writes = d.read(source, type_, one), d.writes(to, part, one)

        def unpack(m: Wave, g: Group) -> None:
            values = read(m).view(word).reshape(-1, len(items))
            for n, write in enumerate(writes):
                write(m, g, np.ascontiguousarray(values[:, n]))

        return unpack
    reads, write = d.reads(source, part, one), d.write(to, type_, one)

    def pack(m: Wave, g: Group) -> None:
        values = np.stack([read(m) for read in reads], axis=1)
        write(m, g, values.view(WORD[SIZES[type_]])[:, 0])

    return pack


def _cvta(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("u64", "u32"))
    back = modifiers.has("to")
    space = space_of(modifiers)
    modifiers.end()
    base = {"shared": SHARED_BASE, "local": LOCAL_BASE, "param": PARAM_BASE}.get(space or "", 0)
    read, write = d.read(one.operands[1], type_, one), d.write(one.operands[0], type_, one)
    offset = np.uint64((-base if back else base) & (1 << 64) - 1)
    return lambda m, g: write(m, g, read(m) + offset)


def _isspacep(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    space = space_of(modifiers)
    modifiers.end()
    number = {"global": 0, "shared": 1, "local": 2, "param": PARAM_BASE >> 48}[space or ""]
    read, write = d.read(one.operands[1], "u64", one), d.write(one.operands[0], "pred", one)
    return lambda m, g: write(m, g, read(m) >> np.uint64(48) == number)


def _nothing(*allowed: str) -> object:
    """What changes nothing that the emulator keeps."""

    def build(d: Decoder, one: Instruction) -> Do:
        modifiers = Modifiers(one)
        while modifiers.has(*allowed):
            pass
        modifiers.end()
        return lambda m, g: None

    return build


def _prefetch(d: Decoder, one: Instruction) -> Do:
    return lambda m, g: None


def _nanosleep(d: Decoder, one: Instruction) -> Step:
    """The others go on meanwhile."""

    def sleep(m: Wave, g: Group) -> None:
        m.nap(g)

    return Step(sleep, str(one), "wait")


OPS = {
    "ld": _ld, "ldu": _ld, "st": _st, "mov": _mov, "cvta": _cvta, "isspacep": _isspacep, "prefetch": _prefetch,
    "membar": _nothing("cta", "gl", "sys"), "nanosleep": _nanosleep, "createpolicy": _prefetch,
    "discard": _prefetch, "applypriority": _prefetch,
}  # fmt: skip
assert Immediate and Register
