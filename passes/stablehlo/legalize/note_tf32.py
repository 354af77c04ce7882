"""Note on functions that their products of f32 may round the factors to tf32.

    func.func @f { dot_general %x, %y, precision = [HIGH, HIGH] }  ->  func.func @f attributes {lamina.tf32}
So if every `dot_general` and `convolution` in the function asks for precision HIGH (JAX's
"tensorfloat32"). DEFAULT and HIGHEST are f32.

example: test/passes/stablehlo/legalize/note_tf32.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

TF32 = "lamina.tf32"
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")


class NoteTf32(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for view in module.body.operations:
            function = view.operation
            products = find_ops(function, *_PRODUCTS)
            if products and all(map(asks_for_tf32, products)):
                function.attributes[TF32] = ir.UnitAttr.get()
                self.count("functions")


def asks_for_tf32(op: ir.Operation) -> bool:
    """Whether a product may round its factors to tf32."""
    if "precision_config" not in op.attributes:
        return False
    return all("HIGH>" in str(precision) for precision in op.attributes["precision_config"])
