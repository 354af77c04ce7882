"""Kernels of ops on many small matrices: each vector lane does one matrix.

A task takes as many matrices as a vector has lanes, transposes them onto the stack (number i of
all of them is one vector), does the ops there (lane_factorisations.py) and transposes the results
back. Lanes of the last block that have no matrix do the last one again.
"""

from __future__ import annotations

from math import prod

from lamina.dialects.attributes import flag
from lamina.dialects.constants import splat_element
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.emit.lanes import Lanes, Matrix
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.kernels.cpu.factorisations import in_lanes as lanes_of
from lamina.passes.stablehlo.analysis.facts import CONSTANT
from lamina.passes.stablehlo.analysis.lapack import Lapack
from lamina.passes.stablehlo.analysis.small_matrices import SmallMatrices
from lamina.records import Record

_UNROLLED = 16  # elements of the largest matrix whose code is unrolled
_WIDTHS = {"i32": 4, "f32": 4, "f64": 8, "complex<f32>": 8, "complex<f64>": 16}


def small_matrices_kernel(function: ir.Operation, symbol: str, vector_bits: int) -> tuple[str, int]:
    """LLVM IR of a kernel of ops that are SmallMatrices; it needs no scratch memory."""
    return _Kernel(function, symbol, vector_bits).text(), 0


class _Array(Record, frozen=False):
    """What lanes hold of a value: a matrix, or a buffer of integers; and elements for each lane."""

    elements: int
    matrix: Matrix | None = None
    integers: str = ""
    uses: int = 0


class _Kernel:
    def __init__(self, function: ir.Operation, symbol: str, vector_bits: int) -> None:
        self._block = function.regions[0].blocks[0]
        self._symbol, self._bits = symbol, vector_bits
        self._ops = [inner.operation for inner in self._block.operations]
        self._returned = list(self._ops[-1].operands)
        self._steps = [
            (op, small) for op in self._ops[:-1] if (small := SmallMatrices.of(op)) is not None
        ]
        skipped = {view for _, small in self._steps for v in small.views for view in v.results}
        known = {r for op, _ in self._steps for r in op.results}
        for op in self._ops[:-1]:
            if op.results[0] not in skipped and op.results[0] not in known:
                raise CompileError.at(op, "not what a kernel of small matrices does")
        self._batch = self._steps[0][1].batch
        element = next(small.element for _, small in self._steps if small.element)
        self._parts = 2 if "complex" in element else 1
        self._element = "float" if "f32" in element else "double"
        width = 4 if self._element == "float" else 8
        most = max(2, vector_bits // 8 // width)
        self._lanes = min(most, 1 << (self._batch - 1).bit_length())
        values = [*self._block.arguments, *known]
        largest = max(self._numbers(v) for v in values if "i32" not in str(v.type))
        self._t = Lanes(self._element, self._lanes, self._parts, largest <= _UNROLLED)
        self._arrays: dict[ir.Value, _Array] = {}
        self._functions: dict[str, str] = {}

    def _numbers(self, value: ir.Value) -> int:
        return prod(list(value.type.shape)) // self._batch

    # ---- the kernel
    def text(self) -> str:
        """The task and the function that runs it."""
        count = len(self._block.arguments) + len(self._returned)
        t = self._t
        pointers = [f"%p{i}" for i in range(count)]
        t.lines += unpack(pointers)
        with t.loop("%high", "%low") as block:
            self._do_block(t, block)
        body = "\n".join([*t.stack, *t.lines])
        parameters = ", ".join(f"ptr %p{i}" for i in range(count + 1))
        blocks = -(-self._batch // self._lanes)
        machine = machine_of(self._steps[0][0])
        grain = machine.grain(self._work() * (machine.op_ps + machine.access_ps))
        return (
            f"{DECLARATION}\n"
            f"{self._declarations()}{''.join(self._functions.values())}"
            f"define internal void @task(ptr noalias %ctx, i64 %low, i64 %high) #0 {{\n"
            f"entry:\n{body}\n  ret void\n}}\n"
            f"define void @{self._symbol}({parameters}) {{\n"
            + "\n".join([*pack(pointers), run("task", blocks, grain)])
            + "\n  ret void\n}\n"
            f'attributes #0 = {{ "prefer-vector-width"="{self._bits}" }}\n'
            f'attributes #1 = {{ noinline "prefer-vector-width"="{self._bits}" }}\n'
        )

    def _work(self) -> int:
        """Vector operations of a block, roughly."""
        work = 2 * sum(self._numbers(v) for v in [*self._block.arguments, *self._returned])
        for op, _ in self._steps:
            routine = Lapack.of(op)
            shape = list(op.operands[0].type.shape)[-2:]
            work += routine.work if routine is not None else prod(shape) * max(shape)
        return max(1, work * self._parts**2)

    def _declarations(self) -> str:
        t, n = self._t, self._lanes
        kinds = [(f"v{n}{'f32' if t.bytes == 4 else 'f64'}", t.vector), (f"v{n}i32", t.ints)]
        lines = [
            f"declare {kinds[0][1]} @llvm.{name}.{kinds[0][0]}({kinds[0][1]})"
            for name in ("fabs", "sqrt")
        ]
        for kind, vector in kinds:
            given = f"<{n} x ptr>, {t.mask}"
            lines.append(f"declare {vector} @llvm.masked.gather.{kind}.v{n}p0({given}, {vector})")
            lines.append(f"declare void @llvm.masked.scatter.{kind}.v{n}p0({vector}, {given})")
        lines.append("declare i64 @llvm.smin.i64(i64, i64)")
        lines.append(f"declare {t.ints} @llvm.smin.v{n}i32({t.ints}, {t.ints})")
        return "\n".join(lines) + "\n"

    def _do_block(self, t: Lanes, block: str | int) -> None:
        first = t.mul(block, self._lanes)
        left = t.minimum(t.emit(f"sub nsw i64 {self._batch - 1}, {first}"), self._lanes - 1)
        last = t.int_splat(left)
        places = t.emit(
            f"call {t.ints} @llvm.smin.v{self._lanes}i32({t.ints} {t.lane_numbers}, {t.ints} {last})"
        )
        for number, argument in enumerate(self._block.arguments):
            array = self._new(argument)
            self._move(t, f"%p{number}", array, first, places, str(left), inwards=True)
        for op, small in self._steps:
            self._step(t, op, small)
        for number, value in enumerate(self._returned, len(self._block.arguments)):
            self._move(
                t, f"%p{number}", self._arrays[value], first, places, str(left), inwards=False
            )

    def _new(self, value: ir.Value) -> _Array:
        shape = list(value.type.shape)
        numbers = self._numbers(value)
        uses = sum(1 for _ in value.uses)
        if str(value.type.element_type) == "i32":
            place = self._t.allocate(numbers * 4 * self._lanes)
            array = _Array(numbers, integers=place, uses=uses)
        else:
            columns = shape[-1]
            matrix = self._t.matrix(numbers // columns, columns)
            array = _Array(numbers, matrix=matrix, uses=uses)
        self._arrays[value] = array
        return array

    # ---- memory
    def _move(
        self, t: Lanes, base: str, array: _Array, first: str | int, places: str, last: str,
        *, inwards: bool,
    ) -> None:  # fmt: skip
        """Between memory, matrix after matrix, and lanes."""
        integers = array.matrix is None
        vector = t.ints if integers else t.vector
        width = 4 if integers else t.bytes
        count = array.elements * (1 if integers else self._parts)
        of, kind = ("i32", "i32") if integers else (t.element, "f32" if width == 4 else "f64")
        buffer = array.integers if array.matrix is None else array.matrix.buffer
        start = t.at(base, t.mul(first, count * width))
        index = t.int_op("mul", places, t.int_splat(count))
        tiles = 0 if integers else count // self._lanes
        if tiles:
            self._move_tiles(t, start, buffer, count, tiles, last, inwards=inwards)

        def one(i: str | int) -> None:
            row = t.at(start, t.mul(i, width))
            at = t.emit(f"getelementptr {of}, ptr {row}, {t.ints} {index}")
            inside = t.at(buffer, t.mul(i, width * self._lanes))
            pointers = f"<{self._lanes} x ptr> align {width} {at}, {t.mask} splat (i1 true)"
            name = f"{kind}.v{self._lanes}p0"
            if inwards:
                value = t.emit(
                    f"call {vector} @llvm.masked.gather.v{self._lanes}{name}({pointers}, "
                    f"{vector} poison)"
                )
                t.store(vector, value, inside, width * self._lanes)
            else:
                value = t.load(vector, inside, width * self._lanes)
                t.do(
                    f"call void @llvm.masked.scatter.v{self._lanes}{name}({vector} {value}, "
                    f"{pointers})"
                )

        t.each(tiles * self._lanes, count, one)

    def _move_tiles(
        self, t: Lanes, start: str, buffer: str, count: int, tiles: int, last: str, *, inwards: bool
    ) -> None:
        """Square blocks of as many elements as there are lanes."""
        name = "tile_in" if inwards else "tile_out"
        self._functions.setdefault(name, self._tile_function(name, inwards=inwards))
        step = self._lanes * t.bytes

        def tile(number: str | int) -> None:
            outside = t.at(start, t.mul(number, step))
            inside = t.at(buffer, t.mul(number, step * self._lanes))
            apart = count * t.bytes
            t.do(f"call void @{name}(ptr {outside}, i64 {apart}, i64 {last}, ptr {inside})")

        t.each(0, tiles, tile)

    def _tile_function(self, name: str, *, inwards: bool) -> str:
        """Transposes a square block between a buffer and rows that lie `apart`, of which those
        behind the `last` are that again. One for all of a kernel: it takes long to compile."""
        t = Lanes(self._element, self._lanes, self._parts, self._t.unroll)
        step = self._lanes * t.bytes

        def row(i: str | int) -> str:
            return t.at("%outside", t.emit(f"mul i64 {t.minimum(i, '%last')}, %apart"))

        def place(block: str, i: str | int) -> str:
            return t.at(block, t.mul(i, step))

        if self._t.unroll:
            rows = [row(i) for i in range(self._lanes)]
            places = [place("%inside", i) for i in range(self._lanes)]
            aligned = (t.bytes, step) if inwards else (step, t.bytes)
            sources, targets = (rows, places) if inwards else (places, rows)
            loaded = [t.load(t.vector, at, aligned[0]) for at in sources]
            for value, at in zip(t.transpose(loaded), targets):
                t.store(t.vector, value, at, aligned[1])
        else:
            block = "%inside" if inwards else t.allocate(self._lanes * step)
            source = row if inwards else lambda i: place("%inside", i)
            with t.loop(self._lanes) as i:
                t.store(t.vector, t.load(t.vector, source(i)), place(block, i))
            t.transpose_in_place(block)
            if not inwards:
                with t.loop(self._lanes) as i:
                    t.store(t.vector, t.load(t.vector, place(block, i)), row(i))
        body = "\n".join([*t.stack, *t.lines])
        return (
            f"define internal void @{name}(ptr %outside, i64 %apart, i64 %last, ptr %inside) #1 "
            f"{{\nentry:\n{body}\n  ret void\n}}\n"
        )

    # ---- ops
    def _step(self, t: Lanes, op: ir.Operation, small: SmallMatrices) -> None:
        routine = small.routine
        given = [self._array(t, value) for value in op.operands[:2]]
        if routine == "inverse":
            result = self._new(op.results[1])
            order = self._arrays[small.operands[0]].integers
            lanes_of.inverse_order(t, order, result.elements, result.integers)
        elif routine == "rows":
            matrix = self._matrix(given[0])
            result = self._new(op.results[0])
            order = self._arrays[small.operands[1]].integers
            lanes_of.take_rows(t, matrix, order, self._matrix(result))
        elif routine == "getrf":
            matrix = self._in_place(t, given[0], op.results[0])
            wanted = (
                self._new(r).integers if next(iter(r.uses), None) is not None else None
                for r in list(op.results)[1:]
            )
            lanes_of.lu(t, matrix, *wanted)
        elif routine == "potrf":
            result = self._new(op.results[0])
            lower = flag(op, "lower")
            lanes_of.cholesky(t, self._matrix(given[0]), lower, self._matrix(result))
        elif routine == "trsm":
            self._triangular_solve(t, op, self._matrix(given[0]), given[1])
        elif routine == "geqrf":
            matrix = self._in_place(t, given[0], op.results[0])
            lanes_of.qr(t, matrix, self._matrix(self._new(op.results[1])))
        else:
            taus = self._matrix(given[1])
            lanes_of.reflectors_product(t, self._in_place(t, given[0], op.results[0]), taus)

    def _array(self, t: Lanes, value: ir.Value) -> _Array | None:
        """What lanes hold of an operand; that of a constant is made, a view's operand is asked for
        elsewhere."""
        if value in self._arrays or isinstance(value.owner, ir.Block):
            return self._arrays[value]
        constant = value.owner.operation
        if constant.name != CONSTANT:
            return None
        array = self._new(value)
        splat = splat_element(constant)
        assert splat is not None
        element = complex(splat.item())
        number = (t.splat(element.real), t.splat(element.imag))[: self._parts]
        matrix = self._matrix(array)
        t.each_of(matrix, lambda i, j: t.put(number, matrix, i, j))
        return array

    def _matrix(self, array: _Array | None) -> Matrix:
        assert array is not None and array.matrix is not None
        return array.matrix

    def _in_place(self, t: Lanes, array: _Array | None, result: ir.Value) -> Matrix:
        """Where a result is computed that begins as a copy of an operand: in its place, where
        nothing else reads that."""
        given = self._matrix(array)
        if array is not None and array.uses == 1:
            uses = sum(1 for _ in result.uses)
            self._arrays[result] = _Array(array.elements, matrix=given, uses=uses)
            return given
        made = self._matrix(self._new(result))
        t.copy(given, made)
        return made

    def _triangular_solve(self, t: Lanes, op: ir.Operation, a: Matrix, b: _Array | None) -> None:
        attributes = op.attributes
        name = str(attributes["transpose_a"])
        how = 0 if "NO_TRANSPOSE" in name else 2 if "ADJOINT" in name else 1
        left, lower, unit = (
            ir.BoolAttr(attributes[word]).value for word in ("left_side", "lower", "unit_diagonal")
        )
        x = self._in_place(t, b, op.results[0])
        lanes_of.triangular_solve(t, a, x, left=left, lower=lower, how=how, unit=unit)
