"""Scatters with so many updates that parts of the operand are tasks, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

RNG = np.random.default_rng(3)
INDICES = RNG.integers(-1_300_007, 1_300_007, 70_000).astype(np.int32)  # some outside
ROWS = RNG.integers(0, 1001, 3000).astype(np.int32)
PAIRS = RNG.integers(-3, 1100, (70_000, 2)).astype(np.int32)


def _inside(index, size):
    index = np.where(index < 0, index + size, index)
    return index, (index >= 0) & (index < size)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16], ids=lambda t: np.dtype(t).name
)  # fmt: skip
@pytest.mark.parametrize("width", [24, 200])  # windows in one task, in parts
def test_in_the_order_of_updates(dtype, width):
    x = np.zeros(1_250_003, dtype)
    updates = RNG.integers(0, 9, INDICES.size).astype(dtype)
    pairs = RNG.integers(0, 9, (1100, 1090)).astype(dtype)
    windows = RNG.integers(0, 9, (ROWS.size, width)).astype(dtype)
    table = RNG.integers(0, 9, (1001, width)).astype(dtype)

    add = "max" if dtype is np.bool_ else "add"

    def program(x, pairs, table, i, rows, two, updates, windows):
        return (
            x.at[i].set(updates), getattr(pairs.at[two[:, 0], two[:, 1]], add)(updates),
            getattr(table.at[rows], add)(windows), table.T.at[:, rows].set(windows.T),
        )  # fmt: skip

    ours = lamina.jit(program)(x, pairs, table, INDICES, ROWS, PAIRS, updates, windows)
    put, added, summed, rows = x.copy(), pairs.copy(), table.copy(), table.copy()
    at, inside = _inside(INDICES, x.size)
    for index, update in zip(at[inside], updates[inside], strict=True):
        put[index] = update
    (i, i_inside), (j, j_inside) = _inside(PAIRS[:, 0], 1100), _inside(PAIRS[:, 1], 1090)
    kept = i_inside & j_inside
    for a, b, update in zip(i[kept], j[kept], updates[kept], strict=True):
        added[a, b] += update
    for row, window in zip(ROWS, windows, strict=True):
        summed[row] += window
        rows[row] = window
    for name, got, expected in zip(
        ("put", "added", "summed", "rows"), ours, (put, added, summed, rows.T), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got), expected, name)


def test_products_with_a_sparse_matrix_in_a_loop():
    """Rows counted from the end, too; what a scatter reads does not change from step to step."""
    rng = np.random.default_rng(3)
    n, entries = 700, 9_000
    rows, columns = rng.integers(-n, n, (2, entries))
    values, x = rng.random(entries), rng.random(n)

    def iterate(values, rows, columns, x):
        def step(_, x):
            y = jnp.zeros(n).at[rows].add(values * x[columns])
            return y / jnp.max(y)

        return lamina.lax.fori_loop(0, 4, step, x)

    with lamina.enable_x64(True):
        compiled = lamina.jit(iterate).lower(values, rows, columns, x).compile()
        got = compiled(values, rows, columns, x)
    for _ in range(4):
        y = np.zeros(n)
        np.add.at(y, rows, values * x[columns])
        x = y / y.max()
    np.testing.assert_allclose(got, x, rtol=1e-12)
