"""Float formats that processors do not compute in: their codes, to and from f32 and f64.

Both directions are straight-line integer code, exact or rounded once to nearest: ties to even,
or up where there is no mantissa. A NaN becomes -0 in a format that has none, as in XLA.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from lamina.passes.math.terms import Term
from lamina.records import Record

_NAN = float("nan")


class SmallFormat(Record):
    """A format's layout: sign bit (if any), exponent, mantissa; and what its last codes mean.

    `largest`, `infinity` and `nan` are codes without the sign bit; None where the format has no
    such value. A NaN code that has the sign bit is the only one, and in such formats zero has no
    sign.
    """

    dtype: Any
    exponent_bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    has_sign: bool = True

    @property
    def bits(self) -> int:
        return self.has_sign + self.exponent_bits + self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def sign_of_zero(self) -> bool:
        return self.nan is None or self.nan < self.sign

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def overflow(self) -> int:
        """The code of what is too large: infinity, else NaN, else the largest number."""
        return next(code for code in (self.infinity, self.nan, self.largest) if code is not None)

    def code_of(self, value: float) -> int:
        """The code of a number in this format, as a signed integer of its width."""
        stored = np.array([value], np.float64).astype(self.dtype)
        code = int(stored.view(f"u{stored.itemsize}")[0]) & ((1 << self.bits) - 1)
        return code - ((code & self.sign) << 1)


FORMATS = {
    "bf16": SmallFormat(ml_dtypes.bfloat16, 8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0),
    "f8E5M2": SmallFormat(ml_dtypes.float8_e5m2, 5, 2, 15, 0x7B, 0x7C, 0x7E),
    "f8E4M3": SmallFormat(ml_dtypes.float8_e4m3, 4, 3, 7, 0x77, 0x78, 0x7C),
    "f8E3M4": SmallFormat(ml_dtypes.float8_e3m4, 3, 4, 3, 0x6F, 0x70, 0x78),
    "f8E4M3FN": SmallFormat(ml_dtypes.float8_e4m3fn, 4, 3, 7, 0x7E, nan=0x7F),
    "f8E5M2FNUZ": SmallFormat(ml_dtypes.float8_e5m2fnuz, 5, 2, 16, 0x7F, nan=0x80),
    "f8E4M3FNUZ": SmallFormat(ml_dtypes.float8_e4m3fnuz, 4, 3, 8, 0x7F, nan=0x80),
    "f8E4M3B11FNUZ": SmallFormat(ml_dtypes.float8_e4m3b11fnuz, 4, 3, 11, 0x7F, nan=0x80),
    "f8E8M0FNU": SmallFormat(ml_dtypes.float8_e8m0fnu, 8, 0, 127, 0xFE, nan=0xFF, has_sign=False),
    "f6E2M3FN": SmallFormat(ml_dtypes.float6_e2m3fn, 2, 3, 1, 0x1F),
    "f6E3M2FN": SmallFormat(ml_dtypes.float6_e3m2fn, 3, 2, 3, 0x1F),
    "f4E2M1FN": SmallFormat(ml_dtypes.float4_e2m1fn, 2, 1, 1, 0x07),
}
F16 = SmallFormat(np.float16, 5, 10, 15, 0x7BFF, 0x7C00, 0x7E00)


def decode(code: Term, format_: SmallFormat) -> Term:
    """The f32 whose code is in the low bits of a 32-bit integer; the bits above are zero."""
    shift = 23 - format_.mantissa
    if format_.exponent_bits == 8:
        value = (code << shift).as_float()
        if format_.has_sign:
            return value
        smallest = (code.equals(0).select(0x00400000, value.bits())).as_float()
        return code.equals(format_.overflow).select(_NAN, smallest)
    size = code & (format_.sign - 1)
    normal = ((size << shift) + ((127 - format_.bias) << 23)).as_float()
    denormal = size.to_float() * format_.smallest
    value = (size < (1 << format_.mantissa)).select(denormal, normal)
    if format_.infinity is not None:
        special = size.equals(format_.infinity).select(float("inf"), value.like(_NAN))
        value = (size < format_.infinity).select(value, special)
    value = (value.bits() | ((code & format_.sign) << (32 - format_.bits))).as_float()
    if format_.infinity is None and format_.nan is not None:
        tested = size if format_.sign_of_zero else code
        value = tested.equals(format_.nan).select(_NAN, value)
    return value


def encode(x: Term, format_: SmallFormat) -> Term:
    """The code nearest to an f32 or f64, in the low bits of an integer of the same width."""
    width = x.lane.width
    mantissa, bias = (23, 127) if width == 32 else (52, 1023)
    bits = x.bits()
    size_bits = bits & ((1 << (width - 1)) - 1)
    shift = mantissa - format_.mantissa
    half = 1 << (shift - 1)
    if format_.mantissa:
        # Less than half a step, or half when what is kept is odd: the carry rounds to nearest even.
        rounded = size_bits + ((size_bits.logical_right(shift) & 1) + (half - 1))
    else:
        rounded = size_bits + half
    code = rounded.logical_right(shift)
    code = code - ((bias - format_.bias) << format_.mantissa)
    if not format_.has_sign:
        code = (code < 0).select(0, code)
        code = (code > format_.largest).select(format_.overflow, code)
        return (bits > 0).select(code, format_.overflow)
    if format_.exponent_bits < 8 or width == 64:
        # The last bit of this number is the format's smallest step: adding to it rounds.
        anchor = x.like(format_.smallest * 2.0**mantissa)
        size = size_bits.as_float()
        denormal = (size + anchor).bits() - anchor.bits()
        code = (size < format_.smallest_normal).select(denormal, code)
    code = (code > format_.largest).select(format_.overflow, code)
    if format_.nan is not None:
        code = x.is_nan().select(format_.nan, code)
    sign = bits.logical_right(width - 1) << (format_.bits - 1)
    if not format_.sign_of_zero:
        sign = code.equals(0).select(0, sign)
    if format_.overflow == format_.largest:
        return x.is_nan().select(format_.sign, code | sign)
    return code | sign
