"""Multiply matrices a tile at a time by the packed product that all of a type share, and do what follows on the tile.

    c[m, n] = sum over k of a[m, k] * b[k, n]          for each task of some rows m and columns n:
    d[m, n] = f(c[m, n], ...)                   ->       call @lamina_product_f32_nn(its tile of c)
                                                         d[m, n] = f(c[m, n], ...) on the tile

The function is that of `product_code.py`, of which this module gets a declaration: it is compiled once for all
kernels, while code for the shape (`cpu-block-contractions`) has the element-wise op in each kind of its blocks. A
tile stays in the second cache until the op reads it. Sums are stored where the op overwrites them, if it has such
a place, else in a tile of the task's own.

Leaves alone contractions that are no products of two matrices whose rows or columns are contiguous, and those for
which code for the shape is faster by `analysis/product_choice.py`.

example: test/passes/kernels/cpu/gemm/multiply_tiles.mlir
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import add, for_steps, for_tasks, index, regions
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import Contraction, is_narrow, read_contraction
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, find_epilogue
from lamina.passes.kernels.cpu.gemm.product_code import JOB
from lamina.passes.kernels.cpu.gemm.product_shape import Shape, shared_symbol, task_limits
from lamina.passes.kernels.cpu.gemm.prologue import find_prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, store_vector
from lamina.passes.linalg.analysis.dense_access import place_in
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    part_of,
    read_generic,
    sole_fill,
    stride_along,
    strides_of,
    subview,
)
from lamina.passes.memref.place_temporaries import PlaceTemporaries
from lamina.passes.stablehlo.analysis.gemm import Gemm, Matrix
from lamina.passes.stablehlo.analysis.product_choice import implementation_of, is_done_in_tiles
from lamina.records import Record

_TILE = 5 / 8  # memory: of a task's stack, for sums that it keeps for itself


class MultiplyTiles(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        called = set()
        for op in reducing_on_buffers(module):
            if op.parent.name != "func.func":
                continue
            contraction = read_contraction(read_generic(op))
            product = None if contraction is None else _read(contraction, self.vector_bits)
            if product is not None:
                called.add(product.symbol)
                _Emitter(product).replace()
                self.count("products")
        for symbol in sorted(called):
            module.body.append(ir.Operation.parse(f"llvm.func @{symbol}(!llvm.ptr, i64, i64)"))


class _Product(Record):
    """A contraction that is a product of matrices, and all that is done with it."""

    contraction: Contraction
    gemm: Gemm
    shape: Shape
    fill: ir.Operation
    epilogue: Epilogue | None

    @property
    def symbol(self) -> str:
        """The function that multiplies."""
        return shared_symbol(str(self.contraction.element), self.gemm.a.transposed, self.gemm.b.transposed)

    @property
    def last(self) -> ir.Operation:
        """The op in front of which all can be done."""
        return self.contraction.generic.op if self.epilogue is None else self.epilogue.generic.op


def _read(contraction: Contraction, vector_bits: int) -> _Product | None:
    generic, factors = contraction.generic, (contraction.a, contraction.b)
    if len(contraction.reduced) != 1 or any(is_narrow(factor, contraction) for factor in factors):
        return None
    (depth,) = contraction.reduced
    a = _matrix(contraction.a, contraction.row, depth, contraction)
    b = _matrix(contraction.b, depth, contraction.column, contraction)
    fill = sole_fill(generic, contraction.c.buffer)
    if a is None or b is None or fill is None or not _is_zero(fill.operands[0]):
        return None
    made = sum(prod(ir.MemRefType(f.buffer.type).shape) for f in factors if find_prologue(generic.op, f) is not None)
    extents = generic.extents
    batch = tuple(extents[d] for d in contraction.around)
    gemm = Gemm(batch, extents[contraction.row], extents[contraction.column], extents[depth], a, b)
    element, function = str(contraction.element), generic.op.parent
    if not is_done_in_tiles(gemm, element, machine_of(generic.op), implementation_of(function), made):
        return None
    shape = Shape(vector_bits, 8 * contraction.element_bytes, a.transposed, b.transposed)
    return _Product(contraction, gemm, shape, fill, find_epilogue(generic, fill))


def _matrix(factor: Factor, row: int, column: int, contraction: Contraction) -> Matrix | None:
    """A factor as a matrix of these dimensions of its contraction, of which one is contiguous."""
    rows, columns = (stride_along(factor.buffer, factor.map, d) for d in (row, column))
    if 1 not in (rows, columns):
        return None
    others = tuple(stride_along(factor.buffer, factor.map, d) for d in contraction.around)
    return Matrix(columns != 1, rows if columns == 1 else columns, others)


def _is_zero(value: ir.Value) -> bool:
    """Whether a number is the constant +0."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    return str(value.owner.operation.attributes["value"]).startswith("0.0")


class _Emitter:
    """Emits one product in front of the last of its ops."""

    def __init__(self, product: _Product) -> None:
        self._product = product
        self._contraction = contraction = product.contraction
        self._machine = machine = machine_of(contraction.generic.op)
        gemm, shape = product.gemm, product.shape
        self._leading = tuple(matrix.leading * shape.bytes for matrix in (gemm.a, gemm.b))
        self._in_place = shape.in_place(machine, *self._leading, gemm.k)
        limits = task_limits(machine, contraction.nanoseconds, prod(gemm.batch))
        rows, _, panels = shape.division(gemm.m, gemm.n, *limits, self._in_place)
        columns = ceil(gemm.n / shape.columns / panels) * shape.columns
        self._sums = contraction.c if product.epilogue is None else _overwritten(contraction, product.epilogue)
        if self._sums is None:
            rows, columns = _smaller(shape, rows, columns)
        self._rows, self._columns = min(rows, gemm.m), _even(gemm.n, columns, shape.columns)

    def replace(self) -> None:
        """Do the product in tiles, and erase what it was."""
        product, contraction = self._product, self._contraction
        epilogue, gemm = product.epilogue, product.gemm
        with ir.InsertionPoint(product.last), contraction.generic.op.location:
            for region in regions(gemm.n, self._columns):
                self._region(*region)
        if epilogue is not None:
            epilogue.generic.op.erase()
        for op in (contraction.generic.op, product.fill):
            op.erase()
        buffer = contraction.c.buffer
        if not isinstance(buffer.owner, ir.Block) and not list(buffer.uses):
            buffer.owner.erase()

    def _region(self, first: int, last: int, columns: int) -> None:
        """All tiles of so many columns; the last of some rows may have fewer."""
        contraction, gemm = self._contraction, self._product.gemm
        dims = (*contraction.around, contraction.row, contraction.column)
        lows = [0] * len(gemm.batch) + [0, first]
        highs, steps = [*gemm.batch, gemm.m, last], [1] * len(gemm.batch) + [self._rows, columns]
        counts = [ceil((high - low) / step) for low, high, step in zip(lows, highs, steps, strict=True)]
        several = [d for d, count in enumerate(counts) if count > 1]
        cost = contraction.nanoseconds * (last - first) / gemm.n
        tasks, grain = split([counts[d] for d in several], cost, self._machine)

        def task(values: list[ir.Value]) -> None:
            at = {dims[d]: index(lows[d]) for d in range(len(dims)) if d not in several}
            self._tile(at | {dims[d]: value for d, value in zip(several, values, strict=True)}, columns)

        for_tasks(
            [highs[d] for d in several], tasks, grain, task,
            lows=[lows[d] for d in several], steps=[steps[d] for d in several],
        )  # fmt: skip

    def _tile(self, at: dict[int, ir.Value], columns: int) -> None:
        """All sums of some rows and columns, and what follows on them."""
        contraction, epilogue, sums = self._contraction, self._product.epilogue, self._sums
        row, extent = contraction.row, self._product.gemm.m
        rows: ir.Value = index(self._rows)
        if extent % self._rows:
            rows = arith.MinSIOp(rows, arith.SubIOp(index(extent), at[row]).result).result
        if sums is None:
            shape = [self._rows, columns]
            tile = memref.AllocOp(ir.MemRefType.get(shape, contraction.element), [], []).result
            address, leading = _address(tile), columns
        else:
            address, leading = self._place(sums, at), stride_along(sums.buffer, sums.map, row)
        self._call(at, address, leading * self._product.shape.bytes, (rows, columns))
        if epilogue is None:
            return

        def follow(i: ir.Value) -> None:
            """Row by row, whose number is known when it runs."""
            here = {**at, row: add(at[row], i)}
            sizes = dict.fromkeys(contraction.around, 1) | {row: 1, contraction.column: columns}
            if sums is None:
                of_row = subview(tile, [i, 0], [1, columns])
            else:
                of_row = part_of(sums.buffer, sums.map, here, sizes)
            epilogue.emit(of_row, (row, contraction.column), here, sizes)

        for_steps(index(0), rows, 1, follow)

    def _call(self, at: dict[int, ir.Value], sums: ir.Value, leading: int, shape: tuple[ir.Value, int]) -> None:
        """The product of a tile by the shared function, as a job of one task."""
        gemm, word = self._product.gemm, ir.IntegerType.get_signless(64)
        known = dict.fromkeys(("next_a", "next_b", "next_c"), 0) | dict.fromkeys(("chunks", "panels"), 1)
        known |= dict(zip(("lda", "ldb"), self._leading)) | dict(zip(("a_in_place", "b_in_place"), self._in_place))
        known |= dict(ldc=leading, n=shape[1], k=gemm.k)
        rows = arith.IndexCastOp(word, shape[0]).result
        a, b = (self._place(factor, at) for factor in (self._contraction.a, self._contraction.b))
        given = dict(a=a, b=b, c=sums, m=rows, rows=rows)
        job = memref.AllocOp(ir.MemRefType.get([len(JOB)], word), [], []).result
        vector = ir.VectorType.get([len(JOB)], word)
        words = ir.DenseElementsAttr.get([ir.IntegerAttr.get(word, int(known.get(name, 0))) for name in JOB], vector)
        store_vector(arith.ConstantOp(vector, words).result, job, [index(0)])
        for name, value in given.items():
            memref.StoreOp(value, job, [index(JOB.index(name))])
        symbol = self._product.symbol
        address = ir.Operation.create("llvm.inttoptr", results=[ir.Type.parse("!llvm.ptr")], operands=[_address(job)])
        ir.Operation.create(
            "llvm.call",
            operands=[address.result, _word(0), _word(1)],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(symbol),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )

    def _place(self, factor: Factor, at: dict[int, ir.Value]) -> ir.Value:
        """The address of a factor's part for a tile."""
        strides = strides_of(factor.buffer.type, factor.map)
        _, offset = ir.MemRefType(factor.buffer.type).get_strides_and_offset()
        size = self._product.shape.bytes
        return _address(factor.buffer, offset * size, [strides[d] * size for d in at], list(at.values()))


def _overwritten(contraction: Contraction, epilogue: Epilogue) -> Factor | None:
    """Where the sums may be before the op that follows overwrites them: what it writes, if that is alike."""
    generic = epilogue.generic
    output, *others = generic.outputs
    if others or contraction.around or output.type != contraction.c.buffer.type:
        return None
    if generic.output_maps[0] != generic.input_maps[epilogue.operand] or epilogue.overwrites_inputs():
        return None
    if output in contraction.generic.inputs:
        return None
    return replace(contraction.c, buffer=output)


def _smaller(shape: Shape, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns, in whole blocks, of which a task's stack holds all."""
    most = int(_TILE * PlaceTemporaries.task_bytes) // shape.bytes
    columns = min(columns, most // shape.rows // shape.columns * shape.columns)
    return min(rows, most // columns // shape.rows * shape.rows), columns


def _even(extent: int, step: int, block: int) -> int:
    """Of a tile of at most `step` in whole blocks: without a rest, if that takes no more blocks."""
    parts = ceil(extent / step)
    even = extent // parts
    return even if extent % parts == 0 and ceil(even / block) * parts <= ceil(extent / block) else step


def _address(buffer: ir.Value, offset: int = 0, strides: Sequence[int] = (), at: Sequence[ir.Value] = ()) -> ir.Value:
    """The address of a place in a buffer, by bytes, as a number of 64 bits."""
    base = memref.ExtractAlignedPointerAsIndexOp(buffer).result
    place = add(base, place_in(offset, strides, at))
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), place).result


def _word(value: int) -> ir.Value:
    word = ir.IntegerType.get_signless(64)
    return arith.ConstantOp(word, ir.IntegerAttr.get(word, value)).result
