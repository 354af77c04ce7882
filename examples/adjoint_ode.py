"""An adaptive Dormand-Prince solver in a while_loop, differentiated by the adjoint equation.

    python examples/adjoint_ode.py

A while_loop has no reverse derivative; custom_vjp gives the solver one: the gradient is itself the
solution of an ODE, integrated backwards together with the state (Pontryagin; Chen et al., 2018).
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.flatten_util import ravel_pytree

# The tableau of Dormand and Prince (1980), order 5 with an error estimate of order 4.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
LAST = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def combine(weights, slopes):
    return sum(w * k for w, k in zip(weights, slopes) if w)


def integrate(f, y, t0, t1, tolerance):
    """y(t1) where y' = f(y, t) and y(t0) is a vector; and the steps that were tried."""

    def unfinished(state):
        _, t, _, _ = state
        return (t1 - t) * jnp.sign(t1 - t0) > 1e-10

    def step(state):
        y, t, h, tried = state
        h = jnp.where(jnp.abs(h) > jnp.abs(t1 - t), t1 - t, h)
        slopes = [f(y, t)]
        for node, weights in zip(NODES, STAGES):
            slopes.append(f(y + h * combine(weights, slopes), t + node * h))
        new = y + h * combine(LAST, slopes)
        slopes.append(f(new, t + h))
        wrong = h * combine(ERROR, slopes) / (tolerance * (1 + jnp.maximum(abs(y), abs(new))))
        wrong = jnp.sqrt(jnp.mean(wrong**2))
        good = wrong <= 1
        factor = jnp.clip(0.9 * (wrong + 1e-12) ** -0.2, 0.2, 5.0)
        return jnp.where(good, new, y), jnp.where(good, t + h, t), h * factor, tried + 1

    y, _, _, tried = lax.while_loop(unfinished, step, (y, t0, (t1 - t0) / 100, 0))
    return y, tried


@functools.partial(lamina.custom_vjp, nondiff_argnums=(0, 4))
def odeint(f, y, params, t1, tolerance=1e-8):
    """y(t1) where y' = f(y, t, params), from time 0."""
    return integrate(lambda y, t: f(y, t, params), y, 0.0 * t1, t1, tolerance)[0]


def odeint_fwd(f, y, params, t1, tolerance):
    end = odeint(f, y, params, t1, tolerance)
    return end, (end, params, t1)


def odeint_bwd(f, tolerance, kept, slope):
    end, params, t1 = kept
    zeros = lamina.tree.map(jnp.zeros_like, params)
    flat, unflatten = ravel_pytree((end, slope, zeros))

    def backwards(state, t):
        y, adjoint, _ = unflatten(state)
        speed, pull = lamina.vjp(lambda y, p: f(y, t, p), y, params)
        by_y, by_params = pull(adjoint)
        return ravel_pytree((speed, -by_y, lamina.tree.map(jnp.negative, by_params)))[0]

    start, _ = integrate(backwards, flat, t1, 0.0 * t1, tolerance)
    _, by_start, by_params = unflatten(start)
    return by_start, by_params, jnp.vdot(slope, f(end, t1, params))


odeint.defvjp(odeint_fwd, odeint_bwd)


def van_der_pol(y, t, params):
    """An oscillator with a damping that changes sign, pushed by a small force."""
    x, v = y
    push = params["force"] * jnp.cos(t)
    return jnp.stack([v, params["damping"] * (1 - x * x) * v - x + push])


@lamina.jit
def run(y, params, t1):
    """The end, the gradient of a function of it, and that gradient by differences."""

    def goal(y, params, t1):
        return jnp.sum(odeint(van_der_pol, y, params, t1) ** 2)

    value, slopes = lamina.value_and_grad(goal, argnums=(0, 1, 2))(y, params, t1)
    flat, unflatten = ravel_pytree((y, params, t1))
    nudges = 1e-5 * jnp.eye(len(flat))
    differences = lamina.vmap(
        lambda d: (goal(*unflatten(flat + d)) - goal(*unflatten(flat - d))) / 2e-5
    )(nudges)
    slope = ravel_pytree(slopes)[0]
    end, tried = integrate(lambda y, t: van_der_pol(y, t, params), y, 0.0 * t1, t1, 1e-8)
    return {"end": end, "steps": tried, "value": value, "gradient": slope,
            "gap": jnp.max(jnp.abs(slope - differences)) / jnp.max(jnp.abs(slope))}  # fmt: skip


def main(t1=6.0):
    with lamina.enable_x64(True):
        params = {"damping": jnp.array(1.5), "force": jnp.array(0.3)}
        return run(jnp.array([1.0, 0.5]), params, t1)


if __name__ == "__main__":
    result = lamina.device_get(main())
    x, v = result["end"]
    print(f"the oscillator ends at {x:.6f} with speed {v:.6f}, after {result['steps']} steps")
    names = ("x", "v", "damping", "force", "time")
    for name, slope in zip(names, result["gradient"]):
        print(f"gradient by {name:8} {slope:12.7f}")
    print(f"relative gap to finite differences {result['gap']:.1e}")
