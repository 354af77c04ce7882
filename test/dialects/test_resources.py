"""dense_resource constants become dense ones with the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
from lamina.dialects.constants import array_of
from lamina.dialects.context import parse
from lamina.dialects.parse_error import ParseError
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


@pytest.mark.parametrize("count", [0, 1, 5, 7])
def test_data_of_another_length_is_refused(count: int) -> None:
    """The bytes of one element would be those of all."""
    text = program(np.zeros(count, np.float32), "f32")
    with pytest.raises(ValueError, match=rf"needs 24 bytes and has {4 * count}"):
        lamina.compile_stablehlo(text)


@pytest.mark.parametrize("alignment", ["00000000", "00000080", "00000200"])
def test_an_alignment_that_no_memory_has(alignment: str) -> None:
    text = program(np.zeros(6, np.float32), "f32").replace("0x04000000", f"0x{alignment}")
    with pytest.raises(ParseError, match="aligned to .* bytes, which must be 1 to 65536"):
        lamina.compile_stablehlo(text)


def test_other_programs_stay_as_they_are() -> None:
    text = "func.func @main() { return }"
    assert inline_resources(text) is text
