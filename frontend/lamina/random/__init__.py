"""Pseudo-random numbers from explicit keys, bit for bit those of JAX (threefry2x32).

A key is used once: `key, sub = split(key)` makes new ones. Every function of a key, a shape and
parameters is pure and composes with jit, vmap and grad.
"""

# ruff: noqa: F401
from typing import NewType as _NewType

from lamina.core.array_class import Array as _Array
from lamina.random.counts import binomial as binomial
from lamina.random.counts import multinomial as multinomial
from lamina.random.counts import poisson as poisson
from lamina.random.distributions import cauchy as cauchy
from lamina.random.distributions import exponential as exponential
from lamina.random.distributions import gumbel as gumbel
from lamina.random.distributions import laplace as laplace
from lamina.random.distributions import logistic as logistic
from lamina.random.distributions import maxwell as maxwell
from lamina.random.distributions import rademacher as rademacher
from lamina.random.gamma_family import ball as ball
from lamina.random.gamma_family import beta as beta
from lamina.random.gamma_family import chisquare as chisquare
from lamina.random.gamma_family import dirichlet as dirichlet
from lamina.random.gamma_family import f as f
from lamina.random.gamma_family import gamma as gamma
from lamina.random.gamma_family import generalized_normal as generalized_normal
from lamina.random.gamma_family import loggamma as loggamma
from lamina.random.gamma_family import t as t
from lamina.random.keys import KeyArray as KeyArray
from lamina.random.keys import PRNGKey as PRNGKey
from lamina.random.keys import clone as clone
from lamina.random.keys import fold_in as fold_in
from lamina.random.keys import key as key
from lamina.random.keys import key_data as key_data
from lamina.random.keys import key_dtype as key_dtype
from lamina.random.keys import key_impl as key_impl
from lamina.random.keys import split as split
from lamina.random.keys import wrap_key_data as wrap_key_data
from lamina.random.matrices import multivariate_normal as multivariate_normal
from lamina.random.matrices import orthogonal as orthogonal
from lamina.random.parametric import double_sided_maxwell as double_sided_maxwell
from lamina.random.parametric import geometric as geometric
from lamina.random.parametric import lognormal as lognormal
from lamina.random.parametric import pareto as pareto
from lamina.random.parametric import rayleigh as rayleigh
from lamina.random.parametric import triangular as triangular
from lamina.random.parametric import truncated_normal as truncated_normal
from lamina.random.parametric import wald as wald
from lamina.random.parametric import weibull_min as weibull_min
from lamina.random.permutations import categorical as categorical
from lamina.random.permutations import choice as choice
from lamina.random.permutations import permutation as permutation
from lamina.random.sampling import bernoulli as bernoulli
from lamina.random.sampling import bits as bits
from lamina.random.sampling import normal as normal
from lamina.random.sampling import randint as randint
from lamina.random.sampling import uniform as uniform

Key = _NewType("Key", _Array)
"""What annotations call an array of keys; at run time the identity."""
