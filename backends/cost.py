"""How much work a program is: floating-point operations, transcendentals, bytes.

Counted as XLA counts, so that figures can be compared: one operation for each element of an
elementwise result, two for each multiply-add of a contraction, the reducer's operations for each
element a reduction takes in. Transcendental functions are counted apart and are no flops. Bytes
accessed are the operands and results of every op, or of every kernel where ops have been fused; of
what is sliced, gathered from or updated in place only the part that is touched.
A loop counts as often as it runs where that can be read off (a counter from one constant to
another in constant steps), else once. A branch counts as its dearest arm.
"""

from __future__ import annotations

from math import prod

from lamina.dialects.attributes import COUNTED, KIND, TRIP_COUNT
from lamina.dialects.constants import array_of
from lamina.dialects.types import DYNAMIC, dtype_of
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.emit.loops import find_ops
from lamina.passes.framework.find import functions_of
from lamina.passes.stablehlo.analysis.facts import DotNumbers, defining
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.records import Record


def _names(text: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in text.split())


_TRANSCENDENTAL = _names(
    "atan2 cbrt cosine exponential exponential_minus_one log log_plus_one logistic power rsqrt "
    "sine sqrt tan tanh"
)
_ELEMENTWISE = _names(
    "abs add and ceil clamp compare complex convert count_leading_zeros divide floor imag "
    "is_finite maximum minimum multiply negate not or popcnt real reduce_precision remainder "
    "round_nearest_afz round_nearest_even select shift_left shift_right_arithmetic "
    "shift_right_logical sign subtract xor"
)
_OF_ONE_TYPE = _names("add cosine divide exponential log multiply negate sine subtract tanh")
"""Of the element-wise ones the most frequent whose operands have the type of the result."""
_FREE = _names("constant reshape return tuple get_tuple_element optimization_barrier") | {
    "func.return"
}


_UPDATES = _names("dynamic_update_slice scatter")
"""Ops that write a part of their first operand, in place."""
_PARTIAL = _names("dynamic_slice gather slice") | _UPDATES
"""Ops that touch only a part of their first operand."""


class Cost(Record, frozen=False):
    """Counts that add up."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes_accessed: float = 0.0

    def add(self, other: Cost, times: float = 1.0) -> None:
        self.flops += other.flops * times
        self.transcendentals += other.transcendentals * times
        self.bytes_accessed += other.bytes_accessed * times

    def as_dict(self) -> dict[str, float]:
        """The counts under the names that `cost_analysis()` gives them."""
        return {
            "flops": self.flops,
            "transcendentals": self.transcendentals,
            "bytes accessed": self.bytes_accessed,
        }


def module_cost(module: ir.Module) -> dict[str, float]:
    """`flops`, `transcendentals` and `bytes accessed` of one call of the module's @main."""
    return Counter(module).main().as_dict()


class Counter:
    """Counts over the functions of one module, each once."""

    def __init__(self, module: ir.Module) -> None:
        self.functions = functions_of(module)
        self.counted: dict[str, Cost] = {}
        self.kernel_bytes: dict[str, int] = {}
        self.sizes: dict[ir.Type, tuple[int, int]] = {}

    def main(self) -> Cost:
        """The cost of one call of @main."""
        return self._function("main")

    def _function(self, name: str) -> Cost:
        if name not in self.counted:
            self.counted[name] = Cost()  # a recursive call adds nothing
            regions = self.functions[name].regions if name in self.functions else ()
            total = Cost()
            for region in regions:
                for block in region.blocks:
                    total.add(self._block(block))
            self.counted[name] = total
        return self.counted[name]

    def _block(self, block: ir.Block) -> Cost:
        total, sizes = Cost(), self.sizes
        for view in block.operations:
            op = view.operation
            name = op.name
            if name in _ELEMENTWISE or name in _TRANSCENDENTAL:  # most are
                of = op.results[0].type
                elements, accessed = sizes.get(of) or self._size(of)
                operands = op.operands
                if name in _OF_ONE_TYPE:
                    accessed *= 1 + len(operands)
                else:
                    for value in operands:
                        of = value.type
                        accessed += (sizes.get(of) or self._size(of))[1]
                total.bytes_accessed += accessed
                if name in _TRANSCENDENTAL:
                    total.transcendentals += elements
                else:
                    total.flops += elements
            elif name not in _FREE:
                total.add(self._op(op, name))
        return total

    def _op(self, op: ir.Operation, name: str) -> Cost:
        if name == "func.call":
            return self._call(op)
        if name == "stablehlo.while":
            total = Cost()
            for region in op.regions:
                total.add(self._block(region.blocks[0]), trip_count(op) or 1)
            return total
        if name in ("stablehlo.if", "stablehlo.case"):
            arms = [self._block(region.blocks[0]) for region in op.regions]
            return max(arms, key=lambda arm: arm.flops + arm.transcendentals + arm.bytes_accessed)
        cost = Cost(bytes_accessed=self._bytes(op))
        elements = self._size(op.results[0].type)[0] if len(op.results) else 0
        if name in _COUNTED:
            taken = _COUNTED[name](op, elements, self)
            cost.flops, cost.transcendentals = taken.flops, taken.transcendentals
        return cost

    def _call(self, op: ir.Operation) -> Cost:
        callee = op.attributes["callee"].value
        if callee in self.functions and KIND in self.functions[callee].attributes:
            return self.kernel(callee)
        return self._function(callee)

    def kernel(self, name: str) -> Cost:
        """The cost of one call of a kernel, in which values stay in registers."""
        inner = self._function(name)
        return Cost(inner.flops, inner.transcendentals, self._kernel_bytes(name))

    def _kernel_bytes(self, name: str) -> int:
        """What a kernel reads of its arguments and writes of its results."""
        known = self.kernel_bytes.get(name)
        if known is None:
            block = self.functions[name].regions[0].blocks[0]
            known = sum(map(self._read_of, block.arguments))
            for value in block.operations[len(block.operations) - 1].operands:
                known += self._written_of(value)
            self.kernel_bytes[name] = known
        return known

    def _read_of(self, value: ir.Value) -> int:
        """The bytes of a value that its users read: all, unless each takes only a part of it."""
        whole, parts = self._size(value.type)[1], 0
        for use in value.uses:
            user = use.owner.operation
            if use.operand_number or user.name not in _PARTIAL:
                return whole
            if user.name not in _UPDATES:
                parts += self._size(user.results[0].type)[1]
        return min(parts, whole)

    def _written_of(self, value: ir.Value) -> int:
        """The bytes of a result that are written: an update in place writes only what is new."""
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.name in _UPDATES:
            return self._update_bytes(owner.operation)
        return self._size(value.type)[1]

    def _update_bytes(self, op: ir.Operation) -> int:
        if op.name == "stablehlo.dynamic_update_slice":
            return self._size(op.operands[1].type)[1]
        count = len(op.results)  # of a scatter: inputs, indices, updates
        return sum(self._size(value.type)[1] for value in list(op.operands)[-count:]) // count

    def region(self, op: ir.Operation) -> Cost:
        """The cost of running an op's region once, on scalars."""
        inner = self._block(op.regions[0].blocks[0])
        return Cost(inner.flops, inner.transcendentals)

    def elements(self, of: ir.Type) -> int:
        """The number of elements of a tensor type."""
        return self._size(of)[0]

    def _bytes(self, op: ir.Operation) -> int:
        """What an op of its own reads and writes."""
        if op.name in _UPDATES:
            return sum(self._size(value.type)[1] for value in list(op.operands)[1:]) + sum(
                self._update_bytes(op) for _ in op.results
            )
        written = sum(self._size(value.type)[1] for value in op.results)
        if op.name in _PARTIAL:
            return 2 * written + sum(self._size(value.type)[1] for value in list(op.operands)[1:])
        return written + sum(self._size(value.type)[1] for value in op.operands)

    def _size(self, of: ir.Type) -> tuple[int, int]:
        """(elements, bytes) of a type; unknown sizes count as one, what is no tensor as nothing."""
        known = self.sizes.get(of)
        if known is None:
            known = (0, 0)
            if isinstance(of, ir.RankedTensorType):
                elements = prod(1 if size == DYNAMIC else size for size in of.shape)
                try:
                    known = (elements, elements * dtype_of(of).itemsize)
                except TypeError:  # quantised
                    known = (elements, elements)
            self.sizes[of] = known
        return known


def _dot(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    shape = op.operands[0].type.shape
    depth = 1
    for dimension in DotNumbers.of(op).lhs_contracting:
        depth *= shape[dimension]
    return Cost(2.0 * elements * depth)


def _convolution(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    numbers = stablehlo_ext.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = op.operands[1].type.shape
    outputs = kernel[numbers.kernel_output_feature_dimension]
    return Cost(2.0 * elements * prod(kernel) / max(outputs, 1))


def _reduce(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    taken = counter.elements(op.operands[0].type) - elements
    total.add(counter.region(op), max(taken, 0))
    return total


def _reduce_window(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    others = 1 if Scan.any_of(op) else prod(op.attributes["window_dimensions"]) - 1
    total.add(counter.region(op), elements * others)
    return total


def _select_and_scatter(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    window = prod(op.attributes["window_dimensions"]) if "window_dimensions" in op.attributes else 1
    total.add(counter.region(op), counter.elements(op.operands[1].type) * window)
    return total


def _scatter(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    updates = op.operands[len(op.operands) - 1]
    total.add(counter.region(op), counter.elements(updates.type))
    return total


def _map(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    total.add(counter.region(op), elements)
    return total


def _sort(op: ir.Operation, elements: int, counter: Counter) -> Cost:
    total = Cost()
    total.add(counter.region(op), elements * max(elements.bit_length() - 1, 0))
    return total


_COUNTED = {
    "stablehlo.dot_general": _dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.scatter": _scatter,
    "stablehlo.map": _map,
    "stablehlo.sort": _sort,
}


def note_trip_counts(module: ir.Module) -> None:
    """Write onto each loop how often it runs, where that shows, or that it counts: fusion will hide the
    counter."""

    for loop in find_ops(module, "stablehlo.while"):
        count = trip_count(loop)
        if count is not None:
            of = ir.IntegerType.get_signless(64, loop.context)
            loop.attributes[TRIP_COUNT] = ir.IntegerAttr.get(of, count)
        elif _counter(loop) is not None:
            loop.attributes[COUNTED] = ir.UnitAttr.get(loop.context)


def trip_count(loop: ir.Operation) -> int | None:
    """How often the body of a `stablehlo.while` runs, where it is noted or its counter shows it."""
    if TRIP_COUNT in loop.attributes:
        return loop.attributes[TRIP_COUNT].value
    counter = _counter(loop)
    if counter is None:
        return None
    position, test, direction, by = counter
    limit, first = _scalar(test.operands[1]), _scalar(loop.operands[position])
    if limit is None or first is None:
        return None
    span = limit - first + (by if direction == "LE" else by - 1)
    return max(span // by, 0)


def _counter(loop: ir.Operation) -> tuple[int, ir.Operation, str, int] | None:
    """Of a loop that counts up to a limit: the position of its counter, the comparison, LT or LE, and the
    step."""
    cond, body = (region.blocks[0] for region in loop.regions)
    test = defining(cond.operations[len(cond.operations) - 1].operands[0])
    if test is None or test.name != "stablehlo.compare":
        return None
    direction = str(test.attributes["comparison_direction"]).split()[-1].rstrip(">")
    position = _argument(test.operands[0], cond)
    if position is None or direction not in ("LT", "LE"):
        return None
    following = defining(body.operations[len(body.operations) - 1].operands[position])
    if following is None or following.name != "stablehlo.add":
        return None
    old, step = following.operands
    if _argument(old, body) != position:
        old, step = step, old
    by = _scalar(step)
    if _argument(old, body) != position or by is None or by <= 0:
        return None
    return position, test, direction, int(by)


def _argument(value: ir.Value, block: ir.Block) -> int | None:
    if isinstance(value.owner, ir.Block) and value.owner == block:
        return ir.BlockArgument(value).arg_number
    return None


def _scalar(value: ir.Value) -> int | None:
    op = defining(value)
    if op is None or op.name != "stablehlo.constant":
        return None
    of = op.results[0].type
    if len(of.shape) or not isinstance(of.element_type, ir.IntegerType):
        return None
    return int(array_of(op))
