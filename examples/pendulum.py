"""Swings a pendulum up: the torques of a weak motor, found by gradients through the physics.

    python examples/pendulum.py [--plot]

The motor cannot lift the pendulum at once, so it has to swing. Adam moves all torques of the plan
down the gradient of what the simulated swing costs; the plan is then tried under small pushes.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random

DT, STRONGEST = 0.05, 3.0


def physics(state, torque):
    """One semi-implicit step; angle 0 is upright, and gravity pulls with up to 5."""
    angle, speed = state
    speed = speed + DT * (5 * jnp.sin(angle) + torque - 0.1 * speed)
    return angle + DT * speed, speed


def swing(plan, angle=jnp.pi, speed=0.0):
    """Angles, speeds and torques of one run; the motor's torque is bounded."""
    torques = STRONGEST * jnp.tanh(plan)

    def step(state, torque):
        state = physics(state, torque)
        return state, state

    start = jnp.asarray(angle, jnp.float32), jnp.asarray(speed, jnp.float32)
    angles, speeds = lax.scan(step, start, torques)[1]
    return angles, speeds, torques


def cost(plan):
    """How far from upright and how fast, late times counting most, and a little for torque."""
    angles, speeds, torques = swing(plan)
    late = jnp.linspace(0, 1, len(plan)) ** 4
    return jnp.mean(late * (4 * (1 - jnp.cos(angles)) + 0.3 * speeds**2) + 0.003 * torques**2)


@functools.partial(lamina.jit, static_argnums=(0, 1))
def find_plan(steps, rounds):
    """Adam from a gentle push to one side: the plan, and the cost of each round."""

    def improve(state, t):
        p, m, v = state
        value, g = lamina.value_and_grad(cost)(p)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        scale = 0.03 * jnp.sqrt(1 - 0.99 ** (t + 1.0)) / (1 - 0.9 ** (t + 1.0))
        return (p - scale * m / (jnp.sqrt(v) + 1e-8), m, v), value

    start = jnp.full(steps, 0.1)
    zeros = jnp.zeros(steps)
    (plan, _, _), costs = lax.scan(improve, (start, zeros, zeros), jnp.arange(rounds))
    return plan, costs


@functools.partial(lamina.jit, static_argnums=2)
def try_plan(plan, key, tries):
    """The swing as planned, and the mean height at the end after disturbed starts."""
    noise = 0.02 * random.normal(key, (2, tries))
    angles, _, _ = lamina.vmap(lambda a, s: swing(plan, jnp.pi + a, s))(*noise)
    return swing(plan), jnp.mean(jnp.cos(angles[:, -1]))


def main(steps=80, rounds=400, tries=32, seed=0):
    plan, costs = find_plan(steps, rounds)
    (angles, speeds, torques), disturbed = try_plan(plan, random.key(seed), tries)
    return {"costs": costs, "angles": angles, "speeds": speeds, "torques": torques,
            "height": jnp.cos(angles[-1]), "disturbed": disturbed}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"cost {result['costs'][0]:.3f} -> {result['costs'][-1]:.3f}")
    heights = jnp.cos(result["angles"])
    print("height of the tip, each half second: "
          + " ".join(f"{h:.2f}" for h in heights[::10].tolist()))  # fmt: skip
    print(f"at the end {result['height']:.4f}, after disturbed starts {result['disturbed']:.3f}")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(heights, label="height")
        plt.plot(result["torques"], label="torque")
        plt.legend()
        plt.show()
