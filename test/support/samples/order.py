"""Sample applications of primitives: order, random bits and Fourier transforms."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import numpy as np

from lamina import lax
from lamina.lax.random_keys import random_unwrap, random_wrap
from support.samples.sample import arrays_of, b1, bf16, c64, f32, i8, i32, row, u8

# fmt: off

# ---- order, random bits -------------------------------------------------------------------------
_WILD = f32(values=[3, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, 1, -0.0, 0.0])
row("sort", f32(3, 7), numpy=np.sort)
row("sort", i32(7, 3, low=-3, high=3), numpy=lambda x: np.sort(x, 0), dimension=0)
row("sort", _WILD, smooth=False, widen=False, note="nan, zeros")
row("sort", f32(3, 7), f32(3, 7), call=lambda lib, x, y: lib.sort((x, y), num_keys=1))
row("sort", i32(9, low=0, high=3), f32(9), call=lambda lib, x, y: lib.sort((x, y), num_keys=2))
row("sort", i8(9, low=0, high=3), i32(9), call=lambda lib, x, y: lib.sort_key_val(x, y),
    note="stable")
for _spec in (u8(9), b1(9), bf16(9), c64(9)):
    row("sort", _spec, widen=False, smooth=False)
row("top_k", f32(2, 7), call=lambda lib, x: tuple(lib.top_k(x, 3)))
row("top_k", f32(5, 2, 3), call=lambda lib, x: tuple(lib.top_k(x, 2, axis=0)), note="first axis")
row("top_k", i32(9, low=0, high=3), call=lambda lib, x: tuple(lib.top_k(x, 4)), note="ties")
row("top_k", f32(values=[3, np.nan, np.inf, 1, np.nan, 3]),
    call=lambda lib, x: tuple(lib.top_k(x, 4)), note="nan", smooth=False, widen=False)


def _generator(name: str) -> Any:
    def call(lib: Any, *words: Any) -> Any:
        if lib is lax:
            return tuple(getattr(lax, f"{name}_p").bind(*words))
        module = importlib.import_module(f"jax._src.random.{name}")
        return tuple(getattr(module, f"{name}_p").bind(*words))

    return call


_WORD = arrays_of("uint32", 0, 2**32)
row("threefry2x32", *[_WORD()] * 2, *[_WORD(5)] * 2, call=_generator("threefry2x32"))
row("threefry2x32", *[_WORD(3)] * 4, call=_generator("threefry2x32"))
row("threefry4x32", *[_WORD()] * 4, *[_WORD(5)] * 4, call=_generator("threefry4x32"))
row("philox2x32", _WORD(), *[_WORD(5)] * 2, call=_generator("philox2x32"))
row("philox4x32", *[_WORD()] * 2, *[_WORD(5)] * 4, call=_generator("philox4x32"))


def _words_of_keys(lib: Any, words: Any) -> Any:
    if lib is lax:
        return random_unwrap(random_wrap(words))
    return jax.random.key_data(jax.random.wrap_key_data(words))


row("random_wrap", _WORD(3, 2), call=_words_of_keys)
row("random_unwrap", _WORD(2, 3, 2), call=_words_of_keys)

# ---- fft ---------------------------------------------------------------------------------------
row("fft", c64(3, 8), numpy=np.fft.fft, fft_type="FFT", fft_lengths=(8,))
row("fft", c64(2, 12), numpy=np.fft.ifft, fft_type="IFFT", fft_lengths=(12,))
row("fft", c64(17), numpy=np.fft.fft, fft_type="FFT", fft_lengths=(17,))
row("fft", c64(3, 4, 5), numpy=np.fft.ifftn, fft_type="IFFT", fft_lengths=(3, 4, 5))
row("fft", f32(3, 8), numpy=np.fft.rfft, fft_type="RFFT", fft_lengths=(8,))
row("fft", f32(7), numpy=np.fft.rfft, fft_type="rfft", fft_lengths=(7,))
row("fft", f32(2, 3, 4), numpy=lambda x: np.fft.rfftn(x, axes=(1, 2)), fft_type="RFFT",
    fft_lengths=(3, 4))  # fmt: skip
row("fft", c64(3, 5), numpy=np.fft.irfft, fft_type="IRFFT", fft_lengths=(8,))
row("fft", c64(4), numpy=lambda x: np.fft.irfft(x, 7), fft_type="IRFFT", fft_lengths=(7,))
row("fft", c64(3, 3), numpy=lambda x: np.fft.irfft2(x, (3, 4)), fft_type="IRFFT",
    fft_lengths=(3, 4))  # fmt: skip
row("fft", c64(2, 0, 4), value_only=True, fft_type="FFT", fft_lengths=(4,))
