"""Derivatives of convolutions, which are convolutions of other layouts and dilations, and batches of them."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import ShapedArray, Zero, dtypes, get_aval, is_undefined_primal
from lamina.lax.batching_rules import at_front, batch_size
from lamina.lax.conv_layouts import ConvDimensionNumbers
from lamina.lax.window_padding import dilated


# ---- derivatives -------------------------------------------------------------------------------
def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    """A convolution is linear in each of its operands."""
    (x, y), (gx, gy) = primals, tangents
    out = lax.conv_general_dilated_p.bind(x, y, **params)
    parts = []
    if type(gx) is not Zero:
        parts.append(lax.conv_general_dilated_p.bind(gx, y, **params))
    if type(gy) is not Zero:
        parts.append(lax.conv_general_dilated_p.bind(x, gy, **params))
    if not parts or not dtypes.is_inexact(out.dtype):
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, parts[0] if len(parts) == 1 else lax.add_any(*parts)


def _split_axis(x: Any, axis: int, groups: int) -> Any:
    """x with an axis cut into (groups, rest), groups in front of it."""
    shape = x.shape
    return lax.reshape(x, (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))


def _merge_into(x: Any, source: int, axis: int) -> Any:
    """x with axis `source` taken out and merged, as the major part, into the axis that is then
    number `axis`."""
    order = [i for i in range(len(x.shape)) if i != source]
    order.insert(axis, source)
    x = lax.transpose(x, order)
    return lax.reshape(
        x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
    )


def _swapped(spec: tuple[int, ...]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _transpose_lhs(ct: Any, x: ShapedArray, y: Any, window_strides: Any, padding: Any,
                   lhs_dilation: Any, rhs_dilation: Any, numbers: ConvDimensionNumbers,
                   features: int, batches: int, **rest: Any) -> Any:  # fmt: skip
    """The cotangent of lhs: ct, spread by the strides, convolved with the mirrored kernel."""
    out_features, in_features = numbers.rhs_spec[:2]
    groups = max(features, batches)
    if groups > 1:
        # Each group of out features becomes a group of in features.
        y = _merge_into(_split_axis(y, out_features, groups), out_features, in_features)
    pads = []
    for i, (low, _) in enumerate(padding):
        size = dilated(x.shape[numbers.lhs_spec[i + 2]], lhs_dilation[i])
        window = dilated(y.shape[numbers.rhs_spec[i + 2]], rhs_dilation[i])
        spread = dilated(ct.shape[numbers.out_spec[i + 2]], window_strides[i])
        before = window - low - 1
        pads.append((before, size + window - 1 - spread - before))
    out = lax.conv_general_dilated_p.bind(
        ct, lax.rev(y, numbers.rhs_spec[2:]),
        window_strides=lhs_dilation, padding=tuple(pads), lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(
            numbers.out_spec, _swapped(numbers.rhs_spec), numbers.lhs_spec
        ),
        feature_group_count=groups, batch_group_count=1, **rest,
    )  # fmt: skip
    if batches > 1:
        batch, feature = numbers.lhs_spec[:2]
        out = _merge_into(_split_axis(out, feature, batches), feature, batch)
    return out


def _transpose_rhs(ct: Any, x: Any, y: ShapedArray, window_strides: Any, padding: Any,
                   lhs_dilation: Any, rhs_dilation: Any, numbers: ConvDimensionNumbers,
                   features: int, batches: int, **rest: Any) -> Any:  # fmt: skip
    """The cotangent of rhs: lhs convolved with ct, batch and features changing places."""
    pads = []
    for i, (low, _) in enumerate(padding):
        size = dilated(x.shape[numbers.lhs_spec[i + 2]], lhs_dilation[i])
        window = dilated(y.shape[numbers.rhs_spec[i + 2]], rhs_dilation[i])
        spread = dilated(ct.shape[numbers.out_spec[i + 2]], window_strides[i])
        pads.append((low, spread + window - 1 - size - low))
    return lax.conv_general_dilated_p.bind(
        x, ct,
        window_strides=rhs_dilation, padding=tuple(pads), lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(
            _swapped(numbers.lhs_spec), _swapped(numbers.out_spec), _swapped(numbers.rhs_spec)
        ),
        feature_group_count=batches, batch_group_count=features, **rest,
    )  # fmt: skip


def transpose(ct: Any, x: Any, y: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
               rhs_dilation: Any, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
               batch_group_count: int, precision: Any, preferred_element_type: Any
               ) -> list[Any]:  # fmt: skip
    common = (
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
        batch_group_count,
    )  # fmt: skip
    rest = {"precision": precision, "preferred_element_type": None}
    unknown = x.aval if is_undefined_primal(x) else y.aval
    if 0 in ct.shape:  # where no window fits: nothing to convolve with
        zeros = lax.full(unknown.shape, 0, unknown.dtype)
        return [zeros, None] if is_undefined_primal(x) else [None, zeros]
    if is_undefined_primal(x):
        out = _transpose_lhs(ct, x.aval, lax.convert_element_type(y, ct.dtype), *common, **rest)
        return [lax.convert_element_type(out, x.aval.dtype), None]
    out = _transpose_rhs(ct, lax.convert_element_type(x, ct.dtype), y.aval, *common, **rest)
    return [None, lax.convert_element_type(out, y.aval.dtype)]


# ---- batching ----------------------------------------------------------------------------------
def batching(args: Any, dims: Any, *, dimension_numbers: ConvDimensionNumbers,
              feature_group_count: int, batch_group_count: int, **params: Any
              ) -> tuple[Any, int]:  # fmt: skip
    (x, y), (dx, dy) = args, dims
    numbers, size = dimension_numbers, batch_size(args, dims)

    def bind(x: Any, y: Any, features: int, batches: int) -> Any:
        return lax.conv_general_dilated_p.bind(
            x, y, dimension_numbers=numbers, feature_group_count=features,
            batch_group_count=batches, **params,
        )  # fmt: skip

    groups = feature_group_count * batch_group_count
    if dy is None and batch_group_count == 1:
        # The examples join the batch.
        out = bind(_merge_into(x, dx, numbers.lhs_spec[0]), y, feature_group_count, 1)
        axis = numbers.out_spec[0]
    elif dx is None and groups == 1:
        # The examples join the out features.
        out = bind(x, _merge_into(y, dy, numbers.rhs_spec[0]), 1, 1)
        axis = numbers.out_spec[1]
    else:
        # One group of features (or of the batch) for each example.
        x, y = at_front(x, dx, size), at_front(y, dy, size)
        y = _merge_into(y, 0, numbers.rhs_spec[0])
        if batch_group_count > 1:
            out = bind(_merge_into(x, 0, numbers.lhs_spec[0]), y, 1, batch_group_count * size)
        else:
            out = bind(_merge_into(x, 0, numbers.lhs_spec[1]), y, feature_group_count * size, 1)
        axis = numbers.out_spec[1]
    return _split_axis(out, axis, size), axis
