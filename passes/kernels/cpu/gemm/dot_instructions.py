"""Dot-product instructions, which multiply groups of narrow numbers and add up each group in 32 bits.

A group is 32 bits of neighbours along the sum: four bytes or two words. `Tiles` multiplies whole
tiles (AMX: `tdpbssd`, `tdpbf16ps`), `byte_vectors` vectors of bytes (AVX-512 VNNI: `vpdpbusd`),
`word_vectors` those of 16-bit integers, which every x86-64 processor has (`pmaddwd`), some with the
addition (`vpdpwssd`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.intrinsics import call_intrinsic
from lamina.passes.emit.loops import index
from lamina.passes.kernels.cpu.gemm.register_blocks import repeat
from lamina.records import Record

TILE_ROWS = 16
TILE_BYTES = 64  # shape: of a row
_SUMS, _ROWS, _COLUMNS = 0, 4, 6  # the first registers of sums, of a's and of b's tiles

Multiply = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
"""(sums, groups of a repeated, groups of b) -> sums, all vectors of i32."""


Kind = tuple[int, int, int, tuple[int, ...]]
"""Blocks from one row (or column) up to another, in steps, and the parts of each."""


class Vectors(Record):
    """How vectors of groups are multiplied. `flip` says that a's numbers have their sign bit
    flipped to suit the instruction, and by which multiple of b's sums that has to be mended."""

    group: int
    lanes: int
    multiply: Multiply
    flip: int = 0


def intrinsic(
    name: str, operands: Sequence[ir.Value], result: ir.Type | None = None
) -> ir.Value | None:
    """A call of one of LLVM's intrinsics for x86."""
    return call_intrinsic(f"llvm.x86.{name}", operands, result)


def pointer(buffer: ir.Value, offset: ir.Value) -> ir.Value:
    """The address of so many bytes behind a buffer's first."""
    i64 = ir.IntegerType.get_signless(64)
    base = ir.Operation.create(
        "memref.extract_aligned_pointer_as_index",
        results=[ir.IndexType.get()],
        operands=[buffer],
    ).result
    address = arith.IndexCastOp(i64, arith.AddIOp(base, offset).result).result
    return ir.Operation.create(
        "llvm.inttoptr", results=[ir.Type.parse("!llvm.ptr")], operands=[address]
    ).result


def load_at(address: ir.Value, type_: ir.Type) -> ir.Value:
    """What is at an address, of any alignment."""
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    return ir.Operation.create(
        "llvm.load", results=[type_], operands=[address], attributes={"alignment": one}
    ).result


def store_at(value: ir.Value, address: ir.Value) -> None:
    """Write a value to an address of any alignment."""
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    ir.Operation.create(
        "llvm.store", operands=[value, address], attributes={"alignment": one}
    )


def prefetch_at(address: ir.Value) -> None:
    """Fetch the line of an address, which may be anywhere, into the first-level cache."""
    word = ir.IntegerType.get_signless(32)
    ir.Operation.create(
        "llvm.intr.prefetch",
        operands=[address],
        attributes={
            name: ir.IntegerAttr.get(word, value) for name, value in (("rw", 0), ("hint", 3), ("cache", 1))
        },
    )


def load_some(address: ir.Value, type_: ir.VectorType, count: int) -> ir.Value:
    """A vector of which only the first so many elements are read, others being zero."""
    if count >= type_.shape[0]:
        return load_at(address, type_)
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
    return ir.Operation.create(
        "llvm.intr.masked.load",
        results=[type_],
        operands=[address, _first(count, type_), splat(type_, 0)],
        attributes={"alignment": one},
    ).result


def store_some(vector: ir.Value, address: ir.Value, count: int) -> None:
    """Write the first so many elements of a vector."""
    if count >= vector.type.shape[0]:
        store_at(vector, address)
        return
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
    ir.Operation.create(
        "llvm.intr.masked.store",
        operands=[vector, address, _first(count, vector.type)],
        attributes={"alignment": one},
    )


def splat(type_: ir.VectorType, value: int) -> ir.Value:
    """A vector of one integer."""
    element = ir.IntegerAttr.get(type_.element_type, value)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, element)).result


def _first(count: int, type_: ir.VectorType) -> ir.Value:
    lanes = type_.shape[0]
    mask = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    values = [ir.BoolAttr.get(lane < count) for lane in range(lanes)]
    return arith.ConstantOp(mask, ir.DenseElementsAttr.get(values, mask)).result


def _immediate(value: int) -> ir.Value:
    byte = ir.IntegerType.get_signless(8)
    return ir.Operation.create(
        "llvm.mlir.constant",
        results=[byte],
        attributes={"value": ir.IntegerAttr.get(byte, value)},
    ).result


def _stride(bytes_: int) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(64), bytes_).result


class Tiles(Record):
    """Blocks of up to two by two tiles of sums, of so many rows and columns each."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    instruction: str
    groups: int = TILE_ROWS
    """That are multiplied at a time."""

    def configure(self, buffer: ir.Value) -> None:
        """Give the tile registers their shapes; `buffer` holds 64 bytes for that. Clears them."""
        rows, widths = [0] * 16, [0] * 16
        for r, count in enumerate(self.rows):
            rows[_ROWS + r], widths[_ROWS + r] = count, self.groups * 4
            for c, columns in enumerate(self.columns):
                rows[self._sum(r, c)], widths[self._sum(r, c)] = count, columns * 4
        for c, columns in enumerate(self.columns):
            rows[_COLUMNS + c], widths[_COLUMNS + c] = self.groups, columns * 4
        data = bytes([1, 0]) + bytes(14) + b"".join(w.to_bytes(2, "little") for w in widths)
        byte = ir.IntegerType.get_signless(8)
        type_ = ir.VectorType.get([64], byte)
        values = [ir.IntegerAttr.get(byte, value) for value in data + bytes(rows)]
        constant = ir.DenseElementsAttr.get(values, type_)
        shape = arith.ConstantOp(type_, constant).result
        address = pointer(buffer, index(0))
        store_at(shape, address)
        intrinsic("ldtilecfg", [address])

    def clear(self) -> None:
        """Sums of nothing."""
        for register in self._sums():
            intrinsic("tilezero", [_immediate(register)])

    def load_sums(self, addresses: Sequence[ir.Value], stride: int) -> None:
        """Sums from memory, a tile at each address."""
        for register, address in zip(self._sums(), addresses, strict=True):
            intrinsic("tileloadd64", [_immediate(register), address, _stride(stride)])

    def store_sums(self, addresses: Sequence[ir.Value], stride: int) -> None:
        """Sums to memory, a tile to each address."""
        for register, address in zip(self._sums(), addresses, strict=True):
            intrinsic("tilestored64", [_immediate(register), address, _stride(stride)])

    def multiply(
        self, a: Sequence[ir.Value], stride: int, b: Sequence[ir.Value], b_stride: int = TILE_BYTES
    ) -> None:
        """Add the products of the tiles at these addresses, of which b's are packed."""
        for c, address in enumerate(b):
            operands = [_immediate(_COLUMNS + c), address, _stride(b_stride)]
            intrinsic("tileloadd64", operands)
        for r, address in enumerate(a):
            intrinsic("tileloadd64", [_immediate(_ROWS + r), address, _stride(stride)])
            for c in range(len(b)):
                registers = (self._sum(r, c), _ROWS + r, _COLUMNS + c)
                intrinsic(self.instruction, [_immediate(register) for register in registers])

    def _sum(self, r: int, c: int) -> int:
        return _SUMS + 2 * r + c

    def _sums(self) -> list[int]:
        return [
            self._sum(r, c) for r in range(len(self.rows)) for c in range(len(self.columns))
        ]


def kinds_of_blocks(extent: int, side: int) -> list[Kind]:
    """Blocks of two parts, and one of what is left."""
    whole = extent // (2 * side) * (2 * side)
    kinds: list[Kind] = [(0, whole, 2 * side, (side, side))] if whole else []
    rest = extent - whole
    if rest:
        parts = (side, rest - side) if rest > side else (rest,)
        kinds.append((whole, extent, rest, parts))
    return kinds


def tile_instruction(element: str, signed: tuple[bool, bool]) -> str:
    """The instruction for factors of this type and these signs."""
    if element == "bf16":
        return "tdpbf16ps"
    return "tdpb" + "".join("s" if sign else "u" for sign in signed) + "d"


def release_tiles() -> None:
    """Let the processor forget the tile registers."""
    intrinsic("tilerelease", [])


def byte_vectors(signed: tuple[bool, bool]) -> Vectors:
    """`vpdpbusd`, which takes bytes without a sign times bytes with one."""
    a_first = not signed[0] if signed[0] != signed[1] else signed[0]

    def multiply(sums: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        byte = ir.VectorType.get([64], ir.IntegerType.get_signless(8))
        first, second = (with_elements(x, byte) for x in ((a, b) if a_first else (b, a)))
        return intrinsic("avx512.vpdpbusd.512", [sums, first, second], sums.type)

    flip = 0 if signed[0] != signed[1] else (-128 if signed[0] else 128)
    return Vectors(4, 16, multiply, flip)


def word_vectors(vector_bits: int, adds: bool) -> Vectors:
    """`pmaddwd` and an addition, or `vpdpwssd`, which is both."""
    lanes = vector_bits // 32

    def multiply(sums: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        word = ir.VectorType.get([2 * lanes], ir.IntegerType.get_signless(16))
        factors = [with_elements(x, word) for x in (a, b)]
        if adds:
            return intrinsic("avx512.vpdpwssd.512", [sums, *factors], sums.type)
        name = {512: "avx512.pmaddw.d.512", 256: "avx2.pmadd.wd"}.get(vector_bits, "sse2.pmadd.wd")
        return arith.AddIOp(sums, intrinsic(name, factors, sums.type)).result

    return Vectors(2, lanes, multiply)


def repeat_group(group: ir.Value, lanes: int) -> ir.Value:
    """A vector of one group, an i32."""
    return repeat(group, ir.VectorType.get([lanes], group.type))


def with_elements(vector: ir.Value, type_: ir.Type) -> ir.Value:
    """The bits of a vector as one of another type."""
    return ir.Operation.create("vector.bitcast", results=[type_], operands=[vector]).result
