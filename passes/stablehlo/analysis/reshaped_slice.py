"""A slice without its dimensions of one, as a slice of the array in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import computes_elements, defining, ints, size_of


def slice_reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value | None:
    """What a reshape makes of a slice of an array in memory: x[:, 3] of f32[8,5] is x.reshape(40)[3::5].
    None if it is none, or the reshape does more than leave out dimensions of one."""
    dropped = dropped_dimensions(value, shape)
    cut = defining(value)
    if dropped is None or cut is None:
        return None
    source = cut.operands[0]
    names = ("start_indices", "limit_indices", "strides")
    dims = list(zip(source.type.shape, *(ints(cut, name) for name in names), strict=True))
    for d in reversed(dropped):  # those behind stay where they are
        n, at, _, _ = dims.pop(d)
        if d < len(dims):
            size, start, limit, step = dims[d]
            dims[d] = (n * size, at * size + start, at * size + limit, step)
        else:
            size, start, limit, step = dims[d - 1]
            last = start + (limit - start - 1) // step * step
            dims[d - 1] = (size * n, start * n + at, last * n + at + 1, step * n)
    sizes, *bounds = (list(of) for of in zip(*dims, strict=True))
    return hlo.slice(hlo.reshape(source, sizes), *bounds)


def dropped_dimensions(value: ir.Value, shape: Sequence[int]) -> list[int] | None:
    """The dimensions of one that a reshape leaves out of a slice of an array in memory; None if it is
    none, or the reshape does more."""
    cut = defining(value)
    if cut is None or cut.name != "stablehlo.slice" or not _is_in_memory(cut.operands[0]):
        return None
    sizes = value.type.shape
    if not 0 < len(shape) < len(sizes) or 0 in shape:
        return None
    return dimensions_left_out(sizes, shape)


def dimensions_left_out(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The dimensions of one without which `sizes` are `shape`; None if there is more between them."""
    dropped, kept = [], 0
    for d, size in enumerate(sizes):
        if kept < len(shape) and size == shape[kept]:
            kept += 1
        elif size == 1:
            dropped.append(d)
        else:
            return None
    return dropped if kept == len(shape) else None


def is_repeated(value: ir.Value, depth: int = 4) -> bool:
    """Whether each element, or what is made of it, is read for many: it is better gathered once before."""
    for use in value.uses:
        op = use.owner.operation
        if op.name == "stablehlo.broadcast_in_dim":
            if size_of(op.results[0].type) > size_of(value.type):
                return True
        elif depth and computes_elements(op) and is_repeated(op.results[0], depth - 1):
            return True
    return False


def _is_in_memory(value: ir.Value) -> bool:
    producer = defining(value)
    while producer is not None and producer.name == "stablehlo.reshape":
        producer = defining(producer.operands[0])
    return producer is None or producer.name in _STORED


_STORED = frozenset(
    f"stablehlo.{name}"
    for name in "case cholesky convolution custom_call dot_general fft if rng_bit_generator sort "
    "triangular_solve while".split()
)
"""Ops whose results no kernel makes on the way."""
