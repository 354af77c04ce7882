"""Give each result of a function its place: a trailing tensor argument, or the one it updates.

Destination-passing style on tensors, before bufferisation, so that bufferisation writes results
where the caller wants them and copies only where it must. Each result becomes
`bufferization.materialize_in_destination %value in %destination`, where the destination is

- the argument that carries `lamina.inout = r : i32` for result r, else
- a new trailing argument of the result's type.

Destinations are marked `bufferization.writable = true`, all other arguments `false`: bufferisation
would otherwise write into the caller's arrays. A result whose dimensions are collapsed at the end grows in its
destination, too, seen with those it had. An array of one number that several reductions begin with
is one for each: they could not share its buffer. Leaves functions without a body alone.

example: test/passes/linalg/elementwise/results_to_arguments.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.attributes import INOUT, updated_arguments
from lamina.dialects.vendors import ir, tensor
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import in_block
from lamina.passes.linalg.analysis.structure import is_fill_of_input, make_copy

WRITABLE = "bufferization.writable"
_VIEWS = ("tensor.cast", "tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice")


class ResultsToArguments(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                _rewrite(op.operation)


def _rewrite(func: ir.Operation) -> None:
    block = func.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    type_ = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    arguments = list(block.arguments)
    attributes = _argument_attributes(func, len(arguments))
    updated = updated_arguments(func)
    destinations: list[ir.Value] = []
    with func.location:
        for result, result_type in enumerate(type_.results):
            if result in updated:
                destinations.append(arguments[updated[result]])
            else:
                destinations.append(block.add_argument(result_type, func.location))
    _begin_apart(block)
    values = list(terminator.operands)
    for value in values:
        _part_from_other_results(value, values)
    direct = [
        _grow_in(destination, value)
        or (result not in updated and values.count(value) == 1 and _grow_in_view(destination, value))
        for result, (value, destination) in enumerate(zip(values, destinations, strict=True))
    ]
    with ir.InsertionPoint(terminator), func.location:
        # what is updated and also returned elsewhere must be read before it is overwritten
        for result, value in enumerate(values):
            root = _seen_through_views(value)
            for updating, position in updated.items():
                if root == arguments[position] and (updating != result or value != root):
                    values[result] = _copied(value)
        for result, position in updated.items():
            _make_after_others_read(values[result], arguments[position])
        # of a value returned twice, the second is a copy of the first
        written: dict[ir.Value, ir.Value] = {}
        # an update's argument may be read by other results: write those first
        for result in sorted(range(len(values)), key=lambda r: r in updated):
            if direct[result]:
                continue
            if 0 in type_.results[result].shape:  # nothing to write
                terminator.operands[result] = destinations[result]
                continue
            value = written.get(values[result], values[result])
            terminator.operands[result] = written[values[result]] = ir.Operation.create(
                "bufferization.materialize_in_destination",
                results=[type_.results[result]],
                operands=[value, destinations[result]],
            ).result
    inputs = [argument.type for argument in block.arguments]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, type_.results))
    writable = ir.BoolAttr.get(True)
    new_attributes = []
    for position, _ in enumerate(inputs):
        attrs = attributes[position] if position < len(attributes) else {}
        is_destination = position >= len(arguments) or INOUT in attrs
        new_attributes.append(
            ir.DictAttr.get(
                {**attrs, WRITABLE: writable if is_destination else ir.BoolAttr.get(False)}
            )
        )
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(new_attributes)
    if "res_attrs" in func.attributes:
        del func.attributes["res_attrs"]


def _begin_apart(block: ir.Block) -> None:
    """Give each op that accumulates in a fill one of its own."""
    taken: set[ir.Value] = set()
    for op in [inner.operation for inner in block.operations]:
        if op.name != "linalg.generic":
            continue
        first = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        for number in range(first, len(op.operands)):
            start = op.operands[number]
            if start in taken and not isinstance(start.owner, ir.Block) and is_fill_of_input(start.owner):
                with ir.InsertionPoint(op), op.location:
                    empty = tensor.EmptyOp(list(start.type.shape), start.type.element_type).result
                    op.operands[number] = make_copy(start.owner.operands[0], empty).result
            taken.add(start)


def _seen_through_views(value: ir.Value) -> ir.Value:
    """The tensor that a chain of slices and reshapes looks at."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _VIEWS:
        value = value.owner.operation.operands[0]
    return value


def _make_after_others_read(value: ir.Value, overwritten: ir.Value) -> None:
    """Put the generic that makes a value behind others that read what it will overwrite, as far as its own
    users allow: else they would read a copy."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "linalg.generic":
        return
    maker = value.owner.operation
    if all(use.owner.operation == maker for use in overwritten.uses):
        return
    users = [in_block(use.owner.operation, maker.block) for one in maker.results for use in one.uses]
    first = users[0]
    for user in users:
        if user.is_before_in_block(first):
            first = user
    maker.move_before(first)


def _copied(value: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "bufferization.alloc_tensor",
        results=[value.type],
        operands=[value],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0])},
    ).result


def _grow_in(destination: ir.Value, value: ir.Value) -> bool:
    """Start a value that loops or parts build up from its destination instead of an empty tensor, if
    it is so built.

    `eliminate-empty-tensors` does the same for single ops; it does not follow a value through
    loops, and leaves the first part elsewhere. True when the value needs no op to bring it to its
    destination: it is there, or it comes out of a loop, where bufferisation refuses such an op and
    `memref-drop-results` copies instead.
    """
    last = "" if isinstance(value.owner, ir.Block) else value.owner.operation.name
    from_loop = last == "scf.for"
    user, position = None, 0
    while value != destination:
        if isinstance(value.owner, ir.Block):
            return from_loop
        owner = value.owner.operation
        if owner.name == "tensor.empty" and user is not None:
            if (from_loop or last == "tensor.insert_slice") and value.type == destination.type:
                user.operands[position] = destination
                return True
            return from_loop
        overwritten = _overwritten_operand(value)
        if overwritten is None or not _is_only_overwritten(value):
            return from_loop
        user, position = overwritten
        value = user.operands[position]
    return True


def _grow_in_view(destination: ir.Value, value: ir.Value) -> bool:
    """Start what is a result but for its dimensions, which are collapsed at the end, from its destination: as the
    groups of a convolution are."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "tensor.collapse_shape":
        return False
    view = value.owner.operation
    value = view.operands[0]
    while (overwritten := _overwritten_operand(value)) is not None and _is_only_overwritten(value):
        owner, position = overwritten
        start = owner.operands[position]
        if not owner.name.startswith("linalg."):
            return False
        if not isinstance(start.owner, ir.Block) and start.owner.operation.name == "tensor.empty":
            shape = list(start.type.shape)
            with ir.InsertionPoint.at_block_begin(destination.owner), view.location:
                place = ir.Operation.create(
                    "tensor.expand_shape", [start.type], [destination],
                    {"reassociation": view.attributes["reassociation"],
                     "static_output_shape": ir.DenseI64ArrayAttr.get(shape)},
                ).result  # fmt: skip
            owner.operands[position] = place
            return True
        value = start
    return False


def _is_only_overwritten(value: ir.Value) -> bool:
    """Whether one op uses a value, others at most a part of it, to be overwritten."""
    names = [use.owner.operation.name for use in value.uses]
    return len(names) - names.count("tensor.extract_slice") == 1


def _part_from_other_results(value: ir.Value, results: Sequence[ir.Value]) -> None:
    """Copy another result that a result is made from by overwriting: both must be there at the end.

    Bufferisation would see the conflict only after both were given one buffer, and give up.
    """
    while (overwritten := _overwritten_operand(value)) is not None:
        owner, position = overwritten
        value = owner.operands[position]
        if value in results:
            with ir.InsertionPoint(owner), owner.location:
                empty = tensor.EmptyOp(list(value.type.shape), value.type.element_type).result
                owner.operands[position] = make_copy(value, empty).result
            return


def _overwritten_operand(value: ir.Value) -> tuple[ir.Operation, int] | None:
    """The op that makes a value, and which operand's buffer it would write it to."""
    if isinstance(value.owner, ir.Block):
        return None
    owner, number = value.owner.operation, ir.OpResult(value).result_number
    if owner.name == "scf.for":
        return owner, 3 + number
    if owner.name in ("tensor.insert", "tensor.insert_slice"):
        return owner, 1
    if owner.name.startswith("linalg.") and "operandSegmentSizes" in owner.attributes:
        return owner, ir.DenseI32ArrayAttr(owner.attributes["operandSegmentSizes"])[0] + number
    return None


def _argument_attributes(func: ir.Operation, count: int) -> list[dict[str, ir.Attribute]]:
    if "arg_attrs" not in func.attributes:
        return [{} for _ in range(count)]
    return [
        {named.name: named.attr for named in ir.DictAttr(attrs)}
        for attrs in func.attributes["arg_attrs"]
    ]
