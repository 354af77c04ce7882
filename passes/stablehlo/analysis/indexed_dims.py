"""Which dimensions a gather or a scatter is about, for both in the same words."""

from __future__ import annotations

from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.records import Record

GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"
_NUMBERS = {GATHER: "dimension_numbers", SCATTER: "scatter_dimension_numbers"}


class IndexedDims(Record):
    """`windows` are dimensions of a gather's result or a scatter's updates; of the array, `single` are
    those of which a window has one element, `batch` those that `batch_of_indices` go along with, and
    `named` those that the numbers of an index are of, which lie along `vector` of the indices."""

    windows: list[int]
    single: list[int]
    batch: list[int]
    batch_of_indices: list[int]
    named: list[int]
    vector: int

    @classmethod
    def of(cls, op: ir.Operation) -> IndexedDims:
        """Those of a gather or a scatter."""
        attribute = op.attributes[_NUMBERS[op.name]]
        if op.name == GATHER:
            gather = stablehlo_ext.GatherDimensionNumbers(attribute)
            return cls(
                list(gather.offset_dims), list(gather.collapsed_slice_dims),
                list(gather.operand_batching_dims), list(gather.start_indices_batching_dims),
                list(gather.start_index_map), gather.index_vector_dim,
            )  # fmt: skip
        scatter = stablehlo_ext.ScatterDimensionNumbers(attribute)
        return cls(
            list(scatter.update_window_dims), list(scatter.inserted_window_dims),
            list(scatter.input_batching_dims), list(scatter.scatter_indices_batching_dims),
            list(scatter.scattered_dims_to_operand_dims), scatter.index_vector_dim,
        )  # fmt: skip

    def put(self, op: ir.Operation) -> None:
        """Make them those of a gather or a scatter."""
        is_gather = op.name == GATHER
        kind = stablehlo_ext.GatherDimensionNumbers if is_gather else stablehlo_ext.ScatterDimensionNumbers
        op.attributes[_NUMBERS[op.name]] = kind.get(
            self.windows, self.single, self.batch, self.batch_of_indices, self.named, self.vector
        )
