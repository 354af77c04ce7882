"""Step sizes of optimisers as functions of the number of the step, which `optimizers` shows to users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import numpy as jnp

Schedule = Callable[[Any], Any]


def constant(step_size: Any) -> Schedule:
    """The schedule of the same step size always.

    step_size  a number.

    >>> lamina.example_libraries.optimizers.constant(0.1)(100)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """The schedule step_size * decay_rate ** (i / decay_steps) of step i.

    step_size    where it begins.
    decay_steps  after so many steps
    decay_rate   it is multiplied by this.

    >>> lamina.example_libraries.optimizers.exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """The schedule step_size / (1 + decay_rate * i / decay_steps) of step i.

    step_size    where it begins.
    decay_steps  steps are counted in such many,
    decay_rate   and multiplied by this.
    staircase    rounds i / decay_steps down.

    >>> print(lamina.example_libraries.optimizers.inverse_time_decay(1.0, 10, 0.5)(20))
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """The schedule from one step size to another in a number of steps, and no further.

    step_size        where it begins.
    decay_steps      the number of steps.
    final_step_size  where it ends.
    power            of what is left of the way; 1: a line.

    >>> print(lamina.example_libraries.optimizers.polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The schedule values[k] of step i, where i is greater than k of the boundaries.

    boundaries  a vector of steps, rising.
    values      a vector with one entry more.

    Raises ValueError where these are no such vectors.

    >>> optimizers = lamina.example_libraries.optimizers
    >>> print(optimizers.piecewise_constant([10, 20], [1.0, 0.1, 0.01])(15))
    0.1
    """
    edges, levels = jnp.array(boundaries), jnp.array(values)
    if not edges.ndim == levels.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != levels.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: levels[jnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule: a function as it is, a number as constant(number).

    scalar_or_schedule  one of these; TypeError for an array.

    >>> lamina.example_libraries.optimizers.make_schedule(0.1)(100)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))
