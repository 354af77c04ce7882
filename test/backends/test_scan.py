"""Generated scans: every way through the generator, its precision, its vectors."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from support.kernel_runner import kernel, kernel_for

from lamina.backends.target import Target

RNG = np.random.default_rng(0)
FOLDS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def scan(shape, axis, combiner, element, reverse=False):
    of, ones, n = f"tensor<{'x'.join(map(str, shape))}x{element}>", [1] * len(shape), shape[axis]
    window, padding = list(ones), [[0, 0] for _ in shape]
    window[axis], padding[axis] = n, [0, n - 1] if reverse else [n - 1, 0]
    array = f"array<i64: {str(ones)[1:-1]}>"
    return f"""func.func private @k(%x: {of}, %i: tensor<{element}>) -> {of}
        attributes {{lamina.kind = "library", lamina.library = "lamina.scan"}} {{
      %0 = "stablehlo.reduce_window"(%x, %i) <{{window_strides = {array},
        window_dimensions = array<i64: {str(window)[1:-1]}>,
        padding = dense<{padding}> : tensor<{len(shape)}x2xi64>}}> ({{
      ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %s = stablehlo.{combiner} %a, %b : tensor<{element}>
        stablehlo.return %s : tensor<{element}>
      }}) : ({of}, tensor<{element}>) -> {of}
      return %0 : {of}
    }}"""


CASES = [
    ((100,), 0, "add", "f32", np.float32),
    ((3, 50), 1, "add", "bf16", ml_dtypes.bfloat16),
    ((2, 1130), 1, "add", "f32", np.float32),  # staged blocks, vectors and a rest
    ((40,), 0, "maximum", "ui8", np.uint8),
    ((70000,), 0, "add", "f32", np.float32),  # chunks, the last not full
    ((2, 20000), 1, "add", "f64", np.float64),
    ((20000,), 0, "multiply", "f64", np.float64),
    ((2, 50, 70), 1, "multiply", "f32", np.float32),  # full vectors of columns, and a rest
    ((60, 200), 0, "add", "f64", np.float64),  # full blocks of columns, and a rest
    ((33, 64), 0, "minimum", "f16", np.float16),
    ((50, 3), 0, "add", "i32", np.int32),
]


@pytest.mark.parametrize(("shape", "axis", "combiner", "element", "dtype"), CASES)
def test_values(shape, axis, combiner, element, dtype):
    """Each sum rounded about once; the runner watches the memory around."""
    exact = np.longdouble if np.dtype(dtype).kind not in "iu" else dtype
    x = RNG.normal(size=shape) * (0.01 if combiner == "multiply" else 3) + (combiner == "multiply")
    x = np.abs(x).astype(dtype) if element == "ui8" else x.astype(dtype)
    for reverse in (False, True):
        seen = np.flip(x, axis) if reverse else x
        want = FOLDS[combiner].accumulate(seen.astype(exact), axis, dtype=exact)
        want = np.flip(want, axis) if reverse else want
        (got,) = kernel(scan(shape, axis, combiner, element, reverse))(x, np.zeros((), dtype))
        if exact is dtype or combiner in ("maximum", "minimum"):
            np.testing.assert_array_equal(got.astype(exact), want)
            continue
        precision = float(ml_dtypes.finfo(dtype).eps)
        bound = precision * (100 if combiner == "multiply" else 1.5)
        assert np.abs(got.astype(exact) - want).max() <= bound * np.abs(want).max()


def test_infinities_stay():
    x = np.ones(100)
    x[40], x[70] = np.inf, -np.inf
    (got,) = kernel(scan((100,), 0, "add", "f64"))(x, np.zeros(()))
    want = np.arange(1.0, 101)
    want[40:], want[70:] = np.inf, np.nan
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_vectors_are_as_wide_as_the_target_s(bits):
    target = dataclasses.replace(Target.host(), vector_bits=bits)
    made = kernel_for(target, scan((64, 64), 1, "add", "f32"))
    assert f"shufflevector <{bits // 32} x float>" in made.texts["llvm"]
    assert "lamina_parallel_for" in made.imports


def recurrence(shape, axis, element, reverse=False):
    one = scan(shape, axis, "add", element, reverse)
    window = one[one.index("<{") : one.index("}>") + 2]
    of, e = f"tensor<{'x'.join(map(str, shape))}x{element}>", f"tensor<{element}>"
    return f"""func.func private @k(%x: {of}, %y: {of}, %i: {e}, %j: {e}) -> {of}
        attributes {{lamina.kind = "library", lamina.library = "lamina.recurrence"}} {{
      %0:2 = "stablehlo.reduce_window"(%x, %y, %i, %j) {window} ({{
      ^bb0(%a0: {e}, %b0: {e}, %a1: {e}, %b1: {e}):
        %a = stablehlo.multiply %a0, %a1 : {e}
        %t = stablehlo.multiply %a1, %b0 : {e}
        %b = stablehlo.add %b1, %t : {e}
        stablehlo.return %a, %b : {e}, {e}
      }}) : ({of}, {of}, {e}, {e}) -> ({of}, {of})
      return %0#1 : {of}
    }}"""


RECURRENCES = [
    ((2,), 0, "f32", np.float32),
    ((100,), 0, "f32", np.float32),
    ((3, 50), 1, "bf16", ml_dtypes.bfloat16),
    ((5, 37), 1, "f16", np.float16),
    ((7, 301), 1, "f64", np.float64),
    ((70001,), 0, "f32", np.float32),  # chunks, the last not full
    ((2, 32769), 1, "f32", np.float32),  # and one of one element
    ((20000,), 0, "f64", np.float64),
    ((2, 50, 70), 1, "f32", np.float32),  # full vectors of columns, and a rest
    ((60, 200), 0, "f64", np.float64),  # full blocks of columns, and a rest
    ((33, 3), 0, "f16", np.float16),
    ((3, 75), 1, "complex<f32>", np.complex64),
    ((20001,), 0, "complex<f32>", np.complex64),
    ((9000,), 0, "complex<f64>", np.complex128),
    ((50, 70), 0, "complex<f64>", np.complex128),
]


@pytest.mark.parametrize(("shape", "axis", "element", "dtype"), RECURRENCES)
def test_recurrences(shape, axis, element, dtype):
    """Factors of ones are sums; the first factor is read by none."""
    precision = float(ml_dtypes.finfo(dtype).eps)
    exact = np.clongdouble if "complex" in element else np.longdouble
    for reverse in (False, True):
        for factors in (np.ones(shape), RNG.uniform(-1, 1, shape), 0.99 + 0.01 * RNG.random(shape)):
            turns = np.exp(1j * RNG.normal(size=(2, *shape))) if "complex" in element else np.ones(2)
            factors = factors if (factors == 1).all() else factors * turns[0]
            a, b = factors.astype(dtype), (turns[1] * RNG.normal(size=shape)).astype(dtype)
            first = [slice(None)] * len(shape)
            first[axis] = slice(-1, None) if reverse else slice(0, 1)
            a[tuple(first)] = np.nan
            seen = [np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (a, b)]
            seen_a, want = (v.astype(exact) for v in seen)
            for i in range(1, len(want)):
                want[i] += seen_a[i] * want[i - 1]
            want = np.moveaxis(want, 0, axis)
            want = np.flip(want, axis) if reverse else want
            one, none = np.ones((), dtype), np.zeros((), dtype)
            (got,) = kernel(recurrence(shape, axis, element, reverse))(a, b, one, none)
            assert np.abs(got.astype(exact) - want).max() <= 6 * precision * np.abs(want).max()
