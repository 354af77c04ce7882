"""Particles, chance, fractals, orbits, and statistics by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _bodies(m: Library) -> Any:
    """Gravity between all pairs, by leapfrog."""

    def f(place: Any, speed: Any, mass: Any) -> Any:
        def pull(place: Any) -> Any:
            apart = place[None, :, :] - place[:, None, :]
            square = m.np.sum(apart**2, axis=-1) + 0.01
            return m.np.sum(apart * (mass / square**1.5)[:, :, None], axis=1)

        def step(_: Any, state: Any) -> Any:
            place, speed, force = state
            speed = speed + 0.005 * force
            place = place + 0.01 * speed
            force = pull(place)
            return place, speed + 0.005 * force, force

        return m.lax.fori_loop(0, 20, step, (place, speed, pull(place)))[:2]

    return f


def _k_means(m: Library) -> Any:
    def f(points: Any, centres: Any) -> Any:
        def step(_: Any, centres: Any) -> Any:
            apart = m.np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
            nearest = m.np.argmin(apart, axis=1)
            sums = m.np.zeros_like(centres).at[nearest].add(points)
            counts = m.np.zeros(centres.shape[0]).at[nearest].add(1.0)
            return sums / m.np.maximum(counts, 1.0)[:, None]

        return m.lax.fori_loop(0, 10, step, centres)

    return f


def _mandelbrot(m: Library) -> Any:
    def f(x: Any, y: Any) -> Any:
        c = x[None, :] + 1j * y[:, None]

        def step(_: Any, state: Any) -> Any:
            z, count = state
            z = m.np.where(m.np.abs(z) <= 2.0, z * z + c, z)
            return z, count + (m.np.abs(z) <= 2.0)

        return m.lax.fori_loop(0, 30, step, (c * 0, m.np.zeros(c.shape, np.int64)))[1]

    return f


def _escape(m: Library) -> Any:
    """The same set point by point, each until it escapes."""

    def f(x: Any, y: Any) -> Any:
        def point(c: Any) -> Any:
            def going(s: Any) -> Any:
                return (s[0] * s[0] + s[1] * s[1] <= 4.0) & (s[2] < 200)

            def step(s: Any) -> Any:
                return s[0] * s[0] - s[1] * s[1] + c[0], 2 * s[0] * s[1] + c[1], s[2] + 1

            return m.lax.while_loop(going, step, (0.0, 0.0, 0))[2]

        grid = m.np.stack(m.np.meshgrid(x, y), -1).reshape(-1, 2)
        return m.lax.map(point, grid)

    return f


def _option(m: Library) -> Any:
    """An Asian option by Monte Carlo: paths of normal numbers, step by step."""

    def f(seed: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            price, total = state
            price = price * m.np.exp(0.0001 + 0.02 * m.random.normal(key, price.shape))
            return (price, total + price), None

        keys = m.random.split(m.random.key(seed), 50)
        start = m.np.full(10_000, 100.0)
        (_, total), _ = m.lax.scan(step, (start, start * 0), keys)
        return m.np.mean(m.np.maximum(total / 50 - 100.0, 0.0))

    return f


def _ising(m: Library) -> Any:
    """Metropolis on a chessboard of spins, with given random numbers."""

    def f(spins: Any, chances: Any) -> Any:
        n = spins.shape[0]
        colour = (m.np.arange(n)[:, None] + m.np.arange(n)[None, :]) % 2

        def step(spins: Any, draw: Any) -> Any:
            for which in (0, 1):
                around = sum(m.np.roll(spins, s, a) for s in (1, -1) for a in (0, 1))
                turn = (draw < m.np.exp(-0.88 * spins * around)) & (colour == which)
                spins = m.np.where(turn, -spins, spins)
            return spins, m.np.mean(spins)

        return m.lax.scan(step, spins, chances)[1]

    return f


def _lorenz(m: Library) -> Any:
    """Runge and Kutta's fourth order, for one trajectory."""

    def slope(s: Any) -> Any:
        x, y, z = s
        return m.np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    def f(start: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            k1 = slope(s)
            k2 = slope(s + 0.005 * k1)
            k3 = slope(s + 0.005 * k2)
            k4 = slope(s + 0.01 * k3)
            s = s + 0.01 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            return s, s

        return m.lax.scan(step, start, None, length=2_000)[1]

    return f


def _mixture(m: Library) -> Any:
    """Expectation and maximisation of a mixture of normal distributions."""

    def f(x: Any, means: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            share, mean, spread = state
            score = m.np.log(share) - m.np.log(spread) - 0.5 * ((x[:, None] - mean) / spread) ** 2
            score = score - m.np.max(score, axis=1, keepdims=True)
            part = m.np.exp(score)
            part = part / m.np.sum(part, axis=1, keepdims=True)
            total = m.np.sum(part, axis=0)
            mean = m.np.sum(part * x[:, None], axis=0) / total
            square = m.np.sum(part * (x[:, None] - mean) ** 2, axis=0) / total
            return total / x.shape[0], mean, m.np.sqrt(square)

        k = means.shape[0]
        return m.lax.fori_loop(0, 20, step, (m.np.full(k, 1.0 / k), means, m.np.ones(k)))

    return f


def _black_scholes(m: Library) -> Any:
    def f(price: Any, strike: Any, years: Any) -> Any:
        rate, spread = 0.02, 0.3
        root = spread * m.np.sqrt(years)
        d1 = (m.np.log(price / strike) + (rate + 0.5 * spread**2) * years) / root
        d2 = d1 - root

        def below(x: Any) -> Any:
            return 0.5 * (1.0 + m.lax.erf(x / np.sqrt(2.0)))

        later = strike * m.np.exp(-rate * years)
        return price * below(d1) - later * below(d2), later * below(-d2) - price * below(-d1)

    return f


def _sieve(m: Library) -> Any:
    def f(limit: Any) -> Any:
        n = 100_000
        index = m.np.arange(n)

        def step(p: Any, prime: Any) -> Any:
            multiple = (index % p == 0) & (index > p)
            return m.np.where(prime[p], prime & ~multiple, prime)

        return m.np.sum(m.lax.fori_loop(2, 317, step, index >= limit))

    return f


def _bodies_inputs() -> tuple[Any, ...]:
    place, speed = rng().standard_normal((2, 200, 3))
    return place, speed, rng().random(200)


def _plane(n: int) -> Any:
    return lambda: (np.linspace(-2.2, 0.8, n), np.linspace(-1.4, 1.4, n))


PROGRAMS = [
    program("n-body", "simulation", _bodies, _bodies_inputs),
    program("k-means", "simulation", _k_means,
            lambda: (rng().standard_normal((5000, 4)), rng().standard_normal((16, 4)))),
    program("Mandelbrot set, complex", "simulation", _mandelbrot, _plane(200)),
    program("Mandelbrot set by points", "simulation", _escape, _plane(100)),
    program("Asian option", "simulation", _option, lambda: (np.uint32(7),)),
    program("Ising model", "simulation", _ising,
            lambda: (rng().choice([-1.0, 1.0], (128, 128)), rng().random((40, 128, 128)))),
    program("Lorenz by Runge-Kutta", "simulation", _lorenz, lambda: (np.array([1.0, 1.0, 1.0]),)),
    program("normal mixture", "simulation", _mixture,
            lambda: (rng().standard_normal(20_000), np.linspace(-1, 1, 8))),
    program("Black-Scholes", "simulation", _black_scholes, lambda: tuple(rng().random((3, 100_000)) + 0.5)),
    program("sieve", "simulation", _sieve, lambda: (np.int64(2),)),
]  # fmt: skip
