"""Write `stablehlo.fft` as matrix products, by Cooley and Tukey's decomposition.

A transform of size a*b is b transforms of size a, a multiplication by roots of unity, and a
transforms of size b. The small transforms are contractions with a constant matrix, which libraries
and vector units do well. A large prime size becomes a convolution of a power-of-two size
(Bluestein). Real transforms go through complex ones. Roots of unity are computed exactly to the
last bit that f64 gives, whatever the element type.

example: test/passes/stablehlo/expand_fft.mlir
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.loops import replace_each

_DIRECT = 64  # sizes up to this are one contraction
_LARGEST_PRIME = 512  # a prime up to this too
_LARGEST_TABLE = 4096  # roots of unity in one constant


@dataclass(frozen=True)
class ExpandFft(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count("expanded", replace_each(module, "stablehlo.fft", _expand))


def _expand(op: ir.Operation) -> list[ir.Value]:
    x = op.operands[0]
    kind = str(op.attributes["fft_type"])
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    result = op.results[0].type
    rank = len(result.shape)
    axes = list(range(rank - len(lengths), rank))
    if 0 in lengths:
        return [hlo.full(0, list(result.shape), dtype_of(result))]
    if "IRFFT" in kind:
        for axis in axes[:-1]:
            x = _along(x, axis, inverse=True)
        x = _hermitian(x, lengths[-1])
        return [hlo.real(_along(x, axes[-1], inverse=True))]
    if "RFFT" in kind:
        zero = hlo.full(0, list(x.type.shape), dtype_of(x.type))
        x = _along(hlo.complex(x, zero), axes[-1], inverse=False)
        x = _part(x, rank - 1, 0, lengths[-1] // 2 + 1)
        axes = axes[:-1]
    for axis in axes:
        x = _along(x, axis, inverse="IFFT" in kind)
    return [x]


def _along(x: ir.Value, axis: int, *, inverse: bool) -> ir.Value:
    """The transform along one axis; the inverse one divides by the size."""
    shape = list(x.type.shape)
    order = [d for d in range(len(shape)) if d != axis] + [axis]
    size = shape[axis]
    moved = axis != len(shape) - 1
    if moved:
        x = hlo.transpose(x, order)
    outer = [shape[d] for d in order[:-1]]
    count = int(np.prod(outer, dtype=np.int64))
    x = hlo.reshape(
        _dft(hlo.reshape(x, [count, size]), size, 1.0 if inverse else -1.0), [*outer, size]
    )
    if inverse:
        scale = np.asarray(1.0 / size, dtype_of(x.type))
        x = hlo.multiply(x, hlo.full(scale, [*outer, size], scale.dtype))
    return hlo.transpose(x, [int(i) for i in np.argsort(order)]) if moved else x


def _dft(x: ir.Value, size: int, sign: float) -> ir.Value:
    """Transforms of the rows of [count, size]."""
    dtype = dtype_of(x.type)
    if size == 1:
        return x
    first = _factor(size)
    if first == size:
        if size > _LARGEST_PRIME:
            return _bluestein(x, size, sign)
        return _contract(
            x, _roots(size, np.outer(np.arange(size), np.arange(size)), sign, dtype), 1
        )
    second, count = size // first, x.type.shape[0]
    x = hlo.reshape(x, [count, first, second])
    # contracting the middle dimension leaves [count, second, first]
    x = _contract(x, _roots(first, np.outer(np.arange(first), np.arange(first)), sign, dtype), 1)
    x = _turn(x, size, sign, dtype)
    x = hlo.reshape(hlo.transpose(x, [0, 2, 1]), [count * first, second])
    x = hlo.reshape(_dft(x, second, sign), [count, first, second])
    return hlo.reshape(hlo.transpose(x, [0, 2, 1]), [count, size])


def _turn(x: ir.Value, size: int, sign: float, dtype: np.dtype) -> ir.Value:
    """x[n, i, k] times the root of unity of order `size` to the power i * k.

    Of a large table the rows are products of two smaller ones: i = p * q' + q.
    """
    count, rows, columns = x.type.shape
    exponents = np.arange(columns)
    fine = _divisor(rows, math.isqrt(rows)) if rows * columns > _LARGEST_TABLE else rows
    split = [count, rows // fine, fine, columns]
    x = hlo.reshape(x, split)
    tables = [(np.arange(fine), 2)]
    if fine != rows:
        tables.append((np.arange(0, rows, fine), 1))
    for powers, place in tables:
        table = hlo.constant(_roots(size, np.outer(powers, exponents), sign, dtype))
        x = hlo.multiply(x, hlo.broadcast_in_dim(table, split, [place, 3]))
    return hlo.reshape(x, [count, rows, columns])


def _bluestein(x: ir.Value, size: int, sign: float) -> ir.Value:
    dtype, count = dtype_of(x.type), x.type.shape[0]
    padded = 1 << (2 * size - 1).bit_length()
    squares = np.arange(size, dtype=np.int64) ** 2 % (2 * size)
    chirp = np.exp(1j * np.pi * sign * squares / size)
    kernel = np.zeros(padded, np.complex128)
    kernel[:size] = np.conj(chirp)
    kernel[padded - size + 1 :] = np.conj(chirp[1:])[::-1]

    def row(values: np.ndarray, length: int) -> ir.Value:
        return hlo.broadcast_in_dim(hlo.constant(values.astype(dtype)), [count, length], [1])

    x = hlo.multiply(x, row(chirp, size))
    zero = hlo.full(0, [], dtype)
    x = hlo.pad(x, zero, [0, 0], [0, padded - size], [0, 0])
    x = hlo.multiply(_dft(x, padded, -1.0), row(np.fft.fft(kernel) / padded, padded))
    x = _part(_dft(x, padded, 1.0), 1, 0, size)
    return hlo.multiply(x, row(chirp, size))


def _factor(size: int) -> int:
    """The largest divisor up to _DIRECT, else the smallest prime factor."""
    if size <= _DIRECT:
        return size
    divisor = _divisor(size, _DIRECT)
    if divisor > 1:
        return divisor
    return next(d for d in range(_DIRECT + 1, size + 1) if size % d == 0)


def _divisor(size: int, most: int) -> int:
    """The largest divisor that is not above `most`."""
    return next(d for d in range(most, 0, -1) if size % d == 0)


def _roots(size: int, exponents: np.ndarray, sign: float, dtype: np.dtype) -> np.ndarray:
    """exp(2 pi i sign e / size), exact where sine or cosine is 0 or 1."""
    exponents = exponents % size
    eighths = 8.0 * exponents / size
    angle = 2.0 * np.pi * exponents / size
    real, imag = np.cos(angle), sign * np.sin(angle)
    real = np.where(np.isin(eighths, (2.0, 6.0)), 0.0, real)
    imag = np.where(np.isin(eighths, (0.0, 4.0)), 0.0, imag)
    return (real + 1j * imag).astype(dtype)


def _contract(x: ir.Value, matrix: np.ndarray, dimension: int) -> ir.Value:
    return hlo.dot_general(x, hlo.constant(matrix), [], [], [dimension], [0], matrix.dtype)


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
