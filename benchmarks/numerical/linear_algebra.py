"""Factorisations, solvers and iterations of dense and sparse linear algebra, written with loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _cholesky(m: Library) -> Any:
    """Row by row, each element from a product of the rows before it."""

    def f(a: Any) -> Any:
        n = a.shape[0]
        columns = m.np.arange(n)

        def element(i: Any, j: Any, a: Any) -> Any:
            done = m.np.dot(m.np.where(columns < j, a[i], 0.0), m.np.where(columns < j, a[j], 0.0))
            return a.at[i, j].set((a[i, j] - done) / a[j, j])

        def row(i: Any, a: Any) -> Any:
            a = m.lax.fori_loop(0, i, lambda j, a: element(i, j, a), a)
            left = m.np.where(columns < i, a[i], 0.0)
            return a.at[i, i].set(m.np.sqrt(a[i, i] - m.np.dot(left, left)))

        return m.np.tril(m.lax.fori_loop(0, n, row, a))

    return f


def _lu(m: Library) -> Any:
    """Without pivots, row by row: first what is left of the diagonal, then the rest."""

    def f(a: Any) -> Any:
        n = a.shape[0]
        terms = m.np.arange(n)

        def reduced(i: Any, j: Any, until: Any, a: Any) -> Any:
            return a[i, j] - m.np.dot(m.np.where(terms < until, a[i, :], 0.0), a[:, j])

        def row(i: Any, a: Any) -> Any:
            a = m.lax.fori_loop(
                0, i, lambda j, a: a.at[i, j].set(reduced(i, j, j, a) / a[j, j]), a)
            return m.lax.fori_loop(i, n, lambda j, a: a.at[i, j].set(reduced(i, j, i, a)), a)

        return m.lax.fori_loop(0, n, row, a)

    return f  # fmt: skip


def _elimination(m: Library) -> Any:
    """LU by outer products: each step updates the part to the right and below."""

    def f(a: Any) -> Any:
        n = a.shape[0]
        index = m.np.arange(n)

        def step(k: Any, a: Any) -> Any:
            factors = m.np.where(index > k, a[:, k] / a[k, k], 0.0)
            row = m.np.where(index > k, a[k, :], 0.0)
            a = a - m.np.outer(factors, row)
            return a.at[:, k].set(m.np.where(index > k, factors, a[:, k]))

        return m.lax.fori_loop(0, n - 1, step, a)

    return f


def _forward_substitution(m: Library) -> Any:
    def f(lower: Any, b: Any) -> Any:
        n = b.shape[0]
        index = m.np.arange(n)

        def step(i: Any, x: Any) -> Any:
            known = m.np.sum(m.np.where(index < i, lower[i] * x, 0.0))
            return x.at[i].set((b[i] - known) / lower[i, i])

        return m.lax.fori_loop(0, n, step, m.np.zeros_like(b))

    return f


def _back_substitution(m: Library) -> Any:
    """Of many right sides: a row of the solution in each step."""

    def f(upper: Any, b: Any) -> Any:
        n = b.shape[0]

        def step(k: Any, x: Any) -> Any:
            i = n - 1 - k
            row = m.np.where(m.np.arange(n) > i, upper[i], 0.0)
            return x.at[i].set((b[i] - row @ x) / upper[i, i])

        return m.lax.fori_loop(0, n, step, m.np.zeros_like(b))

    return f


def _gram_schmidt(m: Library) -> Any:
    """Modified: column by column, taken from all columns after it."""

    def f(a: Any) -> Any:
        n = a.shape[1]
        later = m.np.arange(n)

        def step(k: Any, state: Any) -> Any:
            a, q, r = state
            norm = m.np.sqrt(m.np.sum(a[:, k] * a[:, k]))
            column = a[:, k] / norm
            q = q.at[:, k].set(column)
            row = m.np.where(later > k, column @ a, 0.0)
            r = r.at[k].set(row.at[k].set(norm))
            return a - m.np.outer(column, row), q, r

        return m.lax.fori_loop(0, n, step, (a, m.np.zeros_like(a), m.np.zeros((n, n))))[1:]

    return f


def _householder(m: Library) -> Any:
    """The triangle of QR, by reflections of all rows from the k-th on."""

    def f(a: Any) -> Any:
        rows, columns = a.shape
        index = m.np.arange(rows)

        def step(k: Any, a: Any) -> Any:
            x = m.np.where(index >= k, a[:, k], 0.0)
            norm = m.np.linalg.norm(x)
            v = x + m.np.where(index == k, m.np.sign(a[k, k]) * norm, 0.0)
            return a - m.np.outer(v, (2.0 / m.np.dot(v, v)) * (v @ a))

        return m.np.triu(m.lax.fori_loop(0, columns, step, a))

    return f


def _gauss_jordan(m: Library) -> Any:
    """The inverse, with a pivot row of the largest element."""

    def f(a: Any) -> Any:
        n = a.shape[0]
        both = m.np.concatenate([a, m.np.eye(n)], axis=1)

        def step(k: Any, both: Any) -> Any:
            column = m.np.where(m.np.arange(n) >= k, m.np.abs(both[:, k]), -1.0)
            p = m.np.argmax(column)
            top, pivot = both[k], both[p]
            both = both.at[p].set(top)
            pivot = pivot / pivot[k]
            factors = both[:, k].at[k].set(0.0)
            return (both - m.np.outer(factors, pivot)).at[k].set(pivot)

        return m.lax.fori_loop(0, n, step, both)[:, n:]

    return f


def _conjugate_gradients(m: Library) -> Any:
    def f(a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            x, r, p, rr, k = state
            ap = a @ p
            alpha = rr / m.np.dot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            new = m.np.dot(r, r)
            return x, r, r + (new / rr) * p, new, k + 1

        def going(state: Any) -> Any:
            return (state[3] > 1e-20) & (state[4] < 200)

        return m.lax.while_loop(going, step, (b * 0, b, b, m.np.dot(b, b), 0))[0]

    return f


def _sparse_iteration(m: Library) -> Any:
    """Power iteration with a sparse matrix, whose products are summed by rows."""

    def f(values: Any, rows: Any, columns: Any, x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            y = m.np.zeros_like(x).at[rows].add(values * x[columns])
            return y / m.np.sqrt(m.np.sum(y * y))

        return m.lax.fori_loop(0, 20, step, x)

    return f


def _levinson(m: Library) -> Any:
    """Durbin's recurrence for a Toeplitz system: each step turns round what is known."""

    def f(r: Any) -> Any:
        n = r.shape[0]
        index = m.np.arange(n)

        def step(k: Any, state: Any) -> Any:
            y, alpha, beta = state
            beta = beta * (1 - alpha * alpha)
            turned = m.np.where(index < k, m.np.roll(y[::-1], k), 0.0)
            alpha = -(r[k] + m.np.sum(m.np.where(index < k, r * turned, 0.0))) / beta
            return (y + alpha * turned).at[k].set(alpha), alpha, beta

        start = m.np.zeros(n).at[0].set(-r[0]), -r[0], m.np.ones(())
        return m.lax.fori_loop(1, n, step, start)[0]

    return f


def _thomas(m: Library) -> Any:
    """Tridiagonal systems of many columns, forward and back."""

    def f(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
        def forward(before: Any, row: Any) -> Any:
            c, d = before
            low, middle, up, right = row
            scale = 1.0 / (middle - low * c)
            now = up * scale, (right - low * d) * scale
            return now, now

        def back(x: Any, row: Any) -> Any:
            c, d = row
            x = d - c * x
            return x, x

        zero = m.np.zeros_like(b[0])
        _, rows = m.lax.scan(forward, (zero, zero), (lower, diagonal, upper, b))
        return m.lax.scan(back, zero, rows, reverse=True)[1]

    return f


def _positive(n: int) -> tuple[Any, ...]:
    a = rng().standard_normal((n, n))
    return (a @ a.T / n + np.eye(n) * 2,)


def _dominant(n: int) -> tuple[Any, ...]:
    return (rng().standard_normal((n, n)) + np.eye(n) * 2 * n,)


def _triangle(n: int, *right: int) -> tuple[Any, ...]:
    (a,) = _dominant(n)
    return np.tril(a) if not right else np.triu(a), rng().standard_normal((n, *right))


def _sparse() -> tuple[Any, ...]:
    n, each = 20_000, 12
    rows = np.repeat(np.arange(n), each)
    columns = rng().integers(0, n, n * each)
    return rng().random(n * each), rows, columns, np.ones(n)


def _tridiagonal() -> tuple[Any, ...]:
    shape = (256, 2000)
    one = np.ones(shape)
    return -one, 4 * one, -one, rng().standard_normal(shape)


PROGRAMS = [
    program("Cholesky by rows", "linear algebra", _cholesky, lambda: _positive(200)),
    program("LU by rows", "linear algebra", _lu, lambda: _dominant(150)),
    program("LU by outer products", "linear algebra", _elimination, lambda: _dominant(250)),
    program("forward substitution", "linear algebra", _forward_substitution, lambda: _triangle(1000)),
    program("back substitution, 64 sides", "linear algebra", _back_substitution,
            lambda: _triangle(300, 64)),
    program("Gram-Schmidt", "linear algebra", _gram_schmidt,
            lambda: (rng().standard_normal((300, 200)),)),
    program("Householder QR", "linear algebra", _householder,
            lambda: (rng().standard_normal((300, 200)),)),
    program("Gauss-Jordan inverse", "linear algebra", _gauss_jordan, lambda: _dominant(150)),
    program("conjugate gradients", "linear algebra", _conjugate_gradients,
            lambda: (*_positive(600), rng().standard_normal(600))),
    program("sparse power iteration", "linear algebra", _sparse_iteration, _sparse),
    program("Levinson-Durbin", "linear algebra", _levinson,
            lambda: (0.5 ** np.arange(1.0, 1001.0),)),
    program("Thomas, 2,000 systems", "linear algebra", _thomas, _tridiagonal),
]  # fmt: skip
