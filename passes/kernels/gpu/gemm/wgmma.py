"""What kernels for Hopper (sm_90a) are made of: barriers in shared memory, boxes that the tensor memory
accelerator copies there, and `wgmma`.

Shared memory holds rows of 128 bytes, whose 16-byte chunks are swizzled by the row (address bits 4
to 6 xor bits 7 to 9). `wgmma` reads them along k, or across, in blocks of rows of k; PTX ISA 9.0, 9.7.15
("asynchronous warpgroup level matrix"), says where by a descriptor: the address, and how far it is
from 8 rows to the next (and from block to block).
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.kernels.gpu.gemm.block import Arena
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times
from lamina.records import Record

ROW_BYTES = 128  # shape: of a box
ATOM = 8 * ROW_BYTES  # eight rows, after which the swizzle repeats
WARPGROUP = 128
MOST_DIMENSIONS = 5  # range: of a tensor map
"""Of a tensor that boxes are copied from."""
_TICKS = 10_000_000  # nanoseconds at most before a wait tries again


# ---- shared memory -------------------------------------------------------------------------------
class SharedMemory:
    """A block's shared memory by addresses, which are i64."""

    def __init__(self, arena: Arena) -> None:
        pointer = memref.ExtractAlignedPointerAsIndexOp(arena.bytes).result
        self.begin = arith.IndexCastOp(_i64(), pointer).result

    def at(self, offset: ir.Value | int) -> ir.Value:
        """The address of a byte."""
        if isinstance(offset, int):
            return further(self.begin, offset)
        return arith.AddIOp(self.begin, arith.IndexCastOp(_i64(), offset).result).result


def further(address: ir.Value, offset: int) -> ir.Value:
    """An address so many bytes behind another."""
    return address if offset == 0 else arith.AddIOp(address, _long(offset)).result


def _pointer(address: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "llvm.inttoptr", results=[ir.Type.parse("!llvm.ptr<3>")], operands=[address]
    ).result


# ---- barriers ------------------------------------------------------------------------------------
class Barriers(Record):
    """Some barriers of 8 bytes in shared memory, from `offset` on, one for each stage of something; a
    phase of each is complete when so many have arrived, and all bytes that were announced."""

    memory: SharedMemory
    offset: int
    stages: int
    arrivals: int

    def __getitem__(self, stage: ir.Value) -> ir.Value:
        return _pointer(self.memory.at(plus(times(stage, 8), self.offset)))

    def initialise(self) -> None:
        """By one thread; `fence_barriers` and a barrier of the block must follow."""
        for stage in range(self.stages):
            where = _pointer(self.memory.at(self.offset + 8 * stage))
            ir.Operation.create("nvvm.mbarrier.init", operands=[where, _word(self.arrivals)])

    def arrive(self, number: ir.Value) -> None:
        """This thread has done what step `number` waits for."""
        stage = self[modulo(number, self.stages)]
        ir.Operation.create("nvvm.mbarrier.arrive", results=[_i64()], operands=[stage])

    def expect(self, number: ir.Value, size: int) -> ir.Value:
        """This thread arrives, and so many bytes will be copied; where they are to arrive."""
        stage = self[modulo(number, self.stages)]
        ir.Operation.create("nvvm.mbarrier.arrive.expect_tx", operands=[stage, _word(size)])
        return stage

    def wait(self, number: ir.Value, before: int = 0) -> None:
        """Until step `number` of those that take these stages in turn is complete; `before` of 1: the
        one that had its stage last. A wait for what came before the first round ends at once."""
        round_ = plus(over(number, self.stages), before)
        parity = arith.IndexCastOp(_i32(), modulo(round_, 2)).result
        stage = self[modulo(number, self.stages)]
        ir.Operation.create(
            "nvvm.mbarrier.try_wait.parity", operands=[stage, parity, _word(_TICKS)]
        )


def fence_barriers() -> None:
    """Copies may use the barriers from here on."""
    ir.Operation.create("nvvm.fence.mbarrier.init")


def fence_written() -> None:
    """What this thread has written to shared memory is seen by products of whoever it lets know."""
    ir.Operation.create(
        "nvvm.fence.proxy",
        attributes={
            "kind": ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
            "space": ir.Attribute.parse("#nvvm.shared_space<cta>"),
        },
    )


def named_barrier(threads: int) -> None:
    """The first threads of a block, those that multiply, wait for each other."""
    ir.Operation.create(
        "nvvm.barrier",
        operands=[_word(1), _word(threads)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
    )


# ---- copies --------------------------------------------------------------------------------------
def copy_box(
    map_: ir.Value, coordinates: Sequence[ir.Value], target: ir.Value, barrier: ir.Value
) -> None:
    """One thread has a box copied from some coordinates on, the innermost first; what lies beyond the
    tensor's edges is zero. Its bytes arrive at a barrier."""
    cluster = ir.Operation.create(
        "llvm.addrspacecast", results=[ir.Type.parse("!llvm.ptr<7>")], operands=[_pointer(target)]
    ).result
    at = [arith.IndexCastOp(_i32(), each).result for each in coordinates]
    segments = [1, 1, len(at), 1, 0, 0, 0, 0]
    ir.Operation.create(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        operands=[cluster, map_, *at, barrier],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)},
    )


# ---- products ------------------------------------------------------------------------------------
def descriptor(address: ir.Value, blocks: int = 16) -> ir.Value:
    """Where `wgmma` finds a factor: address, from block to block (16 where it reads along k, which has
    none), from 8 rows to the next, and that rows of 128 bytes are swizzled; in units of 16 bytes."""
    low = arith.ShRUIOp(arith.AndIOp(address, _long(0x3FFFF)).result, _long(4)).result
    rest = (blocks >> 4) << 16 | (ATOM >> 4) << 32 | 1 << 62
    return arith.OrIOp(low, _long(rest)).result


def no_sums(count: int, element: ir.Type) -> ir.Value:
    """Zeros: `count` sums of a thread."""
    type_ = ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * count)})>")
    return ir.Operation.create("llvm.mlir.zero", results=[type_]).result


def sum_at(sums: ir.Value, place: int, element: ir.Type) -> ir.Value:
    """Sum 4 j + 2 h + i of lane 4 r + c in warp w: row 16 w + 8 h + r, column 8 j + 2 c + i."""
    return ir.Operation.create(
        "llvm.extractvalue", results=[element], operands=[sums],
        attributes={"position": ir.DenseI64ArrayAttr.get([place])},
    ).result  # fmt: skip


def multiply(
    sums: ir.Value, left: ir.Value, right: ir.Value, *, kind: str, sum_kind: str, columns: int, depth: int,
    across: tuple[bool, bool],
) -> ir.Value:  # fmt: skip
    """sums + a b for 64 rows of a warpgroup. Factors of a kind as PTX calls it, each of which is read
    `across` its rows in shared memory, or along them."""
    attribute = ir.Attribute.parse
    layouts = ["col" if across[0] else "row", "row" if across[1] else "col"]
    attributes = {
        "shape": attribute(f"#nvvm.shape<m = 64, n = {columns}, k = {depth}>"),
        "typeA": attribute(f"#nvvm.wgmma_type<{kind}>"),
        "typeB": attribute(f"#nvvm.wgmma_type<{kind}>"),
        "typeD": attribute(f"#nvvm.wgmma_type<{sum_kind}>"),
        "scaleD": attribute("#nvvm.wgmma_scale_out<one>"),
        "scaleA": attribute("#nvvm.wgmma_scale_in<one>"),
        "scaleB": attribute("#nvvm.wgmma_scale_in<one>"),
        "layoutA": attribute(f"#nvvm.mma_layout<{layouts[0]}>"),
        "layoutB": attribute(f"#nvvm.mma_layout<{layouts[1]}>"),
    }
    if sum_kind == "s32":
        attributes["satfinite"] = attribute("#nvvm.mma_int_overflow<wrapped>")
    return ir.Operation.create(
        "nvvm.wgmma.mma_async", results=[sums.type], operands=[sums, left, right], attributes=attributes
    ).result


def multiply_registers(
    sums: Sequence[ir.Value], left: Sequence[ir.Value], right: ir.Value, *, kind: str, across: bool
) -> list[ir.Value]:  # fmt: skip
    """The same where a warpgroup has the left factor in registers, 16 of k of 16 bits as pairs: rows,
    then halves of k, as sums of two times eight columns lie. For as many columns as there are sums."""
    count = len(sums)
    names = [f"${n}" for n in range(count)]
    a = ", ".join(f"${2 * count + n}" for n in range(4))
    text = (
        "{ .reg .pred p; setp.ne.b32 p, 1, 0; "
        f"wgmma.mma_async.sync.aligned.m64n{2 * count}k16.f32.{kind}.{kind} "
        f"{{{', '.join(names)}}}, {{{a}}}, ${2 * count + 4}, p, 1, 1, {int(across)}; }}"
    )
    return _through(text, sums, [*left, right], ["r"] * 4 + ["l"])


def begin_products(values: Sequence[ir.Value] = ()) -> list[ir.Value]:
    """`wgmma` may use what registers hold from here on: `values`, as it is to use them."""
    if values:
        return _through("wgmma.fence.sync.aligned;", values)
    ir.Operation.create("nvvm.wgmma.fence.aligned")
    return []


def end_products() -> None:
    """All products since the last group are one."""
    ir.Operation.create("nvvm.wgmma.commit.group.sync.aligned")


def wait_for_products(groups: int, values: Sequence[ir.Value] = ()) -> list[ir.Value]:
    """All products but the last groups are done; sums of theirs, which nobody reads before."""
    if values:
        return _through(f"wgmma.wait_group.sync.aligned {groups};", values)
    count = ir.IntegerAttr.get(_i64(), groups)
    ir.Operation.create("nvvm.wgmma.wait.group.sync.aligned", attributes={"group": count})
    return []


def _through(
    text: str, values: Sequence[ir.Value], more: Sequence[ir.Value] = (), kinds: Sequence[str] = ()
) -> list[ir.Value]:  # fmt: skip
    """Assembly that changes values in registers, or after which they are others for LLVM, so that it
    moves no use of them across; and reads more, of kinds that constraints name."""
    letters = ["f" if isinstance(v.type, ir.F32Type) else "r" for v in values]
    same = [str(n) for n in range(len(values))]
    constraints = ",".join([*(f"={letter}" for letter in letters), *same, *kinds, "~{memory}"])
    type_ = ir.Type.parse(f"!llvm.struct<({', '.join(str(v.type) for v in values)})>")
    found = ir.Operation.create(
        "llvm.inline_asm",
        results=[type_],
        operands=[*values, *more],
        attributes={
            "asm_string": ir.StringAttr.get(text),
            "constraints": ir.StringAttr.get(constraints),
            "has_side_effects": ir.UnitAttr.get(),
        },
    ).result
    return [sum_at(found, place, v.type) for place, v in enumerate(values)]


def _long(value: int) -> ir.Value:
    return arith.ConstantOp(_i64(), value).result


def _word(value: int) -> ir.Value:
    return arith.ConstantOp(_i32(), value).result


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
