"""dense_resource constants become dense ones with the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
from lamina.dialects.constants import array_of
from lamina.dialects.context import parse
from lamina.dialects.resources import inline_resources

PROGRAM = """
func.func @main(%x: tensor<2x3xELEMENT>) -> tensor<2x3xELEMENT> {
  %0 = stablehlo.constant dense_resource<w> : tensor<2x3xELEMENT>
  %1 = stablehlo.add %x, %0 : tensor<2x3xELEMENT>
  return %1 : tensor<2x3xELEMENT>
}
{-#
  dialect_resources: {
    builtin: {
      w: "0x04000000DATA"
    }
  }
#-}
"""


def program(array: np.ndarray, element: str) -> str:
    return PROGRAM.replace("ELEMENT", element).replace("DATA", array.tobytes().hex().upper())


@pytest.mark.parametrize(
    ("element", "dtype"),
    [("f32", np.float32), ("f64", np.float64), ("i8", np.int8), ("complex<f32>", np.complex64)],
)
def test_the_bytes_stay(element: str, dtype: type) -> None:
    data = (np.arange(6).reshape(2, 3) - 2.5).astype(dtype)
    module = parse(inline_resources(program(data, element)))
    constant = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    np.testing.assert_array_equal(array_of(constant), data)


def test_such_programs_compile() -> None:
    data = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    (result,) = lamina.compile_stablehlo(program(data, "f32"))(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(result, data + 1)


def test_data_that_is_missing_is_named() -> None:
    text = program(np.zeros((2, 3), np.float32), "f32").split("{-#")[0]
    with pytest.raises(ValueError, match="the data of dense_resource<w> is not in the program"):
        inline_resources(text)


def test_other_programs_stay_as_they_are() -> None:
    text = "func.func @main() { return }"
    assert inline_resources(text) is text
