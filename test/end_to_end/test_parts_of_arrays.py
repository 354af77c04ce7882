"""Elements along one dimension, x[:, k], in programs with arrays of the shape that is left: read where they lie."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

SHAPES = [(6,), (4, 6), (6, 4), (5, 3, 4), (1, 5, 1), (2, 3, 4, 5)]


def _parts(shape):
    """Index expressions that take single elements of some dimensions, and all or some of others."""
    choices = [[slice(None), 0, n - 1, slice(n // 3, n), slice(None, None, 2)] for n in shape]
    rng = np.random.default_rng(len(shape))
    drawn = [tuple(c[rng.integers(len(c))] for c in choices) for _ in range(16)]
    return list({repr(i): i for i in drawn}.values())  # slices have no hash


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_beside_arrays_of_their_shape(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, shape).astype(dtype)
    parts = _parts(shape)
    beside = [rng.integers(-9, 9, x[i].shape).astype(dtype) for i in parts]

    @lamina.jit
    def run(x, beside):
        return [(x[i] * y + x[i], jnp.where(x[i] == y, y, 2 * x[i])) for i, y in zip(parts, beside, strict=True)]

    for i, y, (total, chosen) in zip(parts, beside, run(x, beside), strict=True):
        np.testing.assert_array_equal(total, x[i] * y + x[i], err_msg=str(i))
        np.testing.assert_array_equal(chosen, np.where(x[i] == y, y, 2 * x[i]), err_msg=str(i))


def test_coordinates_of_points():
    rng = np.random.default_rng(0)
    points, weights = rng.standard_normal((1000, 3)), rng.standard_normal(1000)
    image = rng.standard_normal((40, 50))
    points, weights, image = (a.astype(np.float32) for a in (points, weights, image))

    def height(p, w, image):
        y, x = jnp.floor(p[:, 0] * 3 + 20), jnp.floor(p[:, 1] * 3 + 20)
        return image[y.astype(int), x.astype(int)] * w + (p[1:, 2] - p[:-1, 2]).sum()

    y, x = (np.clip(np.floor(points[:, k] * 3 + 20), 0, n - 1).astype(int) for k, n in enumerate((40, 50)))
    expected = image[y, x] * weights + points[-1, 2] - points[0, 2]
    compiled = lamina.jit(height).lower(points, weights, image).compile()
    np.testing.assert_allclose(compiled(points, weights, image), expected, rtol=1e-4, atol=1e-4)
    lifted = lamina.jit(lambda p, w: jnp.sqrt(p[:, 0] ** 2 + p[:, 1] ** 2) * w).lower(points, weights).compile()
    np.testing.assert_allclose(lifted(points, weights), np.hypot(points[:, 0], points[:, 1]) * weights, rtol=1e-5)
    assert lifted.memory_analysis().temp_size_in_bytes == 0
    assert lifted.as_text("fused").count(" call @") == 1


def test_parts_of_what_a_loop_and_a_product_give():
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((4, 6), (6, 5)))

    def run(x, w):
        gates = (x @ w).reshape(4, 5, 1)
        kept = lamina.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + c[:, :1] * c[0], gates[:, :, 0])
        return gates[:, 1, 0] * kept[:, 2] + kept[1, :4], lamina.grad(lambda k: (k[:, 0] * k[0, :4]).sum())(kept)

    gates = x @ w
    kept = gates
    for _ in range(3):
        kept = kept * 0.5 + kept[:, :1] * kept[0]
    slope = np.zeros_like(kept)
    slope[:, 0] += kept[0, :4]
    slope[0, :4] += kept[:, 0]
    got = lamina.jit(run)(x, w)
    np.testing.assert_allclose(got[0], gates[:, 1] * kept[:, 2] + kept[1, :4], rtol=1e-3)
    np.testing.assert_allclose(got[1], slope, rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 2, 4, 3, 5), (2, 3, 1, 2, 3, 2)])
def test_padded_in_many_dimensions(shape):
    """Which would be hundreds of boxes."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    @lamina.jit
    def run(x):
        return jnp.sin(jnp.pad(x + 1, 1)), jnp.pad(x[1:], 1, constant_values=2) * 2

    padded, twice = run(x)
    np.testing.assert_allclose(padded, np.sin(np.pad(x + 1, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(twice, np.pad(x[1:], 1, constant_values=2) * 2)


def test_a_stencil_of_limited_differences_of_a_large_array():
    """Laplacians, differences of them without those against the gradient, their divergence: one kernel."""

    def diffuse(np_, a, c):
        lap = 4 * a[1:-1, 1:-1] - (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2])
        x, y = lap[1:, 1:-1] - lap[:-1, 1:-1], lap[1:-1, 1:] - lap[1:-1, :-1]
        x = np_.where(x * (a[2:-1, 2:-2] - a[1:-2, 2:-2]) > 0, 0, x)
        y = np_.where(y * (a[2:-2, 2:-1] - a[2:-2, 1:-2]) > 0, 0, y)
        return a[2:-2, 2:-2] - c * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])

    rng = np.random.default_rng(0)
    a, c = rng.random((304, 260)), rng.random((300, 256))
    with lamina.enable_x64(True):
        compiled = lamina.jit(lambda a, c: diffuse(jnp, a, c)).lower(a, c).compile()
        np.testing.assert_allclose(compiled(a, c), diffuse(np, a, c), rtol=1e-13, atol=1e-13)
    main = compiled.as_text("fused").split("func.func private")[0]
    assert main.count("call @") == 1
