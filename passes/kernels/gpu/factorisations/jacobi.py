"""What kernels of eigenvalues of Hermitian matrices and of singular values share: Jacobi's method.

In a round, all columns are paired, and each pair is rotated such that its element off the diagonal
vanishes; so many rounds that each two columns met are a sweep (Golub, Van Loan, Matrix Computations,
8.5; the order is that of a round-robin tournament). It is slower than LAPACK's ways by a constant,
at least as exact, and all threads have work.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.passes.emit.scalars import Scalar, choose, constant, index, repeat_while
from lamina.passes.kernels.gpu.factorisations.matrices import Matrix, absolute, scaled

_MOST_SWEEPS = 40  # search: quadratic convergence takes 6 to 10


# ---- pairs of columns ----------------------------------------------------------------------------
def pairs(n: int) -> int:
    """In a round; one of them is of a column that is not there where n is odd."""
    return -(-n // 2)


def pair(round_: Scalar, item: Scalar, n: int) -> tuple[Scalar, Scalar]:
    """The columns i < j of a pair, in round 0 to 2 * pairs(n) - 2; j may be n, where n is odd."""
    others = 2 * pairs(n) - 1
    one = choose(item.equals(0), index(others), (round_ + item) % others)
    two = (round_ + others - item) % others
    swapped = two < one
    return choose(swapped, two, one), choose(swapped, one, two)


def rotation(first: Scalar, second: Scalar, between: Scalar) -> tuple[Scalar, Scalar]:
    """(c, s) such that [c, s; -s*, c] makes [first, between; between*, second] diagonal: c is real,
    and the smaller of two angles is taken."""
    size = absolute(between)
    none = size.equals(0)
    safe = choose(none, constant(1, size.type), size)
    ratio = (second - first) / (safe + safe)
    tangent = 1 / (absolute(ratio) + (ratio * ratio + 1).sqrt())
    tangent = choose(none, 0, choose(ratio < 0, -tangent, tangent))
    cosine = 1 / (tangent * tangent + 1).sqrt()
    return cosine, scaled(between, tangent * cosine / safe)


def rotate_columns(
    matrix: Matrix, row: Scalar, i: Scalar, j: Scalar, cosine: Scalar, sine: Scalar
) -> None:
    """One row of a matrix times such a rotation."""
    left, right = matrix[row, i], matrix[row, j]
    matrix[row, i] = scaled(left, cosine) - sine.conjugate() * right
    matrix[row, j] = sine * left + scaled(right, cosine)


# ---- sweeps, and the order of what they find --------------------------------------------------------
def until_converged(first: Scalar, sweep: Callable[[], Scalar], bound: float) -> None:
    """Sweeps as long as what is left, at first `first`, then what `sweep` gives, is above a bound."""

    def goes_on(done: Scalar, left: Scalar) -> Scalar:
        return (left > bound) & (done < _MOST_SWEEPS)

    repeat_while([index(0), first], goes_on, lambda done, left: [done + 1, sweep()])


def comes_before(theirs: Scalar, j: Scalar, mine: Scalar, i: Scalar) -> Scalar:
    """Whether value j is before value i in ascending order; a NaN is where it was, as all are then."""
    either = theirs.differs(theirs) | mine.differs(mine)
    before = choose(either, (j < i), theirs < mine)
    return before | (theirs.equals(mine) & (j < i))
