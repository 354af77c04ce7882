"""Concatenations and pads in one kernel with what makes the parts and what follows, against NumPy."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

RNG = np.random.default_rng(0)


def drawn(dtype, *shape):
    return (RNG.normal(size=shape) * 5).astype(dtype)


def kernels(function, *args) -> list[str]:
    manifest = lamina.jit(function).lower(*args).compile().as_text("manifest")
    return [kernel["kind"] for kernel in json.loads(manifest)["kernels"]]


def stencil(xp, u):
    neighbours = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
    return neighbours - u * u


def halves_turned(xp, x, c, s):
    a, b = xp.split(x, 2, -1)
    return x * c + xp.concatenate([-b, a], -1) * s


def padded(xp, x):
    rows = xp.arange(x.shape[0] + 3)[:, None]
    return xp.pad(x * x, ((1, 2), (0, 4))) * rows.astype(x.dtype) + x[0, 0]


def rows_and_more(xp, x, y):
    whole = xp.concatenate([x + x, y, x[1:2]], 0)
    return whole * whole[:1], whole + xp.concatenate([y, x, x[:1]], 0)


def columns_turned(xp, x):
    return xp.concatenate([x.T, x.T[:, ::-1]], 1) + xp.pad(x.T, ((0, 0), (x.shape[0], 0)))


def crossed(xp, x, y):
    return xp.cross(x, y) + y


def columns_of_different_origin(xp, x, y, z):
    shared = x * y
    whole = xp.stack([shared, z[..., 1] + shared, xp.broadcast_to(y[:1], x.shape)], -1)
    return whole, xp.pad(z, ((0, 0), (0, 0), (1, 2))) * x[..., None]


def apart(xp, x, y):
    """What the gradients of slices with steps are."""
    if xp is jnp:
        gap = lax.pad(x * x, jnp.zeros((), x.dtype), [(0, 1, 1), (2, 1, 2)])
        return gap + lax.pad(y, jnp.ones((), x.dtype), [(1, 0, 1), (0, 0, 0)])[:, ::-1]
    gap = xp.zeros((2 * x.shape[0], 3 * x.shape[1] + 1), x.dtype)
    gap[::2, 2::3] = x * x
    other = xp.ones_like(gap)
    other[1::2] = y
    return gap + other[:, ::-1]


def differences(xp, x):
    return xp.diff(x, n=3, axis=0), xp.diff(x * x, n=2), xp.diff(x + x[:1], n=2)[:, ::-1]


def around(xp, x):
    """Each is put together along one dimension after the other."""
    modes = ("reflect", "symmetric", "wrap", "edge", "constant")
    everywhere = [xp.pad(x, ((2, 1), (0, 3)), mode=mode) * x[:1, :1] for mode in modes]
    return *everywhere, xp.roll(x, (3, -2), (0, 1)), xp.fft.fftshift(x)


def blocks(xp, x, y):
    return xp.block([[x, x * x], [y, -y]]), xp.concatenate([xp.concatenate([x, y], 0), xp.concatenate([y, x], 0)], 1)


def cropped(xp, x):
    wide = xp.pad(x, ((0, 0), (4, 4), (4, 4)), mode="reflect")[:, 2:-3, ::-1]
    turned = xp.roll(x, 5, 2)[:, 1:, 3:-1]
    every_second = xp.concatenate([x, x * x], 1)[:, 1::2]
    return wide + wide[:1], turned, every_second, xp.pad(x, 2, mode="symmetric")[1:-1, 2:, :-2]


PROGRAMS = {
    "around": (around, (23, 40)),
    "around few": (around, (4, 5)),
    "blocks": (blocks, (9, 31), (6, 31)),
    "cropped": (cropped, (3, 21, 18)),
    "rolled both ways": (stencil, (33, 70)),
    "halves turned": (halves_turned, (5, 7, 34), (7, 34), (7, 34)),
    "padded": (padded, (40, 9)),
    "rows": (rows_and_more, (13, 11), (6, 11)),
    "columns": (columns_turned, (37, 19)),
    "cross": (crossed, (101, 3), (101, 3)),
    "few rows crossed": (crossed, (5, 3), (5, 3)),
    "apart": (apart, (9, 33), (9, 100)),
    "a whole number of steps apart": (apart, (40, 1), (40, 4)),
    "differences": (differences, (21, 40)),
    "columns of different origin": (columns_of_different_origin, (3, 41), (41,), (3, 41, 2)),
}
DTYPES = ("float32", "int8", "uint32", "complex64", "float16", ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    program, *shapes = PROGRAMS[name]
    args = [drawn(dtype, *shape) for shape in shapes]
    with np.errstate(all="ignore"):
        want = program(np, *args)
    got = lamina.jit(lambda *args: program(jnp, *args))(*args)
    is_exact = np.dtype(dtype).kind in "iu"
    are_two = isinstance(want, tuple)
    for mine, theirs in zip(got if are_two else [got], want if are_two else [want]):
        if is_exact:
            np.testing.assert_array_equal(mine, theirs)
        else:
            rough = 4e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
            wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
            np.testing.assert_allclose(
                np.asarray(mine).astype(wide), theirs.astype(wide), rtol=rough, atol=20 * rough
            )


def test_one_kernel():
    x = jnp.ones((64, 64))
    angles = jnp.ones((64, 64))
    assert kernels(lambda u: stencil(jnp, u), x) == ["loop"]
    assert kernels(lambda *args: halves_turned(jnp, *args), x, angles, angles) == ["loop"]
    for program in (lambda x: (x[1:] * x[:-1]).sum(), lambda x: (jnp.diff(x) ** 2).sum()):
        assert kernels(lamina.grad(program), jnp.ones(1000)) == ["loop"]
    product = lambda x: ((x[::2] + x[1::2]) * (x[::2] - x[1::2])).sum()  # noqa: E731
    assert kernels(lamina.grad(product), jnp.ones(1000)) == ["loop"]
    assert kernels(lambda x: jnp.diff(x, n=3), jnp.ones(1000)) == ["loop"]
    assert kernels(lamina.grad(lambda x: (jnp.pad(x, 3) ** 2).sum()), x) == ["loop"]
    for mode in ("reflect", "edge", "wrap"):
        assert kernels(lambda x: jnp.pad(x, 3, mode=mode)[1:, 2:-2] * 2, x) == ["loop"]  # noqa: B023
    assert kernels(lambda x: jnp.block([[x, -x], [x * x, x]]), x) == ["loop"]
    assert kernels(lambda x: jnp.roll(x, (3, 5), (0, 1)), x) == ["loop"]
    rows = jnp.ones((1000, 3))
    assert kernels(lambda *args: crossed(jnp, *args), rows, rows) == ["loop"]


def test_values_of_pads_and_empty_parts():
    x = drawn("float32", 20)

    @lamina.jit
    def program(x, value):
        front = lax.pad(x * 2, value, [(3, 2, 0)]) * jnp.arange(25)
        return front + jnp.concatenate([x[:0], x, x[:5], x[:0]])

    want = np.pad(x * 2, (3, 2), constant_values=7) * np.arange(25) + np.concatenate([x, x[:5]])
    np.testing.assert_allclose(program(x, 7.0), want, rtol=1e-6)
    assert np.isnan(np.asarray(program(x, np.nan))[[0, 1, 2, 23, 24]]).all()
    assert np.isfinite(program(x, np.inf)[3:23]).all()


@pytest.mark.parametrize("step", (2, 3, 5, 9, -2, -3))
@pytest.mark.parametrize("size", (1, 2, 40, 301))
def test_gradients_of_slices_with_steps(step, size):
    x, w = drawn("float32", size, size), drawn("float32", size, size)
    got = lamina.jit(lamina.grad(lambda x: (x[:, ::step] * w[:, ::step]).sum()))(x)
    want = np.zeros_like(x)
    want[:, ::step] = w[:, ::step]
    np.testing.assert_array_equal(got, want)
    got = lamina.jit(lamina.grad(lambda x: (x[::step, 1::2] * w[::step, 1::2]).sum()))(x)
    want = np.zeros_like(x)
    want[::step, 1::2] = w[::step, 1::2]
    np.testing.assert_array_equal(got, want)


def test_indices_of_16_bits_are_counted_in_integers():
    x = np.zeros(400, ml_dtypes.bfloat16)
    got = lamina.jit(lambda x: jnp.concatenate([x, x]) + lax.iota(x.dtype, 800))(x)
    np.testing.assert_array_equal(got, np.arange(800).astype(ml_dtypes.bfloat16))


def test_a_donated_argument_is_read_before_it_is_overwritten():
    x = drawn("float32", 1000)
    rolled = lamina.jit(lambda x: jnp.roll(x, 3) * 2 + x, donate_argnums=0)
    np.testing.assert_allclose(rolled(jnp.array(x)), np.roll(x, 3) * 2 + x, rtol=1e-6)


def test_what_is_rolled_both_ways_is_read_before_it_is_overwritten():
    x = drawn("float32", 100, 90)
    rolled = lamina.jit(lambda x: jnp.roll(x, (3, 5), (0, 1)) * 2 + x, donate_argnums=0)
    np.testing.assert_allclose(rolled(jnp.array(x)), np.roll(x, (3, 5), (0, 1)) * 2 + x, rtol=1e-6)


@pytest.mark.parametrize("rows", (160, 1003))
def test_columns_of_a_donated_argument_are_read_before_they_are_overwritten(rows):
    x, y = drawn("float32", rows, 3), drawn("float32", rows, 3)
    turned = lamina.jit(lambda x, y: jnp.concatenate([x[:, 1:], x[:, :1]], 1) + y, donate_argnums=1)
    np.testing.assert_allclose(turned(x, jnp.array(y)), np.roll(x, -1, 1) + y, rtol=1e-6)


@pytest.mark.parametrize("donated", (False, True))
@pytest.mark.parametrize("window", ("1:", ":-1", "1:-1,1:-2", "2:,:70", ":,3:"))
def test_updates_of_a_part_of_an_argument(window, donated):
    """Put together where the argument is not given away; done in place where it is."""
    window = eval(f"np.s_[{window}]")
    x, y = drawn("float32", 40, 80), drawn("float32", 40, 80)
    program = lamina.jit(lambda x, y: x.at[window].add(y[window] * 2), donate_argnums=0 if donated else ())
    want = x.copy()
    want[window] += y[window] * 2
    kinds = [
        kernel["kind"]
        for kernel in json.loads(program.lower(x, y).compile().as_text("manifest"))["kernels"]
    ]
    assert ("update" in kinds) == donated
    np.testing.assert_allclose(program(jnp.array(x), y), want, rtol=1e-6)


def test_in_the_steps_of_a_loop():
    x = drawn("float32", 130)
    stepped = lamina.jit(lambda x: lax.fori_loop(0, 5, lambda _, x: jnp.roll(x, 7) * 0.5 + x, x))
    want = x
    for _ in range(5):
        want = np.roll(want, 7) * np.float32(0.5) + want
    np.testing.assert_allclose(stepped(x), want, rtol=1e-4, atol=1e-5)
