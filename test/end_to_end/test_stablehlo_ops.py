"""StableHLO programs from outside: ops that only they have, and modules that are wrong."""

import numpy as np
import pytest

import lamina

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(body, result, x=X):
    of = "tensor<2x3xf32>"
    text = f"func.func @main(%x: {of}) -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}}"
    return np.asarray(lamina.compile_stablehlo(text)(x)[0])


def rng(element, a, b, kind, n):
    of = f"tensor<{element}>"
    return run(
        f"%a = stablehlo.constant dense<{a}> : {of}\n%b = stablehlo.constant dense<{b}> : {of}\n"
        f"%s = stablehlo.constant dense<{n}> : tensor<1xi64>\n"
        f"%r = stablehlo.rng %a, %b, %s, distribution = {kind} : "
        f"({of}, {of}, tensor<1xi64>) -> tensor<{n}x{element}>",
        f"{n}x{element}",
    )


@pytest.mark.parametrize("element", ["f32", "f64", "bf16"])
def test_rng_of_floats(element):
    uniform = rng(element, "2.0", "5.0", "UNIFORM", 20000).astype(np.float64)
    assert uniform.min() >= 2 and uniform.max() <= 5
    assert abs(uniform.mean() - 3.5) < 0.03 and abs(uniform.var() - 0.75) < 0.03
    normal = rng(element, "2.0", "3.0", "NORMAL", 20000).astype(np.float64)
    assert abs(normal.mean() - 2) < 0.1 and abs(normal.std() - 3) < 0.1
    assert abs(((normal - 2) ** 4).mean() / 81 - 3) < 0.3


@pytest.mark.parametrize(("element", "a", "b"), [("i8", -100, 100), ("ui32", 3, 9), ("i64", -3, 4)])
def test_rng_of_integers(element, a, b):
    drawn = rng(element, a, b, "UNIFORM", 3000)
    assert drawn.min() == a and drawn.max() == b - 1


def test_tokens_are_nothing():
    out = run(
        "%t = stablehlo.create_token : !stablehlo.token\n"
        "%u = stablehlo.after_all %t, %t : !stablehlo.token\n"
        "%r = stablehlo.negate %x : tensor<2x3xf32>",
        "2x3xf32",
    )
    np.testing.assert_array_equal(out, -X)


def test_deprecated_ops():
    out = run(
        '%r = "stablehlo.unary_einsum"(%x) {einsum_config = "ij->ji"} '
        ": (tensor<2x3xf32>) -> tensor<3x2xf32>",
        "3x2xf32",
    )
    np.testing.assert_array_equal(out, X.T)


def test_unsigned_operands_are_widened_without_a_sign():
    text = """
    func.func @main(%x: tensor<1x2x1xui8>, %v: tensor<2xui8>, %s: tensor<2xi8>)
        -> (tensor<1x2x1xi32>, tensor<i32>, tensor<i64>, tensor<ui32>) {
      %w = stablehlo.constant dense<200> : tensor<1x1x1xui8>
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x2x1xui8>, tensor<1x1x1xui8>) -> tensor<1x2x1xi32>
      %1 = stablehlo.dot %v, %v : (tensor<2xui8>, tensor<2xui8>) -> tensor<i32>
      %2 = stablehlo.dot_general %v, %s, contracting_dims = [0] x [0]
        : (tensor<2xui8>, tensor<2xi8>) -> tensor<i64>
      %3 = "stablehlo.einsum"(%v, %v) {einsum_config = "a,a->"}
        : (tensor<2xui8>, tensor<2xui8>) -> tensor<ui32>
      return %0, %1, %2, %3 : tensor<1x2x1xi32>, tensor<i32>, tensor<i64>, tensor<ui32>
    }"""
    v, s = np.uint8([200, 3]), np.int8([-9, 2])
    out = lamina.compile_stablehlo(text)(v.reshape(1, 2, 1), v, s)
    wanted = [[[[40000], [600]]], 40009, -1794, 40009]
    assert [np.asarray(x).tolist() for x in out] == wanted


def quantised(numbers, scale, point, low, high):
    """StableHLO's specification: rounded once, after the zero point is added."""
    return np.rint(np.clip(numbers / scale + point, low, high))


def test_quantised_products_round_and_clamp():
    x, w = "!quant.uniform<u8:f32, 0.25:128>", "!quant.uniform<u8:f32, 0.5>"
    r = "!quant.uniform<u8:f32, 0.5:100>"
    text = f"""
    func.func @main(%x: tensor<2x3x{x}>, %f: tensor<3xf32>) -> tensor<2x{r}> {{
      %w = stablehlo.uniform_quantize %f : (tensor<3xf32>) -> tensor<3x{w}>
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<2x3x{x}>, tensor<3x{w}>) -> tensor<2x{r}>
      return %0 : tensor<2x{r}>
    }}"""
    stored, f = np.uint8([[129, 140, 255], [0, 3, 128]]), np.float32([1, 0.3, 200])
    numbers = (stored.astype(np.float32) - 128) / 4
    product = numbers @ (quantised(f, 0.5, 0, 0, 255) * 0.5)
    (out,) = lamina.compile_stablehlo(text)(stored, f)
    np.testing.assert_array_equal(out, quantised(product, 0.5, 100, 0, 255).astype(np.uint8))


def test_quantised_values_are_reduced_sorted_and_multiplied():
    q, i = "!quant.uniform<i8:bf16, 0.5:3>", "tensor<i1>"
    two = f"^bb0(%a: tensor<{q}>, %b: tensor<{q}>):"
    text = f"""
    func.func @main(%x: tensor<4x{q}>, %y: tensor<4x{q}>) -> (
        tensor<4x{q}>, tensor<{q}>, tensor<{q}>, tensor<4x{q}>, tensor<2x{q}>, tensor<4xi1>) {{
      %z = stablehlo.constant() {{value = dense<3> : tensor<i8>}} : () -> tensor<{q}>
      %0 = stablehlo.multiply %x, %y : tensor<4x{q}>
      %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<4x{q}>, tensor<{q}>) -> tensor<{q}>
      %2 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0]
        : (tensor<4x{q}>, tensor<{q}>) -> tensor<{q}>
      %3 = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{ {two}
        %c = stablehlo.compare GT, %a, %b, FLOAT : (tensor<{q}>, tensor<{q}>) -> {i}
        stablehlo.return %c : {i}
      }}) : (tensor<4x{q}>) -> tensor<4x{q}>
      %4 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 2>,
          window_strides = array<i64: 2>}}> ({{ {two}
        %c = stablehlo.add %a, %b : tensor<{q}>
        stablehlo.return %c : tensor<{q}>
      }}) : (tensor<4x{q}>, tensor<{q}>) -> tensor<2x{q}>
      %5 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<4x{q}>, tensor<4x{q}>) -> tensor<4xi1>
      return %0, %1, %2, %3, %4, %5
        : tensor<4x{q}>, tensor<{q}>, tensor<{q}>, tensor<4x{q}>, tensor<2x{q}>, tensor<4xi1>
    }}"""
    x, y = np.int8([8, -3, 60, 7]), np.int8([4, 6, 2, -1])
    a, b = (x - 3.0) / 2, (y - 3.0) / 2
    sums = [quantised(v, 0.5, 3, -128, 127) for v in (a * b, a.sum())]
    pairs = quantised(a[::2] + a[1::2], 0.5, 3, -128, 127)
    wanted = [*sums, x.max(), np.sort(x)[::-1], pairs, x < y]
    assert sums[0][0] == 6  # 1.25 / 0.5 + 3 = 5.5, to even; rounding before adding makes it 5
    for got, want in zip(lamina.compile_stablehlo(text)(x, y), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


ONE_DEVICE = {
    "all_reduce": '%r = "stablehlo.all_reduce"(%x) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
    "%c = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %c : tensor<f32>\n})"
    " {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "all_to_all": '%r = "stablehlo.all_to_all"(%x) {split_dimension = 0 : i64, concat_dimension = '
    "0 : i64, split_count = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>}"
    " : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "sharding": "%r = stablehlo.custom_call @Sharding(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
}


@pytest.mark.parametrize("op", ONE_DEVICE)
def test_one_device_has_nobody_to_talk_to(op):
    np.testing.assert_array_equal(run(ONE_DEVICE[op], "2x3xf32"), X)


# ---- modules that are wrong ----------------------------------------------------------------------
WRONG = {
    "not MLIR": "hello",
    "no main": "module {}",
    "unknown dialect": "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    '  %r = "mine.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %r : tensor<2xf32>\n}',
    "unknown op": "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %r = stablehlo.nothing %x : tensor<2xf32>\n  return %r : tensor<2xf32>\n}",
    "wrong attribute": "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %r = stablehlo.transpose %x, dims = [3] : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  return %r : tensor<2xf32>\n}",
    "wrong type": "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n"
    "  %r = stablehlo.sine %x : (tensor<2xf32>) -> tensor<3xf32>\n  return %r : tensor<3xf32>\n}",
    "wrong fft": "func.func @main(%x: tensor<8xf32>) -> tensor<8xcomplex<f32>> {\n"
    "  %r = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<8xcomplex<f32>>"
    "\n  return %r : tensor<8xcomplex<f32>>\n}",
    "infeed": "func.func @main() -> tensor<2xf32> {\n  %t = stablehlo.create_token"
    ' : !stablehlo.token\n  %r, %u = "stablehlo.infeed"(%t) {infeed_config = ""}'
    " : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)\n  return %r : tensor<2xf32>\n}",
    "unknown target": "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %r = stablehlo.custom_call @mine(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  return %r : tensor<2xf32>\n}",
    "two devices": "func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {\n"
    '  %r = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = '
    "dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<4xf32>\n"
    "  return %r : tensor<4xf32>\n}",
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_modules_raise(kind):
    with pytest.raises(Exception) as raised:
        lamina.compile_stablehlo(WRONG[kind])
    assert not isinstance(raised.value, AssertionError | NotImplementedError)
    text = str(raised.value)
    assert "reproduce:" not in text  # that would be a bug of ours
    if kind != "no main":
        assert ":1:" in text or ":2:" in text or ":3:" in text  # where


def test_damaged_programs_raise():
    """Cuts and changes of a good program are refused, or are good programs."""
    text = ONE_DEVICE["all_reduce"]
    good = f"func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n{text}\nreturn %r : tensor<2x3xf32>\n}}"
    draw = np.random.default_rng(0)
    for _ in range(40):
        at = int(draw.integers(len(good)))
        how = draw.integers(3)
        damaged = good[:at] + ("" if how else "0x") + good[at + int(draw.integers(1, 6)) :]
        damaged = damaged if how < 2 else good[:at]
        try:
            lamina.compile_stablehlo(damaged)
        except Exception as error:
            assert "reproduce:" not in str(error), damaged
