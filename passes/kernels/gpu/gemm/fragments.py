"""Matrices in a warp's registers: read from shared memory by `ldmatrix`, multiplied by `mma.sync`; and
groups of asynchronous copies.

A fragment of a factor is 16 rows (of the right one, 8 or 16) by 32 bytes along k, as vectors of 4
bytes; one of sums is 16 x 8: lane 4 r + c has columns 2 c and 2 c + 1 of rows r and r + 8.
"""

from __future__ import annotations

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import load
from lamina.passes.kernels.gpu.gemm.copies import TileShape
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times


def fragment(
    buffer: ir.Value, shape: TileShape, lane: ir.Value, stage: ir.Value, row: ir.Value, further: int,
    k: int, rows_first: bool, matrices: int = 4,
) -> ir.Value:  # fmt: skip
    """Four (or two) matrices of 8 rows by 16 bytes along k, from a depth of a tile on and a row, or
    `further` rows below: the first two are neighbours along the rows if `rows_first`, else along k.
    The row is a multiple of a power of two that is more than any `further`."""
    matrix, line = over(lane, 8), modulo(lane, 8)
    first, second = modulo(matrix, 2), over(matrix, 2)
    by_row, by_depth = (first, second) if rows_first else (second, first)
    down = plus(row, times(by_row, 8)) if matrices > 2 else row
    along = times(by_depth, 16 // shape.bytes)
    if shape.by_depth:
        place = shape.place(plus(plus(along, k), line), down, further)
    else:
        place = shape.place(plus(plus(down, further), line), along, k)
    element = ir.MemRefType(buffer.type).element_type
    return ir.Operation.create(
        "nvgpu.ldmatrix",
        results=[ir.VectorType.get([matrices, 4 // shape.bytes], element)],
        operands=[buffer, stage, *place],
        attributes={
            "numTiles": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), matrices),
            "transpose": ir.BoolAttr.get(shape.by_depth),
        },
    ).result


def interleaved(
    buffer: ir.Value, shape: TileShape, lane: ir.Value, stage: ir.Value, row: int, k: int
) -> ir.Value:
    """Eight rows by eight of k of a right factor of tf32, read one by one: k is in the order 0 2 4 6
    1 3 5 7. So lanes have what goes with the left factor that they make of sums of their own."""
    line, first = over(lane, 4), times(modulo(lane, 4), 2)
    values = []
    for n in range(2):
        at = plus(first, n)
        if shape.by_depth:
            place = shape.place(plus(at, k), line, row)
        else:
            place = shape.place(plus(line, row), at, k)
        values.append(load(buffer, [stage, *place]))
    type_ = ir.VectorType.get([2, 1], ir.MemRefType(buffer.type).element_type)
    return vector.FromElementsOp(type_, values).result


def part(fragment: ir.Value, first: int) -> ir.Value:
    """Two of the four matrices of a fragment."""
    type_ = ir.VectorType(fragment.type)
    values = [
        vector.ExtractOp(fragment, [], [first + i, j]).result
        for i in range(2)
        for j in range(type_.shape[1])
    ]
    half = ir.VectorType.get([2, type_.shape[1]], type_.element_type)
    return vector.FromElementsOp(half, values).result


def multiply_add(a: ir.Value, b: ir.Value, sums: ir.Value, tf32: bool = False) -> ir.Value:
    """sums + a b for fragments."""
    per = ir.VectorType(a.type).shape[1]
    i64 = ir.IntegerType.get_signless(64)
    shape = [ir.IntegerAttr.get(i64, size) for size in (16, 8, 8 * per)]
    attributes: dict[str, ir.Attribute] = {"mmaShape": ir.ArrayAttr.get(shape)}
    if tf32:
        attributes["tf32Enabled"] = ir.UnitAttr.get()
    return ir.Operation.create(
        "nvgpu.mma.sync", results=[sums.type], operands=[a, b, sums], attributes=attributes
    ).result


def rounded(fragment: ir.Value) -> ir.Value:
    """f32 values rounded to the nearest of tf32."""
    type_ = ir.VectorType(fragment.type)
    values = [
        nearest_tf32(vector.ExtractOp(fragment, [], [i, 0]).result) for i in range(type_.shape[0])
    ]
    return vector.FromElementsOp(type_, values).result


def nearest_tf32(value: ir.Value) -> ir.Value:
    """An f32 rounded to the nearest of tf32."""
    bits = ir.Operation.create(
        "nvvm.convert.float.to.tf32",
        results=[ir.IntegerType.get_signless(32)],
        operands=[value],
        attributes={"rnd": ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>")},
    ).result
    return arith.BitcastOp(value.type, bits).result


class Groups:
    """Groups of asynchronous copies; none where there are no copies."""

    def __init__(self) -> None:
        self.token: ir.Value | None = None
        """Of some copy: the ops want one, and don't look at which."""

    def begin(self) -> None:
        """A first group of no copies, where none stands before a loop."""
        self.token = ir.Operation.create(
            "nvgpu.device_async_create_group",
            results=[ir.Type.parse("!nvgpu.device.async.token")],
            # With nothing after its name, it would be parsed with the next line.
            attributes={"lamina.first": ir.UnitAttr.get()},
        ).result

    def commit(self) -> None:
        """All copies since the last group are one."""
        if self.token is not None:
            type_ = ir.Type.parse("!nvgpu.device.async.token")
            ir.Operation.create(
                "nvgpu.device_async_create_group", results=[type_], operands=[self.token]
            )

    def wait(self, groups: int) -> None:
        """This thread's copies are done, but those of the last groups."""
        if self.token is not None:
            count = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), groups)
            ir.Operation.create(
                "nvgpu.device_async_wait", operands=[self.token], attributes={"numGroups": count}
            )
