"""Partial differential equations on grids: out of place, in place, in two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _jacobi(m: Library) -> Any:
    """Two arrays by turns, their edges kept."""

    def average(a: Any) -> Any:
        return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])

    def f(a: Any, b: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            a, b = state
            b = b.at[1:-1, 1:-1].set(average(a))
            a = a.at[1:-1, 1:-1].set(average(b))
            return a, b

        return m.lax.fori_loop(0, 50, step, (a, b))

    return f


def _heat(m: Library) -> Any:
    def second(u: Any, axis: int) -> Any:
        inner = [slice(1, -1)] * 3

        def part(at: slice) -> Any:
            return u[tuple(at if d == axis else s for d, s in enumerate(inner))]

        return part(slice(2, None)) - 2.0 * part(slice(1, -1)) + part(slice(None, -2))

    def f(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            change = 0.125 * (second(u, 0) + second(u, 1) + second(u, 2))
            return u.at[1:-1, 1:-1, 1:-1].add(change)

        return m.lax.fori_loop(0, 20, step, u)

    return f


def _gauss_seidel(m: Library) -> Any:
    """In place: rows in turn, and in each row what is to the left was just computed."""

    def f(a: Any) -> Any:
        n = a.shape[0]

        def row(i: Any, a: Any) -> Any:
            above, middle, below = a[i - 1], a[i], a[i + 1]
            known = (
                above[:-2] + above[1:-1] + above[2:] + middle[1:-1] + middle[2:]
                + below[:-2] + below[1:-1] + below[2:]
            )  # fmt: skip

            def element(left: Any, rest: Any) -> Any:
                now = (left + rest) / 9.0
                return now, now

            return a.at[i, 1:-1].set(m.lax.scan(element, middle[0], known)[1])

        def sweep(_: Any, a: Any) -> Any:
            return m.lax.fori_loop(1, n - 1, row, a)

        return m.lax.fori_loop(0, 5, sweep, a)

    return f


def _red_black(m: Library) -> Any:
    """Successive over-relaxation of one colour and then the other, by a mask."""

    def f(u: Any, source: Any) -> Any:
        rows, columns = u.shape
        colour = (m.np.arange(rows)[:, None] + m.np.arange(columns)[None, :]) % 2

        def half(u: Any, which: int) -> Any:
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            better = 0.25 * (around - source[1:-1, 1:-1])
            inner = u[1:-1, 1:-1]
            new = m.np.where(colour[1:-1, 1:-1] == which, inner + 1.6 * (better - inner), inner)
            return u.at[1:-1, 1:-1].set(new)

        return m.lax.fori_loop(0, 40, lambda _, u: half(half(u, 0), 1), u)

    return f


def _maxwell(m: Library) -> Any:
    """Finite differences in time: an electric field of two components and a magnetic one."""

    def f(ex: Any, ey: Any, hz: Any, source: Any) -> Any:
        def step(t: Any, state: Any) -> Any:
            ex, ey, hz = state
            ey = ey.at[0, :].set(source[t])
            ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
            ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
            curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

        return m.lax.fori_loop(0, source.shape[0], step, (ex, ey, hz))

    return f


def _alternating_directions(m: Library) -> Any:
    """An implicit step along columns and one along rows, each a recurrence there and back."""

    def sweep(right: Any, u: Any, b: float, d: float) -> Any:
        n = u.shape[0]
        p, q = m.np.zeros_like(u), m.np.zeros_like(u).at[0].set(1.0)

        def forward(j: Any, state: Any) -> Any:
            p, q = state
            scale = 1.0 / (b * p[j - 1] + d)
            return p.at[j].set(-b * scale), q.at[j].set((right[j] - b * q[j - 1]) * scale)

        p, q = m.lax.fori_loop(1, n - 1, forward, (p, q))

        def back(k: Any, v: Any) -> Any:
            j = n - 2 - k
            return v.at[j].set(p[j] * v[j + 1] + q[j])

        return m.lax.fori_loop(0, n - 2, back, m.np.zeros_like(u).at[-1].set(1.0))

    def f(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            v = sweep(1.8 * u.T - 0.4 * m.np.roll(u.T, 1, 1), u.T, -0.2, 1.4)
            return sweep(1.8 * v.T - 0.4 * m.np.roll(v.T, 1, 1), v.T, -0.3, 1.6)

        return m.lax.fori_loop(0, 5, step, u)

    return f


def _life(m: Library) -> Any:
    def f(board: Any) -> Any:
        def step(_: Any, board: Any) -> Any:
            around = sum(
                m.np.roll(board, (i, j), (0, 1))
                for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
            )  # fmt: skip
            return m.np.where((around == 3) | ((board == 1) & (around == 2)), 1, 0)

        return m.lax.fori_loop(0, 50, step, board)

    return f


def _wave(m: Library) -> Any:
    """Two time levels; the older one is updated and they change places."""

    def f(now: Any, before: Any, speed: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            now, before = state
            bend = (
                now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2]
                - 4.0 * now[1:-1, 1:-1]
            )
            new = 2.0 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * bend
            after = before.at[1:-1, 1:-1].set(new)
            return (after, now), after[after.shape[0] // 2]

        return m.lax.scan(step, (now, before), None, length=100)[1]

    return f


def _cavity(m: Library) -> Any:
    """Flow in a lid-driven cavity: velocities by upwind differences, pressure by inner iterations."""

    def f(u: Any, v: Any, p: Any) -> Any:
        h, dt = 2.0 / (u.shape[0] - 1), 0.001

        def source(u: Any, v: Any) -> Any:
            ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
            vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
            uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * h)
            vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * h)
            return (ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2

        def pressure(_: Any, p: Any, b: Any) -> Any:
            new = (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - h * h * b) / 4
            p = p.at[1:-1, 1:-1].set(new)
            p = p.at[:, -1].set(p[:, -2]).at[0, :].set(p[1, :]).at[:, 0].set(p[:, 1])
            return p.at[-1, :].set(0.0)

        def moved(w: Any, u: Any, v: Any, gradient: Any) -> Any:
            c = w[1:-1, 1:-1]
            carried = u[1:-1, 1:-1] * (c - w[1:-1, :-2]) + v[1:-1, 1:-1] * (c - w[:-2, 1:-1])
            spread = w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * c
            return c - dt / h * carried - dt / (2 * h) * gradient + 0.1 * dt / (h * h) * spread

        def step(_: Any, state: Any) -> Any:
            u, v, p = state
            b = source(u, v)
            p = m.lax.fori_loop(0, 20, lambda i, p: pressure(i, p, b), p)
            across = moved(u, u, v, p[1:-1, 2:] - p[1:-1, :-2])
            along = moved(v, u, v, p[2:, 1:-1] - p[:-2, 1:-1])
            u = u.at[1:-1, 1:-1].set(across).at[0].set(0.0).at[:, 0].set(0.0).at[-1].set(1.0)
            v = v.at[1:-1, 1:-1].set(along).at[0].set(0.0).at[:, 0].set(0.0).at[-1].set(0.0)
            return u, v, p

        return m.lax.fori_loop(0, 30, step, (u, v, p))

    return f


def _vertical_advection(m: Library) -> Any:
    """A recurrence along the last axis of three-dimensional arrays, there and back."""

    def f(w: Any, u: Any, s: Any) -> Any:
        levels = u.shape[2]
        c, d = m.np.zeros_like(u), m.np.zeros_like(u)
        c = c.at[:, :, 0].set(w[:, :, 0] / (1.0 + w[:, :, 0]))
        d = d.at[:, :, 0].set(u[:, :, 0] + s[:, :, 0])

        def forward(k: Any, state: Any) -> Any:
            c, d = state
            low, up = -0.25 * w[:, :, k - 1], 0.25 * w[:, :, k]
            scale = 1.0 / (2.0 - low - up - c[:, :, k - 1] * low)
            right = u[:, :, k] + s[:, :, k] - low * (u[:, :, k] - u[:, :, k - 1])
            c = c.at[:, :, k].set(up * scale)
            return c, d.at[:, :, k].set((right - d[:, :, k - 1] * low) * scale)

        c, d = m.lax.fori_loop(1, levels, forward, (c, d))

        def back(i: Any, x: Any) -> Any:
            k = levels - 2 - i
            return x.at[:, :, k].set(d[:, :, k] - c[:, :, k] * x[:, :, k + 1])

        start = m.np.zeros_like(u).at[:, :, -1].set(d[:, :, -1])
        return m.lax.fori_loop(0, levels - 1, back, start)

    return f


def _advection(m: Library) -> Any:
    """A field carried by a whole number of cells, another in each step."""

    def f(field: Any, shifts: Any) -> Any:
        def step(field: Any, shift: Any) -> Any:
            field = 0.9 * field + 0.1 * m.np.roll(field, shift, axis=1)
            return field, m.np.sum(field[0])

        return m.lax.scan(step, field, shifts)

    return f


def _grids(n: int, count: int = 1, m: int | None = None) -> Any:
    return lambda: tuple(rng().random((count, n, m or n)))


def _maxwell_inputs() -> tuple[Any, ...]:
    return *rng().random((3, 300, 360)), np.sin(np.arange(50.0))


PROGRAMS = [
    program("Jacobi 2-D", "stencils", _jacobi, _grids(400, 2)),
    program("heat 3-D, in place", "stencils", _heat, lambda: (rng().random((70, 70, 70)),)),
    program("Gauss-Seidel 2-D", "stencils", _gauss_seidel, _grids(300)),
    program("red-black relaxation", "stencils", _red_black, _grids(400, 2)),
    program("FDTD 2-D", "stencils", _maxwell, _maxwell_inputs),
    program("alternating directions", "stencils", _alternating_directions, _grids(200)),
    program("game of life", "stencils", _life, lambda: (rng().integers(0, 2, (256, 256)),)),
    program("wave equation", "stencils", _wave, lambda: tuple(rng().random((3, 300, 300)) * 0.1)),
    program("lid-driven cavity", "stencils", _cavity, lambda: tuple(np.zeros((3, 81, 81)))),
    program("vertical advection 3-D", "stencils", _vertical_advection,
            lambda: tuple(rng().random((3, 96, 96, 80)))),
    program("advection by whole cells", "stencils", _advection,
            lambda: (rng().random((200, 1500)), rng().integers(0, 1500, 40))),
]  # fmt: skip
