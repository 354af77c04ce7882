"""Tables whose elements depend on those before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _edit_distance(m: Library) -> Any:
    """A row at a time, each from left to right."""

    def f(a: Any, b: Any) -> Any:
        def row(above: Any, letter: Any) -> Any:
            changed = above[:-1] + (b != letter)
            best = m.np.minimum(changed, above[1:] + 1)

            def element(left: Any, x: Any) -> Any:
                now = m.np.minimum(left + 1, x)
                return now, now

            first = above[0] + 1
            _, rest = m.lax.scan(element, first, best)
            return m.np.concatenate([first[None], rest]), None

        return m.lax.scan(row, m.np.arange(b.shape[0] + 1), a)[0][-1]

    return f


def _common_subsequence(m: Library) -> Any:
    """A table filled element by element in place."""

    def f(a: Any, b: Any) -> Any:
        def element(i: Any, j: Any, table: Any) -> Any:
            found = m.np.where(
                a[i - 1] == b[j - 1],
                table[i - 1, j - 1] + 1,
                m.np.maximum(table[i - 1, j], table[i, j - 1]),
            )
            return table.at[i, j].set(found)

        def row(i: Any, table: Any) -> Any:
            return m.lax.fori_loop(1, b.shape[0] + 1, lambda j, t: element(i, j, t), table)

        table = m.np.zeros((a.shape[0] + 1, b.shape[0] + 1), np.int32)
        return m.lax.fori_loop(1, a.shape[0] + 1, row, table)

    return f


def _needleman_wunsch(m: Library) -> Any:
    """Anti-diagonals in turn, each computed at once from the two before it."""

    def f(a: Any, b: Any) -> Any:
        n = a.shape[0]
        turned = b[::-1]
        row = m.np.arange(n + 1)

        def diagonal(state: Any, d: Any) -> Any:
            older, old = state
            ends = m.np.where((row == 0) | (row == d), -1.0 * d, -1e9)
            other = m.np.roll(turned, d - n)[:n]
            match = m.np.where(a == other, 1.0, -1.0)
            inner = m.np.maximum(older[:-1] + match, m.np.maximum(old[:-1], old[1:]) - 1.0)
            inside = (row[1:] < d) & (row[1:] >= d - n)
            now = ends.at[1:].set(m.np.where(inside, inner, ends[1:]))
            return (old, now), now[n]

        start = m.np.where(row == 0, 0.0, -1e9), m.np.where(row <= 1, -1.0, -1e9)
        return m.lax.scan(diagonal, start, m.np.arange(2, 2 * n + 1))[1]

    return f


def _nussinov(m: Library) -> Any:
    """The most pairs of bases: rows from the last to the first, a maximum over where to part."""

    def f(bases: Any) -> Any:
        n = bases.shape[0]
        index = m.np.arange(n)

        def element(i: Any, j: Any, table: Any) -> Any:
            pair = m.np.where(bases[i] + bases[j] == 3, 1, 0)
            inner = m.np.where(j - 1 > i, pair, 0) + table[i + 1, j - 1]
            best = m.np.maximum(m.np.maximum(table[i, j - 1], table[i + 1, j]), inner)
            below = m.np.roll(table[:, j], -1)
            parted = m.np.where((index > i) & (index < j), table[i] + below, 0)
            return table.at[i, j].set(m.np.maximum(best, m.np.max(parted)))

        def row(k: Any, table: Any) -> Any:
            i = n - 1 - k
            return m.lax.fori_loop(i + 1, n, lambda j, t: element(i, j, t), table)

        return m.lax.fori_loop(1, n, row, m.np.zeros((n, n), np.int64))

    return f


def _shortest_paths(m: Library) -> Any:
    def f(distance: Any) -> Any:
        def step(k: Any, d: Any) -> Any:
            return m.np.minimum(d, d[:, k, None] + d[None, k, :])

        return m.lax.fori_loop(0, distance.shape[0], step, distance)

    return f


def _viterbi(m: Library) -> Any:
    def f(first: Any, change: Any, emission: Any, seen: Any) -> Any:
        def forward(score: Any, what: Any) -> Any:
            all_ways = score[:, None] + change
            return m.np.max(all_ways, axis=0) + emission[:, what], m.np.argmax(all_ways, axis=0)

        last, ways = m.lax.scan(forward, first + emission[:, seen[0]], seen[1:])

        def back(state: Any, way: Any) -> Any:
            return way[state], way[state]

        end = m.np.argmax(last)
        return m.lax.scan(back, end, ways, reverse=True)[1], last[end]

    return f


def _knapsack(m: Library) -> Any:
    def f(weights: Any, values: Any) -> Any:
        room = m.np.arange(5001)

        def item(best: Any, thing: Any) -> Any:
            weight, value = thing
            taken = m.np.where(room >= weight, m.np.roll(best, weight) + value, -1.0)
            return m.np.maximum(best, taken), None

        return m.lax.scan(item, m.np.zeros(5001), (weights, values))[0]

    return f


def _longest_rise(m: Library) -> Any:
    """The longest increasing subsequence, in quadratic time."""

    def f(x: Any) -> Any:
        n = x.shape[0]

        def step(i: Any, length: Any) -> Any:
            fits = (m.np.arange(n) < i) & (x < x[i])
            return length.at[i].set(1 + m.np.max(m.np.where(fits, length, 0)))

        return m.np.max(m.lax.fori_loop(0, n, step, m.np.zeros(n, np.int64)))

    return f


def _letters(*sizes: int) -> Any:
    return lambda: tuple(rng().integers(0, 4, size) for size in sizes)


def _viterbi_inputs() -> tuple[Any, ...]:
    states, symbols = 64, 20
    chances = np.log(rng().random((1 + states + symbols, states)))
    seen = rng().integers(0, symbols, 1000)
    return chances[0], chances[1 : states + 1], chances[states + 1 :].T.copy(), seen


PROGRAMS = [
    program("edit distance", "dynamic programming", _edit_distance, _letters(600, 500)),
    program("longest common subsequence", "dynamic programming", _common_subsequence,
            _letters(600, 500)),
    program("Needleman-Wunsch", "dynamic programming", _needleman_wunsch, _letters(800, 800)),
    program("Nussinov", "dynamic programming", _nussinov, _letters(120)),
    program("Floyd-Warshall", "dynamic programming", _shortest_paths,
            lambda: (rng().random((250, 250)),)),
    program("Viterbi", "dynamic programming", _viterbi, _viterbi_inputs),
    program("knapsack", "dynamic programming", _knapsack,
            lambda: (rng().integers(1, 200, 200), rng().random(200))),
    program("longest increasing subsequence", "dynamic programming", _longest_rise,
            lambda: (rng().random(2000),)),
]  # fmt: skip
