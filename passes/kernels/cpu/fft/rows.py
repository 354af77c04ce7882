"""Transforms that lie one behind the other, on their way into vector lanes and out.

A square block of numbers at a time is transposed between rows in memory, one a lane, and rows of a
buffer, one a number (lanes.py). Rows that are shorter are read and written under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.fft.butterflies import Complex
from lamina.passes.kernels.cpu.fft.lanes import Numbers, load_row, store_row


def complex_in(
    t: Text, numbers: Numbers, rows: Sequence[str], length: int, buffer: str, *, swapped: bool
) -> None:
    """Complex numbers to a buffer; `swapped`: their parts are."""
    n = numbers.lanes

    def block(offset: Integer, place: str, count: int) -> None:
        pairs = []
        for row in rows:
            at = t.at(row, t.mul(offset, 2 * numbers.bytes))
            low = masked_load(t, at, min(n, 2 * count))
            high = masked_load(t, t.at(at, n * numbers.bytes), max(0, 2 * count - n))
            re, im = (t.shuffle(low, high, range(part, 2 * n, 2)) for part in (0, 1))
            pairs.append((im, re) if swapped else (re, im))
        columns = zip(*(t.transpose([pair[part] for pair in pairs]) for part in (0, 1)))
        for i, pair in enumerate(columns):
            if i < count:
                store_row(t, pair, t.at(place, i * numbers.row_bytes))

    _blocks(t, numbers, length, buffer, block)


def complex_out(
    t: Text, numbers: Numbers, rows: Sequence[str], length: int, buffer: str, *, swapped: bool
) -> None:
    """The inverse of `complex_in`."""
    n = numbers.lanes

    def block(offset: Integer, place: str, count: int) -> None:
        parts = _columns(t, numbers, place, count)
        for row, pair in zip(rows, zip(*map(t.transpose, parts))):
            re, im = pair[::-1] if swapped else pair
            at = t.at(row, t.mul(offset, 2 * numbers.bytes))
            for half in (0, 1):
                picks = [half * n // 2 + i // 2 + n * (i % 2) for i in range(n)]
                kept = min(n, max(0, 2 * count - half * n))
                value = t.shuffle(re, im, picks)
                masked_store(t, value, t.at(at, half * n * numbers.bytes), kept)

    _blocks(t, numbers, length, buffer, block)


def real_in(t: Text, numbers: Numbers, rows: Sequence[str], length: int, buffer: str) -> None:
    """Real numbers to a buffer, where their imaginary parts are zero."""

    def block(offset: Integer, place: str, count: int) -> None:
        at = [t.at(row, t.mul(offset, numbers.bytes)) for row in rows]
        columns = t.transpose([masked_load(t, each, count) for each in at])
        for i, value in enumerate(columns[:count]):
            store_row(t, (value, "zeroinitializer"), t.at(place, i * numbers.row_bytes))

    _blocks(t, numbers, length, buffer, block)


def real_out(
    t: Text, numbers: Numbers, rows: Sequence[str], length: int, buffer: str, part: int
) -> None:
    """The real (0) or the imaginary parts (1) of a buffer."""

    def block(offset: Integer, place: str, count: int) -> None:
        columns = t.transpose(_columns(t, numbers, place, count)[part])
        for row, value in zip(rows, columns):
            masked_store(t, value, t.at(row, t.mul(offset, numbers.bytes)), count)

    _blocks(t, numbers, length, buffer, block)


def _columns(t: Text, numbers: Numbers, place: str, count: int) -> tuple[list[str], list[str]]:
    """Rows of a buffer from one on, as many as there are lanes, of which `count` hold numbers."""
    parts: list[Complex] = [
        load_row(t, t.at(place, i * numbers.row_bytes)) if i < count else ("poison", "poison")
        for i in range(numbers.lanes)
    ]
    return [re for re, _ in parts], [im for _, im in parts]


def _blocks(
    t: Text,
    numbers: Numbers,
    length: int,
    buffer: str,
    block: Callable[[Integer, str, int], None],
) -> None:
    """Write what is done for each block: its first number, its place in the buffer, its size. What is left of
    long rows is done with the numbers before it, which are there already and stay the same: so that there
    is one piece of code."""
    lanes = numbers.lanes
    if length < lanes:
        block(0, buffer, length)
        return
    with t.loop(-(-length // lanes) * lanes, step=lanes) as at:
        offset = t.minimum(at, length - lanes) if length % lanes else at
        block(offset, t.at(buffer, t.mul(offset, numbers.row_bytes)), lanes)


def row_addresses(
    t: Text, base: str, first: Integer, numbers: Numbers, last: int, apart: int
) -> list[str]:
    """Of each lane's row, from row `first` on; lanes without one have that of row `last`."""
    return [
        t.at(base, t.mul(t.minimum(t.add(first, lane), last), apart))
        for lane in range(numbers.lanes)
    ]


def masked_load(t: Text, place: str, count: int) -> str:
    """The first `count` lanes of a vector in memory; nothing behind them is touched."""
    if count == t.lanes:
        return t.load(t.vector, place)
    if not count:
        return "poison"
    return t.emit(
        f"call {t.vector} @llvm.masked.load.{_suffix(t)}.p0(ptr align {t.bytes} {place}, "
        f"{_mask(t, count)}, {t.vector} poison)"
    )


def masked_store(t: Text, value: str, place: str, count: int) -> None:
    """The inverse of `masked_load`."""
    if count == t.lanes:
        t.store(t.vector, value, place)
    elif count:
        t.do(
            f"call void @llvm.masked.store.{_suffix(t)}.p0({t.vector} {value}, "
            f"ptr align {t.bytes} {place}, {_mask(t, count)})"
        )


def masked_declarations(t: Text) -> list[str]:
    """The declarations of what these call."""
    mask = f"<{t.lanes} x i1>"
    return [
        f"declare {t.vector} @llvm.masked.load.{_suffix(t)}.p0(ptr, {mask}, {t.vector})",
        f"declare void @llvm.masked.store.{_suffix(t)}.p0({t.vector}, ptr, {mask})",
    ]


def _suffix(t: Text) -> str:
    return f"v{t.lanes}f{8 * t.bytes}"


def _mask(t: Text, count: int) -> str:
    bits = ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(t.lanes))
    return f"<{t.lanes} x i1> <{bits}>"
