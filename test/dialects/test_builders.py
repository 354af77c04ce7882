"""Every builder makes an op that MLIR's verifier accepts, with the type that the op defines."""

import time

import ml_dtypes
import numpy as np
import pytest

from lamina.dialects import serialize
from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, dense_splat, is_splat
from lamina.dialects.context import ParseError, context, parse
from lamina.dialects.types import DYNAMIC, dtype_of, element_type, shape_of, tensor_type
from lamina.dialects.vendors import ir, stablehlo_ext

F32, I32 = np.float32, np.int32


@pytest.fixture(autouse=True)
def ambient():
    with context(), ir.Location.unknown():
        yield


def build(body, *arg_types):
    """Module with `main` of these arguments returning body's values; verified."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        func, block = hlo.function("main", arg_types, [])
        with ir.InsertionPoint(block):
            values = body(*block.arguments)
            values = [values] if isinstance(values, ir.Value) else list(values)
            hlo.return_(values)
        types = ir.FunctionType.get(list(arg_types), [v.type for v in values])
        func.attributes["function_type"] = ir.TypeAttr.get(types)
    assert module.operation.verify()
    return module


def t(*shape, dtype=F32):
    return tensor_type(shape, dtype)


FLOAT_UNARY = (
    "abs negate sign floor ceil round_nearest_even round_nearest_afz exponential log log_plus_one "
    "exponential_minus_one sine cosine tan tanh logistic sqrt rsqrt cbrt is_finite"
).split()
BINARY = "add subtract multiply divide maximum minimum power remainder".split()
INT_BINARY = (
    "and_ or_ xor shift_left shift_right_arithmetic shift_right_logical add remainder".split()
)


@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_unary(name):
    build(getattr(hlo, name), t(2, 3))


@pytest.mark.parametrize("name", [*BINARY, "atan2"])
def test_binary(name):
    build(getattr(hlo, name), t(2, 3), t(2, 3))


@pytest.mark.parametrize("name", INT_BINARY)
def test_integer_binary(name):
    build(getattr(hlo, name), t(2, dtype=np.uint32), t(2, dtype=np.uint32))


def test_integer_unary_and_complex():
    build(lambda x: [hlo.not_(x), hlo.popcnt(x), hlo.count_leading_zeros(x)], t(2, dtype=I32))
    build(lambda a, b: hlo.abs(hlo.complex(a, b)), t(2), t(2))
    build(lambda x: [hlo.real(x), hlo.imag(x), hlo.abs(x)], t(2, dtype=np.complex64))


def test_types_and_choice():
    build(
        lambda x, p: [
            hlo.convert(x, ml_dtypes.bfloat16),
            hlo.bitcast_convert(x, (2, 3), np.uint32),
            hlo.bitcast_convert(x, (2, 3, 4), np.int8),
            hlo.reduce_precision(x, 8, 7),
            hlo.compare(x, x, "LT"),
            hlo.select(p, x, x),
            hlo.clamp(x, x, x),
        ],
        t(2, 3),
        t(2, 3, dtype=np.bool_),
    )
    text = str(
        build(
            lambda a, b, c: [hlo.compare(x, x, "EQ") for x in (a, b, c)],
            t(2, dtype=I32),
            t(2, dtype=np.uint8),
            t(2, dtype=np.bool_),
        )
    )
    assert text.count("UNSIGNED") == 2 and text.count(" SIGNED") == 1


def test_shapes():
    module = build(
        lambda x, i: [
            hlo.broadcast_in_dim(x, (5, 4, 6), (1, 2)),
            hlo.reshape(x, (24,)),
            hlo.transpose(x, (1, 0)),
            hlo.reverse(x, (0,)),
            hlo.slice(x, (1, 0), (4, 6), (2, 1)),
            hlo.slice(x, (0, 0), (4, 1)),
            hlo.dynamic_slice(x, (i, i), (2, 2)),
            hlo.dynamic_update_slice(x, hlo.slice(x, (0, 0), (1, 1)), (i, i)),
            hlo.pad(x, hlo.full(0, (), F32), (1, -1), (0, 2), (0, 1)),
            hlo.concatenate([x, x], 1),
            hlo.iota((3, 2), np.uint8, 1),
        ],
        t(4, 6),
        t(dtype=I32),
    )
    assert "tensor<2x6xf32>" in str(module) and "tensor<5x12xf32>" in str(module)


def test_contractions():
    build(
        lambda x, y: hlo.dot_general(x, y, (0,), (0,), (2,), (1,), F32, "HIGHEST"),
        t(2, 3, 4),
        t(2, 4, 5),
    )
    numbers = stablehlo_ext.ConvDimensionNumbers.get(0, 3, [1, 2], 2, 3, [0, 1], 0, 3, [1, 2])
    build(
        lambda x, k: hlo.convolution(
            x,
            k,
            (1, 8, 8, 5),
            F32,
            window_strides=(1, 1),
            padding=((1, 1), (1, 1)),
            lhs_dilation=(1, 1),
            rhs_dilation=(1, 1),
            dimension_numbers=numbers,
        ),
        t(1, 8, 8, 3),
        t(3, 3, 3, 5),
    )


def test_gather_scatter():
    build(
        lambda x, i, u: [
            hlo.gather(
                x,
                i,
                offset_dims=(1,),
                collapsed_slice_dims=(0,),
                start_index_map=(0,),
                index_vector_dim=1,
                slice_sizes=(1, 3),
            ),
            *hlo.scatter(
                [x],
                i,
                [u],
                update_window_dims=(1,),
                inserted_window_dims=(0,),
                scatter_dims_to_operand_dims=(0,),
                index_vector_dim=1,
                body=hlo.add,
            ),
        ],
        t(9, 3),
        t(5, 1, dtype=I32),
        t(5, 3),
    )


def test_reductions_and_sort():
    def windows(x, zero):
        return hlo.reduce_window(
            [x],
            [zero],
            window_dimensions=(1, 2),
            window_strides=(1, 2),
            base_dilations=(1, 1),
            window_dilations=(1, 1),
            padding=((0, 0), (0, 0)),
            body=hlo.add,
        )

    def body(x):
        zero = hlo.full(0, (), F32)
        (pooled,) = windows(x, zero)
        return [
            *hlo.reduce([x], [zero], (1,), hlo.add),
            *hlo.reduce([x, x], [zero, zero], (0,), lambda a, b, c, d: [hlo.add(a, c), d]),
            pooled,
            hlo.select_and_scatter(
                x,
                pooled,
                zero,
                window_dimensions=(1, 2),
                window_strides=(1, 2),
                padding=((0, 0), (0, 0)),
                select=lambda a, b: hlo.compare(a, b, "GE"),
                scatter=hlo.add,
            ),
            *hlo.sort([x, x], 1, True, lambda a, b, *_: hlo.compare(a, b, "LT", "TOTALORDER")),
        ]

    build(body, t(4, 6))


def test_control_flow():
    def body(x, n):
        def more(i, _):
            return hlo.compare(i, n, "LT")

        def step(i, acc):
            return hlo.add(i, hlo.full(1, (), I32)), hlo.add(acc, acc)

        _, total = hlo.while_([hlo.full(0, (), I32), x], more, step)
        (a,) = hlo.case(n, [lambda: x, lambda: hlo.negate(x)], [x.type])
        (b,) = hlo.if_(more(n, None), lambda: x, lambda: total)
        return [a, b]

    build(body, t(4), t(dtype=I32))


def test_calls_and_the_rest():
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        _, block = hlo.function("f", [t(2)], [t(2)], "private")
        with ir.InsertionPoint(block):
            hlo.return_([hlo.chlo("erf", [block.arguments[0]], t(2))])
        _, block = hlo.function("main", [t(2)], [t(2)])
        with ir.InsertionPoint(block):
            (y,) = hlo.call("f", [block.arguments[0]], [t(2)])
            (y,) = hlo.optimization_barrier([y])
            hlo.custom_call("thing", [y], [t(2)], backend_config=ir.DictAttr.get({}))
            hlo.return_([y])
    assert module.operation.verify()
    solve = dict(left_side=True, lower=True, unit_diagonal=False, transpose_a="NO_TRANSPOSE")
    build(lambda a: [hlo.cholesky(a, True), hlo.triangular_solve(a, a, **solve)], t(3, 3))
    build(lambda x: hlo.fft(x, "FFT", (4,)), t(4, dtype=np.complex64))
    build(lambda a, b: hlo.rng(a, b, (3,), "NORMAL"), t(), t())
    build(lambda s: hlo.rng_bit_generator(s, (3,), np.uint32), t(2, dtype=np.uint64))


DTYPES = [
    np.bool_, np.int8, np.int64, np.uint8, np.uint32, np.float16, np.float32, np.float64,
    np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("size", [0, 1, 5, 200])
def test_constants_come_back_bit_for_bit(dtype, size):
    def check(value):
        found = {}

        def body():
            found["x"] = hlo.constant(value)
            return found["x"]

        module = build(body)
        constant = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        back = array_of(constant)
        assert back.dtype == value.dtype and back.shape == value.shape
        assert back.tobytes() == value.tobytes()
        assert is_splat(constant) == (size > 0 and len(set(_elements(value))) == 1)

    values = np.arange(size) % 3
    check(values.astype(dtype))
    check(np.ones(size).astype(dtype).reshape(size, 1))
    if np.dtype(dtype).kind in "fcV" and "int" not in np.dtype(dtype).name:
        if "float4" not in np.dtype(dtype).name:
            check(np.array([np.nan, -0.0, -1.5][: min(size, 3)]).astype(dtype))


def _elements(value):
    data, width = value.tobytes(), value.dtype.itemsize
    return [data[i : i + width] for i in range(0, len(data), width)]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_full_is_a_splat(dtype):
    module = build(lambda: hlo.full(1, (1000, 1000), dtype))
    assert len(str(module)) < 300
    constant = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    assert is_splat(constant) and array_of(constant)[7, 7] == np.asarray(1).astype(dtype)
    assert dense_splat(1, (2,), dtype).type == tensor_type((2,), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_types_round_trip(dtype):
    assert dtype_of(tensor_type((2, DYNAMIC), dtype)) == np.dtype(dtype)
    assert shape_of(tensor_type((2, DYNAMIC), dtype)) == (2, DYNAMIC)


def test_types_refuse_what_mlir_lacks():
    with pytest.raises(TypeError, match="no MLIR element type for dtype 'datetime64"):
        element_type("datetime64[s]")


def test_serialised_forms_parse_to_the_same_module():
    module = build(lambda x: hlo.add(x, x), t(4))
    before = str(module)
    for data in (
        serialize.to_text(module),
        serialize.to_text(module, debug_info=True),
        serialize.to_bytecode(module),
        serialize.to_bytecode(module, debug_info=False),
        serialize.to_portable_artifact(module),
        serialize.to_portable_artifact(module, debug_info=False, version="1.0.0"),
    ):
        assert str(parse(data)) == before
    assert str(module) == before


def test_debug_info_is_optional():
    with ir.Location.file("model.py", 7, 3):
        module = build(lambda x: hlo.add(x, x), t(4))
    assert "model.py" in serialize.to_text(module, debug_info=True)
    assert b"model.py" in serialize.to_bytecode(module)
    for data in (
        serialize.to_text(module).encode(),
        serialize.to_bytecode(module, debug_info=False),
        serialize.to_portable_artifact(module, debug_info=False),
    ):
        assert b"model.py" not in data


def test_parse_errors_name_the_line():
    with pytest.raises(
        ParseError, match=r"x\.mlir:2:3: .*stablehlo\.foo.*\n  stablehlo\.foo\n  \^"
    ):
        parse("func.func @f() {\n  stablehlo.foo\n}", name="x.mlir")
    with pytest.raises(ParseError, match="neither MLIR text"):
        parse(b"\xff\xfe\x00")
    with pytest.raises(ParseError, match="not a readable MLIR bytecode"):
        parse(b"ML\xefR\x06MLIR\0garbage")
    with pytest.raises(ParseError, match="not a readable MLIR portable artifact"):
        parse(b"ML\xefR\x06StableHLO_v1.0.0\0garbage")


def test_builders_are_fast():
    seconds = []

    def body(x, y):
        for _ in range(5):
            begin = time.thread_time()  # others may have the processor meanwhile
            for _ in range(200):
                x = hlo.multiply(x, y)
                x = hlo.transpose(x, (1, 0))
                x = hlo.broadcast_in_dim(x, (4, 4), (0, 1))
                x = hlo.select(hlo.compare(x, y, "LT"), x, y)
            seconds.append(time.thread_time() - begin)
        return x

    build(body, t(4, 4), t(4, 4))
    assert min(seconds) / 1000 < 15e-6
