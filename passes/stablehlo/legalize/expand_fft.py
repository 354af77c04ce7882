"""Write `stablehlo.fft` with complex transforms of lengths that backends generate code for.

    fft %x, RFFT [n]  ->  %z = fft of n/2 complex numbers, the even and the odd elements of %x;
                          their transforms are told apart by symmetry
    fft %x, FFT [p]   ->  multiply, pad, fft [m], multiply, ifft [m], slice, multiply
                          for a length p with large prime factors (Bluestein's convolution)

Backends that do larger prime factors, or several rows of real numbers, by themselves say so by
options; a few rows of large ones are convolutions all the same. A transform over several axes stays
one op where all lengths are such. Roots of unity are computed to the last bit that f64 gives,
whatever the element type.

example: test/passes/stablehlo/legalize/expand_fft.mlir
"""

from __future__ import annotations

from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import replace_each
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.stablehlo.analysis.fourier import (
    LONGEST_LANE,
    SMALL_PRIME,
    is_generated,
    is_short,
    next_length,
    prime_factors,
)

_LEAST_ROWS = 6  # rounding: fewer leave most lanes idle
_PRIME_OF_FEW = 61  # rounding: up to which that is less work than a convolution, which fills them


class ExpandFft(Pass):
    """See the module's docstring."""

    largest_prime: int = SMALL_PRIME
    """The largest prime factor of lengths that a backend generates code for."""
    real: bool = False
    """Whether it does so for several short rows of real numbers, too."""

    def run(self, module: ir.Module) -> None:
        def expand(op: ir.Operation) -> list[ir.Value]:
            return _expand(op, self)

        self.count("expanded", replace_each(module, "stablehlo.fft", expand))

    def does(self, length: int, rows: int) -> bool:
        """Whether code for so many rows of complex numbers is generated."""
        prime = max(prime_factors(length), default=1)
        few = prime > _PRIME_OF_FEW and rows * (length // prime) < _LEAST_ROWS
        return is_generated(length, SMALL_PRIME if few else self.largest_prime)

    def does_real(self, lengths: list[int], rows: int) -> bool:
        """Whether code for so many rows of real numbers is."""
        return (
            self.real
            and rows >= _LEAST_ROWS
            and all(self.does(length, rows) for length in lengths)
            and is_short(lengths[-1])
            and max(lengths[:-1], default=1) <= LONGEST_LANE
        )


def _expand(op: ir.Operation, able: ExpandFft) -> list[ir.Value]:
    x = op.operands[0]
    kind = str(op.attributes["fft_type"])
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    result = op.results[0].type
    if 0 in [*lengths, *result.shape]:
        return [hlo.full(0, list(result.shape), dtype_of(result))]
    if "RFFT" in kind and able.does_real(lengths, prod(result.shape[:-1])):
        if "IRFFT" in kind:
            x = _part(x, len(result.shape) - 1, 0, lengths[-1] // 2 + 1)
        return [hlo.fft(x, "IRFFT" if "IRFFT" in kind else "RFFT", lengths)]
    if "IRFFT" in kind:
        x = _transform(x, lengths[:-1], op, able, inverse=True, last=len(lengths) > 1)
        return [_to_real(x, lengths[-1], op, able)]
    if "RFFT" in kind:
        x = _from_real(x, lengths[-1], op, able)
        return [_transform(x, lengths[:-1], op, able, inverse=False, last=len(lengths) > 1)]
    return [_transform(x, lengths, op, able, inverse="IFFT" in kind)]


def _transform(
    x: ir.Value, lengths: list[int], op: ir.Operation, able: ExpandFft, *, inverse: bool,
    last: bool = False,
) -> ir.Value:
    """Complex transforms over the trailing axes, or with `last` over those before the last."""
    rank = len(x.type.shape)
    axes = list(range(rank - len(lengths) - last, rank - last))
    if not lengths:
        return x
    if (
        not last
        and all(able.does(length, prod(x.type.shape) // length) for length in lengths)
        and max(lengths[:-1], default=1) <= LONGEST_LANE
    ):
        return hlo.fft(x, _name(inverse), lengths)
    for axis in reversed(axes):
        order = [d for d in range(rank) if d != axis] + [axis]
        moved = axis != rank - 1
        y = hlo.transpose(x, order) if moved else x
        y = _along_last(y, op, able, inverse=inverse)
        x = hlo.transpose(y, [int(i) for i in np.argsort(order)]) if moved else y
    return x


def _name(inverse: bool) -> str:
    return "IFFT" if inverse else "FFT"


def _along_last(x: ir.Value, op: ir.Operation, able: ExpandFft, *, inverse: bool) -> ir.Value:
    size = x.type.shape[-1]
    if size == 1:
        return x
    if able.does(size, prod(x.type.shape[:-1])):
        return hlo.fft(x, _name(inverse), [size])
    padded = next_length(2 * size - 1)
    if not is_generated(padded):
        raise CompileError.at(op, f"a transform of length {size} is longer than any supported")
    x = _bluestein(x, size, padded, 1.0 if inverse else -1.0)
    if not inverse:
        return x
    scale = np.asarray(1.0 / size, dtype_of(x.type))
    return hlo.multiply(x, hlo.full(scale, list(x.type.shape), scale.dtype))


def _bluestein(x: ir.Value, size: int, padded: int, sign: float) -> ir.Value:
    dtype, shape = dtype_of(x.type), list(x.type.shape)
    last = len(shape) - 1
    squares = np.arange(size, dtype=np.int64) ** 2 % (2 * size)
    chirp = np.exp(1j * np.pi * sign * squares / size)
    kernel = np.zeros(padded, np.complex128)
    kernel[:size] = np.conj(chirp)
    kernel[padded - size + 1 :] = np.conj(chirp[1:])[::-1]

    def times(x: ir.Value, values: np.ndarray) -> ir.Value:
        row = hlo.constant(values.astype(dtype))
        return hlo.multiply(x, hlo.broadcast_in_dim(row, list(x.type.shape), [last]))

    high = [0] * last + [padded - size]
    none = [0] * len(shape)
    x = hlo.pad(times(x, chirp), hlo.full(0, [], dtype), none, high, none)
    x = times(hlo.fft(x, "FFT", [padded]), np.fft.fft(kernel))
    x = _part(hlo.fft(x, "IFFT", [padded]), last, 0, size)
    return times(x, chirp)


# ---- real numbers ------------------------------------------------------------------------------
#
# The transform z of even + i odd elements holds both of theirs: that of even elements is Hermitian,
# that of i times the odd ones anti-Hermitian (Press et al., Numerical Recipes, section 12.3).
def _from_real(x: ir.Value, size: int, op: ir.Operation, able: ExpandFft) -> ir.Value:
    """The first size // 2 + 1 numbers of the transform over the last axis."""
    shape = list(x.type.shape)
    last = len(shape) - 1
    if size % 2:
        z = hlo.complex(x, hlo.full(0, shape, dtype_of(x.type)))
        return _part(_along_last(z, op, able, inverse=False), last, 0, size // 2 + 1)
    half = size // 2
    z = hlo.complex(*(_every_second(x, last, start) for start in (0, 1)))
    z = _along_last(z, op, able, inverse=False)
    # one number more: the last is the first again
    z = hlo.concatenate([z, _part(z, last, 0, 1)], last)
    shape[last] = half + 1
    re, im = hlo.real(z), hlo.imag(z)
    back_re, back_im = hlo.reverse(re, [last]), hlo.reverse(im, [last])
    cosine, sine = _turns(size, shape, dtype_of(x.type))
    # even = (z + conj back) / 2; odd = (z - conj back) / 2i
    odd_re, odd_im = hlo.add(im, back_im), hlo.subtract(back_re, re)
    turned_re = hlo.add(hlo.multiply(odd_re, cosine), hlo.multiply(odd_im, sine))
    turned_im = hlo.subtract(hlo.multiply(odd_im, cosine), hlo.multiply(odd_re, sine))
    halves = hlo.full(0.5, shape, dtype_of(x.type))
    return hlo.complex(
        hlo.multiply(hlo.add(hlo.add(re, back_re), turned_re), halves),
        hlo.multiply(hlo.add(hlo.subtract(im, back_im), turned_im), halves),
    )


def _to_real(x: ir.Value, size: int, op: ir.Operation, able: ExpandFft) -> ir.Value:
    """The inverse: `size` real numbers from the first half of a Hermitian transform."""
    last = len(x.type.shape) - 1
    x = _part(x, last, 0, size // 2 + 1)
    if size % 2:
        return hlo.real(_along_last(_hermitian(x, size), op, able, inverse=True))
    half = size // 2
    x = _real_ends(x, last)
    back = hlo.reverse(_part(x, last, 1, half + 1), [last])
    x = _part(x, last, 0, half)
    shape = list(x.type.shape)
    re, im = hlo.real(x), hlo.imag(x)
    back_re, back_im = hlo.real(back), hlo.imag(back)
    dtype = dtype_of(re.type)
    cosine, sine = _turns(size, shape, dtype)
    # even = (x + conj back) / 2; odd = (x - conj back) / 2 turned back; z = even + i odd
    even_re, even_im = hlo.add(re, back_re), hlo.subtract(im, back_im)
    odd_re, odd_im = hlo.subtract(re, back_re), hlo.add(im, back_im)
    turned_re = hlo.subtract(hlo.multiply(odd_re, cosine), hlo.multiply(odd_im, sine))
    turned_im = hlo.add(hlo.multiply(odd_im, cosine), hlo.multiply(odd_re, sine))
    halves = hlo.full(0.5, shape, dtype)
    z = hlo.complex(
        hlo.multiply(hlo.subtract(even_re, turned_im), halves),
        hlo.multiply(hlo.add(even_im, turned_re), halves),
    )
    z = _along_last(z, op, able, inverse=True)
    places = list(range(len(shape)))
    parts = [hlo.broadcast_in_dim(part, [*shape, 1], places) for part in (hlo.real(z), hlo.imag(z))]
    return hlo.reshape(hlo.concatenate(parts, len(shape)), [*shape[:-1], size])


def _turns(size: int, shape: list[int], dtype: np.dtype) -> list[ir.Value]:
    """cos and sin of 2 pi k / size along the last axis."""
    angle = 2.0 * np.pi * np.arange(shape[-1]) / size
    return [
        hlo.broadcast_in_dim(hlo.constant(table.astype(dtype)), shape, [len(shape) - 1])
        for table in (np.cos(angle), np.sin(angle))
    ]


def _every_second(x: ir.Value, dimension: int, start: int) -> ir.Value:
    shape = list(x.type.shape)
    starts, strides = [0] * len(shape), [1] * len(shape)
    starts[dimension], strides[dimension] = start, 2
    return hlo.slice(x, starts, shape, strides)


def _real_ends(x: ir.Value, dimension: int) -> ir.Value:
    """Without the imaginary parts of the first and the last number, which a Hermitian transform
    can't have."""
    shape = list(x.type.shape)
    place = hlo.iota(shape, np.dtype(np.int32), dimension)
    ends = [hlo.full(n, shape, np.dtype(np.int32)) for n in (0, shape[dimension] - 1)]
    at_end = hlo.or_(*(hlo.compare(place, end, "EQ") for end in ends))
    re, im = hlo.real(x), hlo.imag(x)
    return hlo.complex(re, hlo.select(at_end, hlo.full(0, shape, dtype_of(im.type)), im))


def _hermitian(x: ir.Value, size: int) -> ir.Value:
    """All `size` numbers of the last dimension from the first half: the rest are conjugates,
    reversed."""
    last = len(x.type.shape) - 1
    real, imag = hlo.real(x), hlo.imag(x)
    # the first number, and the middle one of an even size, stand for real ones
    mirrored = size - (size // 2 + 1)
    if mirrored == 0:
        return x
    tail = hlo.complex(
        *(hlo.reverse(_part(p, last, 1, 1 + mirrored), [last]) for p in (real, hlo.negate(imag)))
    )
    return hlo.concatenate([x, tail], last)


def _part(x: ir.Value, dimension: int, start: int, limit: int) -> ir.Value:
    shape = list(x.type.shape)
    starts, limits = [0] * len(shape), list(shape)
    starts[dimension], limits[dimension] = start, limit
    return hlo.slice(x, starts, limits, [1] * len(shape))
