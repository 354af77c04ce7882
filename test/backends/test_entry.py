"""The entry function: control flow, copies and constants, run for real."""

# ruff: noqa: E501 (program text)

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lamina.backends.compile import compile_module
from lamina.dialects.context import parse
from lamina.dialects.types import tensor_type
from lamina.dialects.vendors import ir
from lamina.runtime import array_from_numpy
from lamina.runtime.executable import load


@pytest.fixture(autouse=True)
def _no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_CACHE", "0")


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    compilation = compile_module(parse(text))
    results = load(compilation.artifact)([array_from_numpy(a) for a in arrays])
    return [np.asarray(r.numpy_view()) for r in results]


@pytest.mark.parametrize("shape", [(), (3,), (7, 9), (40, 50), (0, 3)])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 0.0),
        (np.float32, 1.5),
        (np.float64, -2.5),
        (np.int8, -1),
        (np.uint16, 258),
        (np.complex64, 1 + 2j),
        (ml_dtypes.bfloat16, 3.0),
        (np.bool_, True),
    ],
)
def test_a_repeated_element_is_written_where_it_is_wanted(shape, dtype, value) -> None:
    expected = np.full(shape, value, dtype)
    with ir.Context(), ir.Location.unknown():
        of = str(tensor_type(shape, dtype))
    literal = {np.bool_: "true", np.complex64: "(1.0, 2.0)"}.get(dtype, value)
    text = f"func.func public @main() -> {of} {{ %0 = stablehlo.constant dense<{literal}> : {of} return %0 : {of} }}"
    (result,) = run(text)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()


def test_data_is_returned_as_it_stands() -> None:
    (result,) = run(
        "func.func public @main() -> tensor<2x2xcomplex<f64>> {"
        "%0 = stablehlo.constant dense<[[(1.0, 2.0), (3.0, -4.0)], [(0.0, 0.5), (-1.0, 0.0)]]>"
        " : tensor<2x2xcomplex<f64>> return %0 : tensor<2x2xcomplex<f64>> }"
    )
    np.testing.assert_array_equal(result, [[1 + 2j, 3 - 4j], [0.5j, -1]])


CASE = """
func.func public @main(%i: tensor<{kind}>, %x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "stablehlo.case"(%i) ({{
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }}, {{
    stablehlo.return %x : tensor<4xf32>
  }}, {{
    %1 = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }}) : (tensor<{kind}>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(
    ("index", "factor"), [(0, -1), (1, 1), (2, 2), (3, 2), (-1, 2), (-(2**31), 2)]
)
def test_case_out_of_range_takes_the_last_branch(index: int, factor: float) -> None:
    x = np.arange(4, dtype=np.float32)
    (result,) = run(CASE.format(kind="i32"), np.int32(index).reshape(()), x)
    np.testing.assert_array_equal(result, factor * x)


@pytest.mark.parametrize("p", [False, True])
def test_if_with_an_empty_branch(p: bool) -> None:
    x = np.arange(4, dtype=np.float32)
    (result,) = run(
        """
        func.func public @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "stablehlo.if"(%p) ({
            %1 = stablehlo.negate %x : tensor<4xf32>
            stablehlo.return %1 : tensor<4xf32>
          }, {
            stablehlo.return %x : tensor<4xf32>
          }) : (tensor<i1>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }""",
        np.bool_(p).reshape(()),
        x,
    )
    np.testing.assert_array_equal(result, -x if p else x)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_fibonacci_swaps_its_carry(n: int) -> None:
    (result,) = run(
        """
        func.func public @main(%n: tensor<i32>, %a: tensor<8xi64>, %b: tensor<8xi64>) -> tensor<8xi64> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %0:3 = stablehlo.while(%i = %zero, %x = %a, %y = %b) : tensor<i32>, tensor<8xi64>, tensor<8xi64>
            cond {
              %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            } do {
              %1 = stablehlo.add %i, %one : tensor<i32>
              %2 = stablehlo.add %x, %y : tensor<8xi64>
              stablehlo.return %1, %y, %2 : tensor<i32>, tensor<8xi64>, tensor<8xi64>
            }
          return %0#1 : tensor<8xi64>
        }""",
        np.int32(n).reshape(()),
        np.zeros(8, np.int64),
        np.ones(8, np.int64),
    )
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    np.testing.assert_array_equal(result, np.full(8, a))


def test_nested_loops_and_a_value_from_outside() -> None:
    (result,) = run(
        """
        func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %three = stablehlo.constant dense<3> : tensor<i32>
          %outside = stablehlo.sine %x : tensor<16xf32>
          %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<16xf32>
            cond {
              %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            } do {
              %1:2 = stablehlo.while(%j = %zero, %b = %a) : tensor<i32>, tensor<16xf32>
                cond {
                  %2 = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
                  stablehlo.return %2 : tensor<i1>
                } do {
                  %2 = stablehlo.add %j, %one : tensor<i32>
                  %3 = stablehlo.add %b, %outside : tensor<16xf32>
                  stablehlo.return %2, %3 : tensor<i32>, tensor<16xf32>
                }
              %2 = stablehlo.add %i, %one : tensor<i32>
              stablehlo.return %2, %1#1 : tensor<i32>, tensor<16xf32>
            }
          return %0#1 : tensor<16xf32>
        }""",
        x := np.linspace(-1, 1, 16, dtype=np.float32),
    )
    np.testing.assert_allclose(result, x + 3 * np.sin(x), rtol=1e-5, atol=1e-6)
