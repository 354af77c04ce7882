"""Calls of the packed product that all of a type share, for parts of matrices, from loops on buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import add, index
from lamina.passes.framework.machine import Machine
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import Contraction
from lamina.passes.kernels.cpu.gemm.product_code import JOB
from lamina.passes.kernels.cpu.gemm.product_shape import DEPTH, Shape, shared_symbol
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, store_vector
from lamina.passes.linalg.analysis.dense_access import place_in
from lamina.passes.linalg.analysis.structure import stride_along, strides_of
from lamina.records import Record

Position = Mapping[int, ir.Value]


class ProductCall(Record):
    """The function for a contraction of two matrices, each of which is contiguous along one dimension."""

    shape: Shape
    machine: Machine
    element: str
    row: int
    column: int
    depth: int
    """The innermost dimension of the terms."""
    terms: int
    """How many they are: of all summed dimensions, which lie as one in both factors."""

    @classmethod
    def of(cls, contraction: Contraction, vector_bits: int) -> ProductCall | None:
        """None where it is no product of such matrices."""
        a, b, extents = contraction.a, contraction.b, contraction.generic.extents
        row, column, (*around, depth) = contraction.row, contraction.column, contraction.reduced
        turned = [_is_turned(a, row, depth), _is_turned(b, depth, column)]
        if None in turned:
            return None
        terms = extents[depth]
        for outer in reversed(around):
            if any(_stride(each, outer) != terms * _stride(each, depth) for each in (a, b)):
                return None
            terms *= extents[outer]
        shape = Shape(vector_bits, 8 * contraction.element_bytes, bool(turned[0]), bool(turned[1]))
        machine = machine_of(contraction.generic.op)
        return cls(shape, machine, str(contraction.element), row, column, depth, terms)

    @property
    def symbol(self) -> str:
        """The function's name."""
        return shared_symbol(self.element, self.shape.a_turned, self.shape.b_turned)

    def leading(self, a: Factor, b: Factor) -> tuple[int, int]:
        """Bytes from one contiguous row or column of the factors to the next."""
        apart = (self.depth if self.shape.a_turned else self.row), (self.column if self.shape.b_turned else self.depth)
        return tuple(  # type: ignore[return-value]
            self.shape.bytes * _stride(factor, d) for factor, d in zip((a, b), apart, strict=True)
        )

    def emit(
        self,
        factors: tuple[tuple[Factor, Position], tuple[Factor, Position]],
        sums: tuple[Factor, Position],
        sizes: tuple[ir.Value | int, int, ir.Value | int],
        most_rows: int,
        adds: ir.Value | None = None,
    ) -> None:
        """Multiply so many rows (of which there are at most so many), columns and terms that begin at positions of
        the factors; sums are stored, or added to what is there if the number `adds` is 1."""
        (a, _), (b, _) = factors
        lda, ldb = self.leading(a, b)
        terms = sizes[2] if isinstance(sizes[2], int) else DEPTH
        in_place = self.shape.in_place(self.machine, lda, ldb, terms, sizes[1])
        blocks = ceil(most_rows / ceil(most_rows / self.shape.most_rows) / self.shape.rows)
        rows = blocks * self.shape.rows
        chunks = ceil(most_rows / rows)
        words: dict[str, ir.Value | int] = dict(
            a=self._address(*factors[0]), b=self._address(*factors[1]), c=self._address(*sums), lda=lda, ldb=ldb,
            ldc=self.shape.bytes * _stride(sums[0], self.row),
            m=sizes[0], n=sizes[1], k=sizes[2], rows=rows, chunks=chunks, panels=1, next_a=0, next_b=0, next_c=0,
            a_in_place=int(in_place[0]), b_in_place=int(in_place[1]), adds=0 if adds is None else adds,
        )  # fmt: skip
        word = ir.IntegerType.get_signless(64)
        job = memref.AllocOp(ir.MemRefType.get([len(JOB)], word), [], []).result
        vector = ir.VectorType.get([len(JOB)], word)
        known = [each if isinstance(each := words[name], int) else 0 for name in JOB]
        constant = ir.DenseElementsAttr.get([ir.IntegerAttr.get(word, value) for value in known], vector)
        store_vector(arith.ConstantOp(vector, constant).result, job, [index(0)])
        for name, value in words.items():
            if not isinstance(value, int):
                memref.StoreOp(arith.IndexCastOp(word, value).result, job, [index(JOB.index(name))])
        place = memref.ExtractAlignedPointerAsIndexOp(job).result
        address = ir.Operation.create(
            "llvm.inttoptr",
            results=[ir.Type.parse("!llvm.ptr")],
            operands=[arith.IndexCastOp(word, place).result],
        )
        first, end = (arith.ConstantOp(word, ir.IntegerAttr.get(word, n)).result for n in (0, chunks))
        ir.Operation.create(
            "llvm.call",
            operands=[address.result, first, end],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(self.symbol),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )

    def _address(self, factor: Factor, at: Position) -> ir.Value:
        """Of an element, as a number."""
        strides, size = strides_of(factor.buffer.type, factor.map), self.shape.bytes
        _, offset = ir.MemRefType(factor.buffer.type).get_strides_and_offset()
        base = memref.ExtractAlignedPointerAsIndexOp(factor.buffer).result
        return add(base, place_in(offset * size, [strides[d] * size for d in at], list(at.values())))


def declare_called(module: ir.Module, symbols: Iterable[str]) -> None:
    """Declare functions that ops of a module call, unless they are."""
    there = {op.operation.attributes["sym_name"].value for op in module.body.operations}
    for symbol in sorted(set(symbols) - there):
        module.body.append(ir.Operation.parse(f"llvm.func @{symbol}(!llvm.ptr, i64, i64)"))


def starts_from_zero(fill: ir.Operation | None) -> bool:
    """Whether what sums begin with is the constant +0."""
    if fill is None or isinstance(fill.operands[0].owner, ir.Block):
        return False
    maker = fill.operands[0].owner.operation
    return maker.name == "arith.constant" and str(maker.attributes["value"]).startswith("0.0")


def _is_turned(factor: Factor, row: int, column: int) -> bool | None:
    """Whether not a matrix's rows but its columns are contiguous; None where neither are."""
    rows, columns = _stride(factor, row), _stride(factor, column)
    return None if 1 not in (rows, columns) else columns != 1


def _stride(factor: Factor, dimension: int) -> int:
    return stride_along(factor.buffer, factor.map, dimension)
