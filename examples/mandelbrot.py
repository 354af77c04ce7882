"""The Mandelbrot set: a while_loop per point, batched by vmap; each lane stops on its own.

    python examples/mandelbrot.py [--plot]
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax

CHARACTERS = " .:-=+*#%@"


def escape_time(c, limit):
    """Steps of z*z + c until |z| > 2, at most limit; and |z| there."""

    def inside(state):
        z, n = state
        return (z.real**2 + z.imag**2 <= 4) & (n < limit)

    z, n = lax.while_loop(inside, lambda s: (s[0] * s[0] + c, s[1] + 1), (0 * c, 0))
    return n, jnp.abs(z)


@functools.partial(lamina.jit, static_argnums=(0, 1))
def render(rows, columns, limit):
    """Escape times over the plane, and a smooth shade where points escape."""
    y = jnp.linspace(-1.25, 1.25, rows)
    x = jnp.linspace(-2.1, 0.7, columns)
    c = lax.complex(*jnp.meshgrid(x, y))
    each = lamina.vmap(lamina.vmap(lambda p: escape_time(p, limit)))
    steps, size = each(c)
    inside = steps == limit
    smooth = steps + 1 - jnp.log2(jnp.log(jnp.maximum(size, 2.0)))
    return steps, jnp.where(inside, 0, smooth)


@lamina.jit
def area(steps, limit):
    """The area of what did not escape, by counting."""
    cell = (2.5 / (steps.shape[0] - 1)) * (2.8 / (steps.shape[1] - 1))
    return jnp.sum(steps == limit) * cell


def main(rows=121, columns=141, limit=200):
    steps, shade = render(rows, columns, limit)
    middle = steps[rows // 2]
    return {"steps": steps, "total": jnp.sum(steps), "middle": middle, "shade": shade,
            "area": area(steps, limit)}  # fmt: skip


def draw(steps, limit):
    """A picture of characters."""
    shown = jnp.asarray(steps)[::6, ::3]
    shades = jnp.clip(jnp.log2(shown) / jnp.log2(limit) * 10, 0, 9).astype(int)
    return "\n".join("".join(CHARACTERS[i] for i in row) for row in shades.tolist())


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(draw(result["steps"], 200))
    print(f"{result['total']:,} steps; area about {result['area']:.3f} (1.507 in the limit)")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(result["shade"], cmap="twilight_shifted", origin="lower")
        plt.show()
