"""How `stablehlo-fuse` sees single ops: what may be computed inside a group, and what twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from lamina.dialects.constants import is_splat
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.collective import KINDS as COLLECTIVES
from lamina.passes.stablehlo.facts import (
    CHEAP,
    CONSTANT,
    CONTROL,
    ELEMENTWISE,
    TERMINATORS,
    computes_elements,
    defining,
    inner_ops,
    ints,
    size_of,
)
from lamina.passes.stablehlo.gemm import Gemm, library_wins
from lamina.passes.stablehlo.keys import attributes_key, region_key
from lamina.passes.stablehlo.lapack import Lapack
from lamina.passes.stablehlo.scan_order import Scan
from lamina.passes.stablehlo.sort_order import SortOrder

CLONED_CONSTANT_ELEMENTS = 64
"""Constants up to this size, and repeated elements of any, are cloned into kernels."""

MAPPED = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.transpose"))
"""Ops through whose index map a group may compute their operand."""
LEAVES = frozenset(
    f"stablehlo.{name}" for name in "iota slice reverse dynamic_slice gather".split()
)
"""Ops computed inside a group from operands in memory."""
REARRANGEMENTS = frozenset(("stablehlo.concatenate", "stablehlo.pad"))
"""Ops that make one array of several, for now in kernels of their own."""
UPDATES = frozenset(("stablehlo.dynamic_update_slice", "stablehlo.scatter"))
VIEWS = frozenset(("stablehlo.reshape",))
BARRIER = "stablehlo.optimization_barrier"
_NOT_ELEMENTWISE_CHLO = ("chlo.top_k", "chlo.ragged_dot", "chlo.scan", "chlo.broadcast_")


class Seen:
    """An op, and what is asked of it again and again: each question to the bindings takes as long as
    a hundred lookups. Holds while the op is not changed."""

    __slots__ = (
        "_key", "_library", "_library_products", "cheap", "elementwise", "joins_loops", "mapped",
        "name", "op", "operands", "picks", "shape", "stays_in_main",
    )  # fmt: skip

    def __init__(self, op: ir.Operation, library_products: bool = True) -> None:
        self.op = op
        self._library_products = library_products
        self.name = name = op.name
        self.operands = tuple(op.operands)
        self.shape = shape_of_result(op)
        self.elementwise = is_elementwise(op)
        self.mapped = name in MAPPED
        self.picks = name == "stablehlo.gather" and picks_elements(op)
        self.joins_loops = self.elementwise or self.mapped or name in LEAVES
        self.stays_in_main = stays_in_main(op)
        self.cheap = is_cheap(op)
        self._library: list[str | None] = []
        self._key: Hashable = None

    @property
    def library(self) -> str | None:
        """As `library_of`."""
        if not self._library:
            self._library.append(library_of(self.op, self._library_products))
        return self._library[0]

    @property
    def key(self) -> Hashable:
        """Equal for ops that do the same to their operands."""
        if self._key is None:
            op = self.op
            types = tuple([result.type for result in op.results])
            regions = tuple([region_key(region, {}) for region in op.regions])
            self._key = (self.name, types, attributes_key(op), regions)
        return self._key


def is_elementwise(op: ir.Operation) -> bool:
    """Whether each element of the one result needs that element of each operand, or a scalar."""
    name = op.name
    if name in ELEMENTWISE:
        return computes_elements(op)
    if not name.startswith("chlo.") or name.startswith(_NOT_ELEMENTWISE_CHLO):
        return False
    shape = op.results[0].type.shape
    return len(op.results) == 1 and all(v.type.shape == shape for v in op.operands)


def picks_elements(gather: ir.Operation) -> bool:
    """Whether each element of a gather's result needs that element of the indices."""
    numbers = stablehlo_ext.GatherDimensionNumbers(gather.attributes["dimension_numbers"])
    indices = gather.operands[1].type.shape
    return numbers.index_vector_dim == len(indices) and not list(numbers.offset_dims)


def joins_loops(op: ir.Operation) -> bool:
    """Whether an op can be computed element by element inside a group."""
    return is_elementwise(op) or op.name in MAPPED or op.name in LEAVES


def is_clonable_constant(op: ir.Operation) -> bool:
    """Whether a constant belongs into each kernel that reads it."""
    if op.name != CONSTANT:
        return False
    return size_of(op.result.type) <= CLONED_CONSTANT_ELEMENTS or is_splat(op)


def stays_in_main(op: ir.Operation) -> bool:
    """Whether an op of a block is none of a kernel's."""
    return (
        op.name in CONTROL or op.name in VIEWS or op.name in TERMINATORS or op.name == CONSTANT
        or op.name == BARRIER or op.name == "func.call"
    )  # fmt: skip


def is_cheap(op: ir.Operation) -> bool:
    """Whether computing an element twice costs less than reading it back would."""
    name = op.name
    return name in CHEAP or name in MAPPED or (name in LEAVES and name != "stablehlo.gather")


def is_small_operation(op: ir.Operation) -> bool:
    """Whether a copy of an op in each group that needs it adds no reading from memory.

    So for what reads at most one array, and for cheap ops on arrays that are in memory anyway.
    """
    name = op.name
    if name in MAPPED or name in ("stablehlo.iota", "stablehlo.slice", "stablehlo.reverse"):
        return True
    if name not in CHEAP:
        return False
    arrays = [v for v in op.operands if v.type.shape and not _is_free(v)]
    return len(arrays) <= 1 or all(_is_in_memory(v) for v in arrays)


def _is_free(value: ir.Value) -> bool:
    op = defining(value)
    if op is None:
        return False
    if op.name == "stablehlo.broadcast_in_dim":
        return not op.operands[0].type.shape
    return op.name == "stablehlo.iota" or is_clonable_constant(op)


def _is_in_memory(value: ir.Value) -> bool:
    op = defining(value)
    if op is None:
        return True
    return not (is_elementwise(op) or op.name in MAPPED or op.name in LEAVES)


def library_of(op: ir.Operation, products: bool = True) -> str | None:
    """The library kernel that does a whole op, if one does and it pays; matrix products have one where
    `products` says so."""
    if op.name == "stablehlo.fft":
        return "lamina.fft"
    routine = Lapack.of(op)
    if routine is not None:
        return routine.name
    if op.name == "stablehlo.custom_call":
        return op.attributes["call_target_name"].value
    if op.name == "stablehlo.sort":
        return None if SortOrder.of(op) is None else "lamina.sort"
    if op.name == "stablehlo.reduce_window":
        return None if Scan.of(op) is None else "lamina.scan"
    if op.name in COLLECTIVES:
        return "lamina.collective"
    if op.name != "stablehlo.dot_general" or not products:
        return None
    gemm = Gemm.of(op)
    if gemm is None or not library_wins(gemm, str(op.operands[0].type.element_type)):
        return None
    return "openblas.gemm"


def inout_operands(op: ir.Operation) -> int:
    """How many leading operands of an update are overwritten by its results."""
    return len(op.results)


def map_key(op: ir.Operation) -> object:
    """The index map of a MAPPED op, hashable."""
    return (op.name, attributes_key(op), tuple(op.operands[0].type.shape))


def shape_of_result(op: ir.Operation) -> tuple[int, ...] | None:
    """The shape of the one result; None for several, or none, or something that is not a tensor."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    return tuple(op.results[0].type.shape)


def reduction_domain(op: ir.Operation) -> tuple[object, ...]:
    """What a reduction runs over; equal for reductions that one loop nest can do."""
    return (tuple(op.operands[0].type.shape), tuple(ints(op, "dimensions")))


def captured(op: ir.Operation) -> Iterator[ir.Value]:
    """The values from outside that the ops in an op's regions read."""
    inside = {region.blocks[0] for region in op.regions if len(region.blocks)}
    work = list(inner_ops(op))
    seen: set[ir.Value] = set()
    while work:
        inner = work.pop()
        for value in inner.operands:
            if value not in seen and not _is_inside(value, op, inside):
                seen.add(value)
                yield value
        work += inner_ops(inner)


def _is_inside(value: ir.Value, op: ir.Operation, blocks: set[ir.Block]) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while True:
        if block in blocks:
            return True
        parent = block.owner.operation
        if parent.name == "func.func" or parent == op:
            return False
        block = parent.block
