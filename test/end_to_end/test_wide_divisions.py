"""Quotients and remainders of 64-bit integers against Python's, which are exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina
from lamina import lax

N = 37  # whole vectors and what remains


@lamina.jit
def divided(a, b):
    return lax.div(a, b), lax.rem(a, b), a // b, a % b


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def expected(a: int, b: int, dtype: np.dtype) -> list[int]:
    """Divisions by 0 give all bits and what was divided; JAX's `//` rounds that down, `%` gives 0."""
    if b == 0:
        return [-1, a, -2 if a and dtype.kind == "i" else -1, 0]
    truncated = towards_zero(a, b)
    return [truncated, a - b * truncated, a // b, a % b]


def check(a: list[int], b: list[int], dtype: np.dtype) -> None:
    given_ = np.array(a, dtype), np.array(b, dtype)
    rows = [[n % 2**64 for n in expected(*pair, dtype)] for pair in zip(a, b, strict=True)]
    wanted = np.array(rows, np.uint64).T.astype(dtype)
    with lamina.enable_x64(True):
        for found, right in zip(divided(*given_), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(found), right)


def edges(dtype: np.dtype) -> list[int]:
    limits = np.iinfo(dtype)
    near = {sign * (2**bits + d) for bits in (0, 1, 31, 32, 51, 52, 53, 54, 62, 63, 64)
            for d in range(-3, 4) for sign in (-1, 1)}  # fmt: skip
    near |= {3037000499, 3037000500, 94906265, 94906267}  # roots of 2^63 and 2^53
    return sorted(n for n in near if limits.min <= n <= limits.max)


@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(np.uint64)], ids=str)
def test_edges(dtype):
    numbers = edges(dtype)
    pairs = [(a, b) for a in numbers for b in numbers]
    check([a for a, _ in pairs], [b for _, b in pairs], dtype)


@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(np.uint64)], ids=str)
def test_beside_multiples(dtype):
    """Where a quotient that is a bit too large or small would be another integer."""
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    a, b = [], []
    for bits in range(1, 63):
        for _ in range(40):
            by = int(rng.integers(2 ** (bits - 1), 2**bits))
            times = int(rng.integers(0, max(1, limits.max // by), dtype=np.uint64))
            a += [min(max(by * times + d, 0), limits.max) for d in (-1, 0, 1, by - 1)]
            b += [by] * 4
    check(a, b, dtype)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([np.dtype(np.int64), np.dtype(np.uint64)]))
def test_drawn(data, dtype):
    limits = np.iinfo(dtype)
    number = st.one_of(st.integers(limits.min, limits.max), st.integers(0, 1000), st.sampled_from(edges(dtype)))
    pairs = data.draw(st.lists(st.tuples(number, number), min_size=N, max_size=N))
    check([a for a, _ in pairs], [b for _, b in pairs], dtype)


def test_numbers_of_places():
    """What is known to have few bits is divided once, by any divisor."""

    @lamina.jit
    def f(b):
        places = lamina.numpy.arange(1000) * 3 - 1500
        return places // b, places % b, lax.div(places, b), lax.rem(places, b)

    places = [3 * i - 1500 for i in range(1000)]
    with lamina.enable_x64(True):
        for b in edges(np.dtype(np.int64)):
            wanted = [expected(a, b, np.dtype(np.int64)) for a in places]
            quotients, remainders, towards, rest = (np.asarray(x).tolist() for x in f(np.int64(b)))
            assert list(zip(towards, rest, quotients, remainders)) == list(map(tuple, wanted)), b
