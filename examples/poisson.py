"""Solves Poisson's equation on a torus by FFT, and recovers a source from sparse sensors.

    python examples/poisson.py [--plot]

Spectral: -laplace(u) = f becomes a division by the squared wave number. The solver is linear, so the
gradient of a misfit goes back through the same transforms.
"""

import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random


def solve(source):
    """u with -laplace(u) = source and mean 0 on the square [0, 2 pi), periodic."""
    n = source.shape[0]
    ky = jnp.fft.fftfreq(n, 1 / n)[:, None]
    kx = jnp.fft.rfftfreq(n, 1 / n)[None, :]
    squared = kx**2 + ky**2
    waves = jnp.fft.rfft2(source)
    return jnp.fft.irfft2(jnp.where(squared > 0, waves / jnp.maximum(squared, 1), 0), (n, n))


def grid(n):
    return jnp.meshgrid(*[jnp.linspace(0, 2 * jnp.pi, n, endpoint=False)] * 2)


def blob(x, y, params):
    """A positive and a negative charge of some width: a source with mean near 0."""

    def charge(cx, cy):
        return jnp.exp((jnp.cos(x - cx) + jnp.cos(y - cy) - 2) / 0.1)

    x1, y1, x2, y2 = params
    return charge(x1, y1) - charge(x2, y2)


@lamina.jit
def locate(seen, rows, columns, start):
    """Fits the places of the two charges to the potential at the sensors; also the misfit."""
    x, y = grid(64)

    def misfit(params):
        u = solve(blob(x, y, params))
        return jnp.mean((u[rows, columns] - seen) ** 2)

    def step(carry, _):
        params, speed = carry
        value, slope = lamina.value_and_grad(misfit)(params)
        speed = 0.9 * speed - 5.0 * slope
        return (params + speed, speed), value

    (params, _), misfits = lax.scan(step, (start, jnp.zeros_like(start)), None, length=200)
    return params, misfits


@lamina.jit
def check():
    """The largest error on a problem whose solution is known."""
    x, y = grid(64)
    exact = jnp.sin(3 * x) * jnp.cos(2 * y)
    return jnp.max(jnp.abs(solve(13 * exact) - exact))


def main(sensors=40, seed=0):
    true = jnp.array([2.0, 2.5, 4.5, 3.5])
    rows, columns = random.randint(random.key(seed), (2, sensors), 0, 64)
    x, y = grid(64)
    u = lamina.jit(lambda p: solve(blob(x, y, p)))(true)
    found, misfits = locate(u[rows, columns], rows, columns, jnp.array([1.5, 3.0, 5.0, 3.0]))
    return {"solver_error": check(), "potential": u, "found": found, "misfits": misfits,
            "distance": jnp.max(jnp.abs(found - true))}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"solver's error on a known solution {result['solver_error']:.1e}")
    print(f"charges found at {result['found'].round(3)}, off by {result['distance']:.1e}")
    print(f"misfit {result['misfits'][0]:.1e} -> {result['misfits'][-1]:.1e}")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(result["potential"], origin="lower")
        plt.show()
