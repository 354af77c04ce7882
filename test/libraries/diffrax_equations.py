"""diffrax: ordinary, stiff, stochastic and controlled equations, three adjoints, an event, a batch."""

import json

import diffrax
import jax
import jax.numpy as jnp
import optimistix

RATES = (1.1, 0.4, 0.4, 0.1)
Y = jnp.array([10.0, 5.0])
EXACT = diffrax.PIDController(1e-5, 1e-7)


def _hunting(t, y, rates):
    a, b, c, d = rates
    return jnp.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


def _reaction(t, y, args):
    slow, fast, square = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([fast - slow, slow - fast - square, square])


hunting = diffrax.ODETerm(_hunting)


def at_times(solver):
    times = diffrax.SaveAt(ts=jnp.linspace(0, 5, 4))
    found = diffrax.diffeqsolve(
        hunting, solver, 0, 5, 0.01, Y, args=RATES, saveat=times, stepsize_controller=EXACT
    )
    return found.ys.ravel().tolist()


def total(rates, adjoint):
    return diffrax.diffeqsolve(
        hunting, diffrax.Tsit5(), 0, 2, 0.05, Y, args=rates, adjoint=adjoint, stepsize_controller=EXACT
    ).ys.sum()


def reaction():
    y = jnp.array([1.0, 0.0, 0.0])
    loose = diffrax.PIDController(1e-4, 1e-7)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(_reaction), diffrax.Kvaerno5(), 0, 1, 1e-4, y, stepsize_controller=loose
    ).ys[0, ::2].tolist()


def noisy(solver):
    path = diffrax.VirtualBrownianTree(0, 1, 1e-3, (), jax.random.key(0))
    decay = diffrax.ODETerm(lambda t, y, args: -y)
    terms = diffrax.MultiTerm(decay, diffrax.ControlTerm(lambda t, y, args: 0.1 * y, path))
    return float(diffrax.diffeqsolve(terms, solver, 0, 1, 0.05, jnp.array(1.0)).ys[0])


def lands():
    ground = diffrax.Event(lambda t, y, args, **rest: y[0], optimistix.Newton(1e-5, 1e-5))
    falls = diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.8]))
    return float(diffrax.diffeqsolve(
        falls, diffrax.Tsit5(), 0, 10, 0.1, jnp.array([10.0, 0.0]), event=ground, stepsize_controller=EXACT
    ).ts[0])  # fmt: skip


def controlled():
    ts = jnp.linspace(0, 1, 10)
    path = diffrax.LinearInterpolation(ts, jnp.sin(3 * ts)[:, None])
    term = diffrax.ControlTerm(lambda t, y, args: jnp.eye(2, 1) * y[0] + 0.1, path).to_ode()
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0, 1, 0.05, jnp.ones(2)).ys.ravel().tolist()


def of_many():
    many = 1 + 5 * jnp.abs(jax.random.normal(jax.random.key(0), (6, 2)))
    last = jax.vmap(
        lambda y: diffrax.diffeqsolve(
            hunting, diffrax.Tsit5(), 0, 3, 0.05, y, args=RATES, stepsize_controller=EXACT
        ).ys[0]
    )
    return last(many).ravel().tolist()


print(json.dumps({
    "tsit5": at_times(diffrax.Tsit5()), "dopri5": at_times(diffrax.Dopri5()), "stiff": reaction(),
    "checkpoints": list(map(float, jax.grad(total)(RATES, diffrax.RecursiveCheckpointAdjoint()))),
    "backwards": list(map(float, jax.grad(total)(RATES, diffrax.BacksolveAdjoint()))),
    "forwards": list(map(float, jax.jacfwd(total)(RATES, diffrax.ForwardMode()))),
    "euler": noisy(diffrax.Euler()), "milstein": noisy(diffrax.ItoMilstein()),
    "lands": lands(), "controlled": controlled(), "many": of_many(),
}))  # fmt: skip
