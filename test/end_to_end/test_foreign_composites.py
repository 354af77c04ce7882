"""Composites of ours in programs from outside whose parts contradict each other: what their decomposition
computes counts."""

from __future__ import annotations

import numpy as np
import pytest

import lamina

X = np.arange(10, dtype=np.float32).reshape(5, 2)
FITS = {
    "lanes": "@lane", "size": "5 : i64", "block": "1 : i64", "batched": "array<i64: 1, 0>",
}  # fmt: skip


def program(**given: str) -> str:
    attributes = ", ".join(f"{name} = {value}" for name, value in given.items())
    return f"""func.func public @main(%x: tensor<5x2xf32>, %s: tensor<f32>) -> tensor<5x2xf32> {{
  %0 = stablehlo.composite "lamina.lanes" %x, %s {{
    composite_attributes = {{{attributes}}}, decomposition = @all_lanes
  }} : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}}
func.func private @lane(%x: tensor<2xf32>, %s: tensor<f32>) -> tensor<2xf32> {{
  %0 = stablehlo.negate %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}}
func.func private @small(%x: tensor<f32>, %s: tensor<f32>) -> tensor<f32> {{
  return %x : tensor<f32>
}}
func.func private @all_lanes(%x: tensor<5x2xf32>, %s: tensor<f32>) -> tensor<5x2xf32> {{
  %0 = stablehlo.add %x, %x : tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}}"""


def test_a_batch_that_fits_runs_its_lanes():
    (found,) = lamina.compile_stablehlo(program(**FITS))(X, np.float32(1))
    np.testing.assert_array_equal(found, -X)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": "6 : i64"},
        {"size": "0 : i64"},
        {"size": "-5 : i64"},
        {"size": '"5"'},
        {"block": "0 : i64"},
        {"block": "2 : i64"},
        {"block": "9 : i64"},
        {"batched": "array<i64: 1>"},
        {"batched": "array<i64: 1, 1>"},
        {"batched": "[true, false]"},
        {"lanes": "@small"},
        {"lanes": "@nobody"},
        {"lanes": '"lane"'},
        {"lane": "@small"},
        {"lane": "@nobody"},
    ],
    ids=str,
)
def test_a_batch_that_contradicts_itself(wrong):
    (found,) = lamina.compile_stablehlo(program(**(FITS | wrong)))(X, np.float32(1))
    np.testing.assert_array_equal(found, X + X)


@pytest.mark.parametrize("name", FITS)
def test_a_batch_that_lacks_something(name):
    given = {other: value for other, value in FITS.items() if other != name}
    (found,) = lamina.compile_stablehlo(program(**given))(X, np.float32(1))
    np.testing.assert_array_equal(found, X + X)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [("in_blocks = @negated", -X), ("in_blocks = @lane", X + X), ("", X + X),
     ("in_blocks = @nobody", X + X), ("in_blocks = 5 : i64", X + X)],
)  # fmt: skip
def test_two_forms(attributes, expected):
    text = f"""func.func public @main(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {{
  %0 = stablehlo.composite "lamina.two_forms" %x {{
    composite_attributes = {{{attributes}}}, decomposition = @doubled
  }} : (tensor<5x2xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}}
func.func private @lane(%x: tensor<2xf32>) -> tensor<2xf32> {{ return %x : tensor<2xf32> }}
func.func private @negated(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {{
  %0 = stablehlo.negate %x : tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}}
func.func private @doubled(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {{
  %0 = stablehlo.add %x, %x : tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}}"""
    (found,) = lamina.compile_stablehlo(text)(X)
    np.testing.assert_array_equal(found, expected)
