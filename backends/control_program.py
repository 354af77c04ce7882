"""A loop or branch that is one kernel, seen as a program of its own: what backends do with it first."""

from __future__ import annotations

from lamina.dialects.attributes import FORM, INOUT, KIND, LANES, MATRIX_PRODUCTS, REASON
from lamina.dialects.vendors import ir


def as_program(function: ir.Operation) -> None:
    """Let the function be @main, and each argument that it updates a donated one. Who does matrix
    products is a matter of its module."""
    attributes = function.attributes
    if MATRIX_PRODUCTS in attributes:
        function.parent.attributes[MATRIX_PRODUCTS] = attributes[MATRIX_PRODUCTS]
        del attributes[MATRIX_PRODUCTS]
    attributes["sym_name"] = ir.StringAttr.get("main")
    for name in (KIND, REASON, FORM, LANES):
        if name in attributes:
            del attributes[name]
    if "arg_attrs" in attributes:
        donated = [
            ir.DictAttr.get(
                {"tf.aliasing_output": given[INOUT]} if INOUT in given else {}
            )
            for given in attributes["arg_attrs"]
        ]
        attributes["arg_attrs"] = ir.ArrayAttr.get(donated)


def bound_by_arguments(function: ir.Operation) -> None:
    """Let a loop over lanes do the steps from one further argument of the function up to another,
    instead of all."""
    block = function.regions[0].blocks[0]
    loop = next(op.operation for op in block.operations if op.operation.name == "stablehlo.while")
    counter = loop.operands[0].type
    low, high = (block.add_argument(counter, function.location) for _ in range(2))
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([*type_.inputs, counter, counter], type_.results)
    )
    if "arg_attrs" in function.attributes:
        given = [*function.attributes["arg_attrs"], *[ir.DictAttr.get({})] * 2]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)
    loop.operands[0] = low
    condition = loop.regions[0].blocks[0]
    leave = condition.operations[len(condition.operations) - 1].operation
    leave.operands[0].owner.operation.operands[1] = high


def copies_results(main: ir.Operation) -> bool:
    """Whether something outside of the loop over lanes writes what its steps do."""
    given = set(main.regions[0].blocks[0].arguments)

    def root(value: ir.Value) -> ir.Value:
        while not isinstance(value.owner, ir.Block):
            value = value.owner.operation.operands[0]
        return value

    arena = main.regions[0].blocks[0].arguments[-1]
    targets = [
        root(op.operation.operands[1])
        for op in main.regions[0].blocks[0].operations
        if op.operation.name == "memref.copy"
    ]
    return any(target in given and target != arena for target in targets)
