"""A step of a loop costs what it touches: parts of arrays that a step makes in another form, and updates of parts."""

import re
from math import prod

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

N, STEPS = 40, 12
A = np.random.default_rng(0).standard_normal((N, N)).astype(np.float32)

# What a step reads a row of, by a traced index.
READS = {
    "slice": lambda np, a, i: a[1:-1, 2:-2][i],
    "slice beside": lambda np, a, i: a[i, 1:-1],
    "slice of columns": lambda np, a, i: a[1:-1, i],
    "strided": lambda np, a, i: a[i, ::2],
    "strided rows": lambda np, a, i: a[1::2][i],
    "backwards": lambda np, a, i: a[::-1, ::-1][i],
    "padded": lambda np, a, i: np.pad(a, ((2, 3), (1, 1)), constant_values=7)[i],
    "padded window": lambda np, a, i: _window(np, np.pad(a, ((2, 3), (0, 0)), constant_values=7), i, 3),
    "concatenated": lambda np, a, i: np.concatenate([a[:5], a, a[:3]])[i],
    "concatenated window": lambda np, a, i: _window(np, np.concatenate([a[:5], a]), i, 4),
    "concatenated beside": lambda np, a, i: np.concatenate([a, a[:, :2]], 1)[i],
    "reshaped": lambda np, a, i: a.reshape(N // 2, 2, N)[i, 1],
    "reshaped slice": lambda np, a, i: a[:, 1:-1].reshape(N // 2, 2, N - 2)[i, 1],
    "flat": lambda np, a, i: a[:, 1:-1].reshape(-1)[i],
    "transposed": lambda np, a, i: a.T[i],
    "broadcast": lambda np, a, i: np.broadcast_to(a[0][:, None] * 2, (N, N))[i],
    "converted": lambda np, a, i: a.astype(np.float64)[i],
    "computed": lambda np, a, i: (np.sin(a) * 2 + 1)[i],
    "counted": lambda np, a, i: (np.arange(N) * 3)[i] * a[i],
    "gathered": lambda np, a, i: a[1:-1, 1:][np.asarray([0, 3, 5]) + i],
    "gathered and computed": lambda np, a, i: (a * 2)[np.asarray([0, 3, 5]) + i],
    "part of a part": lambda np, a, i: _window(np, a, i, 5)[2],
}


def _window(np_, a, i, size):
    if np_ is np:
        return a[i : i + size]
    return lax.dynamic_slice(a, (i, 0), (size, a.shape[1]))


def _in_steps(read):
    def run(a):
        first = read(jnp, a, 0)
        out = jnp.zeros((STEPS, *first.shape), first.dtype)
        return lax.fori_loop(0, STEPS, lambda i, out: out.at[i].set(read(jnp, a, i)), out)

    return run


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    with np.errstate(all="ignore"):
        expected = np.stack([READS[name](np, A, i) for i in range(STEPS)])
    with lamina.enable_x64(True):
        np.testing.assert_allclose(lamina.jit(_in_steps(READS[name]))(A), expected, rtol=1e-6)


@pytest.mark.parametrize("name", READS)
def test_a_step_makes_no_array_larger_than_what_it_reads(name):
    with lamina.enable_x64(True):
        row = prod(np.shape(READS[name](np, A, 0)))
        text = lamina.jit(_in_steps(READS[name])).lower(A).compile().as_text("optimized")
    assert _largest_made(text) <= 6 * max(row, 8) < N * N


def _largest_made(text: str) -> int:
    """Elements of the largest array that an op in a loop's body makes; not what it carries, nor another
    shape of an array in memory."""
    body = text[text.index(" do {") : text.rindex("stablehlo.return")]
    made = re.findall(r"(stablehlo\.\w+).*?(?:->|:) (?:\(.*?\) -> )?tensor<((?:\d+x)*)\w+>$", body, re.M)
    sizes = [
        prod(int(n) for n in shape.split("x") if n)
        for op, shape in made
        if op not in ("stablehlo.constant", "stablehlo.dynamic_update_slice", "stablehlo.reshape")
    ]
    assert sizes
    return max(sizes)


# What a step writes of the array that the loop carries.
UPDATES = {
    "beside": lambda a, i, put: put(a, (i, slice(1, -1)), a[i - 1, 1:-1] * 0.5),
    "columns": lambda a, i, put: put(a, (slice(1, -1), i), a[1:-1, i - 1] + 1),
    "backwards": lambda a, i, put: put(a, (i, slice(None, None, -1)), a[i - 1] * 2),
    "strided": lambda a, i, put: put(a, (i, slice(None, None, 2)), a[i - 1, 1::2]),
    "one": lambda a, i, put: put(a, (i, i), a[i - 1, i] * 3),
    "windows of rows": lambda a, i, put: put(a, (i, 3), 1.0),
    "of a slice": lambda a, i, put: put(
        a, (slice(2, -2), slice(3, None)), put(a[2:-2, 3:], (i,), a[i, 3:] * 2)
    ),
    "of the transposed": lambda a, i, put: put(a.T, (i,), a[i] * 2).T,
    "of the reversed": lambda a, i, put: put(a[::-1], (i,), a[i] * 2)[::-1],
    "of the converted": lambda a, i, put: put(a.astype(np.float64), (i,), a[i] * 2).astype(np.float32),
    "stencil": lambda a, i, put: put(
        a, (i, slice(1, -1)), 0.25 * (a[i - 1, 1:-1] + a[i + 1, 1:-1] + a[i, :-2] + a[i, 2:])
    ),
}  # fmt: skip


def _put_numpy(a, index, value):
    a = a.copy()
    a[index] = value
    return a


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    def run(a):
        return lax.fori_loop(1, STEPS, lambda i, a: UPDATES[name](a, i, lambda a, at, v: a.at[at].set(v)), a)

    expected = A
    for i in range(1, STEPS):
        expected = UPDATES[name](expected, i, _put_numpy)
    with lamina.enable_x64(True):
        compiled = lamina.jit(run).lower(A).compile()
        np.testing.assert_allclose(compiled(A), expected, rtol=1e-5)
    assert _largest_made(compiled.as_text("optimized")) <= 4 * N


@pytest.mark.parametrize("how", ["set", "add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("index", [-N - 3, -N, -1, 0, N - 1, N, N + 5])
@pytest.mark.parametrize("mode", [None, "clip"])
def test_updates_at_a_traced_index_out_of_bounds(how, index, mode):
    row = np.arange(N - 2, dtype=np.float32)
    i = index + N if index < 0 else index
    i = min(max(i, 0), N - 1) if mode else i
    expected = A.copy()
    if 0 <= i < N:
        combine = {"set": lambda _, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
                   "min": np.minimum, "max": np.maximum}  # fmt: skip
        expected[i, 1:-1] = combine[how](expected[i, 1:-1], row)
    got = lamina.jit(lambda a, i: getattr(a.at[i, 1:-1], how)(row, mode=mode))(A, index)
    np.testing.assert_array_equal(got, expected)


def test_windows_by_index_arrays():
    """Rows that are written beside a slice: as windows, one for each index."""
    rows, values = np.array([3, 7, 3, 99]), np.ones((4, N - 3), np.float32)
    expected = A.copy()
    np.add.at(expected, (rows[:3], slice(1, -2)), values[:3])
    text = lamina.jit(lambda a, r: a.at[r, 1:-2].add(values)).lower(A, rows).as_text()
    assert "update_window_dims = [1]" in text
    np.testing.assert_allclose(lamina.jit(lambda a, r: a.at[r, 1:-2].add(values))(A, rows), expected)
    turned = lamina.jit(lambda a, r: a.at[r[:2], -3:0:-1].set(values[:2] * np.arange(N - 3)))(A, rows)
    expected = A.copy()
    expected[rows[:2], -3:0:-1] = values[:2] * np.arange(N - 3)
    np.testing.assert_array_equal(turned, expected)


def test_derivatives_of_updates_beside_slices():
    def f(a, v, i):
        return (jnp.sin(a).at[i, 1:-1].multiply(v) ** 2).sum() + (jnp.asarray(a).at[2:5, i].set(v[:3]) ** 3).sum()

    v = np.linspace(-1, 1, N - 2).astype(np.float32)
    lamina.test_util.check_grads(lambda a, v: f(a, v, 4), (A, v), order=1, modes=("fwd", "rev"), rtol=2e-2, atol=2e-2)


_VIEWS = st.sampled_from([
    lambda x: x[1:], lambda x: x[:, :-1], lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T, lambda x: x * 2,
    lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=3) if isinstance(x, lamina.Array)
    else np.pad(x, ((1, 2), (0, 1)), constant_values=3),
    lambda x: x.reshape(-1, 2) if x.size % 2 == 0 else x, lambda x: x.reshape(2, -1) if x.size % 2 == 0 else x,
    lambda x: (jnp if isinstance(x, lamina.Array) else np).concatenate([x, x[:1], x]),
    lambda x: x.astype(np.int32),
])  # fmt: skip


@hypothesis.given(
    st.integers(1, 9), st.integers(1, 9), st.lists(_VIEWS, min_size=1, max_size=5), st.data()
)
def test_parts_of_drawn_views(rows, columns, views, data):
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    expected = x
    for view in views:
        expected = view(expected)
    if 0 in expected.shape:
        return
    sizes = [data.draw(st.integers(1, n)) for n in expected.shape]
    starts = [data.draw(st.integers(0, n + 3)) for n in expected.shape]

    def run(x, starts):
        for view in views:
            x = view(x)
        return lax.dynamic_slice(x, starts, sizes)

    at = [min(s, n - size) for s, n, size in zip(starts, expected.shape, sizes, strict=True)]
    expected = expected[tuple(slice(s, s + size) for s, size in zip(at, sizes, strict=True))]
    np.testing.assert_array_equal(lamina.jit(run)(x, starts), expected)
