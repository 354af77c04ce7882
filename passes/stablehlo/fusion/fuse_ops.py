"""How `stablehlo-fuse` sees single ops: what may be computed inside a group, and what twice."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from lamina.dialects.constants import is_splat
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import (
    CHEAP,
    CONSTANT,
    CONTROL,
    ELEMENTWISE,
    TERMINATORS,
    computes_elements,
    defining,
    has_one_use,
    inner_ops,
    ints,
    size_of,
)
from lamina.passes.stablehlo.analysis.keys import attributes_key, region_key
from lamina.passes.stablehlo.analysis.lapack import Lapack
from lamina.passes.stablehlo.analysis.product_choice import Products, elements_outside
from lamina.passes.stablehlo.analysis.scan_order import RECURRENCE, Scan
from lamina.passes.stablehlo.analysis.sort_order import SortOrder, TopK
from lamina.passes.stablehlo.collectives.collective import KINDS as COLLECTIVES
from lamina.passes.stablehlo.piecewise.boundaries import Cuts, cuts_of

_TURNING = frozenset(("stablehlo.transpose", "stablehlo.reverse"))
AS_IS = Products()
CLONED_CONSTANT_ELEMENTS = 64
"""Constants up to this size, and repeated elements of any, are cloned into kernels."""

MAPPED = frozenset(f"stablehlo.{name}" for name in "broadcast_in_dim transpose reverse".split())
"""Ops through whose index map a group may compute their operand."""
LEAVES = frozenset(
    f"stablehlo.{name}" for name in "iota slice dynamic_slice gather".split()
)
"""Ops computed inside a group from operands in memory."""
_REVERSE = "stablehlo.reverse"
"""Mapped where nobody else reads its operand: what is also read straight is better stored, and overwritten,
than computed at both places from an array that then has to stay."""
_OF_BOXES = frozenset(("stablehlo.iota", "stablehlo.slice"))
REARRANGEMENTS = frozenset(("stablehlo.concatenate", "stablehlo.pad"))
"""Ops that put an array together from others: done part by part (compute_parts.py)."""
UPDATES = frozenset(("stablehlo.dynamic_update_slice", "stablehlo.scatter"))
VIEWS = frozenset(("stablehlo.reshape",))
BARRIER = "stablehlo.optimization_barrier"
STAY_IN_MAIN = CONTROL | VIEWS | TERMINATORS | {CONSTANT, BARRIER, "func.call"}
"""Ops of a block that are none of a kernel's."""
_NOT_ELEMENTWISE_CHLO = ("chlo.top_k", "chlo.ragged_dot", "chlo.scan", "chlo.broadcast_")


class SeenValue:
    """A value and what is asked of it again and again. There is one for each value, so that lookups
    go by identity: asking the bindings whether two values are the same takes several times as long."""

    __slots__ = ("_constant_key", "cloned", "is_found", "maker", "number", "shape", "type", "value")

    def __init__(self, value: ir.Value, maker: int | None, number: int, cloned: bool) -> None:
        self.value = value
        self.maker = maker
        """Where in the block it is made; None if it comes from outside."""
        self.number = number
        """Which result of its op it is."""
        self.cloned = cloned
        """Whether it is a constant of which each kernel has its own copy."""
        self.is_found = False
        """Whether loops compute it from elements that they look up."""
        self.type = of = value.type
        self.shape = tuple(of.shape) if isinstance(of, ir.RankedTensorType) else ()
        self._constant_key: Hashable = None

    @property
    def constant_key(self) -> Hashable:
        """Equal for equal constants."""
        if self._constant_key is None:
            self._constant_key = attributes_key(self.value.owner.operation)
        return self._constant_key


class SeenValues:
    """The values that a block's ops read and make."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, SeenValue] = {}
        self.libraries: dict[Hashable, str | None] = {}
        """Of products, by what they do to which types."""

    def of_results(self, op: ir.Operation, name: str, position: int) -> tuple[SeenValue, ...]:
        """The results of the op of this name at this position."""
        cloned = name == CONSTANT and is_clonable_constant(op)
        known = self._known
        found = []
        for number, value in enumerate(op.results):
            seen = known[value] = SeenValue(value, position, number, cloned)
            found.append(seen)
        return tuple(found)

    def of_operands(self, op: ir.Operation) -> tuple[SeenValue, ...]:
        """The operands of an op, each as `of` gives it."""
        known = self._known.get
        return tuple([known(value) or self.of(value) for value in op.operands])

    def of(self, value: ir.Value) -> SeenValue:
        """A value that was made before, or outside of the block."""
        found = self._known.get(value)
        if found is None:
            op = defining(value)
            cloned = op is not None and is_clonable_constant(op)
            number = 0 if op is None else ir.OpResult(value).result_number
            found = self._known[value] = SeenValue(value, None, number, cloned)
        return found


class _Kind(NamedTuple):
    """What an op's name says of it."""

    elementwise: bool
    """Surely: of others, the op decides."""
    mapped: bool
    leaf: bool
    stays_in_main: bool
    cheap: bool


@functools.cache
def _kind_of(name: str) -> _Kind:
    return _Kind(
        elementwise=name in ELEMENTWISE and name != "stablehlo.bitcast_convert",
        mapped=name in MAPPED,
        leaf=name in LEAVES,
        stays_in_main=name in STAY_IN_MAIN,
        cheap=is_cheap(name),
    )


class Seen:
    """An op, and what is asked of it again and again: each question to the bindings takes as long as
    a hundred lookups. Holds while the op is not changed."""

    __slots__ = (
        "_cuts", "_key", "_libraries", "_library", "_map_key", "_products", "cheap", "elementwise",
        "joins_loops", "mapped", "name", "op", "operands", "picks", "results", "searches", "shape",
        "stays_in_main",
    )  # fmt: skip

    def __init__(
        self,
        op: ir.Operation,
        position: int,
        values: SeenValues,
        products: Products = AS_IS,
        in_parts: bool = True,
    ) -> None:
        self.op = op
        self._products = products
        self.name = name = op.name
        self.operands = values.of_operands(op)
        self.results = results = values.of_results(op, name, position)
        self.shape = None
        if len(results) == 1 and isinstance(results[0].type, ir.RankedTensorType):
            self.shape = results[0].shape
        known = _kind_of(name)
        self.elementwise = elementwise = known.elementwise or is_elementwise(op)
        takes_one = name in VIEWS and _takes_one_of_slice(op)
        self.mapped = takes_one or (known.mapped and (name != _REVERSE or has_one_use(op.operands[0])))
        self.picks = name == "stablehlo.gather" and picks_elements(op)
        self.joins_loops = joins = elementwise or known.mapped or known.leaf or takes_one
        self.searches = self.picks and self.operands[1].is_found
        if self.picks or (joins and any([value.is_found for value in self.operands])):
            results[0].is_found = True
        self.stays_in_main = known.stays_in_main and not takes_one
        self.cheap = known.cheap or takes_one
        self._libraries = values.libraries
        self._library: list[str | None] = []
        self._key: Hashable = None
        self._map_key: object = None
        is_put_together = in_parts and name in REARRANGEMENTS
        self._cuts: list[Cuts | None] = [] if is_put_together else [None]

    @property
    def cuts(self) -> Cuts | None:
        """The boundaries of what is put together from boxes, and done part by part; None for other ops."""
        if not self._cuts:
            self._cuts.append(cuts_of(self.op))
        return self._cuts[0]

    @property
    def comes_in_parts(self) -> bool:
        """Whether a box of the result is computed from boxes of the operands."""
        return self.elementwise or self.mapped or self.name in _OF_BOXES or self.cuts is not None

    @property
    def is_plain(self) -> bool:
        """Whether it becomes a few steps of a loop along rows, which can be cut between them
        (memref/cut_long_loops.py)."""
        if not self.joins_loops or self.name in _TURNING or self.searches:
            return False
        if self.name == "stablehlo.broadcast_in_dim":
            kept = ints(self.op, "broadcast_dimensions")
            return kept == sorted(kept)
        types = [value.type.element_type for value in (*self.operands, *self.results)]
        if any(isinstance(type_, ir.ComplexType) for type_ in types):
            return False  # many steps each
        return self.name != "stablehlo.power" or isinstance(types[-1], ir.FloatType)  # of integers it is a loop

    @property
    def library(self) -> str | None:
        """As `library_of`."""
        if self.joins_loops:
            return None
        if not self._library:
            self._library.append(self._found_library())
        return self._library[0]

    def _found_library(self) -> str | None:
        if self.name != "stablehlo.dot_general":
            return library_of(self.op, self._products)
        known = self._libraries  # many products are of the same types
        types = [value.type for value in self.operands]
        key = (self.key, *types, *elements_outside(self.op))
        if key not in known:
            known[key] = library_of(self.op, self._products)
        return known[key]

    @property
    def key(self) -> Hashable:
        """Equal for ops that do the same to their operands."""
        if self._key is None:
            op = self.op
            types = tuple([result.type for result in self.results])
            regions = tuple([region_key(region, {}) for region in op.regions])
            self._key = (self.name, types, attributes_key(op), regions)
        return self._key

    @property
    def map_key(self) -> object:
        """The index map of a mapped op, hashable."""
        if self._map_key is None:
            self._map_key = (self.name, attributes_key(self.op), self.operands[0].shape)
        return self._map_key


def _takes_one_of_slice(op: ir.Operation) -> bool:
    """Whether a reshape makes a scalar of the one element that a slice takes: a load where it is used, which as a
    view would need the slice to be a kernel of its own."""
    maker = None if op.results[0].type.shape else defining(op.operands[0])
    return maker is not None and maker.name == "stablehlo.slice" and maker.block == op.block


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


def is_cheap(name: str) -> bool:
    """Whether computing an element of such an op twice costs less than reading it back would."""
    return name in CHEAP or name in MAPPED or (name in LEAVES and name != "stablehlo.gather")


def is_small_operation(op: Seen, block: Sequence[Seen]) -> bool:
    """Whether a copy of an op of a block in each group that needs it adds no reading from memory.

    So for what reads at most one array, and for cheap ops on arrays that are in memory anyway.
    """
    if op.mapped or op.name in (*_OF_BOXES, _REVERSE):
        return True
    if op.name not in CHEAP:
        return False
    arrays = [v for v in op.operands if v.shape and not is_free(v, block)]
    return len(arrays) <= 1 or all(is_in_memory(v, block) for v in arrays)


def is_free(value: SeenValue, block: Sequence[Seen]) -> bool:
    """Whether no array is read for a value of a block: it is a constant, a scalar repeated or an iota."""
    if value.cloned:
        return True
    if value.maker is not None:
        maker = block[value.maker]
        if maker.name == "stablehlo.broadcast_in_dim":
            return not maker.operands[0].shape
        return maker.name == "stablehlo.iota"
    op = defining(value.value)
    if op is None:
        return False
    if op.name == "stablehlo.broadcast_in_dim":
        return not op.operands[0].type.shape
    return op.name == "stablehlo.iota"


def is_in_memory(value: SeenValue, block: Sequence[Seen]) -> bool:
    """Whether a value of a block is stored whoever reads it: no group could compute it."""
    if value.maker is not None:
        return not block[value.maker].joins_loops
    op = defining(value.value)
    return op is None or not joins_loops(op)


def library_of(op: ir.Operation, products: Products = AS_IS) -> str | None:
    """The library kernel that does a whole op, if one does and it pays."""
    if op.name == "stablehlo.fft":
        return "lamina.fft"
    routine = Lapack.of(op)
    if routine is not None:
        return routine.name
    if op.name == "stablehlo.custom_call":
        return op.attributes["call_target_name"].value
    if op.name == "stablehlo.sort":
        return None if SortOrder.of(op) is None else "lamina.sort"
    if op.name == "chlo.top_k":
        return None if TopK.of(op) is None else "lamina.top_k"
    if op.name == "stablehlo.reduce_window":
        scan = Scan.any_of(op)
        if scan is None:
            return None
        return "lamina.recurrence" if scan.combiner == RECURRENCE else "lamina.scan"
    if op.name in COLLECTIVES:
        return "lamina.collective"
    return products.library_of(op) if op.name == "stablehlo.dot_general" else None


def inout_operands(op: ir.Operation) -> int:
    """How many leading operands of an update are overwritten by its results."""
    return len(op.results)


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
