"""Discrete Fourier transforms of a few numbers, as straight-line code on vectors.

Composite sizes by Cooley and Tukey's decomposition, primes by pairing x[j] with x[n - j]: Van Loan,
Computational Frameworks for the Fast Fourier Transform, SIAM 1992, sections 1.4 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from lamina.passes.kernels.cpu.emit.llvm_text import Text

Complex: TypeAlias = tuple[str, str]
"""The names of a vector of real parts and one of imaginary parts."""

_FIRST = {4: 2, 6: 2, 8: 2, 9: 3, 10: 2, 12: 4, 14: 2, 15: 3, 16: 4}


def transform(t: Text, x: Sequence[Complex]) -> list[Complex]:
    """X[k] = sum over j of x[j] exp(-2 pi i j k / n), in each lane."""
    n = len(x)
    if n == 1:
        return list(x)
    if n == 2:
        return [add(t, *x), subtract(t, *x)]
    first = _FIRST.get(n)
    if first is None:
        return _prime(t, x)
    inner = [transform(t, x[j::first]) for j in range(first)]
    out: list[Complex] = [("", "")] * n
    for k in range(n // first):
        turned = [_times_root(t, inner[j][k], j * k, n) for j in range(first)]
        for q, value in enumerate(transform(t, turned)):
            out[k + q * (n // first)] = value
    return out


def _prime(t: Text, x: Sequence[Complex]) -> list[Complex]:
    n, half = len(x), len(x) // 2
    sums = [add(t, x[j], x[n - j]) for j in range(1, half + 1)]
    differences = [subtract(t, x[j], x[n - j]) for j in range(1, half + 1)]
    total = x[0]
    for value in sums:
        total = add(t, total, value)
    out = [total] + [("", "")] * (n - 1)
    for k in range(1, half + 1):
        even, odd = x[0], None
        for j, (s, d) in enumerate(zip(sums, differences), 1):
            angle = 2 * math.pi * (j * k % n) / n
            even = add(t, even, _scale(t, s, math.cos(angle)))
            part = _scale(t, d, math.sin(angle))
            odd = part if odd is None else add(t, odd, part)
        assert odd is not None
        turned = (odd[1], t.fneg(odd[0]))  # -i * odd
        out[k], out[n - k] = add(t, even, turned), subtract(t, even, turned)
    return out


def _times_root(t: Text, x: Complex, power: int, n: int) -> Complex:
    """x * exp(-2 pi i power / n)."""
    power %= n
    re, im = x
    if power == 0:
        return x
    if 4 * power == n:
        return im, t.fneg(re)
    if 8 * power == n:
        return _scale(t, (t.fadd(re, im), t.fsub(im, re)), math.sqrt(0.5))
    if 8 * power == 3 * n:
        return _scale(t, (t.fsub(im, re), t.fneg(t.fadd(re, im))), math.sqrt(0.5))
    angle = -2 * math.pi * power / n
    return multiply(t, x, (t.splat(math.cos(angle)), t.splat(math.sin(angle))))


def add(t: Text, a: Complex, b: Complex) -> Complex:
    """a + b."""
    return t.fadd(a[0], b[0]), t.fadd(a[1], b[1])


def subtract(t: Text, a: Complex, b: Complex) -> Complex:
    """a - b."""
    return t.fsub(a[0], b[0]), t.fsub(a[1], b[1])


def multiply(t: Text, a: Complex, b: Complex) -> Complex:
    """a * b."""
    (re, im), (c, s) = a, b
    return (
        t.fsub(t.fmul(re, c), t.fmul(im, s)),
        t.fadd(t.fmul(re, s), t.fmul(im, c)),
    )


def _scale(t: Text, x: Complex, factor: float) -> Complex:
    return t.fmul(x[0], t.splat(factor)), t.fmul(x[1], t.splat(factor))
