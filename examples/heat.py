"""Where was it hot? The first temperatures of a plate, recovered from late ones, with a gradient
whose memory grows with the square root of the number of steps.

    python examples/heat.py [--plot]

Reverse mode keeps every state of a scan. A scan of scans whose inner one is checkpointed keeps only
one state a chunk, and computes the rest again.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax

N = 32


def conductivity():
    """A plate whose right half conducts heat better."""
    x = jnp.arange(N) / N
    return jnp.broadcast_to(jnp.where(x < 0.5, 0.5, 1.0), (N, N))


def step(u):
    """One explicit step of du/dt = div(k grad u) on a torus, in flux form: heat is conserved."""
    k = conductivity()
    for axis in (0, 1):
        between = (k + jnp.roll(k, -1, axis)) / 2
        flux = between * (jnp.roll(u, -1, axis) - u)
        u = u + 0.2 * (flux - jnp.roll(flux, 1, axis))
    return u


def diffuse(u, chunks, length):
    """The temperatures after chunks * length steps."""

    @lamina.checkpoint
    def chunk(u, _):
        return lax.scan(lambda v, _: (step(v), None), u, None, length=length)[0], None

    return lax.scan(chunk, u, None, length=chunks)[0]


def spots():
    """Two warm spots, on either side."""
    y, x = jnp.mgrid[:N, :N] / N
    spot = lambda cx, cy: jnp.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.01)  # noqa: E731
    return spot(0.25, 0.4) + 0.7 * spot(0.7, 0.6)


@functools.partial(lamina.jit, static_argnums=(1, 2, 3))
def recover(late, chunks, length, rounds):
    """Conjugate gradients on the misfit with a small penalty: first temperatures, misfits."""

    def misfit(u):
        gap = diffuse(u, chunks, length) - late
        return jnp.sum(gap**2) / 2 + 1e-4 * jnp.sum(u**2) / 2

    slope = lamina.grad(misfit)
    zero = jnp.zeros((N, N))
    start = slope(zero)

    def improve(state, _):
        u, r, d = state  # where we are, minus the slope there, where to go
        curved = slope(d) - start  # the slope is linear: this is the hessian times d
        far = jnp.vdot(r, r) / jnp.vdot(d, curved)
        u, new = u + far * d, r - far * curved
        return (u, new, new + jnp.vdot(new, new) / jnp.vdot(r, r) * d), misfit(u)

    (u, _, _), misfits = lax.scan(improve, (zero, -start, -start), None, length=rounds)
    return u, misfits


@lamina.jit
def compare(found, late, early):
    """Correlation with the truth of what was found, and of the late temperatures."""
    flat = jnp.stack([found.reshape(-1), late.reshape(-1), early.reshape(-1)])
    return jnp.corrcoef(flat)[2, :2]


def main(chunks=8, length=8, rounds=25):
    early = lamina.jit(spots)()
    late = lamina.jit(diffuse, static_argnums=(1, 2))(early, chunks, length)
    found, misfits = recover(late, chunks, length, rounds)
    return {"late": late, "found": found, "misfits": misfits,
            "heat": jnp.stack([early.sum(), late.sum(), found.sum()]),
            "correlation": compare(found, late, early)}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    early, late, found = result["heat"]
    print(f"heat at first {early:.3f}, late {late:.3f}, in what was found {found:.3f}")
    print(f"misfit {result['misfits'][0]:.2e} -> {result['misfits'][-1]:.2e}")
    found, late = result["correlation"]
    print(f"correlation with the truth: late {late:.3f}, found {found:.3f}")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(jnp.concatenate([spots(), result["late"], result["found"]], axis=1))
        plt.show()
