"""Contractions in register blocks against NumPy: all layouts, and sizes that fill no block."""

import re

import jax
import numpy as np
import pytest
from support.kernel_runner import kernel

from lamina.passes.kernels.cpu.gemm.contraction_blocks import blocks_of_rows

RNG = np.random.default_rng(7)


def dot(lhs, rhs, contract, batch=((), ()), dtype="f32", after=""):
    """A kernel of one dot_general; `after` are ops on %0 that make %r."""
    numpy_type = np.float32 if dtype == "f32" else np.float64
    a = RNG.standard_normal(lhs).astype(numpy_type)
    b = RNG.standard_normal(rhs).astype(numpy_type)
    with jax.enable_x64(True):
        want = jax.lax.dot_general(a.astype(np.float64), b.astype(np.float64), (contract, batch))
    shape = "x".join(map(str, want.shape))
    types = [f"tensor<{'x'.join(map(str, s))}x{dtype}>" for s in (lhs, rhs)]
    out = f"tensor<{shape}x{dtype}>"
    numbers = f"contracting_dims = {list(contract[0])} x {list(contract[1])}"
    if batch[0]:
        numbers = f"batching_dims = {list(batch[0])} x {list(batch[1])}, {numbers}"
    result = "%r" if after else "%0"
    text = f"""
func.func @f(%a: {types[0]}, %b: {types[1]}) -> {out}
    attributes {{lamina.kind = "output", lamina.matrix_products = "kernel"}} {{
  %0 = stablehlo.dot_general %a, %b, {numbers} : ({types[0]}, {types[1]}) -> {out}
  {after.replace("OUT", out)}
  return {result} : {out}
}}"""
    return kernel(text), a, b, np.asarray(want)


def check(made, a, b, want, rtol=2e-5):
    assert "llvm.fmuladd.v" in made.texts["llvm"], "not blocked"
    (got,) = made(a, b)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize("m", [2, 7, 33])
@pytest.mark.parametrize("n", [8, 37, 130])
def test_sizes_that_fill_no_block(m, n):
    k = max(16, 33_000 // (m * n) + 1)
    check(*dot((m, k), (k, n), ((1,), (0,))))


def test_blocks_are_of_one_height_where_one_divides_the_rows():
    assert blocks_of_rows(600, 14) == [(0, 600, 12)]
    assert blocks_of_rows(28, 14) == [(0, 28, 14)]
    assert blocks_of_rows(27, 14) == [(0, 14, 14), (14, 27, 13)]  # 9 would be much less


@pytest.mark.parametrize("sizes", [(2, 16, 8), (8, 8, 8), (7, 3, 13), (16, 16, 16), (3, 10, 100)])
def test_small_ones(sizes):
    """Plain loops would be unrolled and searched for vectors, which takes LLVM three times as long."""
    m, k, n = sizes
    check(*dot((m, k), (k, n), ((1,), (0,))))
    check(*dot((k, m), (k, n), ((0,), (0,))))


def test_a_small_factor_is_turned_in_registers():
    made, *rest = dot((8, 8), (8, 8), ((1,), (1,)))
    check(made, *rest)
    assert "= shufflevector <8 x float>" in made.texts["llvm"]


@pytest.mark.parametrize("lhs", ["mk", "km"])
@pytest.mark.parametrize("rhs", ["kn", "nk"])
def test_layouts(lhs, rhs):
    sizes = {"m": 45, "n": 77, "k": 31}
    shapes = [tuple(sizes[c] for c in part) for part in (lhs, rhs)]
    check(*dot(*shapes, ((lhs.index("k"),), (rhs.index("k"),))))


def test_batches_and_several_summed_dimensions():
    check(*dot((3, 20, 17), (3, 17, 48), ((2,), (1,)), ((0,), (0,))))
    check(*dot((3, 20, 17), (3, 48, 17), ((2,), (2,)), ((0,), (0,))))
    check(*dot((21, 5, 9), (5, 9, 40), ((1, 2), (0, 1))))
    check(*dot((5, 21, 9), (9, 40, 5), ((0, 2), (2, 0))))


def test_double_precision():
    check(*dot((33, 40), (40, 35), ((1,), (0,)), dtype="f64"), rtol=1e-13)


def test_what_follows_is_done_block_by_block():
    after = """%c = stablehlo.constant dense<1.0> : OUT
  %1 = stablehlo.add %0, %c : OUT
  %r = stablehlo.maximum %1, %c : OUT"""
    made, a, b, want = dot((45, 31), (31, 77), ((1,), (0,)), after=after)
    check(made, a, b, np.maximum(want + 1, 1))
    assert made.made.scratch_bytes == 0, "the product is stored before what follows"


def test_parts_of_sums_grow_in_the_result():
    """A right factor larger than the cache, by tasks of several blocks and by single blocks."""
    after = """%c = stablehlo.constant dense<1.0> : OUT
  %r = stablehlo.maximum %0, %c : OUT"""
    for rows in (32, 17):
        made, a, b, want = dot((rows, 600), (600, 450), ((1,), (0,)), after=after)
        check(made, a, b, np.maximum(want, 1))
        assert made.made.scratch_bytes == 0
        assert "llvm.prefetch" in made.texts["llvm"]


def test_parallel_tasks_and_outer_sums():
    """A right factor larger than the cache: the outer sum goes around the blocks."""
    check(*dot((150, 200), (200, 150), ((1,), (0,))))
    check(*dot((9, 40, 600), (40, 600, 24), ((1, 2), (0, 1))))


@pytest.mark.parametrize(
    ("lhs", "rhs", "options"),
    [
        ((2, 9, 14, 8), (3, 3, 8, 24), {"padding": "SAME", "window_strides": (1, 1)}),
        ((2, 9, 13, 8), (3, 3, 8, 24), {"padding": "VALID", "window_strides": (2, 2)}),
        (
            (1, 12, 12, 16),
            (3, 3, 16, 16),
            {"padding": "SAME", "window_strides": (1, 1), "rhs_dilation": (2, 2)},
        ),
    ],
)
def test_convolutions_and_their_gradients(lhs, rhs, options):
    import lamina

    x = RNG.standard_normal(lhs).astype(np.float32)
    w = RNG.standard_normal(rhs).astype(np.float32)

    def program(lib, numpy):
        def loss(x, w):
            y = lib.lax.conv_general_dilated(
                x, w, **options, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return numpy.sum(numpy.tanh(y) ** 2)

        return lib.jit(lib.value_and_grad(loss, (0, 1)))

    got = program(lamina, lamina.numpy)(x, w)
    want = program(jax, jax.numpy)(x, w)
    for g, e in zip(jax.tree_util.tree_leaves((got[0], *got[1])), jax.tree_util.tree_leaves(want)):
        np.testing.assert_allclose(g, e, rtol=2e-4, atol=2e-4 * np.abs(e).max())


@pytest.mark.parametrize("m", [203, 198])
@pytest.mark.parametrize("function", ["tanh", "exponential", "logistic"])
def test_sums_stay_in_registers_whatever_follows(m, function):
    """The constants of what is computed of the sums, in shorter loops that are nested deeper, don't take them."""
    after = f"%r = stablehlo.{function} %0 : OUT"
    made, a, b, want = dot((m, 128), (128, 256), ((1,), (0,)), after=after)
    want = {"tanh": np.tanh, "exponential": np.exp, "logistic": lambda x: 1 / (1 + np.exp(-x))}[function](want)
    np.testing.assert_allclose(*made(a, b), want, rtol=1e-4, atol=1e-5)
    loops = re.findall(r"^(\.LBB\w+):\n((?:\t.*\n)*?\tj\w+\t\1\n)", made.texts["asm"], re.MULTILINE)
    of_sums = [body for _, body in loops if body.count("vfmadd") >= 8 and "vpslld" not in body]
    assert of_sums
    assert not [body for body in of_sums if "%rsp" in body or "%rbp" in body]
