"""Gamma and Poisson numbers without loops: method="approximate" of gamma, poisson and their like.

A gamma number is half a chi-square one, whose quantiles are a polynomial of normal ones: Goldstein,
"Algorithm 451: Chi-square quantiles" (1973), whose leading constant is 1 here, as the limit of many
degrees of freedom asks for. That is exact to 0.05 % from shape 4 on, so it is drawn for shape a + 4
and brought down by powers of uniform numbers: Stuart, "Gamma-distributed products of independent
random variables" (1962).

A Poisson number is found from a normal one by inverting the distribution function: of a small mean
its first 20 terms, of a larger one the normal approximation of Peizer and Pratt (1968), whose total
variation distance is below 1e-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy.promotion import Array
from lamina.random.distributions import random_exponential
from lamina.random.sampling import at_least_f32, random_normal, split_words

# ---- gamma -------------------------------------------------------------------------------------
# Of x^k nu^(-k/2) for k = 0..6, by powers of 1/nu.
_CHI_SQUARE_QUANTILE = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)
_BOOSTS = 4


def random_loggamma(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any) -> Array:
    """Logarithms of gamma numbers, within a program; a has the sample's shape."""
    return lax.convert_element_type(_loggamma(words, shape, a), dtype)


def random_gamma(words: Any, shape: tuple[int, ...], dtype: np.dtype, a: Any) -> Array:
    """Gamma numbers, as random_loggamma."""
    return lax.convert_element_type(lax.exp(_loggamma(words, shape, a)), dtype)


def _loggamma(words: Any, shape: tuple[int, ...], a: Any) -> Array:
    for_base, for_boosts = split_words(words, 2)
    work = at_least_f32(get_aval(a).dtype)
    a = lax.convert_element_type(a, work)
    base = _log_of_half_chi_square(for_base, a + _BOOSTS)
    drawn = random_exponential(for_boosts, (_BOOSTS, *shape), work)  # -log of uniform numbers
    steps = np.arange(_BOOSTS).astype(work).reshape(_BOOSTS, *(1 for _ in shape))
    return base - jnp.sum(drawn / (a[None, ...] + steps), axis=0)


def _log_of_half_chi_square(words: Any, a: Any) -> Array:
    """log of chi-square numbers of 2 a degrees of freedom, halved: for a of 4 or more."""
    dtype = get_aval(a).dtype
    freedom = 2 * a
    normal = random_normal(words, np.shape(a), dtype)
    inverse = 1 / freedom
    rows = [lax.polynomial(inverse, row) for row in _CHI_SQUARE_QUANTILE]
    root = lax.polynomial(normal * lax.rsqrt(freedom), rows)
    root = jnp.maximum(root, dtypes.finfo(dtype).tiny)
    return jnp.log(a) + 3 * jnp.log(root)


# ---- poisson -----------------------------------------------------------------------------------
_SMALL_MEAN = 7.0
_TERMS = 20
_CORRECTION = 0.02


def random_poisson(words: Any, shape: tuple[int, ...], dtype: np.dtype, mean: Any) -> Array:
    """Poisson numbers, within a program, as integers; the mean's dtype is computed in."""
    z = random_normal(words, shape, get_aval(mean).dtype)
    few = _by_inversion(0.5 * lax.erfc(z * -(0.5**0.5)), mean)
    many = _by_normal_approximation(z, mean)
    return lax.convert_element_type(jnp.where(mean < _SMALL_MEAN, few, many), dtype)


def _by_inversion(u: Any, mean: Any) -> Array:
    mass = jnp.exp(-mean)
    below = mass
    count = (below < u).astype(u.dtype)
    for k in range(1, _TERMS - 1):
        mass = mass * (mean / k)
        below = below + mass
        count = count + (below < u).astype(u.dtype)
    return count


def _by_normal_approximation(z: Any, mean: Any) -> Array:
    """The smallest integer whose distribution function is not below that of z."""
    root = jnp.sqrt(mean)
    guess = mean + root * z - 2 / 3 + z * z / 6 + z * (1 - z * z) / (72 * root)
    nearest = jnp.ceil(guess + 0.6)  # one too high at most, or one too low

    def reached(count: Any) -> Array:
        normal = _peizer_pratt(jnp.maximum(count, 0.0), mean)
        return ((count >= 0) & (normal >= z)).astype(z.dtype)

    return jnp.maximum(nearest + 1 - reached(nearest) - reached(nearest - 1), 0.0)


def _peizer_pratt(count: Any, mean: Any) -> Array:
    """The normal number with the distribution function that Poisson numbers have at a count."""
    spread = jnp.sqrt((1 + _skewness((count + 0.5) / mean)) / mean)
    return (count - mean + 2 / 3 + _CORRECTION / (count + 1)) * spread


def _skewness(y: Any) -> Array:
    """(1 - y^2 + 2 y log y) / (1 - y)^2; near 1 by its series."""
    d = y - 1
    near = jnp.abs(d) < 0.25
    series = [0.0, *(2 * (-1) ** k / ((k + 1) * (k + 2)) for k in range(1, 10))]
    y, apart = jnp.where(near, 2.0, y), jnp.where(near, 1.0, d)
    direct = (1 - y * y + 2 * y * jnp.log(y)) / (apart * apart)
    return jnp.where(near, lax.polynomial(d, series), direct)
