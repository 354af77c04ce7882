"""The generators that random keys are for, by name, and threefry's rounds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lamina.lax.random_bits import threefry2x32_p as threefry2x32_p
from lamina.lax.random_bits import threefry_2x32 as threefry_2x32

__all__ = ["random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
           "threefry_prng_impl", "unsafe_rbg_prng_impl"]  # fmt: skip

threefry_prng_impl = "threefry2x32"
rbg_prng_impl = "rbg"
unsafe_rbg_prng_impl = "unsafe_rbg"


def seed_with_impl(impl: str, seed: Any) -> Any:
    """A key of a generator for a seed.

    impl  the generator's name, such as "threefry2x32".
    seed  an integer.

    >>> lamina.extend.random.seed_with_impl("threefry2x32", 0).shape
    ()
    """
    from lamina.random import key

    return key(seed, impl=impl)


def random_seed(seeds: Any, impl: str) -> Any:
    """Keys of a generator for an array of seeds.

    seeds  integers, of any shape.
    impl   the generator's name, such as "threefry2x32".

    >>> lamina.extend.random.random_seed(jnp.arange(3), "threefry2x32").shape
    (3,)
    """
    from lamina import numpy as jnp
    from lamina import vmap

    fun: Callable[..., Any] = functools.partial(seed_with_impl, impl)
    for _ in range(jnp.ndim(seeds)):
        fun = vmap(fun)
    return fun(seeds)
