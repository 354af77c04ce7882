"""What programs from outside say by attributes of ours is not believed."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
from lamina.dialects.foreign import read
from lamina.dialects.parse_error import ParseError
from lamina.dialects.serialize import to_text

LOOP = """module attributes {lamina.matrix_products = "kernel", lamina.kind = "loop"} {
  func.func public @main(%x: tensor<4xf32> {lamina.inout = 0 : i32, lamina.name = "x"})
      -> (tensor<4xf32> {lamina.alias_of = 0 : i32, jax.result_info = "y"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32> attributes {MARK}
      cond {
        %p = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %w = stablehlo.add %v, %v : tensor<4xf32>
        stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>
      }
    return %0#1 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize(
    "mark",
    [
        "lamina.lanes = 5 : i64",  # steps that depend on each other in nothing
        'lamina.trip_count = "x"',
        "lamina.trip_count = -3 : i64",
        "lamina.counted",
        'lamina.kind = "control"',
        "lamina.team = [0]",
    ],
)
def test_a_loop_does_what_it_says(mark: str) -> None:
    program = lamina.compile_stablehlo(LOOP.replace("MARK", mark))
    (y,) = program(np.ones(4, np.float32))
    np.testing.assert_array_equal(y, np.full(4, 1024, np.float32))


def test_marks_are_taken_out_and_others_stay() -> None:
    text = LOOP.replace("MARK", "lamina.counted, a.b = 1 : i32")
    left = to_text(read(text))
    for mark in ("lamina.kind", "lamina.inout", "lamina.alias_of", "lamina.counted"):
        assert mark not in left
    for other in ('lamina.matrix_products = "kernel"', 'lamina.name = "x"', "jax.result_info", "a.b"):
        assert other in left
    assert "lamina.counted" in to_text(read(text, keeps_marks=True))


def test_a_promise_of_no_result_is_none() -> None:
    text = LOOP.replace("lamina.inout = 0 : i32", "tf.aliasing_output = [0]").replace("MARK", "")
    (y,) = lamina.compile_stablehlo(text)(np.ones(4, np.float32))
    np.testing.assert_array_equal(y, np.full(4, 1024, np.float32))


def test_a_fused_program_is_compiled_again_from_what_it_computes() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    compiled = lamina.jit(lambda x: (x @ x.T, np.float32(2) * x.sum())).lower(x).compile()
    fused = compiled.as_text("fused")
    assert "lamina.kind" in fused
    for found, expected in zip(lamina.compile_stablehlo(fused)(x), compiled(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("other", [r'"a\FF" = 1 : i32', r'a.b = "\FF"', r'"\FF.x"'])
def test_a_name_that_is_no_text_is_refused(other: str) -> None:
    text = LOOP.replace("MARK", f"lamina.counted, {other}")
    if other.startswith("a.b"):
        assert "lamina.counted" not in to_text(read(text))
        return
    with pytest.raises(ParseError, match="UTF-8"):
        read(text)
