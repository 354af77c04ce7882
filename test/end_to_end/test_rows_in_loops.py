"""Rows and masked rows of arrays that loops read one at a time, and change."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((12, 17))


def read_in_one_kernel(f, *args):
    """The result, when a step of the loop reads arrays by one kernel beside scalars."""
    compiled = lamina.jit(f).lower(*args).compile()
    assert "fused_select" not in compiled.as_text("linalg"), "masked rows are stored"
    return np.asarray(compiled(*args))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_masked_rows(dtype):
    rows = ROWS.astype(dtype)

    def f(a):
        places = jnp.arange(a.shape[1])

        def step(j, sums):
            one = jnp.where(places < j, a[j], 0)
            other = jnp.where(places < j + 3, a[a.shape[0] - 1 - j], 0)
            return sums + jnp.dot(one, other)

        return lax.fori_loop(0, a.shape[0], step, jnp.zeros((), a.dtype))

    n, places = rows.shape[0], np.arange(rows.shape[1])
    wanted = sum(
        np.where(places < j, rows[j], 0) @ np.where(places < j + 3, rows[n - 1 - j], 0) for j in range(n)
    )
    with lamina.enable_x64(True):
        np.testing.assert_allclose(read_in_one_kernel(f, rows), wanted, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_what_a_mask_leaves_out_does_not_count():
    """Not even where it is no number."""
    rows = ROWS.astype(np.float32)
    rows[:, 9:] = np.nan
    places = np.arange(17)

    def f(a, until):
        def step(total, row):
            kept = jnp.where(jnp.arange(17) < until, row, 0)
            return total + jnp.dot(kept, kept), None

        return lax.scan(step, jnp.zeros(()), a)[0]

    kept = np.where(places < 9, rows, 0)
    np.testing.assert_allclose(lamina.jit(f)(rows, 9), np.sum(kept * kept), rtol=1e-5)
    assert np.isnan(lamina.jit(f)(rows, 10))


def test_starts_out_of_range_are_clamped():
    x = RNG.standard_normal((4, 5, 6, 7)).astype(np.float32)

    def f(x, at):
        part = lax.dynamic_slice(x, (at, at, at, at), (2, 1, 3, 7))
        return jnp.sin(lax.reshape(part, (2, 3, 7)))

    for at in (-9, -1, 0, 1, 2, 3, 4, 9):
        for dtype in (np.int8, np.int32, np.uint8, np.uint32):
            if at < 0 and np.dtype(dtype).kind == "u":
                continue
            i, j, k = (  # those below 0 count from the end
                min(max(at + n * (at < 0), 0), n - size) for n, size in zip(x.shape, (2, 1, 3), strict=False)
            )
            wanted = np.sin(x[i : i + 2, j, k : k + 3])
            np.testing.assert_allclose(lamina.jit(f)(x, dtype(at)), wanted, rtol=1e-6)


def test_an_array_is_read_before_it_is_overwritten():
    """A row that all rows need, of the array that a step makes anew."""

    def f(d):
        def step(k, d):
            return jnp.minimum(d, d[:, k][:, None] + d[k][None, :])

        return lax.fori_loop(0, d.shape[0], step, d)

    distance = wanted = RNG.random((30, 30)).astype(np.float32)
    for k in range(30):
        wanted = np.minimum(wanted, wanted[:, k, None] + wanted[None, k])
    compiled = lamina.jit(f).lower(distance).compile()
    np.testing.assert_allclose(compiled(distance), wanted, rtol=1e-6)
    assert "memref.copy" not in compiled.as_text("planned").partition("scf.while")[2]


def test_rows_written_after_they_were_read():
    def f(a):
        def step(i, a):
            return a.at[i].set(0.5 * (a[i - 1] + a[i + 1]) + a[i])

        return lax.fori_loop(1, a.shape[0] - 1, step, a)

    wanted = ROWS.astype(np.float32)
    given = wanted.copy()
    for i in range(1, len(wanted) - 1):
        wanted[i] = np.float32(0.5) * (wanted[i - 1] + wanted[i + 1]) + wanted[i]
    np.testing.assert_allclose(lamina.jit(f)(given), wanted, rtol=1e-5)


def _transposes(f, *args):
    return lamina.jit(f).lower(*args).compile().as_text("fused").count("stablehlo.transpose")


def test_a_recurrence_along_the_last_dimension():
    """Arrays of which a step touches one position of it are turned round, and back."""
    x, c = RNG.standard_normal((2, 20, 30, 40)).astype(np.float32)

    def f(x, c):
        def forward(k, c):
            return c.at[:, :, k].set(x[:, :, k] + 0.5 * c[:, :, k - 1])

        def back(i, y):
            k = x.shape[2] - 2 - i
            return y.at[:, :, k].set(c[:, :, k] - 0.5 * y[:, :, k + 1])

        c = lax.fori_loop(1, x.shape[2], forward, c)
        return c, lax.fori_loop(0, x.shape[2] - 1, back, jnp.zeros_like(x))

    there = c.copy()
    for k in range(1, 40):
        there[:, :, k] = x[:, :, k] + np.float32(0.5) * there[:, :, k - 1]
    again = np.zeros_like(x)
    for k in range(38, -1, -1):
        again[:, :, k] = there[:, :, k] - np.float32(0.5) * again[:, :, k + 1]
    for got, wanted in zip(lamina.jit(f)(x, c), (there, again), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    assert _transposes(f, x, c) >= 3


def test_columns_that_are_read_added_to_and_looked_up():
    x = RNG.standard_normal((100, 120)).astype(np.float32)
    order = RNG.integers(-120, 120, 90)

    def f(x, order):
        def step(i, y):
            column = x[:, order[i]] + y[:, i + 3]
            return y.at[:, i].add(column).at[:, -1].max(column[::-1])

        return lax.fori_loop(0, order.shape[0], step, x * 2)

    wanted = x * 2
    for i, k in enumerate(order):
        column = x[:, k] + wanted[:, i + 3]
        wanted[:, i] += column
        wanted[:, -1] = np.maximum(wanted[:, -1], column[::-1])
    np.testing.assert_allclose(lamina.jit(f)(x, order), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(700,), (6, 50), (300, 300)])
def test_rolled_by_the_number_of_a_step(shape):
    """Arrays that each step makes anew, and one that is the same in all."""
    x = RNG.standard_normal(shape).astype(np.float32)

    def f(x):
        def step(i, y):
            return 0.5 * jnp.roll(y, 3 * i - 20, -1) + jnp.roll(x, -i, -1)

        return lax.fori_loop(0, 30, step, x)

    wanted = x
    for i in range(30):
        wanted = np.float32(0.5) * np.roll(wanted, 3 * i - 20, -1) + np.roll(x, -i, -1)
    np.testing.assert_allclose(lamina.jit(f)(x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("rows, columns", [(3, 5), (17, 12), (150, 9), (33, 1)])
def test_sums_over_columns_read_them_where_they_lie(dtype, rows, columns):
    """A sum of three terms is none any longer."""
    a = (RNG.standard_normal((rows, columns)) * 4).astype(dtype)
    row = (RNG.standard_normal(rows) * 4).astype(dtype)

    def f(a, row):
        def step(j, sums):
            kept = jnp.where(jnp.arange(rows) < j, row, 0)
            return sums.at[j].set(jnp.sum(kept * a[:, j] - a[:, columns - 1 - j], dtype=a.dtype))

        return lax.fori_loop(0, columns, step, jnp.zeros(columns, a.dtype))

    wanted = [
        np.sum(np.where(np.arange(rows) < j, row, 0) * a[:, j] - a[:, columns - 1 - j]) for j in range(columns)
    ]
    with lamina.enable_x64(True):
        compiled = lamina.jit(f).lower(a, row).compile()
        assert rows == 3 or "fused_dynamic_slice" not in compiled.as_text("linalg"), "a column is copied"
        tolerance = 1e-3 if dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(np.asarray(compiled(a, row)), wanted, rtol=tolerance, atol=tolerance)


def test_columns_of_several_dimensions_and_what_stands_beside_them():
    a = RNG.standard_normal((4, 6, 5))
    w = np.arange(6.0)

    def f(a, w):
        def step(j, found):
            sums, most = found
            column = a[j % 4, :, j]
            sums = sums.at[j].set(jnp.dot(jnp.flip(w), column))
            return sums, jnp.maximum(most, jnp.max(a[:, :, j] * w, axis=1))

        return lax.fori_loop(0, 5, step, (jnp.zeros(5), jnp.full(4, -jnp.inf)))

    with lamina.enable_x64(True):
        sums, most = lamina.jit(f)(a, w)
        np.testing.assert_allclose(sums, [w[::-1] @ a[j % 4, :, j] for j in range(5)], rtol=1e-12)
        np.testing.assert_allclose(most, np.max(a * w[:, None], axis=(1, 2)), rtol=1e-12)


def test_a_column_that_is_written_while_it_is_summed():
    """As in factorisations by rows: each element comes from a product of a row and a column of the same array."""
    n = 23
    a = RNG.standard_normal((n, n)) + np.eye(n) * 2 * n
    wanted = a.copy()
    for i in range(n):
        for j in range(n):
            until = min(i, j)
            wanted[i, j] -= wanted[i, :until] @ wanted[:until, j]
            if j < i:
                wanted[i, j] /= wanted[j, j]

    def f(a):
        places = jnp.arange(n)

        def reduced(i, j, until, a):
            return a[i, j] - jnp.dot(jnp.where(places < until, a[i, :], 0.0), a[:, j])

        def row(i, a):
            a = lax.fori_loop(0, i, lambda j, a: a.at[i, j].set(reduced(i, j, j, a) / a[j, j]), a)
            return lax.fori_loop(i, n, lambda j, a: a.at[i, j].set(reduced(i, j, i, a)), a)

        return lax.fori_loop(0, n, row, a)

    with lamina.enable_x64(True):
        np.testing.assert_allclose(lamina.jit(f)(a), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("of", [np.int32, np.int64])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_masks_of_places_beside_any_number(name, of):
    """A mask is compared with how far a number is from where lanes begin: that must not overflow."""
    count, width = 12, 77
    rows = RNG.standard_normal((count, width))
    least, most = np.iinfo(of).min, np.iinfo(of).max
    numbers = np.array([least, least + 1, -1, 0, 1, 3, 40, width - 1, width, width + 1, most - 1, most], of)

    def f(rows, numbers):
        places = jnp.arange(width, dtype=of)

        def step(i, sums):
            there, back = getattr(jnp, name)(places, numbers[i]), getattr(jnp, name)(numbers[i], places)
            kept = jnp.where(there, rows[i], 0.0)
            return sums.at[i].set(jnp.dot(kept, kept) + 100 * jnp.sum(jnp.where(back, rows[i], 0.0)))

        return lax.fori_loop(0, count, step, jnp.zeros(count))

    places, compare = np.arange(width, dtype=of), getattr(np, name)
    wanted = [
        np.sum(np.where(compare(places, n), row, 0) ** 2) + 100 * np.sum(np.where(compare(n, places), row, 0))
        for row, n in zip(rows, numbers)
    ]
    with lamina.enable_x64(True):
        np.testing.assert_allclose(lamina.jit(f)(rows, numbers), wanted, rtol=1e-12, atol=1e-11)
