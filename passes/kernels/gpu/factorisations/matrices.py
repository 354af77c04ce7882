"""What kernels of linear algebra share: one matrix of a batch, work on it for all threads of a block, and
numbers that may be complex."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    complex_of,
    constant,
    fold,
    index,
    loop,
    split,
)
from lamina.passes.kernels.gpu.device.thread_numbers import synchronize, thread


def threads_for(elements: int) -> int:
    """Threads of a block that works on so many elements at once."""
    return min(256, max(32, -(-elements // 4 // 32) * 32))


def share(count: Scalar | int, threads: int, work: Callable[[Scalar], None]) -> None:
    """`work(item)` for `count` items, by the threads of a block."""
    with loop(thread(), count, threads) as item:
        work(item)


class Matrix:
    """One matrix of a batch."""

    def __init__(self, array: Array, at: Sequence[Scalar]) -> None:
        self.array, self.at = array, list(at)

    def __getitem__(self, place: Sequence[Scalar]) -> Scalar:
        return self.array[[*self.at, *place]]

    def __setitem__(self, place: Sequence[Scalar], value: Scalar) -> None:
        self.array[[*self.at, *place]] = value


def copy_matrix(source: Matrix, target: Matrix, sizes: Sequence[int], threads: int) -> None:
    """Every element of a matrix, by the threads of a block."""

    def copy(item: Scalar) -> None:
        i, j = split(item, sizes)
        target[i, j] = source[i, j]

    share(math.prod(sizes), threads, copy)


def largest(
    shared: Array, count: int, threads: int, value: Callable[[Scalar], Scalar]
) -> Scalar:
    """The largest of `count` real numbers that are not negative; NaN if one is. All threads of the
    block know it; `shared` has an element for each, and a barrier must come before it is used again."""

    def worse(mine: Scalar, best: Scalar) -> Scalar:
        return choose((mine > best) | mine.differs(mine), mine, best)

    zero = constant(0, shared.element)
    (mine,) = fold(thread(), count, [zero], lambda i, best: [worse(value(i), best)], threads)
    shared[thread(),] = mine
    synchronize()
    (found,) = fold(0, threads, [zero], lambda t, best: [worse(shared[t,], best)])
    return found


def count_of(count: int, holds: Callable[[Scalar], Scalar]) -> Scalar:
    """For how many of the first numbers something holds."""
    return fold(0, count, [index(0)], lambda j, n: [choose(holds(j), n + 1, n)])[0]


# ---- numbers -------------------------------------------------------------------------------------
def real_type(element: ir.Type) -> ir.Type:
    """Of the parts of a complex type; a real one as it is."""
    return element.element_type if isinstance(element, ir.ComplexType) else element


def epsilon(real: ir.Type) -> float:
    """The distance from 1 to the next larger number."""
    return float(np.finfo(dtype_of(ir.RankedTensorType.get([], real))).eps)


def absolute(x: Scalar) -> Scalar:
    """The absolute value, a real number."""
    return x.norm().sqrt() if x.is_complex else choose(x < 0, -x, x)


def scaled(x: Scalar, by: Scalar) -> Scalar:
    """A number times a real one."""
    return complex_of(x.real * by, x.imag * by) if x.is_complex else x * by


def root(x: Scalar) -> Scalar:
    """The root of a positive number, NaN for others; of the real part, in the type of x."""
    real = x.real
    found = choose(real > 0, real.sqrt(), math.nan)
    return complex_number(found, x.type)


def complex_number(real: Scalar, type_: ir.Type) -> Scalar:
    """A real number in a type that may be complex."""
    return complex_of(real, constant(0, real.type)) if isinstance(type_, ir.ComplexType) else real


def size(x: Scalar) -> Scalar:
    """The absolute value, of a complex number the sum of its parts' as BLAS has it."""
    parts = [x.real, x.imag] if x.is_complex else [x]
    found = [choose(part < 0, -part, part) for part in parts]
    return found[0] + found[1] if x.is_complex else found[0]
