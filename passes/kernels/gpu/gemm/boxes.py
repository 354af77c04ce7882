"""How the tensor memory accelerator copies a product's factor: as boxes of a tensor in memory, of some
rows by a depth.

The tensor's axes are the factor's rows, k and each dimension of the batch. Rows and k may be several
dimensions each, where those lie in memory as one. Rows of 16 bytes must be aligned, and no op may be
done on an element first; f32 is rounded to tf32 on the way.
"""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.device.kernels import Kernels, TensorMap
from lamina.passes.kernels.gpu.gemm.operand import padded_source, plus
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.gemm.wgmma import MOST_DIMENSIONS, ROW_BYTES, copy_box, further
from lamina.passes.linalg.analysis.structure import has_constant, root_buffer
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

BLOCK_ROWS = 64
"""Of a box of elements that are contiguous along the factor's rows."""
_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview",
          "memref.reinterpret_cast")  # fmt: skip


class _Axis(Record):
    """One of a tensor: dimensions of the product that lie in memory as one."""

    dimensions: tuple[int, ...]
    size: int
    stride: int


class Boxes(Record):
    """A factor's tensor. Axes are listed from the contiguous one out."""

    factor: Factor
    by_depth: bool
    """Whether it is contiguous along its rows, not along k."""
    axes: tuple[_Axis, ...]
    depth: tuple[int, ...]
    """The product's dimensions along k."""
    how = "boxes"

    def map(self, kernels: Kernels, edge: int, depth: int, element: ir.Type) -> TensorMap:
        """What the accelerator is told: boxes of so many rows by a depth."""
        buffer = self.factor.buffer
        _, offset = ir.MemRefType(buffer.type).get_strides_and_offset()
        size = element_bytes(element)
        found = kernels.place_of(root_buffer(buffer))
        assert found is not None
        argument, begin = found
        lengths = {self.factor.along: BLOCK_ROWS if self.by_depth else edge, self.depth: depth}
        copied = ir.Type.parse("tf32") if isinstance(element, ir.F32Type) else element
        return TensorMap(
            argument, begin + offset * size, copied,
            tuple(axis.size for axis in self.axes),
            tuple(axis.stride * size for axis in self.axes[1:]),
            tuple(lengths.get(axis.dimensions, 1) for axis in self.axes),
        )  # fmt: skip

    def copy(
        self, map_: ir.Value, batch: Mapping[int, ir.Value], row: ir.Value, k: ir.Value,
        tile: tuple[int, int], target: ir.Value, barrier: ir.Value,
    ) -> None:  # fmt: skip
        """Begin to copy a tile of (rows, depth): one box, or one for each 64 rows."""
        rows, depth = tile
        for first in range(0, rows, BLOCK_ROWS) if self.by_depth else (0,):
            at = {self.factor.along: plus(row, first), self.depth: k}
            at |= {(dimension,): place for dimension, place in batch.items()}
            place = further(target, first // BLOCK_ROWS * depth * ROW_BYTES)
            copy_box(map_, [at[axis.dimensions] for axis in self.axes], place, barrier)


def boxes_of(product: Product, factor: Factor, element: ir.Type) -> Boxes | None:
    """The boxes of a factor; None where it can't be copied so."""
    type_ = ir.MemRefType(factor.buffer.type)
    if padded_source(product, factor) is not None or type_.element_type != element:
        return None
    if not _is_plain(factor.buffer) or any(map(has_constant, factor.map.results)):
        return None
    batch = [(d,) for d in product.batch if product.generic.extents[d] > 1]
    groups = [factor.along, product.reduced, *batch]
    found = [_axis(product, factor, dimensions) for dimensions in groups]
    axes = sorted((a for a in found if a is not None), key=lambda axis: axis.stride)
    if len(axes) < len(groups) or len(axes) > MOST_DIMENSIONS:
        return None
    if any(inner.stride * inner.size > outer.stride for inner, outer in zip(axes, axes[1:])):
        return None  # windows that overlap: what the driver says of tensors does not allow for them
    first, *others = axes
    by_depth = first.dimensions == factor.along
    size = element_bytes(element)
    if first.stride != 1 or first.dimensions in batch or (by_depth and size != 2):
        return None
    _, offset = type_.get_strides_and_offset()
    if offset < 0 or any(n * size % 16 for n in (offset, *(axis.stride for axis in others))):
        return None
    return Boxes(factor, by_depth, tuple(axes), product.reduced)


def _axis(product: Product, factor: Factor, dimensions: tuple[int, ...]) -> _Axis | None:
    """Dimensions walked as one, if they lie so in memory."""
    size = product.size(dimensions)
    stride = product.stride_as_one(dimensions, factor.stride)
    return _Axis(dimensions, size, stride) if size > 1 and stride is not None and stride > 0 else None


def _is_plain(buffer: ir.Value) -> bool:
    """Whether the strides and the offset of a buffer's type tell where it lies in its root."""
    root = root_buffer(buffer)
    while buffer != root:
        op = buffer.owner.operation
        if op.name not in _VIEWS:
            return False
        buffer = op.operands[0]
    return isinstance(root.owner, ir.Block) or root.owner.operation.name == "memref.alloc"
