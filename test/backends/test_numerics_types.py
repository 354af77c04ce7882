"""What every element type does at its edges: conversions, narrow floats, integers without undefined
results, order and NaN."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from lamina.stablehlo_api import compile_stablehlo

INF, NAN = float("inf"), float("nan")
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SMALL = {
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}
INTEGERS = {
    **{f"i{w}": np.dtype(f"int{w}") for w in (8, 16, 32, 64)},
    **{f"ui{w}": np.dtype(f"uint{w}") for w in (8, 16, 32, 64)},
}


def compiled(body: str, result: str, *arguments: str, count: int) -> Callable[..., np.ndarray]:
    """`body` on arrays %0, %1, ... of `count` elements of the argument types; {0}, {r} name types."""
    types = [f"tensor<{count}x{element}>" for element in (*arguments, result)]
    named = ", ".join(f"%{i}: {type_}" for i, type_ in enumerate(types[:-1]))
    text = body.format(*types[:-1], r=types[-1])
    run = compile_stablehlo(
        f"func.func @main({named}) -> {types[-1]} {{\n  %r = {text}\n  return %r : {types[-1]}\n}}"
    )
    return lambda *arrays: np.asarray(run(*arrays)[0])


def convert(source: str, to: str, x: np.ndarray) -> np.ndarray:
    return compiled("stablehlo.convert %0 : ({0}) -> {r}", to, source, count=x.size)(x)


def binary(op: str, element: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return compiled(f"stablehlo.{op} %0, %1 : {{r}}", element, element, element, count=x.size)(x, y)


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal, zeros in sign too; any NaN is as good as another."""
    assert got.dtype == expected.dtype
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(values, values.size), np.tile(values, values.size)


def edges(dtype: np.dtype) -> np.ndarray:
    """The integers at which operations overflow, and a few others."""
    limits = np.iinfo(dtype)
    chosen = {0, 1, 2, 7, limits.max, limits.max - 1, limits.min, limits.min + 1}
    chosen |= {-1, -2, -7} if limits.min < 0 else {limits.max // 2, limits.max // 2 + 1}
    return np.array(sorted(chosen), dtype)


# Conversions


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_saturate(source: str, to: str) -> None:
    values = [0.0, -0.0, 0.9, -0.9, -1.0, 1.5, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0, 300.7]
    values += [32767.0, 65535.0, 65536.0, 2.0**31, -(2.0**31), 2.0**32, 3e9, -3e9, 2.0**63]
    values += [-(2.0**63), 2.0**64, 1e38, -1e38, INF, -INF, NAN]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(FLOATS[source])
    limits = np.iinfo(INTEGERS[to])
    exact = [0 if v != v else v for v in x.astype(np.float64)]
    expected = [int(min(max(v, limits.min), limits.max)) for v in exact]
    # Python compares integers with floats exactly: the largest i64 is no f64.
    expected = [min(max(v, limits.min), limits.max) for v in expected]
    np.testing.assert_array_equal(convert(source, to, x), np.array(expected, INTEGERS[to]))


@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_booleans(source: str) -> None:
    x = np.array([0.0, -0.0, 1.0, 0.25, -3.0, INF, NAN]).astype(FLOATS[source])
    np.testing.assert_array_equal(convert(source, "i1", x), [0, 0, 1, 1, 1, 1, 1])


@pytest.mark.parametrize("to", [*SMALL, "bf16"])
def test_f32_to_small_rounds_to_nearest(to: str) -> None:
    dtype = (SMALL | FLOATS)[to]
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(50_000) * np.exp(rng.uniform(-20, 15, 50_000))).astype(np.float32)
    all_codes = np.arange(256, dtype=np.uint8).view(SMALL.get(to, ml_dtypes.float8_e5m2))
    numbers = all_codes.astype(np.float32)
    halfway = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([x, numbers, halfway, np.float32([0.0, -0.0, INF, -INF, NAN])])
    x = x[(np.abs(x) >= 1.2e-38) | (x == 0) | np.isnan(x)]  # the processor takes denormals for zero
    with np.errstate(over="ignore", invalid="ignore"):
        assert_same(convert("f32", to, x), x.astype(dtype))


@pytest.mark.parametrize("to", [*SMALL, "bf16", "f16"])
def test_f64_to_small_rounds_once(to: str) -> None:
    """Beside a tie by less than f32 shows: through f32 it would be rounded twice."""
    dtype = (SMALL | FLOATS)[to]
    one, step = np.array([1.0]).astype(dtype), np.float64(ml_dtypes.finfo(dtype).eps)
    tie = np.float64(one[0]) + step / 2
    x = np.array([tie, tie + 2.0**-40, tie - 2.0**-40, tie + step, tie + step - 2.0**-40])
    nearest = [1.0, 1.0 + step, 1.0, 1.0 + 2 * step, 1.0 + step]
    if to == "f8E8M0FNU":  # no mantissa: halves go up
        nearest = [2.0, 2.0, 1.0, 2.0 if tie + step < 3 else 4.0, 2.0]
    assert_same(convert("f64", to, x), np.array(nearest).astype(dtype))


@pytest.mark.parametrize("to", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("source", SMALL)
def test_small_to_wider_is_exact(source: str, to: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(SMALL[source])
    x = x[~(np.abs(x.astype(np.float64)) < 1.2e-38) | (x.astype(np.float64) == 0)]
    assert_same(convert(source, to, x), x.astype(FLOATS[to]))


@pytest.mark.parametrize("element", ["f8E5M2", "f8E4M3FN", "f8E4M3FNUZ", "bf16"])
@pytest.mark.parametrize("op", ["add", "multiply", "divide", "maximum", "minimum"])
def test_small_arithmetic_rounds_each_result(op: str, element: str) -> None:
    dtype = (SMALL | FLOATS)[element]
    x, y = pairs(np.array([0.0, 1.0, -1.5, 0.375, 3.0, 13.0, -200.0, NAN]).astype(dtype))
    numpy_op = {"maximum": np.maximum, "minimum": np.minimum}.get(op) or getattr(np, op)
    with np.errstate(all="ignore"):
        expected = numpy_op(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    got = binary(op, element, x, y)
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("element", SMALL)
def test_is_finite(element: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(SMALL[element])
    got = compiled("stablehlo.is_finite %0 : ({0}) -> {r}", "i1", element, count=256)(x)
    np.testing.assert_array_equal(got, np.isfinite(x.astype(np.float64)))


# Integers


@pytest.mark.parametrize("element", INTEGERS)
def test_integer_division_is_total(element: str) -> None:
    dtype = INTEGERS[element]
    x, y = pairs(edges(dtype))
    limits = np.iinfo(dtype)
    ones = -1 if limits.min < 0 else limits.max  # what division by zero gives: all bits

    def quotient(a: int, b: int) -> int:
        if b == 0:
            return ones
        exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return limits.min if exact > limits.max else exact

    def remainder(a: int, b: int) -> int:
        return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)

    both = list(zip(x.tolist(), y.tolist(), strict=True))
    expected = np.array([quotient(*ab) for ab in both], dtype)
    np.testing.assert_array_equal(binary("divide", element, x, y), expected)
    expected = np.array([remainder(*ab) for ab in both], dtype)
    np.testing.assert_array_equal(binary("remainder", element, x, y), expected)


def dividends(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Pairs to divide: all of 8 bits; of wider ones edges, any, and those next to multiples."""
    limits = np.iinfo(dtype)
    if dtype.itemsize == 1:
        return pairs(np.arange(limits.min, limits.max + 1).astype(dtype))
    rng = np.random.default_rng(0)
    x, y = (rng.integers(limits.min, limits.max, 60_007, dtype, endpoint=True) for _ in range(2))
    few = np.right_shift(y, rng.integers(0, 8 * dtype.itemsize, y.size, np.uint8).astype(dtype))
    near = few * (x // np.where(few == 0, dtype.type(1), few))
    rest = rng.integers(0, 3, x.size).astype(dtype) - dtype.type(1)  # -1, 0 or 1, modulo the width
    a, b = pairs(edges(dtype))
    return np.concatenate([x, x, near + rest, a]), np.concatenate([y, few, few, b])


@pytest.mark.parametrize("element", [e for e, dtype in INTEGERS.items() if dtype.itemsize < 8])
def test_integer_division_by_floats(element: str) -> None:
    """Vectors, and what is left of them, have the integers' results to the last one."""
    dtype = INTEGERS[element]
    with np.errstate(all="ignore"):
        x, y = dividends(dtype)
    a, b = x.astype(np.int64), y.astype(np.int64)
    safe = np.where(b == 0, 1, b)
    rest = np.where(b == 0, a, np.fmod(a, safe))
    quotient = np.where(b == 0, -1, (a - np.fmod(a, safe)) // safe).astype(dtype)
    np.testing.assert_array_equal(binary("divide", element, x, y), quotient)
    np.testing.assert_array_equal(binary("remainder", element, x, y), rest.astype(dtype))
    np.testing.assert_array_equal(binary("remainder", element, x[:7], y[:7]), rest[:7].astype(dtype))


@pytest.mark.parametrize("element", INTEGERS)
def test_shifts_beyond_the_width(element: str) -> None:
    dtype = INTEGERS[element]
    width = dtype.itemsize * 8
    x = np.repeat(edges(dtype), 6)
    amounts = np.array([0, 1, width - 1, width, width + 1, np.iinfo(dtype).max], dtype)
    y = np.resize(amounts, x.size)
    unsigned = np.dtype(f"uint{width}")
    both = list(zip(x.tolist(), y.tolist(), strict=True))

    def wrapped(values: list[int]) -> np.ndarray:
        return np.array([v % (1 << width) for v in values], unsigned).view(dtype)

    def signed(a: int) -> int:
        return a - (1 << width) if a >> (width - 1) > 0 else a

    expected = wrapped([(a % (1 << width)) << b if b < width else 0 for a, b in both])
    np.testing.assert_array_equal(binary("shift_left", element, x, y), expected)
    expected = wrapped([(a % (1 << width)) >> b for a, b in both])
    np.testing.assert_array_equal(binary("shift_right_logical", element, x, y), expected)
    expected = wrapped([signed(a) >> min(b, width - 1) for a, b in both])
    np.testing.assert_array_equal(binary("shift_right_arithmetic", element, x, y), expected)


def test_booleans_add_as_or_and_multiply_as_and() -> None:
    x, y = pairs(np.array([False, True]))
    np.testing.assert_array_equal(binary("add", "i1", x, y), x | y)
    np.testing.assert_array_equal(binary("multiply", "i1", x, y), x & y)


# Order, signs, rounding


@pytest.mark.parametrize("element", FLOATS)
def test_extremes_keep_nan_and_tell_zeros_apart(element: str) -> None:
    x, y = pairs(np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]).astype(FLOATS[element]))
    for op, choose in (("maximum", np.maximum), ("minimum", np.minimum)):
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        expected = choose(wide_x, wide_y)
        zeros = (wide_x == 0) & (wide_y == 0)
        negative = (np.logical_and if op == "maximum" else np.logical_or)(
            np.signbit(wide_x), np.signbit(wide_y)
        )
        expected = np.where(zeros, np.where(negative, -0.0, 0.0), expected)
        assert_same(binary(op, element, x, y), expected.astype(FLOATS[element]))


@pytest.mark.parametrize("element", FLOATS)
def test_remainder_of_floats(element: str) -> None:
    x, y = pairs(np.array([0.0, -0.0, 5.5, -5.5, 2.0, -2.0, INF, NAN]).astype(FLOATS[element]))
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x.astype(np.float64), y.astype(np.float64))
    assert_same(binary("remainder", element, x, y), expected.astype(FLOATS[element]))


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_remainder_of_any_floats(element: str) -> None:
    """All magnitudes, denormals too, to the last bit: vectors, and what is left of them."""
    of = FLOATS[element]
    integer = np.dtype(f"u{np.dtype(of).itemsize}")
    rng = np.random.default_rng(0)
    last = np.iinfo(integer).max
    x, y = (rng.integers(0, last, 20011, dtype=integer, endpoint=True).view(of) for _ in range(2))
    edges = np.array([0, 1, 2, 3]).astype(integer).view(of)  # the least denormals
    greatest = np.array([6e4, 7.0, INF]).astype(of)
    edges = np.concatenate([edges, -edges, greatest, -greatest])
    for a, b in ((x, y), (x[:7], y[:7]), pairs(edges)):
        with np.errstate(invalid="ignore"):
            expected = np.fmod(a.astype(np.float64), b.astype(np.float64))
        assert_same(binary("remainder", element, a, b), expected.astype(of))


@pytest.mark.parametrize("element", FLOATS)
def test_sign_and_rounding(element: str) -> None:
    x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, INF, -INF, NAN])
    x = x.astype(FLOATS[element])
    wide = x.astype(np.float64)
    away = np.where(np.isfinite(wide), np.copysign(np.floor(np.abs(wide) + 0.5), wide), wide)
    sign = np.where(wide == 0, wide, np.sign(wide))
    for op, expected in (
        ("round_nearest_even", np.rint(wide)),
        ("round_nearest_afz", away),
        ("floor", np.floor(wide)),
        ("ceil", np.ceil(wide)),
        ("sign", sign),
    ):
        got = compiled(f"stablehlo.{op} %0 : {{0}}", element, element, count=x.size)(x)
        assert_same(got, expected.astype(FLOATS[element]))


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_reduce_precision_overflows_to_infinity(element: str) -> None:
    x = np.array([1.0, 1.26, 57344.0, 61439.0, 61440.0, 65504.0, -65504.0, INF, NAN, 2.0**-14])
    x = x.astype(FLOATS[element])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float64).astype(ml_dtypes.float8_e5m2).astype(FLOATS[element])
    body = "stablehlo.reduce_precision %0, format = e5m2 : {0}"
    assert_same(compiled(body, element, element, count=x.size)(x), expected)


@pytest.mark.parametrize(("element", "part"), [("f32", np.float32), ("f64", np.float64)])
def test_absolute_values_of_complex_numbers(element: str, part: type[np.floating]) -> None:
    limits = np.finfo(part)
    edges = [0.0, -0.0, 1.0, -2.5, INF, -INF, NAN, limits.max / 2, -limits.max / 4, limits.tiny, 8 * limits.tiny]
    real, imag = (grid.ravel() for grid in np.meshgrid(edges, edges))
    sizes = np.exp2(np.random.default_rng(0).uniform(limits.minexp, limits.maxexp - 1, (2, 5000)))
    real, imag = np.concatenate([real, sizes[0]]), np.concatenate([imag, -sizes[1]])
    x = np.empty(real.shape, np.result_type(part, np.complex64))
    x.real, x.imag = real, imag
    got = compiled("stablehlo.abs %0 : ({0}) -> {r}", element, f"complex<{element}>", count=x.size)(x)
    exact = np.hypot(x.real.astype(np.longdouble), x.imag.astype(np.longdouble))
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(got[~finite], exact[~finite].astype(part))
    unit = np.spacing(exact[finite].astype(part))
    assert (np.abs(got[finite] - exact[finite]) <= 1.2 * unit).all()
