"""Builders of constants and of ops that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.dialects import constants
from lamina.dialects.builders.creation import Value, create, dims_attribute, i64, tensor
from lamina.dialects.types import tensor_type
from lamina.dialects.vendors import ir

# Constants


def constant(value: Any) -> Value:
    """An array as a constant of its own shape and dtype."""
    return _constant(constants.dense(value))


def full(value: Any, shape: Sequence[int], dtype: Any) -> Value:
    """A constant with one value everywhere, stored once."""
    return _constant(constants.dense_splat(value, tuple(shape), dtype))


def _constant(value: ir.Attribute) -> Value:
    return create("stablehlo.constant", attributes={"value": value}, infer_type=True).result


def iota(shape: Sequence[int], dtype: Any, dimension: int) -> Value:
    """Each element is its index along one dimension."""
    return create(
        "stablehlo.iota",
        results=[tensor_type(shape, dtype)],
        attributes={"iota_dimension": i64(dimension)},
    ).result


# Shape


def broadcast_in_dim(x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
    """x spread over shape; dims[i] is where x's dimension i goes."""
    return create(
        "stablehlo.broadcast_in_dim",
        results=[tensor(shape, x.type.element_type)],
        operands=[x],
        attributes={"broadcast_dimensions": dims_attribute(dims)},
    ).result


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """The same elements in row-major order under another shape."""
    result = tensor(shape, x.type.element_type)
    return create("stablehlo.reshape", results=[result], operands=[x]).result


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    """Result dimension i is x's dimension permutation[i]."""
    of = x.type
    shape = of.shape
    return create(
        "stablehlo.transpose",
        results=[tensor([shape[p] for p in permutation], of.element_type)],
        operands=[x],
        attributes={"permutation": dims_attribute(permutation)},
    ).result


def reverse(x: Value, dimensions: Sequence[int]) -> Value:
    """x read backwards along some dimensions."""
    return create(
        "stablehlo.reverse",
        results=[x.type],
        operands=[x],
        attributes={"dimensions": dims_attribute(dimensions)},
    ).result


def slice(
    x: Value, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    """x[start:limit:strides] in each dimension."""
    strides = [1] * len(start) if strides is None else strides
    shape = [-((s - e) // t) for s, e, t in zip(start, limit, strides, strict=True)]
    return create(
        "stablehlo.slice",
        results=[tensor(shape, x.type.element_type)],
        operands=[x],
        attributes={
            "start_indices": dims_attribute(start),
            "limit_indices": dims_attribute(limit),
            "strides": dims_attribute(strides),
        },
    ).result


def dynamic_slice(x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The window of x of these sizes at scalar starts, which are clamped into range."""
    return create(
        "stablehlo.dynamic_slice",
        results=[tensor(sizes, x.type.element_type)],
        operands=[x, *starts],
        attributes={"slice_sizes": dims_attribute(sizes)},
    ).result


def dynamic_update_slice(x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """x with update written at scalar starts, which are clamped into range."""
    return create(
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
    return create(
        "stablehlo.pad",
        results=[tensor(shape, of.element_type)],
        operands=[x, value],
        attributes={
            "edge_padding_low": dims_attribute(low),
            "edge_padding_high": dims_attribute(high),
            "interior_padding": dims_attribute(interior),
        },
    ).result


def concatenate(xs: Sequence[Value], dimension: int) -> Value:
    """The arrays one after another along a dimension."""
    return create(
        "stablehlo.concatenate",
        operands=list(xs),
        attributes={"dimension": i64(dimension)},
        infer_type=True,
    ).result
