"""Kernels that pad what they read part by part, against JAX: all paddings, steps, layouts, types."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.kernel_runner import kernel, kernel_for

from lamina.backends.target import Target

RNG = np.random.default_rng(11)
NHWC = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
NCHW = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
JAX_LAYOUTS = {NHWC: ("NHWC", "HWIO", "NHWC"), NCHW: ("NCHW", "OIHW", "NCHW")}
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
SAME = ((1, 1), (1, 1))

CASES: dict[str, tuple[Any, ...]] = {
    # shapes, padding, and what is not usual
    "images": ((9, 28, 28, 16), (3, 3, 16, 16), SAME, {}),
    "one image": ((1, 56, 57, 32), (3, 3, 32, 16), SAME, {}),
    "prime sizes": ((2, 53, 59, 16), (3, 3, 16, 8), SAME, {}),
    "more padding than kernel": ((1, 40, 44, 40), (3, 3, 40, 8), ((9, 5), (0, 7)), {}),
    "all but the middle padded": ((1, 8, 8, 16), (3, 3, 16, 8), ((48, 56), (40, 33)), {}),
    "cut on one side": ((2, 50, 50, 16), (3, 3, 16, 8), ((-3, 5), (4, -1)), {}),
    "steps": ((2, 64, 65, 16), (5, 3, 16, 8), ((2, 1), (1, 1)), {"stride": (2, 3)}),
    "holes": ((2, 48, 48, 16), (3, 3, 16, 8), ((2, 2), (3, 3)), {"holes": (2, 3)}),
    "spread": ((2, 40, 40, 16), (3, 3, 16, 8), SAME, {"spread": (2, 1)}),
    "by channel": ((1, 60, 60, 64), (3, 3, 1, 64), SAME, {"groups": 64}),
    "groups": ((2, 40, 40, 32), (3, 3, 8, 48), SAME, {"groups": 4}),
    "channels first": ((2, 16, 56, 56), (24, 16, 3, 3), SAME, {"layout": NCHW}),
    "double": ((2, 40, 42, 16), (3, 3, 16, 8), SAME, {"type": "f64"}),
    "integers": ((2, 56, 56, 16), (3, 3, 16, 8), SAME, {"type": "i32"}),
}  # fmt: skip
WITH_TEMPORARIES = ["spread", "integers"]
"""Two phases' small copies; an input that vectors of 512 bits are filled from."""


def made(name: str, after: str = "") -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """The text of a case's kernel, its arguments and JAX's result."""
    x_shape, w_shape, padding, rest = CASES[name]
    stride, holes, spread = (rest.get(n, (1, 1)) for n in ("stride", "holes", "spread"))
    groups, layout, element = rest.get("groups", 1), rest.get("layout", NHWC), rest.get("type", "f32")
    x, w = (
        (4 * RNG.standard_normal(shape)).astype(NUMPY[element]) for shape in (x_shape, w_shape)
    )
    with jax.enable_x64(True):
        exact = np.int64 if element == "i32" else np.float64
        want = jax.lax.conv_general_dilated(
            x.astype(exact), w.astype(exact), stride, padding, spread, holes,
            JAX_LAYOUTS[layout], groups,
        )  # fmt: skip
    types = ["tensor<" + "x".join(map(str, s)) + f"x{element}>" for s in (x_shape, w_shape, want.shape)]
    window = (
        f"stride = {list(stride)}, pad = {[list(p) for p in padding]}, "
        f"lhs_dilate = {list(spread)}, rhs_dilate = {list(holes)}, reverse = [false, false]"
    )
    text = f"""
func.func @f(%x: {types[0]}, %w: {types[1]}) -> {types[2]} attributes {{lamina.kind = "output"}} {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = {layout}, window = {{{window}}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
    : ({types[0]}, {types[1]}) -> {types[2]}
  {after.replace("OUT", types[2])}
  return {"%r" if after else "%0"} : {types[2]}
}}"""
    return text, x, w, np.asarray(want)


def check(found: Any, x: np.ndarray, w: np.ndarray, want: np.ndarray) -> None:
    (got,) = found(x, w)
    rtol = {"f": 2e-5, "d": 1e-13, "i": 0.0}[got.dtype.char]
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    text, x, w, want = made(name)
    check(kernel(text), x, w, want)
    scratch = kernel_for(Target.parse("cpu:x86-64-v4"), text).scratch_bytes
    assert (scratch < 100_000) != (name in WITH_TEMPORARIES)


@pytest.mark.parametrize("name", ["one image", "by channel", "steps", "channels first"])
def test_what_follows_is_done_in_parts_too(name):
    after = """%c = stablehlo.constant dense<1.0> : OUT
  %1 = stablehlo.add %0, %c : OUT
  %r = stablehlo.maximum %1, %c : OUT"""
    text, x, w, want = made(name, after)
    found = kernel(text)
    check(found, x, w, np.maximum(want + 1, 1))
    assert found.made.scratch_bytes < 100_000, "the sums were stored before what follows"


def test_a_window_of_infinity_times_padding_is_not_a_number():
    text, x, w, _ = made("one image")
    w[0, 0] = np.inf
    (got,) = kernel(text)(np.abs(x) + 1, w)
    assert np.isnan(got[0, 0]).all() and np.isnan(got[0, :, 0]).all()
    assert np.isposinf(got[0, 1:, 1:]).all()


def test_the_largest_of_padded_windows():
    x = RNG.standard_normal((2, 112, 112, 16)).astype(np.float32)
    found = kernel("""
func.func @f(%x: tensor<2x112x112x16xf32>) -> tensor<2x56x56x16xf32> attributes {lamina.kind = "output"} {
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{
    padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>,
    window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x112x112x16xf32>, tensor<f32>) -> tensor<2x56x56x16xf32>
  return %0 : tensor<2x56x56x16xf32>
}""")
    (got,) = found(x)
    want = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    np.testing.assert_array_equal(got, want)
    assert not found.made.scratch_bytes, "all of it was padded at once"
