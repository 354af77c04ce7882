"""Pseudo-random numbers from explicit keys, bit for bit those of JAX (threefry2x32).

A key is used once: `key, sub = split(key)` makes new ones. Every function of a key, a shape and
parameters is pure and composes with jit, vmap and grad.
"""

# ruff: noqa: F401
from typing import NewType as _NewType

from lamina.core.array_class import Array as _Array
from lamina.random.counts import binomial, multinomial, poisson
from lamina.random.distributions import (
    cauchy,
    double_sided_maxwell,
    exponential,
    geometric,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rademacher,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)  # fmt: skip
from lamina.random.gamma_family import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)  # fmt: skip
from lamina.random.keys import (
    KeyArray,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)  # fmt: skip
from lamina.random.matrices import multivariate_normal, orthogonal
from lamina.random.permutations import categorical, choice, permutation
from lamina.random.sampling import bernoulli, bits, normal, randint, uniform

Key = _NewType("Key", _Array)
"""What annotations call an array of keys; at run time the identity."""
