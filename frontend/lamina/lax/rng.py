"""Random bits and numbers by the target's generators: rng_bit_generator, rng_uniform."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, NOT_LINEAR, Primitive, ShapedArray, dtypes
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front, batch_size
from lamina.lax.checks import canonical_shape, check_same_dtypes


class RandomAlgorithm(enum.IntEnum):
    """Which generator; by default the target's, here Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


# ---- user functions ----------------------------------------------------------------------------
def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm | str = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """The next key and random unsigned integers: StableHLO's rng_bit_generator. lamina.random does
    more.

    key           uint32[4], or uint64[2].
    shape         of the random numbers.
    dtype         of these: uint8, uint16, uint32 or uint64.
    algorithm     a lax.RandomAlgorithm: RNG_DEFAULT and RNG_PHILOX are Philox, RNG_THREE_FRY is
                  Threefry.
    out_sharding  how the numbers lie on devices, a sharding or None.

    Raises TypeError for other keys and dtypes, ValueError for an unknown algorithm.

    >>> key, words = lax.rng_bit_generator(jnp.zeros(4, 'uint32'), (3,))
    >>> key, words.shape, words.dtype
    (Array([0, 0, 1, 0], dtype=uint32), (3,), dtype('uint32'))
    """
    if isinstance(algorithm, str):
        name = f"RNG_{algorithm.upper()}"
        if name not in RandomAlgorithm.__members__:
            known = ", ".join(repr(each[4:].lower()) for each in RandomAlgorithm.__members__)
            raise ValueError(f"rng_bit_generator: algorithm must be one of {known}, got {algorithm!r}")
        algorithm = RandomAlgorithm[name]
    to = dtypes.canonicalize(dtype)
    out = rng_bit_generator_p.bind(
        key, shape=canonical_shape(shape), dtype=to, algorithm=RandomAlgorithm(algorithm)
    )
    return out[0], lax.under(out[1], out_sharding, "rng_bit_generator")


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Numbers uniform in [a, b), of a seed that the program has: the same at each call.
    lamina.random has keys of your own.

    a, b   scalars of one dtype, floats or integers.
    shape  of the result.

    Raises ValueError where a or b is no scalar.

    >>> numbers = lax.rng_uniform(0.0, 1.0, (1000,))
    >>> bool(((numbers >= 0) & (numbers < 1)).all())
    True
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))


# ---- rules -------------------------------------------------------------------------------------
def _bits_abstract_eval(
    key: ShapedArray, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: RandomAlgorithm
) -> list[ShapedArray]:
    if (key.shape, key.dtype.name) not in (((4,), "uint32"), ((2,), "uint64")):
        raise TypeError(
            "[rng_bit_generator] key must be uint32[4] or uint64[2], got " + key.str_short()
        )
    if dtype.kind != "u" or dtype.itemsize > 8:
        raise TypeError(f"[rng_bit_generator] dtype must be unsigned, got {dtype.name}")
    return [key, ShapedArray(shape, dtype)]


def _bits_lowering(
    ctx: Any, key: Any, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: RandomAlgorithm
) -> list[Any]:
    key_aval = ctx.avals_in[0]
    words = key_aval.dtype == np.uint32
    if words:
        # Two words make a number of the state, the lower first.
        key = hlo.bitcast_convert(hlo.reshape(key, (2, 2)), (2,), np.dtype(np.uint64))
    # Narrow numbers are the lower bits of words.
    drawn = dtype if dtype.itemsize >= 4 else np.dtype(np.uint32)
    key, bits = hlo.rng_bit_generator(key, shape, drawn, _NAMES[algorithm])
    if drawn != dtype:
        bits = hlo.convert(bits, dtype)
    if words:
        key = hlo.reshape(hlo.bitcast_convert(key, (2, 2), np.dtype(np.uint32)), (4,))
    return [key, bits]


def _bits_batching(args: Any, dims: Any, **params: Any) -> tuple[list[Any], list[int]]:
    """The numbers of all under the first key, as JAX has it; the other keys stay as they are."""
    size = batch_size(args, dims)
    keys = at_front(args[0], dims[0], size)
    shape = (size, *params.pop("shape"))
    if not size:
        return [keys, lax.full(shape, 0, params["dtype"])], [0, 0]
    first = lax.index_in_dim(keys, 0, 0, keepdims=False)
    key, bits = rng_bit_generator_p.bind(first, shape=shape, **params)
    return [lax.dynamic_update_index_in_dim(keys, key, 0, 0), bits], [0, 0]


rng_bit_generator_p: Primitive = Primitive(
    "rng_bit_generator",
    abstract_eval=_bits_abstract_eval,
    lowering=_bits_lowering,
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_bits_batching,
    multiple_results=True,
)


def _uniform_abstract_eval(
    a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]
) -> ShapedArray:
    check_same_dtypes("rng_uniform", (a, b))
    if a.shape or b.shape:
        raise ValueError(
            f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}."
        )
    return ShapedArray(shape, a.dtype)


def _uniform_batching(args: Any, dims: Any, *, shape: tuple[int, ...]) -> tuple[Any, int]:
    size = batch_size(args, dims)
    a, b = (lax.unstack(at_front(x, d, size)) for x, d in zip(args, dims))
    return lax.stack([rng_uniform(x, y, shape) for x, y in zip(a, b)]), 0


rng_uniform_p: Primitive = Primitive(
    "rng_uniform",
    abstract_eval=_uniform_abstract_eval,
    lowering=lambda ctx, a, b, *, shape: hlo.rng(a, b, shape, "UNIFORM"),
    jvp=NOT_DIFFERENTIABLE,
    transpose=NOT_LINEAR,
    batching=_uniform_batching,
)
