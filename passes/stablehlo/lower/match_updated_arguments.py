"""Give each argument that a result overwrites the result's type.

    func @k(%x: tensor<4x5xf32> {lamina.inout = 0 : i32}) -> tensor<20xf32>
takes a tensor<20xf32> and reshapes it for the ops that use it. Memory knows no shapes, so callers
don't see the difference; bufferisation wants one type for one buffer. Arguments that have the type
already are left alone.

example: test/passes/stablehlo/lower/match_updated_arguments.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import INOUT
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass


class MatchUpdatedArguments(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                self._match(op.operation)

    def _match(self, function: ir.Operation) -> None:
        if "arg_attrs" not in function.attributes:
            return
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        inputs = list(type_.inputs)
        block = function.regions[0].blocks[0]
        for number, attributes in enumerate(function.attributes["arg_attrs"]):
            attributes = ir.DictAttr(attributes)
            if INOUT not in attributes:
                continue
            old, new = inputs[number], type_.results[ir.IntegerAttr(attributes[INOUT]).value]
            if old == new:
                continue
            if old.element_type != new.element_type:
                raise CompileError.at(
                    function, f"argument {number} of type {old} can't be overwritten by a {new}"
                )
            argument = block.arguments[number]
            inputs[number] = new
            argument.set_type(new)
            with ir.InsertionPoint.at_block_begin(block), function.location:
                seen = hlo.reshape(argument, list(old.shape))
            argument.replace_all_uses_except(seen, [seen.owner.operation])
            self.count("matched")
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, type_.results)
        )
