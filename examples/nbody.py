"""Gravity among stars: a symplectic integrator whose energy and momentum are checked, and how the
end depends on the start, by the chain rule.

    python examples/nbody.py

Forces are the gradient of the potential energy; velocity Verlet keeps the energy's error bounded.
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, random

SOFTENING = 0.1


def potential(positions, masses):
    """Gravitational energy of all pairs, each softened at short distance."""
    gaps = positions[:, None] - positions[None, :]
    distance = jnp.sqrt(jnp.sum(gaps**2, axis=-1) + SOFTENING**2)
    pairs = jnp.triu(masses[:, None] * masses[None, :], k=1)
    return -jnp.sum(pairs / distance)


def energy(state, masses):
    """Kinetic and potential energy together."""
    positions, speeds = state
    return jnp.sum(masses[:, None] * speeds**2) / 2 + potential(positions, masses)


def acceleration(positions, masses):
    return -lamina.grad(potential)(positions, masses) / masses[:, None]


def simulate(state, masses, dt, steps):
    """The state after some steps of velocity Verlet, and the energy along the way."""

    def step(carry, _):
        positions, speeds, pull = carry
        speeds = speeds + dt / 2 * pull
        positions = positions + dt * speeds
        pull = acceleration(positions, masses)
        speeds = speeds + dt / 2 * pull
        return (positions, speeds, pull), energy((positions, speeds), masses)

    positions, speeds = state
    carry = (positions, speeds, acceleration(positions, masses))
    (positions, speeds, _), energies = lax.scan(step, carry, None, length=steps)
    return (positions, speeds), energies


def random_cluster(key, count):
    """Stars in a ball, at rest as a whole."""
    k1, k2, k3 = random.split(key, 3)
    masses = random.uniform(k1, (count,), minval=0.5, maxval=1.5) / count
    positions = random.normal(k2, (count, 3))
    speeds = 0.3 * random.normal(k3, (count, 3))
    drift = jnp.sum(masses[:, None] * speeds, axis=0) / jnp.sum(masses)
    return (positions, speeds - drift), masses


@functools.partial(lamina.jit, static_argnums=(1, 2))
def run(key, count, steps, dt):
    """Where the cluster goes, what is conserved, and the effect of pushing one star."""
    state, masses = random_cluster(key, count)
    (positions, speeds), energies = simulate(state, masses, dt, steps)

    def pushed(push):
        where, moving = state
        after, _ = simulate((where.at[0, 0].add(push), moving), masses, dt, steps)
        return after[0]

    _, effect = lamina.jvp(pushed, (0.0,), (1.0,))
    before = energy(state, masses)
    return {
        "energy": before,
        "drift": jnp.max(jnp.abs(energies - before)) / jnp.abs(before),
        "momentum": jnp.sum(masses[:, None] * speeds, axis=0),
        "radius": jnp.sqrt(jnp.mean(jnp.sum(positions**2, axis=1))),
        "positions": positions,
        "effect": jnp.sqrt(jnp.sum(effect**2, axis=1)),
    }


def main(count=32, steps=300, dt=0.01, seed=0):
    with lamina.enable_x64(True):
        return run(random.key(seed), count, steps, dt)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"energy {result['energy']:.4f}, relative drift at most {result['drift']:.1e}")
    print(f"momentum at the end {jnp.max(jnp.abs(result['momentum'])):.1e}")
    own, others = result["effect"][0], jnp.max(result["effect"][1:])
    print(f"a star moved by 1 ends {own:.2f} away, and moves others by up to {others:.2f}")
