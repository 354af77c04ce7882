"""Find elements of several dimensions by one index into all of them.

    %at = concatenate %i, %j : tensor<9x2xi32>             %k = clamp(%i) * 7 + clamp(%j) : tensor<9x1xi32>
    %r = gather %x : tensor<5x7xf32>, %at            ->    %r = gather (reshape %x : tensor<35xf32>), %k

A concatenation puts indices side by side one by one, in an array that is read again, and each is
checked alone where it is used; their sum is made by vectors, in the kernel that uses it. What a gather
clamps is clamped before; a scatter's vector with an index outside of its dimension becomes -1, so that
the update is dropped. Where index vectors are put together by a `concatenate`, of one index each, for
neighbouring dimensions that windows have one element of. Leaves others alone.

example: test/passes/stablehlo/canonicalize/join_indices.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import ints, is_unused, made_by
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, SCATTER, IndexedDims
from lamina.records import Record

_MOST = 1 << 31  # range: elements that an i32 tells apart


class JoinIndices(Pass):
    """The pass `stablehlo-join-indices`."""

    only_with = frozenset(("stablehlo.gather", "stablehlo.scatter"))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, GATHER, SCATTER):
            joined = _Joined.of(op)
            if joined is not None:
                together = op.operands[1].owner.operation
                with ir.InsertionPoint(op), op.location:
                    joined.rewrite()
                if is_unused(together):
                    together.erase()  # else it reads what it was made of
                self.count(op.name.removeprefix("stablehlo.") + "s")


class _Joined(Record):
    """A gather or scatter, the indices that it puts together, and the dimensions they are of, which
    become the one that is the first now."""

    op: ir.Operation
    parts: Sequence[ir.Value]
    dims: Sequence[int]

    @classmethod
    def of(cls, op: ir.Operation) -> _Joined | None:
        if op.name == SCATTER and len(op.operands) != 3:
            return None
        operand, indices = op.operands[0], op.operands[1]
        together = made_by(indices, "stablehlo.concatenate")
        dims = IndexedDims.of(op)
        if together is None or len(together.operands) != len(dims.named) or dims.batch:
            return None
        last = indices.type.rank - 1
        dimension = ir.IntegerAttr(together.attributes["dimension"]).value
        first = min(dims.named)
        if (
            dims.vector != last
            or dimension != last
            or sorted(dims.named) != list(range(first, first + len(dims.named)))
            or not set(dims.named) <= set(dims.single)
            or not operand.type.has_static_shape
            or not indices.type.has_static_shape
            or not 0 < math.prod(operand.type.shape[d] for d in dims.named) < _MOST
        ):
            return None
        return cls(op, list(together.operands), dims.named)

    def rewrite(self) -> None:
        op = self.op
        shape = list(op.operands[0].type.shape)
        op.operands[0] = hlo.reshape(op.operands[0], self._merged(shape, math.prod))
        op.operands[1] = self._index(shape)
        dims = IndexedDims.of(op)
        replace(dims, single=self._places(dims.single), named=[min(self.dims)]).put(op)
        if op.name == GATHER:
            op.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(
                self._merged(ints(op, "slice_sizes"), lambda _: 1)
            )
            return
        (result,) = op.results
        result.set_type(op.operands[0].type)
        with ir.InsertionPoint.after(op):
            back = hlo.reshape(result, shape)
        result.replace_all_uses_except(back, back.owner.operation)

    def _index(self, shape: Sequence[int]) -> ir.Value:
        """The one index: that of a row-major order, in i32."""
        strides = [math.prod(shape[d + 1 : max(self.dims) + 1]) for d in self.dims]
        is_gather = self.op.name == GATHER
        total = inside = None
        for part, dimension, stride in zip(self.parts, self.dims, strides, strict=True):
            size = shape[dimension]
            dtype = dtype_of(part.type)
            if dtype.itemsize < 4:
                part, dtype = hlo.convert(part, np.int32), np.dtype(np.int32)

            def number(value: int, of: np.dtype = dtype) -> ir.Value:
                return hlo.full(value, list(self.parts[0].type.shape), of)

            if is_gather:
                low, high = (hlo.full(value, [], dtype) for value in (0, size - 1))
                part = hlo.clamp(low, part, high)
            else:
                fits = hlo.compare(part, number(size), "LT")
                if dtype.kind == "i":
                    fits = hlo.and_(fits, hlo.compare(part, number(0), "GE"))
                inside = fits if inside is None else hlo.and_(inside, fits)
            if dtype != np.int32:
                part = hlo.convert(part, np.int32)
            if stride != 1:
                part = hlo.multiply(part, number(stride, np.dtype(np.int32)))
            total = part if total is None else hlo.add(total, part)
        assert total is not None
        if inside is None:
            return total
        return hlo.select(inside, total, hlo.full(-1, list(total.type.shape), np.int32))

    def _merged(self, sizes: Sequence[int], merge: Callable[[Sequence[int]], int]) -> list[int]:
        first, end = min(self.dims), max(self.dims) + 1
        return [*sizes[:first], merge(sizes[first:end]), *sizes[end:]]

    def _places(self, dims: Sequence[int]) -> list[int]:
        """Where dimensions are now."""
        first, end = min(self.dims), max(self.dims) + 1
        moved = {d if d <= first else max(first, d - (end - 1 - first)) for d in dims}
        return sorted(moved)
