"""`sparse` constants: as the dense ones that they stand for, of every kind of elements."""

import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina.dialects.sparse_constants import write_sparse_as_dense

CASES = {
    "f32": ("sparse<[[0, 1], [1, 2]], [1.5, -2.5]> : tensor<2x3xf32>", np.float32, [[0, 1.5, 0], [0, 0, -2.5]]),
    "one element everywhere": ("sparse<[[0, 1], [1, 2]], 4> : tensor<2x3xi8>", np.int8, [[0, 4, 0], [0, 0, 4]]),
    "a place without brackets": ("sparse<1, 7> : tensor<2xi64>", np.int64, [0, 7]),
    "nothing": ("sparse<> : tensor<3xui16>", np.uint16, [0, 0, 0]),
    "booleans": ("sparse<[[2]], [true]> : tensor<3xi1>", np.bool_, [False, False, True]),
    "complex": ("sparse<[[1]], [(1.0, -2.0)]> : tensor<2xcomplex<f32>>", np.complex64, [0, 1 - 2j]),
    "bf16": ("sparse<[[1]], [0.5]> : tensor<2xbf16>", ml_dtypes.bfloat16, [0, 0.5]),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_program_with_a_sparse_constant(kind):
    written, dtype, expected = CASES[kind]
    of = written.partition(" : ")[2]
    (out,) = lamina.compile_stablehlo(
        f"func.func public @main() -> {of} {{ %c = stablehlo.constant {written} return %c : {of} }}"
    )()
    np.testing.assert_array_equal(np.asarray(out), np.array(expected, dtype))
    assert np.asarray(out).dtype == dtype


def test_many_places_are_bytes():
    places = np.stack([np.arange(200), np.arange(200) % 7], 1).astype(np.int64)
    elements = np.arange(200, dtype=np.float32)
    text = write_sparse_as_dense(
        f'sparse<"0x{places.tobytes().hex()}", "0x{elements.tobytes().hex()}"> : tensor<200x7xf32>'
    )
    expected = np.zeros((200, 7), np.float32)
    expected[places[:, 0], places[:, 1]] = elements
    assert text == f'dense<"0x{expected.tobytes().hex().upper()}"> : tensor<200x7xf32>'


def test_a_place_outside_is_refused():
    with pytest.raises(ValueError, match="a place is outside of tensor<2xf32>"):
        write_sparse_as_dense("sparse<[[2]], [1.0]> : tensor<2xf32>")
