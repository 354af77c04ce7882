"""Kernels compiled alone and called by their ABI: values, updates in place, symbols, errors."""

import numpy as np
import pytest
from support.kernel_runner import kernel

from lamina.backends.cpu.kernel import compile_kernel, lower_kernel, lower_kernels
from lamina.backends.kernel_source import symbol_of, text_without_name
from lamina.backends.target import Target
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError

RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def elementwise(body, shape="4x5", element="f32", operands=2):
    type_ = f"tensor<{shape}x{element}>" if shape else f"tensor<{element}>"
    arguments = ", ".join(f"%a{i}: {type_}" for i in range(operands))
    return f"func.func private @k({arguments}) -> {type_} {{\n{body.replace('$T', type_)}\n}}"


def test_elementwise_chain():
    k = kernel(
        elementwise(
            "%0 = stablehlo.add %a0, %a1 : $T\n%1 = stablehlo.multiply %0, %a0 : $T\nreturn %1 : $T"
        )
    )
    a, b = normal(4, 5), normal(4, 5)
    np.testing.assert_allclose(k(a, b)[0], (a + b) * a, rtol=1e-6)
    assert k.texts["linalg"].count("linalg.generic") == 1  # fused
    assert k.made.scratch_bytes == 0


def test_scalars():
    k = kernel(elementwise("%0 = stablehlo.add %a0, %a1 : $T\nreturn %0 : $T", shape=""))
    assert k(np.float32(2), np.float32(3))[0] == 5


def test_big_arrays_run_as_tasks():
    k = kernel(elementwise("%0 = stablehlo.add %a0, %a1 : $T\nreturn %0 : $T", "1000x1000"))
    assert k.made.imports == ("lamina_parallel_for",)
    a, b = normal(1000, 1000), normal(1000, 1000)
    np.testing.assert_array_equal(k(a, b)[0], a + b)


def test_small_arrays_do_not():
    assert (
        kernel(elementwise("%0 = stablehlo.add %a0, %a1 : $T\nreturn %0 : $T")).made.imports == ()
    )


@pytest.mark.parametrize(
    "shape", [(7,), (2048,), (3, 5), (512, 700), (2, 3, 4), (64, 33, 65), (300000,), (264, 2064)]
)
@pytest.mark.parametrize("dimensions", ["first", "last", "all", "middle"])
def test_sums(shape, dimensions):
    rank = len(shape)
    dims = {"first": [0], "last": [rank - 1], "all": list(range(rank)), "middle": [rank // 2]}[
        dimensions
    ]
    kept = [n for d, n in enumerate(shape) if d not in dims]
    type_in = f"tensor<{'x'.join(map(str, shape))}xf32>"
    type_out = f"tensor<{''.join(f'{n}x' for n in kept)}f32>"
    k = kernel(f"""
    func.func private @k(%x: {type_in}) -> {type_out} {{
      %c = stablehlo.constant dense<1.5> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = {dims}
        : ({type_in}, tensor<f32>) -> {type_out}
      return %0 : {type_out}
    }}""")
    x = normal(*shape)
    expected = x.astype(np.float64).sum(tuple(dims)) + 1.5
    np.testing.assert_allclose(k(x)[0], expected, rtol=1e-5, atol=1e-3)


def test_argmax():
    k = kernel("""
    func.func private @k(%x: tensor<6x100xf32>) -> (tensor<6xf32>, tensor<6xi32>) {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %i = stablehlo.iota dim = 1 : tensor<6x100xi32>
      %0:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1]
        : (tensor<6x100xf32>, tensor<6x100xi32>, tensor<f32>, tensor<i32>)
            -> (tensor<6xf32>, tensor<6xi32>)
        reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
          %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
          %3 = stablehlo.select %1, %c, %d : tensor<i1>, tensor<i32>
          stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
        }
      return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
    }""")
    x = normal(6, 100)
    value, place = k(x)
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (8, 8, 8), (5, 7, 3), (128, 64, 10), (33, 100, 65), (1, 300, 40)]
)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_dot(m, k, n, transposed):
    lhs, rhs = ((k, m) if transposed[0] else (m, k)), ((n, k) if transposed[1] else (k, n))
    a, b = normal(*lhs), normal(*rhs)
    types = [f"tensor<{x[0]}x{x[1]}xf32>" for x in (lhs, rhs, (m, n))]
    made = kernel(f"""
    func.func private @k(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
      %0 = stablehlo.dot_general %a, %b,
        contracting_dims = [{int(not transposed[0])}] x [{int(transposed[1])}]
        : ({types[0]}, {types[1]}) -> {types[2]}
      return %0 : {types[2]}
    }}""")
    expected = (a.T if transposed[0] else a) @ (b.T if transposed[1] else b)
    np.testing.assert_allclose(made(a, b)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "dtype, name", [("f", "f32"), ("d", "f64"), ("F", "complex<f32>"), ("D", "complex<f64>")]
)
def test_library_products(dtype, name):
    made = kernel(f"""
    func.func private @k(%a: tensor<3x40x50x{name}>, %b: tensor<50x3x60x{name}>)
        -> tensor<3x40x60x{name}>
        attributes {{lamina.kind = "library", lamina.library = "openblas.gemm"}} {{
      %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [1], contracting_dims = [2] x [0]
        : (tensor<3x40x50x{name}>, tensor<50x3x60x{name}>) -> tensor<3x40x60x{name}>
      return %0 : tensor<3x40x60x{name}>
    }}""")
    a, b = normal(3, 40, 50).astype(dtype), normal(50, 3, 60).astype(dtype)
    if dtype in "FD":
        a, b = a + 1j * normal(3, 40, 50).astype(dtype), b - 2j * normal(50, 3, 60).astype(dtype)
    expected = np.einsum("bmk,kbn->bmn", a, b)
    np.testing.assert_allclose(made(a, b)[0], expected, rtol=1e-3, atol=1e-3)
    assert f"scipy_cblas_{dict(f='s', d='d', F='c', D='z')[dtype]}gemm" in made.made.imports


@pytest.mark.parametrize("shape", [(3, 4), (100, 65), (513, 300)])
def test_transpose(shape):
    m, n = shape
    k = kernel(f"""
    func.func private @k(%x: tensor<{m}x{n}xf32>) -> tensor<{n}x{m}xf32> {{
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<{m}x{n}xf32>) -> tensor<{n}x{m}xf32>
      return %0 : tensor<{n}x{m}xf32>
    }}""")
    x = normal(*shape)
    np.testing.assert_array_equal(k(x)[0], x.T)


@pytest.mark.parametrize("astray", [0, 8])
@pytest.mark.parametrize(
    ("shape", "element", "to"),
    [
        ((1024, 1037), "f32", "f32"),
        ((1040, 1010), "i32", "i32"),
        ((1000, 700), "f64", "f64"),
        ((1024, 1100), "f64", "f32"),  # rows of half a line
        ((1024, 1100), "f16", "f32"),
        ((3, 720, 800), "f64", "f64"),
    ],
)
def test_large_transposes_go_past_the_caches(shape, element, to, astray):
    turned = (*shape[:-2], shape[-1], shape[-2])
    dims = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    of, and_to = (f"tensor<{'x'.join(map(str, shape))}x{t}>" for t in (element, to))
    result = f"tensor<{'x'.join(map(str, turned))}x{to}>"
    k = kernel(f"""
    func.func private @k(%x: {of}) -> {result} {{
      %0 = stablehlo.convert %x : ({of}) -> {and_to}
      %1 = stablehlo.transpose %0, dims = {dims} : ({and_to}) -> {result}
      return %1 : {result}
    }}""", l2_bytes=1 << 20)  # fmt: skip
    x = (normal(*shape) * 1000).astype(dict(f="float", i="int")[element[0]] + element[1:])
    expected = np.swapaxes(x, -1, -2).astype(dict(f="float", i="int")[to[0]] + to[1:])
    np.testing.assert_array_equal(k(x, astray=astray)[0], expected)
    assert ("movnt" in k.texts["asm"]) == ((element, to) != ("f64", "f32"))


# Results and arguments in every combination


def test_update_writes_only_the_update():
    k = kernel("""
    func.func private @k(%x: tensor<1000xf32> {lamina.inout = 0 : i32}, %u: tensor<3xf32>,
        %i: tensor<i32>)
        -> tensor<1000xf32> {
      %0 = stablehlo.dynamic_update_slice %x, %u, %i
        : (tensor<1000xf32>, tensor<3xf32>, tensor<i32>) -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }""")
    x = normal(1000)
    expected = x.copy()
    expected[997:] = [1, 2, 3]
    np.testing.assert_array_equal(k(x, [1, 2, 3], 2000)[0], expected)  # clamped
    assert "i64 4000" not in k.texts["llvm"]  # no copy of the whole
    assert k.made.scratch_bytes == 0


SCATTER = """
func.func private @k(%x: tensor<10x4xf32> {inout}, %i: tensor<5x1xi32>, %u: tensor<5x4xf32>)
    -> tensor<10x4xf32> {{
  %0 = "stablehlo.scatter"(%x, %i, %u) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
    : (tensor<10x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}}"""


@pytest.mark.parametrize("inout", ["", "{lamina.inout = 0 : i32}"])
def test_scatter_add(inout):
    k = kernel(SCATTER.format(inout=inout))
    x, updates, places = normal(10, 4), normal(5, 4), np.array([[3], [-1], [3], [10], [9]])
    expected = x.copy()
    for place, update in zip(places[:, 0], updates, strict=True):
        if 0 <= place < 10:
            expected[place] += update
    np.testing.assert_allclose(k(x, places, updates)[0], expected, rtol=1e-6)


def test_scatter_drops_windows_whole():
    k = kernel("""
    func.func private @k(%x: tensor<6xi32>, %i: tensor<2x1xi64>,
        %u: tensor<2x3xi32>) -> tensor<6xi32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        stablehlo.return %b : tensor<i32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
        : (tensor<6xi32>, tensor<2x1xi64>, tensor<2x3xi32>) -> tensor<6xi32>
      return %0 : tensor<6xi32>
    }""")
    (y,) = k(np.arange(6), [[4], [0]], [[10, 11, 12], [20, 21, 22]])
    np.testing.assert_array_equal(y, [20, 21, 22, 3, 4, 5])


def test_elementwise_in_place_while_another_result_reads_the_old_value():
    k = kernel("""
    func.func private @k(%x: tensor<100xf32> {lamina.inout = 0 : i32}, %y: tensor<100xf32>)
        -> (tensor<100xf32>, tensor<100xf32>) {
      %0 = stablehlo.add %x, %y : tensor<100xf32>
      %1 = stablehlo.multiply %x, %x : tensor<100xf32>
      return %0, %1 : tensor<100xf32>, tensor<100xf32>
    }""")
    x, y = normal(100), normal(100)
    total, square = k(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(square, x * x)


def test_arguments_that_change_places():
    k = kernel("""
    func.func private @k(%x: tensor<9xf32> {lamina.inout = 0 : i32},
        %y: tensor<9xf32> {lamina.inout = 1 : i32})
        -> (tensor<9xf32>, tensor<9xf32>) {
      return %y, %x : tensor<9xf32>, tensor<9xf32>
    }""")
    x, y = normal(9), normal(9)
    first, second = k(x, y)
    np.testing.assert_array_equal(first, y)
    np.testing.assert_array_equal(second, x)


def test_values_returned_twice_arguments_and_constants():
    k = kernel("""
    func.func private @k(%x: tensor<9xf32>)
        -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<3xf32>) {
      %c = stablehlo.constant dense<[1.0, 2.5, 0x7F800000]> : tensor<3xf32>
      %0 = stablehlo.add %x, %x : tensor<9xf32>
      return %0, %0, %x, %c : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<3xf32>
    }""")
    x = normal(9)
    first, second, same, constant = k(x)
    np.testing.assert_array_equal(first, x + x)
    np.testing.assert_array_equal(second, x + x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(constant, [1.0, 2.5, np.inf])


def test_empty_tensors():
    k = kernel("""
    func.func private @k(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>)
        -> (tensor<2x0xf32>, tensor<2x3xf32>) {
      %0 = stablehlo.add %x, %x : tensor<2x0xf32>
      %1 = stablehlo.concatenate %0, %y, dim = 1 : (tensor<2x0xf32>, tensor<2x3xf32>)
          -> tensor<2x3xf32>
      return %0, %1 : tensor<2x0xf32>, tensor<2x3xf32>
    }""")
    y = normal(2, 3)
    empty, same = k(np.zeros((2, 0)), y)
    assert empty.shape == (2, 0)
    np.testing.assert_array_equal(same, y)


def test_large_temporaries_lie_in_the_scratch_region():
    k = kernel("""
    func.func private @k(%x: tensor<200x300xf32>) -> tensor<300x300xf32> {
      %0 = stablehlo.exponential %x : tensor<200x300xf32>
      %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0]
        : (tensor<200x300xf32>, tensor<200x300xf32>) -> tensor<300x300xf32>
      return %1 : tensor<300x300xf32>
    }""")
    assert k.made.scratch_bytes % 64 == 0
    x = normal(200, 300)
    np.testing.assert_allclose(k(x)[0], np.exp(x).T @ np.exp(x), rtol=1e-4)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 1000])
def test_stable_sort_of_two_operands(length):
    k = kernel(f"""
    func.func private @k(%x: tensor<3x{length}xui8>, %y: tensor<3x{length}xi32>)
        -> (tensor<3x{length}xui8>, tensor<3x{length}xi32>) {{
      %0:2 = "stablehlo.sort"(%x, %y) ({{
      ^bb0(%a: tensor<ui8>, %b: tensor<ui8>, %c: tensor<i32>, %d: tensor<i32>):
        %1 = stablehlo.compare LT, %a, %b : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }}) {{dimension = 1 : i64, is_stable = true}}
        : (tensor<3x{length}xui8>, tensor<3x{length}xi32>)
            -> (tensor<3x{length}xui8>, tensor<3x{length}xi32>)
      return %0#0, %0#1 : tensor<3x{length}xui8>, tensor<3x{length}xi32>
    }}""")
    x = RNG.integers(0, 256, (3, length)).astype(np.uint8)
    keys, order = k(x, np.broadcast_to(np.arange(length, dtype=np.int32), (3, length)))
    np.testing.assert_array_equal(order, np.argsort(x, axis=1, kind="stable"))
    np.testing.assert_array_equal(keys, np.sort(x, axis=1))


# Names and refusals


def test_symbols_name_the_code():
    target = Target.host()
    with context(), ir.Location.unknown():
        module = parse(elementwise("%0 = stablehlo.add %a0, %a1 : $T\nreturn %0 : $T"))
        one = symbol_of(module.body.operations[0].operation, target)
        text = elementwise("%z = stablehlo.add %a0, %a1 : $T\nreturn %z : $T").replace(
            "@k", "@other"
        )
        renamed = parse(text)
        reasoned = parse(text.replace(" {\n", ' attributes {lamina.reason = "because"} {\n', 1))
        different = parse(elementwise("%0 = stablehlo.add %a1, %a0 : $T\nreturn %0 : $T"))
        assert symbol_of(renamed.body.operations[0].operation, target) == one
        assert symbol_of(reasoned.body.operations[0].operation, target) == one
        assert symbol_of(different.body.operations[0].operation, target) != one


def test_the_order_of_ops_does_not_count() -> None:
    target = Target.host()
    product = "%p = stablehlo.multiply %a0, %a1 : $T"
    half = "%c = stablehlo.constant dense<0.5> : $T"
    while_ = """
    %w = stablehlo.while(%i = %a0) : $T
    cond { %t = stablehlo.constant dense<false> : tensor<i1>
           stablehlo.return %t : tensor<i1> }
    do { %n = stablehlo.add %i, %c : $T
         stablehlo.return %n : $T }"""
    end = "%s = stablehlo.subtract %p, %w : $T\nreturn %s : $T"
    dead = "%d = stablehlo.negate %a0 : $T"
    orders = [(product, half, while_), (half, while_, product), (half, product, while_, dead)]
    modules = [parse(elementwise("\n".join([*order, end]))) for order in orders]
    texts = [str(module) for module in modules]
    symbols = {symbol_of(module.body.operations[0].operation, target) for module in modules}
    assert len(symbols) == 1 and len(set(texts)) == 3
    assert [str(module) for module in modules] == texts  # they are left as they are
    other = parse(elementwise("\n".join([*orders[0], end.replace("%p, %w", "%w, %p")])))
    assert symbol_of(other.body.operations[0].operation, target) not in symbols


CUSTOM_CALL = """
  %0 = stablehlo.custom_call @nowhere(%a0) : ($T) -> $T
  return %0 : $T"""
LOOP = """
  %0 = "stablehlo.while"(%a0) ({
  ^bb0(%c: $T):
    %t = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  }, {
  ^bb0(%c: $T):
    stablehlo.return %c : $T
  }) : ($T) -> $T
  return %0 : $T"""


@pytest.mark.parametrize("body, message", [(CUSTOM_CALL, "custom_call"), (LOOP, "while")])
def test_refusals_name_the_op(body, message):
    with pytest.raises(CompileError, match=message):
        kernel(elementwise(body, operands=1))


TOGETHER = (
    elementwise("%0 = stablehlo.add %a0, %a1 : $T\nreturn %0 : $T"),
    elementwise("%0 = stablehlo.tanh %a0 : $T\n%1 = stablehlo.divide %0, %a1 : $T\nreturn %1 : $T"),
    elementwise(
        "%0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : ($T, $T) -> $T\nreturn %0 : $T",
        "64x64",
    ),
    elementwise("%0 = stablehlo.transpose %a0, dims = [1, 0] : ($T) -> $T\nreturn %0 : $T", "600x600"),
)


def lowerable(texts):
    """Functions with their symbols and sources, and the modules that they are in."""
    modules = [parse(text) for text in texts]
    functions = [module.body.operations[0].operation for module in modules]
    return [(f, symbol_of(f, Target.host()), text_without_name(f)) for f in functions], modules


def test_kernels_lowered_together_are_as_lowered_alone():
    several, modules = lowerable(TOGETHER)
    together = lower_kernels(several, Target.host())
    assert together == [lower_kernel(*one, Target.host()) for one in several]
    assert len({lowered.llvm_ir for lowered in together}) == len(modules)


def test_of_kernels_lowered_together_the_refused_one_is_named():
    several, modules = lowerable([*TOGETHER, elementwise(CUSTOM_CALL, operands=1)])
    with pytest.raises(CompileError, match="custom_call"):
        lower_kernels(several, Target.host())
    assert len(lower_kernels(several[: len(modules) - 1], Target.host())) == len(TOGETHER)


def test_dynamic_sizes_are_refused():
    with context(), ir.Location.unknown():
        module = parse("""func.func private @k(%x: tensor<?xf32>) -> tensor<?xf32> {
          %0 = stablehlo.add %x, %x : tensor<?xf32>
          return %0 : tensor<?xf32>
        }""")
        with pytest.raises(CompileError, match="dynamic"):
            compile_kernel(module.body.operations[0].operation, Target.host())


def test_softmax_is_one_loop_over_rows():
    k = kernel("""
    func.func private @k(%x: tensor<300x200xf32>) -> tensor<300x200xf32> {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
        : (tensor<300x200xf32>, tensor<f32>) -> tensor<300xf32>
      %1 = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<300xf32>) -> tensor<300x200xf32>
      %2 = stablehlo.subtract %x, %1 : tensor<300x200xf32>
      %3 = stablehlo.exponential %2 : tensor<300x200xf32>
      %sum = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<300x200xf32>, tensor<f32>) -> tensor<300xf32>
      %4 = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<300xf32>) -> tensor<300x200xf32>
      %5 = stablehlo.divide %3, %4 : tensor<300x200xf32>
      return %5 : tensor<300x200xf32>
    }""")
    assert k.made.scratch_bytes == 0  # temporaries of one row each
    x = normal(300, 200)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(k(x)[0], e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("op, init, expected", [("or", "false", True), ("and", "true", False)])
def test_large_reductions_of_booleans(op, init, expected):
    k = kernel(f"""
    func.func private @k(%x: tensor<4000000xi1>) -> tensor<i1> {{
      %c = stablehlo.constant dense<{init}> : tensor<i1>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{op} across dimensions = [0]
        : (tensor<4000000xi1>, tensor<i1>) -> tensor<i1>
      return %0 : tensor<i1>
    }}""")
    x = np.full(4000000, not expected)
    assert k(x)[0] == (not expected)
    x[1234567] = expected
    assert k(x)[0] == expected


def test_large_sums_keep_their_digits():
    k = kernel("""
    func.func private @k(%x: tensor<6000000xf32>) -> tensor<f32> {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0]
        : (tensor<6000000xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }""")
    assert k.made.imports == ("lamina_parallel_for",)
    x = RNG.random(6000000, np.float32)
    np.testing.assert_allclose(k(x)[0], x.sum(dtype=np.float64), rtol=1e-6)
