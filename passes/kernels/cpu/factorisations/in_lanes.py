"""Factorisations and triangular systems of small matrices, one in each vector lane.

LU takes the pivots that LAPACK takes: the first of those largest by |re| + |im|. Cholesky factors
are NaN where a pivot is not positive. Reflectors are LAPACK's (larfg). Sources: Golub & Van Loan,
Matrix Computations (2013), algorithms 3.4.1, 4.2.2, 5.1.1; LAPACK Users' Guide (1999).
"""

from __future__ import annotations

from lamina.passes.kernels.cpu.emit.lanes import Lanes, Matrix, Number
from lamina.passes.kernels.cpu.emit.llvm_text import Integer


def lu(t: Lanes, a: Matrix, pivots: str | None, order: str | None) -> None:
    """Factors in place of a; row interchanges and the order of rows that they leave into arrays of
    integers."""
    m, n = a.rows, a.columns
    if order is not None:
        t.each(0, m, lambda i: t.put_int(t.int_splat(i), order, i))

    def column(k: Integer) -> None:
        where = _largest_below(t, a, k)
        if pivots is not None:
            t.put_int(where, pivots, k)
        _interchange(t, a, k, where)
        if order is not None:
            _interchange_ints(t, order, m, k, where)
        pivot = t.get(a, k, k)
        zero = t.compare("oeq", t.size(pivot), t.splat(0.0))
        divisor = t.divisor(t.choose_number(zero, t.constant(1.0), pivot))
        after = t.add(k, 1)

        def row(i: Integer) -> None:
            factor = t.over(t.get(a, i, k), divisor)
            t.put(factor, a, i, k)
            t.each(after, n, lambda j: _reduce(t, a, i, j, factor, t.get(a, k, j)))

        t.each(after, m, row)

    t.each(0, min(m, n), column)


def _reduce(t: Lanes, a: Matrix, i: Integer, j: Integer, b: Number, c: Number) -> None:
    t.put(t.minus_times(t.get(a, i, j), b, c), a, i, j)


def _largest_below(t: Lanes, a: Matrix, k: Integer) -> str:
    """The first row from k on whose number in column k is the largest; k where that is NaN."""
    best = t.variable(t.vector, t.size(t.get(a, k, k)))
    where = t.variable(t.ints, t.int_splat(k))

    def look(i: Integer) -> None:
        size, most = t.size(t.get(a, i, k)), t.now(t.vector, best)
        more = t.compare("ogt", size, most)
        t.set(t.vector, t.choose(more, size, most), best)
        found = t.choose_int(more, t.int_splat(i), t.now(t.ints, where))
        t.set(t.ints, found, where)

    t.each(t.add(k, 1), a.rows, look)
    return t.now(t.ints, where)


def _interchange(t: Lanes, a: Matrix, k: Integer, where: str) -> None:
    if not t.unroll:

        def column(j: Integer) -> None:
            upper = t.get(a, k, j)
            lower = t.get_row(a, where, j)
            t.put_row(upper, a, where, j)
            t.put(lower, a, k, j)

        # Rows k are written last: where a lane's pivot is there, both writes are the same.
        t.each(0, a.columns, column)
        return
    assert isinstance(k, int)
    masks = {i: t.int_equal(where, t.int_splat(i)) for i in range(k + 1, a.rows)}
    for j in range(a.columns):
        upper = now = t.get(a, k, j)
        for i, mask in masks.items():
            lower = t.get(a, i, j)
            t.put(t.choose_number(mask, upper, lower), a, i, j)
            now = t.choose_number(mask, lower, now)
        t.put(now, a, k, j)


def _interchange_ints(t: Lanes, order: str, m: int, k: Integer, where: str) -> None:
    upper = t.get_int(order, k)
    if not t.unroll:
        lower = t.get_int_row(order, where)
        t.put_int_row(upper, order, where)
        t.put_int(lower, order, k)
        return
    assert isinstance(k, int)
    now = upper
    for i in range(k + 1, m):
        mask = t.int_equal(where, t.int_splat(i))
        lower = t.get_int(order, i)
        t.put_int(t.choose_int(mask, upper, lower), order, i)
        now = t.choose_int(mask, lower, now)
    t.put_int(now, order, k)


def take_rows(t: Lanes, x: Matrix, order: str, result: Matrix) -> None:
    """result[i] = x[order[i]]."""

    def row(i: Integer) -> None:
        wanted = t.get_int(order, i)
        if not t.unroll:
            t.each(0, x.columns, lambda j: t.put(t.get_row(x, wanted, j), result, i, j))
            return
        masks = {r: t.int_equal(wanted, t.int_splat(r)) for r in range(1, x.rows)}
        for j in range(x.columns):
            now = t.get(x, 0, j)
            for r, mask in masks.items():
                now = t.choose_number(mask, t.get(x, r, j), now)
            t.put(now, result, i, j)

    t.each(0, x.rows, row)


def inverse_order(t: Lanes, order: str, size: int, result: str) -> None:
    """result[order[i]] = i."""
    if not t.unroll:
        t.each(0, size, lambda i: t.put_int_row(t.int_splat(i), result, t.get_int(order, i)))
        return
    for r in range(size):
        now = t.int_splat(0)
        for i in range(1, size):
            mask = t.int_equal(t.get_int(order, i), t.int_splat(r))
            now = t.choose_int(mask, t.int_splat(i), now)
        t.put_int(now, result, r)


def cholesky(t: Lanes, a: Matrix, lower: bool, result: Matrix) -> None:
    """The factor of a Hermitian matrix of which one triangle is read, zeros in the other."""
    n = a.rows
    # The upper factor is computed row by row, whatever is asked for.
    read = a.adjoint if lower else a
    u = t.matrix(n, n)
    t.each(0, n, lambda i: t.each(i, n, lambda j: t.put(t.get(read, i, j), u, i, j)))
    good = t.variable(t.mask, "splat (i1 true)")

    def row(k: Integer) -> None:
        pivot = t.get(u, k, k)[0]
        positive = t.compare("ogt", pivot, t.splat(0.0))
        t.set(t.mask, t.both(t.now(t.mask, good), positive), good)
        root: Number = (t.root(pivot),)
        t.put((*root, *[t.splat(0.0)] * (t.parts - 1)), u, k, k)
        after = t.add(k, 1)
        t.each(after, n, lambda j: t.put(t.over(t.get(u, k, j), root), u, k, j))

        def reduce(i: Integer) -> None:
            factor = t.conjugate(t.get(u, k, i))
            t.each(i, n, lambda j: _reduce(t, u, i, j, factor, t.get(u, k, j)))

        t.each(after, n, reduce)

    t.each(0, n, row)
    good_lanes = t.now(t.mask, good)
    nan: Number = (t.splat(float("nan")),) * t.parts
    written = result.adjoint if lower else result

    def fill(i: Integer) -> None:
        t.each(0, i, lambda j: t.put(t.constant(0.0), written, i, j))
        t.each(
            i, n, lambda j: t.put(t.choose_number(good_lanes, t.get(u, i, j), nan), written, i, j)
        )

    t.each(0, n, fill)


def triangular_solve(
    t: Lanes, a: Matrix, x: Matrix, *, left: bool, lower: bool, how: int, unit: bool
) -> None:
    """op(a) x = b or x op(a) = b, for b in x's place; `how` is 0 for a itself, 1 for its transpose
    and 2 for its adjoint."""
    matrix = (a, a.transposed, a.adjoint)[how]
    forward = lower == (how == 0)
    if not left:  # the transposed system
        matrix, x, forward = matrix.transposed, x.transposed, not forward
    n, columns = x.rows, x.columns

    def unknown(step: Integer) -> None:
        j = step if forward else t.add(t.mul(step, -1), n - 1)
        if not unit:
            divisor = t.divisor(t.get(matrix, j, j))
            t.each(0, columns, lambda c: t.put(t.over(t.get(x, j, c), divisor), x, j, c))
        start, stop = (t.add(j, 1), n) if forward else (0, j)

        def reduce(i: Integer) -> None:
            factor = t.get(matrix, i, j)
            t.each(0, columns, lambda c: _reduce(t, x, i, c, factor, t.get(x, j, c)))

        t.each(start, stop, reduce)

    t.each(0, n, unknown)


# ---- reflectors --------------------------------------------------------------------------------
def qr(t: Lanes, a: Matrix, taus: Matrix) -> None:
    """R in a's upper triangle, the vectors of reflectors below, their factors as a row."""
    m, n = a.rows, a.columns

    def column(k: Integer) -> None:
        after = t.add(k, 1)
        alpha, tau, beta, divisor = _reflector(t, a, k)
        t.put(tau, taus, 0, k)
        t.each(after, m, lambda i: t.put(t.over(t.get(a, i, k), divisor), a, i, k))
        t.put(t.constant(1.0), a, k, k)
        _apply(t, a, k, t.conjugate(tau), after)
        t.put(beta, a, k, k)

    t.each(0, min(m, n), column)


def _reflector(t: Lanes, a: Matrix, k: Integer) -> tuple[Number, Number, Number, Number]:
    """alpha, tau, beta of the reflector that zeroes column k below its diagonal, and the divisor
    of its vector."""
    alpha = t.get(a, k, k)
    below = t.variable(t.vector, t.splat(0.0))

    def widest(i: Integer) -> None:
        size, most = t.size(t.get(a, i, k)), t.now(t.vector, below)
        # Not a NaN on the left: it would be forgotten.
        less = t.compare("ult", most, size)
        t.set(t.vector, t.choose(less, size, most), below)

    t.each(t.add(k, 1), a.rows, widest)
    rest = t.now(t.vector, below)
    if t.parts == 2:
        rest = t.fadd(rest, t.absolute(alpha[1]))
    none = t.compare("oeq", rest, t.splat(0.0))
    scale = t.fadd(t.now(t.vector, below), t.size(alpha))
    scale = t.choose(none, t.splat(1.0), scale)
    total = t.variable(t.vector, t.splat(0.0))

    def square(i: Integer) -> None:
        for part in t.get(a, i, k):
            share = t.fdiv(part, scale)
            more = t.fadd(t.now(t.vector, total), t.fmul(share, share))
            t.set(t.vector, more, total)

    t.each(k, a.rows, square)
    length = t.fmul(t.root(t.now(t.vector, total)), scale)
    negative = t.compare("olt", alpha[0], t.splat(0.0))
    minus_sign = t.choose(negative, length, t.fneg(length))
    real = t.choose(none, alpha[0], minus_sign)
    safe = t.choose(none, t.splat(1.0), minus_sign)
    tau = [t.choose(none, t.splat(0.0), t.fdiv(t.fsub(minus_sign, alpha[0]), safe))]
    if t.parts == 2:
        tau.append(t.choose(none, t.splat(0.0), t.fneg(t.fdiv(alpha[1], safe))))
    beta = (real, *[t.splat(0.0)] * (t.parts - 1))
    difference = t.minus(alpha, beta)
    divisor = t.divisor(t.choose_number(none, t.constant(1.0), difference))
    return alpha, tuple(tau), beta, divisor


def _apply(t: Lanes, a: Matrix, k: Integer, tau: Number, first: Integer) -> None:
    """I - tau v v^H times the columns from `first` on, for the v in column k, from row k on."""
    n = a.columns
    products = t.matrix(1, n)
    t.each(first, n, lambda j: t.put(t.constant(0.0), products, 0, j))

    def collect(i: Integer) -> None:
        v = t.conjugate(t.get(a, i, k))
        t.each(
            first, n,
            lambda j: t.put(
                t.plus(t.get(products, 0, j), t.times(v, t.get(a, i, j))), products, 0, j
            ),
        )  # fmt: skip

    def subtract(i: Integer) -> None:
        factor = t.times(tau, t.get(a, i, k))
        t.each(first, n, lambda j: _reduce(t, a, i, j, factor, t.get(products, 0, j)))

    t.each(k, a.rows, collect)
    t.each(k, a.rows, subtract)


def reflectors_product(t: Lanes, a: Matrix, taus: Matrix) -> None:
    """The first columns of the product of the reflectors in a, in its place."""
    m, n, count = a.rows, a.columns, taus.columns

    def unit(j: Integer) -> None:
        t.each(0, m, lambda i: t.put(t.constant(0.0), a, i, j))
        t.put(t.constant(1.0), a, j, j)

    t.each(count, n, unit)

    def column(step: Integer) -> None:
        k = t.add(t.mul(step, -1), count - 1)
        tau = t.get(taus, 0, k)
        after = t.add(k, 1)
        t.put(t.constant(1.0), a, k, k)
        _apply(t, a, k, tau, after)
        minus_tau = tuple(t.fneg(part) for part in tau)
        t.each(after, m, lambda i: t.put(t.times(minus_tau, t.get(a, i, k)), a, i, k))
        t.put(t.minus(t.constant(1.0), tau), a, k, k)
        t.each(0, k, lambda i: t.put(t.constant(0.0), a, i, k))

    t.each(0, count, column)
