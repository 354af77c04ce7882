"""Discrete Fourier transforms of a prime number of vectors, as loops over its definition.

What straight-line code is too long for (fft_butterflies.py). x[j] and x[n - j] are paired; a few
results at a time are sums over the pairs in registers, with factors that are broadcast from a table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.fft import butterflies
from lamina.passes.kernels.cpu.fft.butterflies import Complex

_AT_ONCE = 4  # results: with both parts of sums and differences, half of the registers


def prime_table(prime: int) -> np.ndarray:
    """cos and sin of 2 pi j k / prime for 1 <= j, k <= prime / 2: [k, j, 2]."""
    place = np.arange(1, prime // 2 + 1)
    exponents = np.outer(place, place) % prime
    angle = 2 * np.pi * np.where(2 * exponents > prime, exponents - prime, exponents) / prime
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def prime_scratch(prime: int, row_bytes: int) -> int:
    """Bytes that a transform needs for pairs, besides its input and output."""
    return prime // 2 * 2 * row_bytes


def prime_transform(
    t: Text,
    prime: int,
    table: str,
    scratch: str,
    read: Callable[[Integer], Complex],
    write: Callable[[Integer, Complex], None],
) -> None:
    """Write result k for each k; `table` holds `prime_table` in the element type."""
    half, row = prime // 2, 2 * t.lanes * t.bytes
    first = read(0)
    total = [t.variable(t.vector, part) for part in first]
    with t.loop(half) as j:
        a = read(t.add(j, 1))
        b = read(t.difference(prime - 1, j))
        sums, differences = butterflies.add(t, a, b), butterflies.subtract(t, a, b)
        place = t.at(scratch, t.mul(j, 2 * row))
        for number, part in enumerate((*sums, *differences)):
            t.store(t.vector, part, t.at(place, number * row // 2))
        for name, part in zip(total, sums):
            t.set(t.vector, t.fadd(t.now(t.vector, name), part), name)
    write(0, (t.now(t.vector, total[0]), t.now(t.vector, total[1])))
    groups, rest = divmod(half, _AT_ONCE)
    if groups:
        with t.loop(groups) as group:
            _results(t, prime, table, scratch, first, t.mul(group, _AT_ONCE), _AT_ONCE, write)
    if rest:
        _results(t, prime, table, scratch, first, groups * _AT_ONCE, rest, write)


def _results(
    t: Text,
    prime: int,
    table: str,
    scratch: str,
    first: Complex,
    start: Integer,
    count: int,
    write: Callable[[Integer, Complex], None],
) -> None:
    """Results start + 1 to start + count, and those that mirror them."""
    half, row = prime // 2, 2 * t.lanes * t.bytes
    zero = t.splat(0.0)
    sums = [[t.variable(t.vector, part) for part in (*first, zero, zero)] for _ in range(count)]
    with t.loop(half) as j:
        place = t.at(scratch, t.mul(j, 2 * row))
        parts = [t.load(t.vector, t.at(place, number * row // 2)) for number in range(4)]
        for k, names in enumerate(sums):
            at = t.at(table, t.mul(t.add(t.mul(t.add(start, k), half), j), 2 * t.bytes))
            cosine, sine = t.broadcast(at), t.broadcast(t.at(at, t.bytes))
            for name, part, factor in zip(names, parts, (cosine, cosine, sine, sine)):
                t.set(t.vector, t.fadd(t.now(t.vector, name), t.fmul(part, factor)), name)
    for k, names in enumerate(sums):
        re, im, odd_re, odd_im = (t.now(t.vector, name) for name in names)
        even, turned = (re, im), (odd_im, t.fneg(odd_re))  # -i * odd
        number = t.add(t.add(start, k), 1)
        write(number, butterflies.add(t, even, turned))
        write(t.difference(prime, number), butterflies.subtract(t, even, turned))
