"""Drop the results of bufferised functions: each was written to its argument by then.

`linalg-results-to-arguments` ends each function with the results in their destination arguments.
Where bufferisation could not keep a result in place it returns another buffer: this pass copies
that buffer into the destination, last of all. The function then returns nothing. Arguments without
elements, which nothing uses any more, become `memref<0xi8>`: the calling convention refuses the
strides that other empty shapes have.

example: test/passes/memref/drop_results.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import updated_arguments
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class DropResults(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                _rewrite(op.operation)


def _rewrite(func: ir.Operation) -> None:
    block = func.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    type_ = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    with ir.InsertionPoint(terminator), func.location:
        for value, destination in zip(
            terminator.operands, _destinations(func, len(type_.results)), strict=True
        ):
            if value != destination:
                ir.Operation.create("memref.copy", operands=[value, destination])
        ir.Operation.create("func.return")
    terminator.erase()
    for argument in block.arguments:
        if (
            isinstance(argument.type, ir.MemRefType)
            and 0 in argument.type.shape
            and not list(argument.uses)
        ):
            argument.set_type(ir.MemRefType.get([0], ir.IntegerType.get_signless(8)))
    inputs = [argument.type for argument in block.arguments]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))


def _destinations(func: ir.Operation, results: int) -> list[ir.Value]:
    arguments = list(func.regions[0].blocks[0].arguments)
    updated = {result: arguments[at] for result, at in updated_arguments(func).items()}
    trailing = iter(arguments[len(arguments) - (results - len(updated)) :])
    return [updated[result] if result in updated else next(trailing) for result in range(results)]
