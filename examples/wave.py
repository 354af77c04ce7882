"""Waves on a membrane by a five-point stencil; then the speed of sound, found by listening.

    python examples/wave.py [--plot]

Leapfrog in time, reflecting walls. The recording at two microphones is a function of the speed of
sound: jvp tells how it would change, and Gauss-Newton finds the speed from a recording.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax

N = 48


def laplacian(u):
    """The five-point stencil; beyond the wall the field is as at the wall."""
    u = jnp.pad(u, 1, mode="edge")
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return around - 4 * u[1:-1, 1:-1]


def drop():
    """A round bump off the middle."""
    y, x = jnp.mgrid[:N, :N] / N
    return jnp.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.004)


def simulate(speed, steps, dt):
    """The field at the end, the recording of two microphones, and the energy along the way."""
    factor = (speed * dt * N) ** 2

    def step(state, _):
        before, now = state
        after = 2 * now - before + factor * laplacian(now)
        motion = jnp.sum((after - now) ** 2)
        tension = -factor * jnp.sum(after * laplacian(now))
        return (now, after), (after[N // 2, N // 2], after[5, N - 5], (motion + tension) / dt**2)

    start = drop()
    first = start + factor / 2 * laplacian(start)
    (_, field), (middle, corner, energy) = lax.scan(step, (start, first), None, length=steps)
    return field, jnp.stack([middle, corner]), energy


@functools.partial(lamina.jit, static_argnums=(2, 3))
def find_speed(recording, guess, steps, dt):
    """Gauss-Newton in one unknown, 8 rounds: the guesses."""

    def record(speed):
        return simulate(speed, steps, dt)[1]

    def improve(speed, _):
        heard, slope = lamina.jvp(record, (speed,), (jnp.ones_like(speed),))
        speed = speed + jnp.sum(slope * (recording - heard)) / jnp.sum(slope**2)
        return speed, speed

    return lax.scan(improve, guess, None, length=8)[1]


def main(speed=1.0, steps=150, dt=0.01):
    field, recording, energy = lamina.jit(simulate, static_argnums=(1, 2))(speed, steps, dt)
    guesses = find_speed(recording, jnp.float32(0.97), steps, dt)
    return {"field": field, "recording": recording, "energy": energy, "guesses": guesses}


if __name__ == "__main__":
    result = lamina.device_get(main())
    energy = result["energy"]
    change = (energy.max() - energy.min()) / energy.mean()
    print(f"energy {energy.mean():.2f}, changed by at most {change:.1e}")
    print(f"speed of sound from the recording: {result['guesses'].round(5)} (true 1)")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(result["field"], cmap="RdBu")
        plt.show()
