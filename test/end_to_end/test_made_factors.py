"""Products of matrices that an element-wise op makes: in the product's kernel, panel by panel."""

import re

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

SIZES = [(32, 2048, 32), (64, 300, 96), (37, 257, 131), (130, 601, 100), (48, 64, 520)]
"""Rows, terms and columns: sums in parts, rests of rows, columns and terms."""


@pytest.fixture(autouse=True)
def _in_tiles():
    """Whatever this machine would choose."""
    with lamina.config.matrix_products("shared"):
        yield


def array(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * 0.5).astype(dtype)


def kernels(f, *args):
    compiled = lamina.jit(f).lower(*args).compile()
    return compiled, re.findall(r'lamina\.reason = "([^"]*)"', compiled.as_text("fused"))


def check(f, expected, *args, before=1, temporary=0, rtol=1e-5):
    """Whether f gives the expected values, in one kernel that makes a factor by so many ops."""
    with lamina.enable_x64(args[0].dtype == np.float64):
        compiled, reasons = kernels(f, *args)
        found = np.asarray(compiled(*args), np.float64)
    np.testing.assert_allclose(found, expected, rtol, rtol * np.abs(expected).max())
    assert len(reasons) == 1 and "dot_general" in reasons[0], reasons
    assert not before or f"{before} ops before" in reasons[0], reasons
    assert compiled.memory_analysis().temp_size_in_bytes <= temporary


def wide(x):
    return np.asarray(x, np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_the_first_factor_is_made_in_rows(m, k, n, dtype):
    a, b = array(m, k, dtype=dtype), array(k, n, dtype=dtype)
    check(lambda a, b: jnp.exp(a) @ b, np.exp(wide(a)) @ wide(b), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), [size for size in SIZES if size[2] >= 64])
def test_the_second_factor_is_made_in_columns(m, k, n, dtype):
    a, b = array(m, k, dtype=dtype), array(k, n, dtype=dtype)
    check(lambda a, b: a @ jnp.exp(b), wide(a) @ np.exp(wide(b)), a, b)


@pytest.mark.parametrize("narrow", [ml_dtypes.bfloat16, np.float16, np.int8, np.uint8, np.int32, bool])
def test_weights_are_read_as_what_they_are(narrow):
    a, scale = array(33, 200), array(300, seed=1)
    w = np.random.default_rng(2).integers(0, 120, (200, 300)).astype(narrow)
    check(
        lambda a, w, s: a @ (w.astype(np.float32) * s), wide(a) @ (wide(w) * wide(scale)), a, w, scale,
        before=3,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(2, 300, 520), (8, 2100, 1024), (33, 1030, 1024), (20, 1500, 1040), (64, 70, 600)]
)
def test_weights_of_bytes_in_products_of_narrow_floats(m, k, n, dtype):
    """In parts of a task, and where some columns are left, before."""
    a, scale = array(m, k).astype(dtype), array(n, seed=1).astype(dtype)
    w = np.random.default_rng(2).integers(-127, 128, (k, n)).astype(np.int8)
    made = wide(w.astype(dtype) * scale)
    f = lambda a, w, s: a @ (w.astype(dtype) * s)  # noqa: E731
    compiled, reasons = kernels(f, a, w, scale)
    assert reasons == ["dot_general with 3 ops before"]
    found = compiled(a, w, scale)
    assert found.dtype == dtype
    np.testing.assert_allclose(wide(found), wide(a) @ made, 1e-2, 1e-2 * np.abs(wide(a) @ made).max())
    if n == 1024:
        assert compiled.memory_analysis().temp_size_in_bytes <= made.size * 2 // 4


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize(("m", "k", "n"), [(2, 320, 520), (8, 2048, 1024), (33, 512, 1040), (64, 70, 600)])
def test_transposed_weights_of_bytes_in_products_of_narrow_floats(m, k, n, dtype):
    """As rows of tiles, where they can be."""
    a, scale = array(m, k).astype(dtype), array(n, 1, seed=1).astype(dtype)
    w = np.random.default_rng(2).integers(-127, 128, (n, k)).astype(np.int8)
    sums = wide(a) @ wide(w.astype(dtype) * scale).T
    compiled, reasons = kernels(lambda a, w, s: a @ (w.astype(dtype) * s).T, a, w, scale)
    if m > 8:
        assert reasons == ["dot_general with 3 ops before"]
    found = compiled(a, w, scale)
    assert found.dtype == dtype
    np.testing.assert_allclose(wide(found), sums, 1e-2, 1e-2 * np.abs(sums).max())


def test_rows_and_columns_are_scaled_and_shifted_before():
    x, w, scale, shift = array(64, 256), array(256, 128), array(256), array(64, 1, seed=3)
    check(
        lambda x, w, s, t: jnp.maximum(x * s + t, 0) @ w,
        np.maximum(wide(x) * scale + shift, 0) @ wide(w), x, w, scale, shift, before=5,
    )  # fmt: skip


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("dimensions", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_in_any_layout(dimensions, side):
    left, right = dimensions
    a = array(128, 96) if left == 0 else array(96, 128)
    b = array(128, 160) if right == 0 else array(160, 128)

    def f(a, b):
        factors = [a, b]
        factors[side] = jnp.tanh(factors[side])
        return lax.dot_general(*factors, (((left,), (right,)), ((), ())))

    made = [wide(a), wide(b)]
    made[side] = np.tanh(made[side])
    expected = np.tensordot(*made, (left, right))
    compiled, reasons = kernels(f, a, b)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), expected, 1e-5, 1e-5)
    assert len(reasons) == 1, reasons


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), [*(size for size in SIZES if size[2] >= 64), (135, 131, 140)])
@pytest.mark.parametrize("costly", [False, True])
def test_a_transposed_second_factor_is_turned_panel_by_panel(m, k, n, dtype, costly):
    """What costs little as it is made, the rest behind it. (Of few rows, beside which that is worth smaller blocks on
    slow processors, too.)"""
    a, b, scale = array(m, k, dtype=dtype), array(n, k, dtype=dtype), array(k, dtype=dtype)
    f = jnp.exp if costly else lambda x: jnp.maximum(x, -0.1)
    expected = wide(a) @ (np.exp(wide(b)) if costly else np.maximum(wide(b), -0.1) * wide(scale)).T
    if costly:
        check(lambda a, b: a @ f(b).T, expected, a, b)
    else:
        check(lambda a, b, s: a @ (f(b) * s).T, expected, a, b, scale, before=3)


def test_a_large_transposed_factor_is_turned_where_that_costs_little():
    a, b = array(40, 1100), array(1030, 1100)
    check(lambda a, b: a @ (b * 2 + 1).T, wide(a) @ (wide(b) * 2 + 1).T, a, b, before=2)
    compiled, reasons = kernels(lambda a, b: a @ jnp.exp(b).T, a, b)
    assert len(reasons) == 2
    np.testing.assert_allclose(compiled(a, b), wide(a) @ np.exp(wide(b)).T, 1e-4, 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(16, 512, 512), (17, 300, 250), (100, 1030, 515), (128, 520, 1100), (192, 256, 300)]
)
def test_a_transposed_matrix_is_copied_in_panels(m, k, n, dtype):
    a, b, bias = array(m, k, dtype=dtype), array(n, k, dtype=dtype), array(n, dtype=dtype)
    with np.errstate(all="ignore"):
        a[3, 5], b[7, 9] = np.inf, np.nan
    with lamina.enable_x64(dtype == np.float64):
        compiled, reasons = kernels(lambda a, b, c: jnp.maximum(a @ b.T + c, 0), a, b, bias)
        found = np.asarray(compiled(a, b, bias), np.float64)
    with np.errstate(all="ignore"):
        expected = np.maximum(wide(a) @ wide(b).T + bias, 0)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-4)
    assert len(reasons) == 1 and "library" not in reasons[0], reasons


@pytest.mark.parametrize("side", [(0,), (1,), (0, 1)])
def test_in_batches(side):
    a, b = array(6, 40, 64), array(6, 64, 80)
    made = [np.exp(wide(x)) if i in side else wide(x) for i, x in enumerate((a, b))]

    def f(*factors):
        return jnp.matmul(*(jnp.exp(x) if i in side else x for i, x in enumerate(factors)))

    check(f, made[0] @ made[1], a, b, before=len(side))


def test_one_weight_for_a_batch_is_made_once():
    x, w, bias = array(4, 40, 300), array(300, 96), array(96)
    check(
        lambda x, w, b: jnp.tanh(x @ jnp.exp(w) + b), np.tanh(wide(x) @ np.exp(wide(w)) + wide(bias)),
        x, w, bias,
    )  # fmt: skip


@pytest.mark.parametrize("k", [100, 700])
def test_with_what_follows(k):
    a, b, bias, residual = array(70, k), array(k, 150), array(150), array(70, 150)
    product = wide(a) @ np.tanh(wide(b)) + wide(bias)
    check(
        lambda a, b, c, r: jnp.maximum(a @ jnp.tanh(b) + c, 0) + r,
        np.maximum(product, 0) + wide(residual), a, b, bias, residual,
    )  # fmt: skip
    check(
        lambda a, b, c: (a @ jnp.tanh(b) + c).astype(jnp.bfloat16), product, a, b, bias, rtol=5e-3
    )


def test_both_factors_where_one_must_be_made_before():
    """The one that costs more is made in panels, the other for all tasks."""
    a, b = array(96, 300), array(300, 128)
    check(
        lambda a, b: jnp.abs(a) @ jnp.exp(b), np.abs(wide(a)) @ np.exp(wide(b)), a, b,
        before=2, temporary=96 * 300 * 4,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), [(40, 1100, 1030), (20, 900, 1500), (90, 2100, 333)])
def test_few_rows_and_a_large_factor(m, k, n, dtype):
    a, b, bias = array(m, k, dtype=dtype), array(k, n, dtype=dtype), array(n, dtype=dtype)
    check(
        lambda a, b, c: jnp.tanh(a @ b / 30 + c), np.tanh(wide(a) @ wide(b) / 30 + wide(bias)),
        a, b, bias, before=0,
    )  # fmt: skip


def test_what_another_reads_is_made_once():
    a, b = array(128, 128), array(128, 128)
    _, reasons = kernels(lambda a, b: (jnp.exp(a) @ b, jnp.exp(a)), a, b)
    assert len(reasons) == 2 and not any("before" in reason for reason in reasons)
    _, reasons = kernels(lambda a, b, c: (jnp.exp(a) @ b, jnp.exp(a) @ c), a, b, b)
    assert len(reasons) == 2 and not any("before" in reason for reason in reasons)


def test_what_follows_a_product_is_made_with_that():
    a, b = array(128, 128), array(128, 128)
    _, reasons = kernels(lambda a, b: jnp.tanh(a @ b) @ b, a, b)
    assert len(reasons) == 2 and not any("before" in reason for reason in reasons)


def test_nan_inf_and_donated_factors():
    a, b = array(128, 128), array(128, 80)
    a[3, 5], a[7, 0] = np.nan, np.inf
    expected = np.maximum(a, 0) @ b
    found = lamina.jit(lambda a, b: jnp.maximum(a, 0) @ b)(a, b)
    np.testing.assert_allclose(np.asarray(found), expected, 1e-4, 1e-4)
    square = array(128, 128)
    given = jnp.asarray(square)
    found = lamina.jit(lambda a: jnp.exp(a) @ a + a, donate_argnums=0)(given)
    expected = np.exp(wide(square)) @ wide(square) + square
    np.testing.assert_allclose(np.asarray(found), expected, 1e-4, 1e-4)


def test_the_gradient_of_a_network_with_weights_of_fewer_bits():
    x, y = array(128, 80), array(128, 16)
    first, second = array(80, 160, dtype=ml_dtypes.bfloat16), array(160, 16, dtype=ml_dtypes.bfloat16)

    def loss(weights, x, y, dtype=np.float32):
        hidden = lamina.nn.gelu((x / 2 - 0.1) @ weights[0].astype(dtype), approximate=False)
        return jnp.mean((hidden @ weights[1].astype(dtype) - y) ** 2)

    given = [np.asarray(w, np.float32) for w in (first, second)]
    found = lamina.jit(lamina.grad(loss))(given, x, y)
    narrow = lamina.jit(loss)([jnp.asarray(first), jnp.asarray(second)], x, y)
    np.testing.assert_allclose(float(narrow), float(loss(given, x, y)), 1e-5)
    for number, gradient in enumerate(found):
        along = array(*gradient.shape, seed=9)
        moved = [[wide(w) for w in given] for _ in range(2)]
        for sign, weights in zip((1, -1), moved):
            weights[number] += sign * 1e-4 * along
        with lamina.enable_x64(True):
            difference = [float(loss(w, wide(x), wide(y), np.float64)) for w in moved]
        slope = (difference[0] - difference[1]) / 2e-4
        np.testing.assert_allclose(np.sum(wide(gradient) * along), slope, 1e-4, 1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_with_any_number_of_threads(threads):
    a, b = array(65, 700), array(700, 200)
    f = lamina.jit(lambda a, b: a @ jnp.sin(b))
    with lamina.num_threads(threads):
        found = f(a, b)
    np.testing.assert_allclose(np.asarray(found), wide(a) @ np.sin(wide(b)), 1e-4, 1e-4)
