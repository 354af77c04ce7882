"""Which Fourier transforms the backends' generators do, and how lengths factor."""

from __future__ import annotations

import math

LONGEST_LANE = 8192  # rounding
"""The longest transform that each vector lane does alone: its working set fits a cache."""

LONGEST = 1 << 24  # rounding
"""The longest transform that is done in two rounds of shorter ones."""

SMALL_PRIME = 13  # rounding
"""The largest prime factor whose transform is straight-line code."""

LARGEST_PRIME = 383  # rounding
"""The largest that is done by its definition; of larger ones a convolution is less work."""

_LONGEST_SHORT = 4096  # rounding


def is_generated(length: int, largest: int = SMALL_PRIME) -> bool:
    """Whether the generators do a complex transform of this length."""
    if length < 1 or length > LONGEST or not is_smooth(length, largest):
        return False
    return length <= LONGEST_LANE or two_factors(length) is not None


def is_short(length: int) -> bool:
    """Whether transforms of so many real numbers are done in lanes."""
    return length <= _LONGEST_SHORT


def is_smooth(length: int, largest: int = SMALL_PRIME) -> bool:
    """Whether all prime factors are so small."""
    return max(prime_factors(length), default=1) <= largest


def prime_factors(number: int) -> list[int]:
    """The prime factors, the least first."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


def next_length(least: int) -> int:
    """A length, not below `least` and not much above, that the generators do well."""
    power = 1 << max(0, least - 1).bit_length()
    fitting = [power]
    fitting += [power // 8 * k for k in (5, 6, 7) if power >= 256 and power // 8 * k >= least]
    return min(n for n in fitting if n <= LONGEST) if power <= LONGEST else power


def two_factors(length: int) -> tuple[int, int] | None:
    """The factors of `length` nearest to its root, the second not the smaller; None where the
    second is no transform for a lane or the first no shorter one than 8."""
    first = next(d for d in range(math.isqrt(length), 0, -1) if length % d == 0)
    return (first, length // first) if first >= 8 and length // first <= LONGEST_LANE else None
