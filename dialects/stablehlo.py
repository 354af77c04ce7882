"""Builders for StableHLO ops, one function per op, named as StableHLO names it.

Each takes and returns `ir.Value`s, inserts at the ambient insertion point with the ambient
location, and works out the result type where the op has only one possible. Sizes are checked by
`module.operation.verify()`, not here. Names that are Python keywords end in `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.dialects import constants
from lamina.dialects.types import element_type, tensor_type
from lamina.dialects.vendors import ir, stablehlo_ext

Value = ir.Value
Body = Callable[..., Any]  # takes block arguments, returns a value or a sequence of values
_Unary = Callable[[Value], Value]
_Binary = Callable[[Value, Value], Value]

_create = ir.Operation.create
_tensor = ir.RankedTensorType.get
_dims = ir.DenseI64ArrayAttr.get


def _elementwise_unary(name: str) -> _Unary:
    def build(x: Value) -> Value:
        return _create(name, results=[x.type], operands=[x]).result

    return build


def _elementwise_binary(name: str) -> _Binary:
    def build(lhs: Value, rhs: Value) -> Value:
        return _create(name, results=[lhs.type], operands=[lhs, rhs]).result

    return build


def _inferred_unary(name: str) -> _Unary:
    def build(x: Value) -> Value:
        return _create(name, operands=[x], infer_type=True).result

    return build


add = _elementwise_binary("stablehlo.add")
subtract = _elementwise_binary("stablehlo.subtract")
multiply = _elementwise_binary("stablehlo.multiply")
divide = _elementwise_binary("stablehlo.divide")
maximum = _elementwise_binary("stablehlo.maximum")
minimum = _elementwise_binary("stablehlo.minimum")
power = _elementwise_binary("stablehlo.power")
remainder = _elementwise_binary("stablehlo.remainder")
atan2 = _elementwise_binary("stablehlo.atan2")
and_ = _elementwise_binary("stablehlo.and")
or_ = _elementwise_binary("stablehlo.or")
xor = _elementwise_binary("stablehlo.xor")
shift_left = _elementwise_binary("stablehlo.shift_left")
shift_right_arithmetic = _elementwise_binary("stablehlo.shift_right_arithmetic")
shift_right_logical = _elementwise_binary("stablehlo.shift_right_logical")

not_ = _elementwise_unary("stablehlo.not")
negate = _elementwise_unary("stablehlo.negate")
sign = _elementwise_unary("stablehlo.sign")
floor = _elementwise_unary("stablehlo.floor")
ceil = _elementwise_unary("stablehlo.ceil")
round_nearest_even = _elementwise_unary("stablehlo.round_nearest_even")
round_nearest_afz = _elementwise_unary("stablehlo.round_nearest_afz")
exponential = _elementwise_unary("stablehlo.exponential")
exponential_minus_one = _elementwise_unary("stablehlo.exponential_minus_one")
log = _elementwise_unary("stablehlo.log")
log_plus_one = _elementwise_unary("stablehlo.log_plus_one")
sine = _elementwise_unary("stablehlo.sine")
cosine = _elementwise_unary("stablehlo.cosine")
tan = _elementwise_unary("stablehlo.tan")
tanh = _elementwise_unary("stablehlo.tanh")
logistic = _elementwise_unary("stablehlo.logistic")
sqrt = _elementwise_unary("stablehlo.sqrt")
rsqrt = _elementwise_unary("stablehlo.rsqrt")
cbrt = _elementwise_unary("stablehlo.cbrt")
popcnt = _elementwise_unary("stablehlo.popcnt")
count_leading_zeros = _elementwise_unary("stablehlo.count_leading_zeros")

abs = _inferred_unary("stablehlo.abs")  # of complex numbers: real
real = _inferred_unary("stablehlo.real")
imag = _inferred_unary("stablehlo.imag")
is_finite = _inferred_unary("stablehlo.is_finite")


def complex(real: Value, imag: Value) -> Value:
    """The complex numbers with these parts."""
    return _create("stablehlo.complex", operands=[real, imag], infer_type=True).result


# Types


def convert(x: Value, dtype: Any) -> Value:
    """The elements as another dtype."""
    result = _tensor(x.type.shape, element_type(dtype))
    return _create("stablehlo.convert", results=[result], operands=[x]).result


def bitcast_convert(x: Value, shape: Sequence[int], dtype: Any) -> Value:
    """The same bits as another dtype; shape is the result's, with the last dimension adapted."""
    result = tensor_type(shape, dtype)
    return _create("stablehlo.bitcast_convert", results=[result], operands=[x]).result


def reduce_precision(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """The elements rounded to a float format with these widths."""
    attributes = {"exponent_bits": _i32(exponent_bits), "mantissa_bits": _i32(mantissa_bits)}
    return _create(
        "stablehlo.reduce_precision", results=[x.type], operands=[x], attributes=attributes
    ).result


# Comparison and choice


def compare(lhs: Value, rhs: Value, direction: str, compare_type: str | None = None) -> Value:
    """lhs `direction` rhs with direction EQ NE LT LE GT GE; order by element type if not given."""
    of = lhs.type
    attributes = {
        "comparison_direction": stablehlo_ext.ComparisonDirectionAttr.get(direction),
        "compare_type": stablehlo_ext.ComparisonTypeAttr.get(
            compare_type or _compare_type(of.element_type)
        ),
    }
    result = _tensor(of.shape, ir.IntegerType.get_signless(1))
    return _create(
        "stablehlo.compare", results=[result], operands=[lhs, rhs], attributes=attributes
    ).result


def _compare_type(element: ir.Type) -> str:
    if not isinstance(element, ir.IntegerType):
        return "FLOAT"
    return "UNSIGNED" if element.is_unsigned or element.width == 1 else "SIGNED"


def select(predicate: Value, on_true: Value, on_false: Value) -> Value:
    """on_true where predicate (same shape, or a scalar), else on_false."""
    return _create(
        "stablehlo.select", results=[on_true.type], operands=[predicate, on_true, on_false]
    ).result


def clamp(low: Value, x: Value, high: Value) -> Value:
    """x kept between low and high, which have x's shape or are scalars."""
    return _create("stablehlo.clamp", results=[x.type], operands=[low, x, high]).result


# Constants


def constant(value: Any) -> Value:
    """An array as a constant of its own shape and dtype."""
    return _constant(constants.dense(value))


def full(value: Any, shape: Sequence[int], dtype: Any) -> Value:
    """A constant with one value everywhere, stored once."""
    return _constant(constants.dense_splat(value, tuple(shape), dtype))


def _constant(value: ir.Attribute) -> Value:
    return _create("stablehlo.constant", attributes={"value": value}, infer_type=True).result


def iota(shape: Sequence[int], dtype: Any, dimension: int) -> Value:
    """Each element is its index along one dimension."""
    return _create(
        "stablehlo.iota",
        results=[tensor_type(shape, dtype)],
        attributes={"iota_dimension": _i64(dimension)},
    ).result


# Shape


def broadcast_in_dim(x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
    """x spread over shape; dims[i] is where x's dimension i goes."""
    return _create(
        "stablehlo.broadcast_in_dim",
        results=[_tensor(shape, x.type.element_type)],
        operands=[x],
        attributes={"broadcast_dimensions": _dims(dims)},
    ).result


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """The same elements in row-major order under another shape."""
    result = _tensor(shape, x.type.element_type)
    return _create("stablehlo.reshape", results=[result], operands=[x]).result


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    """Result dimension i is x's dimension permutation[i]."""
    of = x.type
    shape = of.shape
    return _create(
        "stablehlo.transpose",
        results=[_tensor([shape[p] for p in permutation], of.element_type)],
        operands=[x],
        attributes={"permutation": _dims(permutation)},
    ).result


def reverse(x: Value, dimensions: Sequence[int]) -> Value:
    """x read backwards along some dimensions."""
    return _create(
        "stablehlo.reverse",
        results=[x.type],
        operands=[x],
        attributes={"dimensions": _dims(dimensions)},
    ).result


def slice(
    x: Value, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    """x[start:limit:strides] in each dimension."""
    strides = [1] * len(start) if strides is None else strides
    shape = [-((s - e) // t) for s, e, t in zip(start, limit, strides, strict=True)]
    return _create(
        "stablehlo.slice",
        results=[_tensor(shape, x.type.element_type)],
        operands=[x],
        attributes={
            "start_indices": _dims(start),
            "limit_indices": _dims(limit),
            "strides": _dims(strides),
        },
    ).result


def dynamic_slice(x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The window of x of these sizes at scalar starts, which are clamped into range."""
    return _create(
        "stablehlo.dynamic_slice",
        results=[_tensor(sizes, x.type.element_type)],
        operands=[x, *starts],
        attributes={"slice_sizes": _dims(sizes)},
    ).result


def dynamic_update_slice(x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """x with update written at scalar starts, which are clamped into range."""
    return _create(
        "stablehlo.dynamic_update_slice", results=[x.type], operands=[x, update, *starts]
    ).result


def pad(
    x: Value, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Value:
    """x with a scalar around it (negative: cropped) and between its elements."""
    of = x.type
    shape = [
        before + after + size + max(size - 1, 0) * between
        for size, before, after, between in zip(of.shape, low, high, interior, strict=True)
    ]
    return _create(
        "stablehlo.pad",
        results=[_tensor(shape, of.element_type)],
        operands=[x, value],
        attributes={
            "edge_padding_low": _dims(low),
            "edge_padding_high": _dims(high),
            "interior_padding": _dims(interior),
        },
    ).result


def concatenate(xs: Sequence[Value], dimension: int) -> Value:
    """The arrays one after another along a dimension."""
    return _create(
        "stablehlo.concatenate",
        operands=list(xs),
        attributes={"dimension": _i64(dimension)},
        infer_type=True,
    ).result


# Contractions


def dot_general(
    lhs: Value,
    rhs: Value,
    lhs_batch: Sequence[int],
    rhs_batch: Sequence[int],
    lhs_contracting: Sequence[int],
    rhs_contracting: Sequence[int],
    dtype: Any,
    precision: str | tuple[str, str] | None = None,
) -> Value:
    """Sum of products over the contracting dimensions: batch, then lhs's, then rhs's free ones."""
    left, right = lhs.type.shape, rhs.type.shape
    bound_left = {*lhs_batch, *lhs_contracting}
    bound_right = {*rhs_batch, *rhs_contracting}
    shape = [left[i] for i in lhs_batch]
    shape += [size for i, size in enumerate(left) if i not in bound_left]
    shape += [size for i, size in enumerate(right) if i not in bound_right]
    attributes = {
        "dot_dimension_numbers": stablehlo_ext.DotDimensionNumbers.get(
            list(lhs_batch), list(rhs_batch), list(lhs_contracting), list(rhs_contracting)
        )
    } | _precision_config(precision)
    return _create(
        "stablehlo.dot_general",
        results=[_tensor(shape, element_type(dtype))],
        operands=[lhs, rhs],
        attributes=attributes,
    ).result


def _precision_config(precision: str | tuple[str, str] | None) -> dict[str, ir.Attribute]:
    if precision is None:
        return {}
    pair = (precision, precision) if isinstance(precision, str) else precision
    return {
        "precision_config": ir.ArrayAttr.get([stablehlo_ext.PrecisionAttr.get(p) for p in pair])
    }


def convolution(
    lhs: Value,
    rhs: Value,
    shape: Sequence[int],
    dtype: Any,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ir.Attribute,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: str | tuple[str, str] | None = None,
) -> Value:
    """Convolution; shape is the result's, dimension_numbers a `ConvDimensionNumbers`."""
    attributes = {
        "window_strides": _dims(window_strides),
        "padding": _padding(padding),
        "lhs_dilation": _dims(lhs_dilation),
        "rhs_dilation": _dims(rhs_dilation),
        "window_reversal": ir.DenseBoolArrayAttr.get([False] * len(window_strides)),
        "dimension_numbers": dimension_numbers,
        "feature_group_count": _i64(feature_group_count),
        "batch_group_count": _i64(batch_group_count),
    } | _precision_config(precision)
    return _create(
        "stablehlo.convolution",
        results=[tensor_type(shape, dtype)],
        operands=[lhs, rhs],
        attributes=attributes,
    ).result


# Gather and scatter


def gather(
    operand: Value,
    indices: Value,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool = False,
) -> Value:
    """Slices of operand at the indices, which are clamped into range."""
    attributes = {
        "dimension_numbers": stablehlo_ext.GatherDimensionNumbers.get(
            list(offset_dims),
            list(collapsed_slice_dims),
            list(operand_batching_dims),
            list(start_indices_batching_dims),
            list(start_index_map),
            index_vector_dim,
        ),
        "slice_sizes": _dims(slice_sizes),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
    }
    return _create(
        "stablehlo.gather", operands=[operand, indices], attributes=attributes, infer_type=True
    ).result


def scatter(
    operands: Sequence[Value],
    indices: Value,
    updates: Sequence[Value],
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    body: Body,
) -> list[Value]:
    """operands with updates combined in at the indices by body(*old, *update); others dropped."""
    attributes = {
        "scatter_dimension_numbers": stablehlo_ext.ScatterDimensionNumbers.get(
            list(update_window_dims),
            list(inserted_window_dims),
            list(input_batching_dims),
            list(scatter_indices_batching_dims),
            list(scatter_dims_to_operand_dims),
            index_vector_dim,
        ),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
        "unique_indices": ir.BoolAttr.get(unique_indices),
    }
    op = _create(
        "stablehlo.scatter",
        results=[x.type for x in operands],
        operands=[*operands, indices, *updates],
        attributes=attributes,
        regions=1,
    )
    _fill(op.regions[0], _scalars(operands) * 2, body)
    return list(op.results)


# Reductions, windows, sorting


def reduce(
    operands: Sequence[Value], inits: Sequence[Value], dimensions: Sequence[int], body: Body
) -> list[Value]:
    """operands folded along dimensions with body(*lhs, *rhs) on scalars, from scalar inits."""
    gone = set(dimensions)
    results = [
        _tensor([s for i, s in enumerate(x.type.shape) if i not in gone], init.type.element_type)
        for x, init in zip(operands, inits, strict=True)
    ]
    op = _create(
        "stablehlo.reduce",
        results=results,
        operands=[*operands, *inits],
        attributes={"dimensions": _dims(dimensions)},
        regions=1,
    )
    _fill(op.regions[0], _scalars(inits) * 2, body)
    return list(op.results)


def reduce_window(
    operands: Sequence[Value],
    inits: Sequence[Value],
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    base_dilations: Sequence[int],
    window_dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    body: Body,
) -> list[Value]:
    """operands folded over sliding windows with body(*lhs, *rhs) on scalars."""
    shape = [
        _window_count(*size)
        for size in zip(
            operands[0].type.shape, window_dimensions, window_strides, base_dilations,
            window_dilations, padding, strict=True,
        )
    ]  # fmt: skip
    op = _create(
        "stablehlo.reduce_window",
        results=[_tensor(shape, init.type.element_type) for init in inits],
        operands=[*operands, *inits],
        attributes={
            "window_dimensions": _dims(window_dimensions),
            "window_strides": _dims(window_strides),
            "base_dilations": _dims(base_dilations),
            "window_dilations": _dims(window_dilations),
            "padding": _padding(padding),
        },
        regions=1,
    )
    _fill(op.regions[0], _scalars(inits) * 2, body)
    return list(op.results)


def _window_count(
    size: int, window: int, stride: int, base: int, dilation: int, pad: tuple[int, int]
) -> int:
    span = pad[0] + pad[1] + ((size - 1) * base + 1 if size else 0)
    reach = (window - 1) * dilation + 1 if window else 0
    return 0 if span < reach else (span - reach) // stride + 1


def select_and_scatter(
    operand: Value,
    source: Value,
    init: Value,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    select: Body,
    scatter: Body,
) -> Value:
    """Each source element combined by scatter into the place that select picks in its window."""
    op = _create(
        "stablehlo.select_and_scatter",
        results=[operand.type],
        operands=[operand, source, init],
        attributes={
            "window_dimensions": _dims(window_dimensions),
            "window_strides": _dims(window_strides),
            "padding": _padding(padding),
        },
        regions=2,
    )
    _fill(op.regions[0], _scalars([operand]) * 2, select)
    _fill(op.regions[1], _scalars([source]) * 2, scatter)
    return op.result


def sort(
    operands: Sequence[Value], dimension: int, is_stable: bool, comparator: Body
) -> list[Value]:
    """operands sorted together; comparator(lhs0, rhs0, lhs1, rhs1, ...): does lhs go first?"""
    op = _create(
        "stablehlo.sort",
        results=[x.type for x in operands],
        operands=list(operands),
        attributes={"dimension": _i64(dimension), "is_stable": ir.BoolAttr.get(is_stable)},
        regions=1,
    )
    _fill(op.regions[0], [t for t in _scalars(operands) for _ in range(2)], comparator)
    return list(op.results)


# Control flow and calls


def while_(inits: Sequence[Value], cond: Body, body: Body) -> list[Value]:
    """body applied to the carried values while cond of them holds."""
    carried = [x.type for x in inits]
    op = _create("stablehlo.while", results=carried, operands=list(inits), regions=2)
    _fill(op.regions[0], carried, cond)
    _fill(op.regions[1], carried, body)
    return list(op.results)


def case(index: Value, branches: Sequence[Body], result_types: Sequence[ir.Type]) -> list[Value]:
    """What branch number index gives; out of range is the last branch. Branches take nothing."""
    op = _create(
        "stablehlo.case", results=list(result_types), operands=[index], regions=len(branches)
    )
    for region, branch in zip(op.regions, branches, strict=True):
        _fill(region, [], branch)
    return list(op.results)


def if_(
    predicate: Value, then: Body, else_: Body, result_types: Sequence[ir.Type] | None = None
) -> list[Value]:
    """What then() or else_() gives; result types are read from then's values if not given."""
    if result_types is None:
        result_types = _types_of(then)
    op = _create("stablehlo.if", results=list(result_types), operands=[predicate], regions=2)
    _fill(op.regions[0], [], then)
    _fill(op.regions[1], [], else_)
    return list(op.results)


def _types_of(branch: Body) -> list[ir.Type]:
    scratch = _create("stablehlo.if", operands=[], regions=1)
    _fill(scratch.regions[0], [], branch)
    types = [x.type for x in scratch.regions[0].blocks[0].operations[-1].operands]
    scratch.erase()
    return types


def call(callee: str, operands: Sequence[Value], result_types: Sequence[ir.Type]) -> list[Value]:
    """The results of a function of this module."""
    op = _create(
        "func.call",
        results=list(result_types),
        operands=list(operands),
        attributes={"callee": ir.FlatSymbolRefAttr.get(callee)},
    )
    return list(op.results)


def return_(values: Sequence[Value]) -> None:
    """End the function or region that is being built."""
    owner = ir.InsertionPoint.current.block.owner.operation
    name = "func.return" if owner.name == "func.func" else "stablehlo.return"
    _create(name, operands=list(values))


def function(
    name: str,
    arg_types: Sequence[ir.Type],
    result_types: Sequence[ir.Type],
    visibility: str = "public",
) -> tuple[ir.Operation, ir.Block]:
    """A `func.func` at the insertion point, with its empty entry block."""
    op = _create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get(list(arg_types), list(result_types))
            ),
            "sym_visibility": ir.StringAttr.get(visibility),
        },
        regions=1,
    )
    return op.operation, _block(op.regions[0], arg_types)


# Others


def rng_bit_generator(
    state: Value, shape: Sequence[int], dtype: Any, algorithm: str = "DEFAULT"
) -> list[Value]:
    """The next state and random bits; algorithm is DEFAULT, THREE_FRY or PHILOX."""
    op = _create(
        "stablehlo.rng_bit_generator",
        results=[state.type, tensor_type(shape, dtype)],
        operands=[state],
        attributes={"rng_algorithm": stablehlo_ext.RngAlgorithmAttr.get(algorithm)},
    )
    return list(op.results)


def optimization_barrier(xs: Sequence[Value]) -> list[Value]:
    """The same values, across which no pass moves anything."""
    op = _create("stablehlo.optimization_barrier", results=[x.type for x in xs], operands=list(xs))
    return list(op.results)


def fft(x: Value, kind: str, length: Sequence[int]) -> Value:
    """The Fourier transform FFT, IFFT, RFFT or IRFFT over the last len(length) dimensions."""
    return _create(
        "stablehlo.fft",
        operands=[x],
        attributes={"fft_type": stablehlo_ext.FftTypeAttr.get(kind), "fft_length": _dims(length)},
        infer_type=True,
    ).result


def cholesky(x: Value, lower: bool) -> Value:
    """The Cholesky factor of each matrix."""
    return _create(
        "stablehlo.cholesky",
        results=[x.type],
        operands=[x],
        attributes={"lower": ir.BoolAttr.get(lower)},
    ).result


def triangular_solve(
    a: Value, b: Value, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Value:
    """x with op(a) x = b, or x op(a) = b; transpose_a is NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
    return _create(
        "stablehlo.triangular_solve",
        results=[b.type],
        operands=[a, b],
        attributes={
            "left_side": ir.BoolAttr.get(left_side),
            "lower": ir.BoolAttr.get(lower),
            "unit_diagonal": ir.BoolAttr.get(unit_diagonal),
            "transpose_a": stablehlo_ext.TransposeAttr.get(transpose_a),
        },
    ).result


def custom_call(
    target: str,
    operands: Sequence[Value],
    result_types: Sequence[ir.Type],
    *,
    has_side_effect: bool = False,
    backend_config: ir.Attribute | None = None,
) -> list[Value]:
    """A call to something StableHLO does not define, found by name by the backend."""
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(target),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
    }
    if backend_config is not None:
        # 4 is the API version whose configuration is a dictionary.
        version = 4 if isinstance(backend_config, ir.DictAttr) else 2
        attributes |= {"backend_config": backend_config, "api_version": _i32(version)}
    op = _create(
        "stablehlo.custom_call",
        results=list(result_types),
        operands=list(operands),
        attributes=attributes,
    )
    return list(op.results)


def chlo(
    name: str,
    operands: Sequence[Value],
    result_type: ir.Type,
    attributes: dict[str, ir.Attribute] | None = None,
) -> Value:
    """`chlo.<name>` (erf, erf_inv, lgamma, ...), which chlo-legalize-to-stablehlo expands."""
    return _create(
        f"chlo.{name}", results=[result_type], operands=list(operands), attributes=attributes
    ).result


# Shared by the above


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _padding(padding: Sequence[tuple[int, int]]) -> ir.Attribute:
    return ir.DenseElementsAttr.get(np.array(padding, dtype=np.int64).reshape(-1, 2))


def _scalars(values: Sequence[Value]) -> list[ir.Type]:
    return [_tensor([], x.type.element_type) for x in values]


def _block(region: ir.Region, types: Sequence[ir.Type]) -> ir.Block:
    location = ir.Location.current
    return region.blocks.append(*types, arg_locs=[location] * len(types))


def _fill(region: ir.Region, types: Sequence[ir.Type], body: Body) -> None:
    block = _block(region, types)
    with ir.InsertionPoint(block):
        values = body(*block.arguments)
        return_([values] if isinstance(values, Value) else list(values))
