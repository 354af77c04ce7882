"""Make one loop of neighbouring innermost loops over the same range, and forget what it hands itself.

    for j { t[j] = a[j] * b[j] }
    for j { y[i, j] = t[j] / c[i] }        ->    for j { p = a[j] * b[j]; y[i, j] = p / c[i]
    s = for j { carry + y[i, j] }                        carry + p / c[i] }
A row is read and written once, temporaries of a row that nothing else reads go away, and LLVM has
one loop to vectorise where it had three. Joined are loops that are vectorised for certain: they walk
contiguous elements of one width by plain arithmetic, and what they carry may be reassociated. A
buffer that one writes and the other touches must be indexed by the loop's variable alike in both, so
that each iteration keeps to its own elements. What stands between the loops moves in front of them
or behind.

example: test/passes/memref/join_loops.mlir
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lamina.dialects.vendors import ir, scf
from lamina.passes.base import Pass
from lamina.passes.find import find_ops
from lamina.passes.linalg.structure import root_buffer
from lamina.records import Record

_MOST_OPS = 48
_MATH = ("math.absf", "math.copysign", "math.fma", "math.rsqrt", "math.sqrt")
_LONG = ("math.exp", "math.log", "math.tanh")  # many instructions each: at most one of them
_SCALAR = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi",
           "arith.ceildivui", "arith.floordivsi")  # fmt: skip
_ANY_ORDER = ("arith.addi", "arith.andi", "arith.maxsi", "arith.maxui", "arith.minsi",
              "arith.minui", "arith.muli", "arith.ori", "arith.xori")  # fmt: skip


class JoinLoops(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        blocks = Counter(op.block for op in find_ops(module, "scf.for"))
        for block, loops in blocks.items():
            if loops > 1:
                self._join_in(block)

    def _join_in(self, block: ir.Block) -> None:
        loop: _Loop | None = None
        between: list[ir.Operation] = []
        for op in [view.operation for view in block.operations]:
            if op.name != "scf.for":
                between.append(op)
                continue
            following = _read(op)
            if loop is not None and following is not None and _fit(loop, following):
                parted = _parted(loop, between, following)
                if parted is not None:
                    loop, between = _joined(loop, *parted, following), parted[1]
                    self.count("joined")
                    continue
            loop, between = following, []


class _Access(Record):
    """A load or store: where `at` says the loop's variable stands among the indices, if at all."""

    buffer: ir.Value
    root: ir.Value
    writes: bool
    at: int | None


class _Loop(Record):
    op: ir.Operation
    body: tuple[ir.Operation, ...]  # but for the yield
    accesses: tuple[_Access, ...]
    bits: frozenset[int]
    long: int


def _read(op: ir.Operation) -> _Loop | None:
    """A loop of which it is certain that it becomes vector code."""
    block = op.regions[0].blocks[0]
    *body, end = (view.operation for view in block.operations)
    variable, *carried = block.arguments
    accesses, bits, long = [], set(), 0
    for inner in body:
        name = inner.name
        if name in ("memref.load", "memref.store"):
            access = _access(inner, variable)
            if access is None or (access.writes and access.at is None):
                return None
            accesses.append(access)
            bits.add(ir.MemRefType(access.buffer.type).element_type)
        elif name in _LONG:
            long += 1
        elif name in _SCALAR or not (name.startswith("arith.") or name in _MATH):
            return None
    for argument, value in zip(carried, end.operands, strict=True):
        if not _is_in_any_order(argument, value):
            return None
    widths = {getattr(element, "width", 0) for element in bits}
    if len(widths) != 1 or 0 in widths or _constant(op.operands[2]) != 1:
        return None
    return _Loop(op, tuple(body), tuple(accesses), frozenset(widths), long)


def _access(op: ir.Operation, variable: ir.Value) -> _Access | None:
    """What a load or store touches; None where that is not contiguous along the loop."""
    writes = op.name == "memref.store"
    buffer, *indices = list(op.operands)[1:] if writes else list(op.operands)
    places = [place for place, value in enumerate(indices) if value == variable]
    for value in indices:
        if not isinstance(value.owner, ir.Block) and value.owner.operation.block == op.block:
            return None  # computed in the loop
    if places:
        strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
        if places != [len(indices) - 1] or strides[-1] != 1:
            return None
    return _Access(buffer, root_buffer(buffer), writes, places[0] if places else None)


def _is_in_any_order(argument: ir.Value, value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if argument not in op.operands or len(list(argument.uses)) != 1:
        return False
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return op.name in _ANY_ORDER or "reassoc" in flags or "fast>" in flags


def _constant(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.operation.attributes["value"]).value


def _fit(first: _Loop, second: _Loop) -> bool:
    """Whether the loops run alike and no iteration of one touches what another of the other
    writes."""
    for a, b in zip(list(first.op.operands)[:2], list(second.op.operands)[:2], strict=True):
        if a != b and (_constant(a) is None or _constant(a) != _constant(b)):
            return False
    if first.bits != second.bits or first.long + second.long > 1:
        return False
    if len(first.body) + len(second.body) > _MOST_OPS:
        return False
    for a in first.accesses:
        for b in second.accesses:
            if (a.writes or b.writes) and a.root == b.root:
                if a.buffer != b.buffer or a.at is None or a.at != b.at:
                    return False
    return True


def _parted(
    first: _Loop, between: Iterable[ir.Operation], second: _Loop
) -> tuple[list[ir.Operation], list[ir.Operation]] | None:
    """The ops between two loops that go in front of the first, and those that go behind the second;
    None where one can do neither, or the second needs what the first carries."""
    used, late = set(_used_in(second)), set(first.op.results)
    if used & late:
        return None
    in_front: list[ir.Operation] = []
    behind: list[ir.Operation] = []
    for op in between:
        if not _is_movable(op):
            return None
        if (
            any(value in late for value in op.operands)
            or any(_clash(op, other) for other in behind)
            or _touches(op, first)
        ):
            if _touches(op, second) or any(value in used for value in op.results):
                return None
            behind.append(op)
            late.update(op.results)
        else:
            in_front.append(op)
    return in_front, behind


def _used_in(loop: _Loop) -> Iterator[ir.Value]:
    yield from loop.op.operands
    for op in loop.body:
        yield from op.operands
    block = loop.op.regions[0].blocks[0]
    yield from block.operations[len(block.operations) - 1].operands


def _is_movable(op: ir.Operation) -> bool:
    return op.name in ("memref.load", "memref.store", "memref.alloc") or (
        op.name.startswith(("arith.", "math.")) and not len(op.regions)
    )


def _memory(op: ir.Operation) -> tuple[ir.Value, bool] | None:
    if op.name == "memref.store":
        return root_buffer(op.operands[1]), True
    return (root_buffer(op.operands[0]), False) if op.name == "memref.load" else None


def _clash(one: ir.Operation, other: ir.Operation) -> bool:
    a, b = _memory(one), _memory(other)
    return a is not None and b is not None and a[0] == b[0] and (a[1] or b[1])


def _touches(op: ir.Operation, loop: _Loop) -> bool:
    found = _memory(op)
    return found is not None and any(
        access.root == found[0] and (access.writes or found[1]) for access in loop.accesses
    )


def _joined(
    first: _Loop, in_front: list[ir.Operation], behind: list[ir.Operation], second: _Loop
) -> _Loop | None:
    """One loop in the place of two."""
    for op in in_front:
        op.move_before(first.op)
    for op in reversed(behind):
        op.move_after(second.op)
    low, high, step, *initial = first.op.operands
    with ir.InsertionPoint(second.op), second.op.location:
        loop = scf.ForOp(low, high, step, [*initial, *list(second.op.operands)[3:]])
    with ir.InsertionPoint(loop.body):
        end = scf.YieldOp(list(loop.inner_iter_args)).operation
    arguments, results = iter(loop.inner_iter_args), iter(loop.results)
    yielded: list[ir.Value] = []
    for old in (first, second):
        block = old.op.regions[0].blocks[0]
        variable, *carried = block.arguments
        variable.replace_all_uses_with(loop.induction_variable)
        for argument in carried:
            argument.replace_all_uses_with(next(arguments))
        for result in old.op.results:
            result.replace_all_uses_with(next(results))
        for op in old.body:
            op.move_before(end)
        yielded += block.operations[len(block.operations) - 1].operands
    for position, value in enumerate(yielded):
        end.operands[position] = value
    second.op.erase()
    first.op.erase()
    _forward(loop.body, end)
    return _read(loop.operation)


def _forward(body: ir.Block, end: ir.Operation) -> None:
    """Use what was stored or loaded instead of loading it again, and store to no temporary that is
    never read."""
    known: dict[tuple[ir.Value, ...], ir.Value] = {}
    written: dict[ir.Value, None] = {}
    for op in [view.operation for view in body.operations]:
        if op.name == "memref.load":
            place = tuple(op.operands)
            if place in known:
                op.results[0].replace_all_uses_with(known[place])
                op.erase()
            else:
                known[place] = op.results[0]
        elif op.name == "memref.store":
            value, *place_ = op.operands
            root = root_buffer(place_[0])
            known = {at: v for at, v in known.items() if root_buffer(at[0]) != root}
            known[tuple(place_)] = value
            written[place_[0]] = None
    for buffer in written:
        owner = buffer.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "memref.alloc":
            continue
        users = [use.owner.operation for use in buffer.uses]
        if all(user.name == "memref.store" and user.operands[0] != buffer for user in users):
            for user in users:
                user.erase()
            owner.operation.erase()
