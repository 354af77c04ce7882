"""Builders of contractions, gather and scatter."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any

from lamina.dialects.builders.creation import (
    Body,
    Value,
    create,
    dims_attribute,
    fill,
    i64,
    padding_attribute,
    scalar_types,
    tensor,
)
from lamina.dialects.context import forget_with_contexts
from lamina.dialects.types import element_type, tensor_type
from lamina.dialects.vendors import ir, stablehlo_ext

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
    axes = (tuple(lhs_batch), tuple(rhs_batch), tuple(lhs_contracting), tuple(rhs_contracting))
    key = (lhs.type, rhs.type, axes, dtype, precision)
    known = _seen.products.get(key)
    if known is None:
        if len(_seen.products) == _MOST_SEEN:
            _seen.products.clear()
        known = _seen.products[key] = _product(lhs.type, rhs.type, axes, dtype, precision)
    result, attributes = known
    return create(
        "stablehlo.dot_general", results=[result], operands=[lhs, rhs], attributes=attributes
    ).result


_Axes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _product(
    lhs: ir.Type, rhs: ir.Type, axes: _Axes, dtype: Any, precision: str | tuple[str, str] | None
) -> tuple[ir.Type, dict[str, ir.Attribute]]:
    """The type and the attributes of a dot_general."""
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = axes
    left, right = lhs.shape, rhs.shape
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
    return tensor(shape, element_type(dtype)), attributes


class _Seen(threading.local):
    """What products of these types are in this thread's context, with which they go."""

    def __init__(self) -> None:
        self.products: dict[Hashable, tuple[ir.Type, dict[str, ir.Attribute]]] = {}


_seen = _Seen()
forget_with_contexts(lambda: _seen.products.clear())
_MOST_SEEN = 1024


def _precision_config(precision: str | tuple[str, str] | None) -> dict[str, ir.Attribute]:
    if precision is None:
        return {}
    pair = (precision, precision) if isinstance(precision, str) else precision
    return {
        "precision_config": ir.ArrayAttr.get([stablehlo_ext.PrecisionAttr.get(p) for p in pair])
    }


def convolution_dimensions(
    lhs: Sequence[int], rhs: Sequence[int], out: Sequence[int]
) -> ir.Attribute:
    """Dimension numbers of a convolution: lhs and out list their (batch, feature, space...)
    dimensions, rhs its (out feature, in feature, space...)."""
    return stablehlo_ext.ConvDimensionNumbers.get(
        lhs[0], lhs[1], list(lhs[2:]), rhs[1], rhs[0], list(rhs[2:]), out[0], out[1], list(out[2:])
    )


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
        "window_strides": dims_attribute(window_strides),
        "padding": padding_attribute(padding),
        "lhs_dilation": dims_attribute(lhs_dilation),
        "rhs_dilation": dims_attribute(rhs_dilation),
        "window_reversal": ir.DenseBoolArrayAttr.get([False] * len(window_strides)),
        "dimension_numbers": dimension_numbers,
        "feature_group_count": i64(feature_group_count),
        "batch_group_count": i64(batch_group_count),
    } | _precision_config(precision)
    return create(
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
        "slice_sizes": dims_attribute(slice_sizes),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
    }
    return create(
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
    op = create(
        "stablehlo.scatter",
        results=[x.type for x in operands],
        operands=[*operands, indices, *updates],
        attributes=attributes,
        regions=1,
    )
    fill(op.regions[0], scalar_types(operands) * 2, body)
    return list(op.results)
