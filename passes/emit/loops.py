"""Building nests of `scf.for` that carry values, for the passes that lower an op to loops over
tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir, scf
from lamina.passes.framework.find import find_ops

GRAIN = "lamina.grain"
"""How many iterations of an `scf.forall` are worth a task."""

Body = Callable[[list[ir.Value], list[ir.Value]], Sequence[ir.Value]]
"""(positions, carried values) -> the carried values of the next iteration."""


def index(value: int) -> ir.Value:
    """A constant of type index."""
    of = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(of, value)}  # the class takes twice the time
    return ir.Operation.create("arith.constant", results=[of], attributes=attributes).result


def constant_of(value: ir.Value) -> int | None:
    """The number that a value of type index is, if that is known."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.operation.attributes["value"]).value


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two indices."""
    return ir.Operation.create("arith.addi", results=[a.type], operands=[a, b]).result


def for_each(
    extents: Sequence[int | ir.Value], carried: Sequence[ir.Value], body: Body
) -> list[ir.Value]:
    """Loops over all positions below `extents`, row by row; what is carried out of the last
    iteration.

    `body` builds one iteration where it is called. With no extents it runs once, outside any loop.
    """

    def nest(positions: list[ir.Value], values: list[ir.Value]) -> Sequence[ir.Value]:
        if len(positions) == len(extents):
            return body(positions, values)
        extent = extents[len(positions)]
        high = index(extent) if isinstance(extent, int) else extent
        return for_range(index(0), high, values, lambda i, inner: nest([*positions, i], inner))

    return list(nest([], list(carried)))


def for_range(
    low: ir.Value,
    high: ir.Value,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
    step: int = 1,
) -> list[ir.Value]:
    """One loop from `low` up to, not including, `high`; what is carried out of its last iteration. No
    loop where one iteration is all there is."""
    if _is_one_step(low, high, step):
        return list(body(low, list(carried)))
    loop = scf.ForOp(low, high, index(step), list(carried))
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
    return list(loop.results)


def _is_one_step(low: ir.Value, high: ir.Value, step: int) -> bool:
    start, stop = constant_of(low), constant_of(high)
    return start is not None and stop is not None and 0 < stop - start <= step


def for_steps(
    low: ir.Value, high: ir.Value, step: int, body: Callable[[ir.Value], None]
) -> None:
    """One loop in steps that carries nothing."""

    def once(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        body(at)
        return []

    for_range(low, high, [], once, step)


def for_tasks(
    highs: Sequence[int],
    tasks: int,
    grain: int,
    body: Callable[[list[ir.Value]], None],
    *,
    lows: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> None:
    """Loops up to `highs`, from 0 in steps of 1 unless said otherwise, of which so many leading ones
    are divided among threads, in tasks of at least `grain` iterations; `body` is given the loops'
    variables."""
    lows = [0] * len(highs) if lows is None else list(lows)
    steps = [1] * len(highs) if steps is None else list(steps)

    def serial(level: int, positions: list[ir.Value]) -> None:
        if level == len(highs):
            body(positions)
            return
        low, high = index(lows[level]), index(highs[level])
        for_steps(low, high, steps[level], lambda i: serial(level + 1, [*positions, i]))

    if not tasks:
        serial(0, [])
        return
    forall = parallel_loop(lows[:tasks], list(highs[:tasks]), steps[:tasks], grain)
    with ir.InsertionPoint(forall.body):
        end = scf.InParallelOp()
    with ir.InsertionPoint(end):
        serial(tasks, list(forall.induction_variables))


def regions(extent: int, step: int) -> list[tuple[int, int, int]]:
    """(low, high, size of a step): whole steps, and what is left."""
    whole = extent // step * step
    found = [(0, whole, step), (whole, extent, extent - whole)]
    return [region for region in found if region[0] < region[1]]


def parallel_loop(
    lows: Sequence[int],
    highs: Sequence[int],
    steps: Sequence[int],
    grain: int,
    shared: Sequence[ir.Value] = (),
) -> scf.ForallOp:
    """An `scf.forall` without a body, on tensors that its iterations share."""
    forall = scf.ForallOp(list(lows), list(highs), list(steps), list(shared))
    forall.attributes[GRAIN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), grain)
    return forall


def if_else(
    condition: ir.Value,
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
    types: Sequence[ir.Type],
) -> list[ir.Value]:
    """The values of one of two branches."""
    branch = ir.Operation.create("scf.if", results=list(types), operands=[condition], regions=2)
    for region, build in zip(branch.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            scf.YieldOp(list(build()))
    return list(branch.results)


def extract(tensor: ir.Value, positions: Sequence[ir.Value]) -> ir.Value:
    """The element of a tensor at a position."""
    element = ir.RankedTensorType(tensor.type).element_type
    return ir.Operation.create(
        "tensor.extract", results=[element], operands=[tensor, *positions]
    ).result


def insert(scalar: ir.Value, tensor: ir.Value, positions: Sequence[ir.Value]) -> ir.Value:
    """The tensor with the element at a position replaced."""
    return ir.Operation.create(
        "tensor.insert", results=[tensor.type], operands=[scalar, tensor, *positions]
    ).result


def load(buffer: ir.Value, positions: Sequence[ir.Value]) -> ir.Value:
    """The element of a buffer at a position."""
    element = ir.MemRefType(buffer.type).element_type
    return ir.Operation.create(
        "memref.load", results=[element], operands=[buffer, *positions]
    ).result


def store(scalar: ir.Value, buffer: ir.Value, positions: Sequence[ir.Value]) -> None:
    """Write an element of a buffer."""
    ir.Operation.create("memref.store", operands=[scalar, buffer, *positions])


def with_signless_elements(tensor: ir.Value) -> ir.Value:
    """The tensor with its unsigned elements seen as signless ones, which buffers hold; others as
    they are."""
    type_ = ir.RankedTensorType(tensor.type)
    element = type_.element_type
    if not isinstance(element, ir.IntegerType) or element.is_signless:
        return tensor
    signless = ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(element.width))
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[signless], operands=[tensor]
    ).result


def cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A scalar or tensor seen as the same bits of another signedness; undoes
    `with_signless_elements`."""
    if value.type == type_:
        return value
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[type_], operands=[value]
    ).result


def replace_each(
    module: ir.Module, name: str, build: Callable[[ir.Operation], Sequence[ir.Value]]
) -> int:
    """Replace every op of a name by the values that `build` makes in front of it; how many there
    were."""
    found = find_ops(module, name)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            for old, new in zip(op.results, build(op), strict=True):
                old.replace_all_uses_with(new)
        op.erase()
    return len(found)


def scalar_tensor(scalar: ir.Value) -> ir.Value:
    """A tensor without dimensions that holds one scalar: what StableHLO computes on."""
    type_ = ir.RankedTensorType.get([], scalar.type)
    return ir.Operation.create("tensor.from_elements", results=[type_], operands=[scalar]).result


def inline_scalar_region(block: ir.Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Move a region of StableHLO on scalars to the insertion point, on these scalars; the scalars
    it returns.

    A region can be inlined once only: its ops leave it.
    """
    for argument, value in zip(block.arguments, arguments, strict=True):
        if len(list(argument.uses)):
            argument.replace_all_uses_with(scalar_tensor(value))
    operations = [op.operation for op in block.operations]
    anchor = index(0).owner  # ops move only relative to an op
    for op in operations[:-1]:
        op.move_before(anchor)
    results = [extract(value, []) for value in operations[-1].operands]
    anchor.erase()
    return results
