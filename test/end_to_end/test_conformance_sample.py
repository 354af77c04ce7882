"""StableHLO programs whose results follow from the specification: a small set of our own.

Each is a program text, its arguments and what must come out; integers and moved data exactly,
floats to a tolerance. Edge values are where implementations differ: NaN, infinities, signed zeros,
division by zero, shifts that are too long, indices out of range, empty arrays.
"""

# ruff: noqa: E501 (program text)

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import lamina

nan, inf = np.nan, np.inf


@dataclass(frozen=True)
class Case:
    """`program` is the body of @main; its arguments are %0, %1, ... as `arguments` gives them."""

    name: str
    program: str
    arguments: tuple
    expected: tuple
    rtol: float = 0.0
    atol: float = 0.0


def f32(*values) -> np.ndarray:
    return np.array(values, np.float32)


def i32(*values) -> np.ndarray:
    return np.array(values, np.int32)


def _type(array: np.ndarray) -> str:
    names = {"bool": "i1", "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
             "complex64": "complex<f32>", "complex128": "complex<f64>"}  # fmt: skip
    name = array.dtype.name
    element = names.get(name) or name.replace("uint", "ui").replace("int", "i")
    return "tensor<" + "".join(f"{d}x" for d in array.shape) + element + ">"


def unary(op: str, x: np.ndarray, expected: np.ndarray, rtol: float = 0.0) -> Case:
    types = f"({_type(x)}) -> {_type(expected)}"
    program = f'%r = "stablehlo.{op}"(%0) : {types}'
    return Case(f"{op}_{x.dtype.name}", program, (x,), (expected,), rtol, rtol)


def binary(op: str, x: np.ndarray, y: np.ndarray, expected: np.ndarray, rtol: float = 0.0) -> Case:
    types = f"({_type(x)}, {_type(y)}) -> {_type(expected)}"
    program = f'%r = "stablehlo.{op}"(%0, %1) : {types}'
    return Case(f"{op}_{x.dtype.name}", program, (x, y), (expected,), rtol, rtol)


A34 = np.arange(12, dtype=np.float32).reshape(3, 4)
SPECIAL = f32(nan, inf, -inf, 0.0, -0.0, 1.5, -2.5)
I8 = np.array([-128, -7, 7, 127], np.int8)

ELEMENTWISE = [
    binary("add", I8, np.array([-1, 3, 2, 1], np.int8), np.array([127, -4, 9, -128], np.int8)),
    binary("add", np.array([True, True, False]), np.array([True, False, False]), np.array([True, True, False])),
    binary("multiply", np.array([True, True, False]), np.array([True, False, False]), np.array([True, False, False])),
    binary("divide", i32(7, -7, 7, -(2**31), 5), i32(2, 2, -2, -1, 0), i32(3, -3, -3, -(2**31), -1)),
    binary("remainder", i32(7, -7, 7, -(2**31), 5), i32(2, 2, -2, -1, 0), i32(1, -1, 1, 0, 5)),
    binary("divide", np.array([7, 0, 255], np.uint8), np.array([2, 0, 0], np.uint8), np.array([3, 255, 255], np.uint8)),
    binary("divide", f32(1, -1, 0, 3), f32(0, 0, 0, 2), f32(inf, -inf, nan, 1.5)),
    binary("maximum", f32(nan, 1, -0.0, inf), f32(1, nan, 0.0, 5), f32(nan, nan, 0.0, inf)),
    binary("minimum", f32(nan, 1, 0.0, -inf), f32(1, nan, -0.0, 5), f32(nan, nan, -0.0, -inf)),
    binary("shift_left", i32(1, 1, 1, -1), i32(4, 31, 32, 40), i32(16, -(2**31), 0, 0)),
    binary("shift_right_arithmetic", i32(-8, -8, 8, -8), i32(1, 32, 40, 31), i32(-4, -1, 0, -1)),
    binary("shift_right_logical", i32(-8, -8, 8), i32(28, 32, 1), i32(15, 0, 4)),
    binary("power", i32(2, -3, 0, 5, 2), i32(10, 3, 0, -1, -1), i32(1024, -27, 1, 0, 0)),
    binary("power", f32(2, 0, -8, nan, 1), f32(-2, 0, 3, 0, nan), f32(0.25, 1, -512, 1, 1), 1e-6),
    binary("atan2", f32(1, -1, 0, 0), f32(1, -1, -1, 1), f32(np.pi / 4, -3 * np.pi / 4, np.pi, 0), 1e-6),
    unary("abs", SPECIAL, f32(nan, inf, inf, 0.0, 0.0, 1.5, 2.5)),
    unary("abs", I8, np.array([-128, 7, 7, 127], np.int8)),
    unary("abs", np.array([3 + 4j, -1j], np.complex64), f32(5, 1), 1e-6),
    unary("sign", SPECIAL, f32(nan, 1, -1, 0.0, -0.0, 1, -1)),
    unary("floor", f32(-1.5, 1.5, -0.0, nan, inf, -0.25), f32(-2, 1, -0.0, nan, inf, -1)),
    unary("ceil", f32(-1.5, 1.5, -0.0, nan, inf, -0.25), f32(-1, 2, -0.0, nan, inf, -0.0)),
    unary("floor", np.array([-5e-324, 5e-324]), np.array([-1.0, 0.0])),
    unary("floor", f32(-1e-40, 1e-40), f32(-1, 0)),
    unary("ceil", np.array([-5e-324, 5e-324]), np.array([-0.0, 1.0])),
    unary("round_nearest_even", f32(0.5, 1.5, 2.5, -0.5, -1.5), f32(0, 2, 2, -0.0, -2)),
    unary("round_nearest_afz", f32(0.5, 1.5, 2.5, -0.5, -1.5), f32(1, 2, 3, -1, -2)),
    unary("is_finite", SPECIAL, np.array([False, False, False, True, True, True, True])),
    unary("not", np.array([0, 1, 255], np.uint8), np.array([255, 254, 0], np.uint8)),
    unary("popcnt", np.array([0, 1, 255, 127], np.uint8), np.array([0, 1, 8, 7], np.uint8)),
    unary("count_leading_zeros", i32(0, 1, -1, 256), i32(32, 31, 0, 23)),
    unary("exponential", f32(0, 1, -inf, inf, nan, 100), f32(1, np.e, 0, inf, nan, inf), 1e-6),
    unary("log", f32(1, np.e, 0, -1, inf), f32(0, 1, -inf, nan, inf), 1e-6),
    unary("log_plus_one", f32(0, 1e-8, -1, -2), f32(0, 1e-8, -inf, nan), 1e-6),
    unary("exponential_minus_one", f32(0, 1e-8, -inf, 1), f32(0, 1e-8, -1, np.e - 1), 1e-6),
    unary("logistic", f32(0, 100, -100, nan), f32(0.5, 1, 0, nan), 1e-6),
    unary("tanh", f32(0, 20, -20, 0.5, nan), f32(0, 1, -1, np.tanh(0.5), nan), 1e-6),
    unary("sine", f32(0, np.pi / 2, 1e5, inf), f32(0, 1, np.sin(np.float64(1e5)), nan), 1e-6),
    unary("sqrt", f32(4, -1, 0, inf), f32(2, nan, 0, inf)),
    unary("rsqrt", f32(4, 0, inf, -1), f32(0.5, inf, 0, nan), 1e-6),
    unary("cbrt", f32(27, -8, 0), f32(3, -2, 0), 1e-6),
    unary("convert", f32(1.9, -1.9, nan, 1e20, -inf), i32(1, -1, 0, 2**31 - 1, -(2**31))),
    unary("convert", f32(1.9, -1.9, 300, nan), np.array([1, 0, 255, 0], np.uint8)),
    unary("convert", f32(0, -0.0, nan, 0.5), np.array([False, False, True, True])),
    unary("convert", f32(1.00390625, 1.01171875, 3e38, nan).astype(np.float32), f32(1.0, 1.015625, 3e38, nan).astype(ml_dtypes.bfloat16)),
    unary("real", np.array([1 + 2j, complex(-0.0, 1)], np.complex64), f32(1, -0.0)),
    binary("complex", f32(1, 2), f32(3, -4), np.array([1 + 3j, 2 - 4j], np.complex64)),
    binary("multiply", np.array([1 + 2j, 1j], np.complex64), np.array([3 - 1j, 1j], np.complex64), np.array([5 + 5j, -1], np.complex64), 1e-6),
]  # fmt: skip

SHAPES = [
    Case("compare_nan", "%r = stablehlo.compare NE, %0, %0 : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>", (SPECIAL,), (np.isnan(SPECIAL),)),
    Case("compare_unsigned", "%r = stablehlo.compare LT, %0, %1 : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xi1>", (np.array([1, 200], np.uint8), np.array([200, 1], np.uint8)), (np.array([True, False]),)),
    Case("select_scalar_predicate", "%r = stablehlo.select %0, %1, %2 : tensor<i1>, tensor<3x4xf32>", (np.array(True), A34, -A34), (A34,)),
    Case("clamp", "%r = stablehlo.clamp %0, %1, %2 : (tensor<f32>, tensor<7xf32>, tensor<f32>) -> tensor<7xf32>", (np.float32(-1), SPECIAL, np.float32(1)), (f32(nan, 1, -1, 0, -0.0, 1, -1),)),
    Case("broadcast_in_dim", "%r = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>", (f32(1, 2, 3),), (np.array([[1, 2, 3]] * 2, np.float32),)),
    Case("transpose", "%r = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>", (A34,), (A34.T,)),
    Case("reshape_of_transpose", "%t = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32> %r = stablehlo.reshape %t : (tensor<4x3xf32>) -> tensor<2x6xf32>", (A34,), (A34.T.reshape(2, 6),)),
    Case("slice_strided", "%r = stablehlo.slice %0 [0:3:2, 1:4:2] : (tensor<3x4xf32>) -> tensor<2x2xf32>", (A34,), (A34[0:3:2, 1:4:2],)),
    Case("slice_empty", "%r = stablehlo.slice %0 [1:1, 0:4] : (tensor<3x4xf32>) -> tensor<0x4xf32>", (A34,), (A34[1:1],)),
    Case("dynamic_slice_clamps", "%r = stablehlo.dynamic_slice %0, %1, %2, sizes = [2, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>", (A34, np.int32(-5), np.int32(9)), (A34[0:2, 2:4],)),
    Case("dynamic_update_slice_clamps", "%r = stablehlo.dynamic_update_slice %0, %1, %2, %3 : (tensor<3x4xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>", (A34, f32([9, 9]), np.int32(7), np.int32(1)), (np.concatenate([A34[:2], [[8, 9, 9, 11]]]).astype(np.float32),)),
    Case("pad_negative_and_interior", "%r = stablehlo.pad %0, %1, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<6x5xf32>", (A34, np.float32(-1)), (np.array([[-1] * 5, [1, 2, 3, -1, -1], [-1] * 5, [5, 6, 7, -1, -1], [-1] * 5, [9, 10, 11, -1, -1]], np.float32),)),
    Case("concatenate", "%r = stablehlo.concatenate %0, %1, dim = 1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x5xf32>", (A34, A34[:, :1]), (np.concatenate([A34, A34[:, :1]], 1),)),
    Case("reverse", "%r = stablehlo.reverse %0, dims = [0, 1] : tensor<3x4xf32>", (A34,), (A34[::-1, ::-1],)),
    Case("iota", "%r = stablehlo.iota dim = 1 : tensor<2x3xui8>", (), (np.array([[0, 1, 2]] * 2, np.uint8),)),
    Case("bitcast_to_bytes", "%r = stablehlo.bitcast_convert %0 : (tensor<2xf32>) -> tensor<2x4xui8>", (f32(1, -2),), (f32(1, -2).view(np.uint8).reshape(2, 4),)),
    Case("reduce_precision", "%r = stablehlo.reduce_precision %0, format = e5m2 : tensor<3xf32>", (f32(1.2, 1e6, nan),), (f32(1.25, inf, nan),)),
]  # fmt: skip


def reduction(
    name: str, op: str, x: np.ndarray, init, dims: list[int], expected, **tolerance
) -> Case:
    t = _type(np.asarray(init))
    program = (
        f"%r = stablehlo.reduce(%0 init: %1) applies stablehlo.{op} across dimensions = {dims} : "
        f"({_type(x)}, {t}) -> {_type(np.asarray(expected))}"
    )
    return Case(name, program, (x, np.asarray(init)), (np.asarray(expected),), **tolerance)


REDUCTIONS = [
    reduction("reduce_add_axis_1", "add", A34, np.float32(10), [1], 10 + A34.sum(1), rtol=1e-6),
    reduction("reduce_add_axis_0", "add", A34, np.float32(0), [0], A34.sum(0), rtol=1e-6),
    reduction("reduce_max_all", "maximum", SPECIAL, np.float32(-inf), [0], np.float32(nan)),
    reduction("reduce_or", "or", np.array([[True, False], [False, False]]), np.bool_(False), [1], np.array([True, False])),
    reduction("reduce_multiply_int8", "multiply", I8, np.int8(1), [0], np.int8((-128 * -7 * 7 * 127 + 128) % 256 - 128)),
    reduction("reduce_nothing", "add", np.zeros((0, 3), np.float32), np.float32(7), [0], f32(7, 7, 7)),
    Case("argmax_by_pairs", """
        %z = stablehlo.constant dense<0> : tensor<i32>
        %n = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
        %m:2 = stablehlo.reduce(%0 init: %n), (%i init: %z) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
          reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
            %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
            %w = stablehlo.select %g, %p, %q : tensor<i1>, tensor<i32>
            stablehlo.return %v, %w : tensor<f32>, tensor<i32>
          }
        %r = stablehlo.convert %m#1 : (tensor<2xi32>) -> tensor<2xi64>""",
        (f32([1, 5, 5], [-1, -3, -2]),), (np.array([1, 0]),)),
    Case("reduce_window_sum", """
        %r = "stablehlo.reduce_window"(%0, %1) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x2xf32>""",
        (A34, np.float32(0)), (np.array([[1, 5], [10, 18], [26, 34]], np.float32),), rtol=1e-6),
    Case("sort_descending_with_indices", """
        %i = stablehlo.iota dim = 0 : tensor<5xi32>
        %s:2 = "stablehlo.sort"(%0, %i) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %p: tensor<i32>, %q: tensor<i32>):
          %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %g : tensor<i1>
        }) : (tensor<5xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xi32>)
        %r = stablehlo.convert %s#1 : (tensor<5xi32>) -> tensor<5xi64>""",
        (f32(3, 1, 3, 2, 1),), (np.array([0, 2, 3, 1, 4]),)),
]  # fmt: skip

LARGE = [
    Case("dot_batched", "%r = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>",
          (np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.ones((2, 4, 5), np.float32)), (np.arange(24, dtype=np.float32).reshape(2, 3, 4).sum(2, keepdims=True).repeat(5, 2),), rtol=1e-6),
    Case("dot_int8_to_int32", "%r = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : (tensor<4xi8>, tensor<4xi8>) -> tensor<i32>", (I8, I8), (np.int32(128**2 + 49 + 49 + 127**2),)),
    Case("gather_rows_clamped", '%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>',
          (A34, i32([2], [-3], [99])), (A34[[2, 0, 2]],)),
    Case("scatter_add_drops_what_is_outside", """
        %r = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>""",
        (f32(0, 0, 0), i32([1], [1], [3], [-1]), f32(1, 2, 4, 8)), (f32(0, 3, 0),)),
    Case("convolution_dilated", "%r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x1xf32>, tensor<2x1x1xf32>) -> tensor<1x5x1xf32>",
          (np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1), f32(1, 10).reshape(2, 1, 1)), (f32(20, 31, 42, 53, 4).reshape(1, 5, 1),), rtol=1e-6),
    Case("cholesky", "%r = stablehlo.cholesky %0, lower = true : tensor<2x2xf64>", (np.array([[4.0, 2], [2, 5]]),), (np.array([[2.0, 0], [1, 2]]),), rtol=1e-12),
    Case("while_counts", """
        %z = stablehlo.constant dense<0> : tensor<i32>
        %o = stablehlo.constant dense<1> : tensor<i32>
        %w:2 = stablehlo.while(%i = %z, %a = %1) : tensor<i32>, tensor<2xi64>
          cond { %c = stablehlo.compare LT, %i, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }
          do { %n = stablehlo.add %i, %o : tensor<i32> %d = stablehlo.add %a, %a : tensor<2xi64> stablehlo.return %n, %d : tensor<i32>, tensor<2xi64> }
        %r = stablehlo.negate %w#1 : tensor<2xi64>""",
        (np.int32(5), np.array([1, 3])), (np.array([-32, -96]),)),
]  # fmt: skip

CASES = ELEMENTWISE + SHAPES + REDUCTIONS + LARGE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_program(case: Case) -> None:
    arguments = [np.asarray(a) for a in case.arguments]
    (expected,) = (np.asarray(e) for e in case.expected)
    # MLIR keeps %0, %1 for results without a name.
    program = re.sub(r"%(\d+)", r"%arg\1", case.program)
    taken = ", ".join(f"%arg{i}: {_type(a)}" for i, a in enumerate(arguments))
    given = _type(expected)
    run = lamina.compile_stablehlo(
        f"func.func public @main({taken}) -> {given} {{\n{program}\nreturn %r : {given}\n}}"
    )
    result = np.asarray(run(*arguments)[0])
    assert result.dtype == expected.dtype and result.shape == expected.shape
    if expected.dtype == ml_dtypes.bfloat16:
        result, expected = result.astype(np.float32), expected.astype(np.float32)
    if case.rtol or case.atol:
        np.testing.assert_allclose(result, expected, rtol=case.rtol, atol=case.atol)
    else:
        np.testing.assert_array_equal(result, expected)
        if result.dtype.kind == "f":  # equal says nothing of the sign of zero
            zero = expected == 0
            np.testing.assert_array_equal(np.signbit(result)[zero], np.signbit(expected)[zero])
