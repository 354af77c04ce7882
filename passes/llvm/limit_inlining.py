"""Call functions where they are called often, instead of inlining them there.

    define internal @lamina_sin(...) alwaysinline        define internal @lamina_sin(...) noinline
    ... called at a hundred places                  ->   ... called at a hundred places

A function on vectors is a hundred instructions, which LLVM takes 10 ms to compile at each place. A call of it
takes some 15% longer than they. Functions on scalars are left to be inlined, since LLVM vectorises loops of
those; with `scalars`, for code without loops that are worth it, they are counted as well.

example: test/passes/llvm/limit_inlining.mlir
"""

from __future__ import annotations

from collections import Counter

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_INLINED, _CALLED = "alwaysinline", "noinline"
_PASSTHROUGH = "passthrough"


class LimitInlining(Pass):
    """See the module's docstring."""

    most: int = 16  # code
    """Places at which a function is inlined."""
    scalars: bool = False

    def run(self, module: ir.Module) -> None:
        found = [op.operation for op in module.body.operations if self._may_be_called(op.operation)]
        if not found:
            return
        calls = Counter(
            call.attributes["callee"].value
            for call in find_ops(module, "llvm.call")
            if "callee" in call.attributes
        )
        for function in found:
            if calls[ir.StringAttr(function.attributes["sym_name"]).value] > self.most:
                said = [_called(attribute) for attribute in function.attributes[_PASSTHROUGH]]
                function.attributes[_PASSTHROUGH] = ir.ArrayAttr.get(said)
                self.count("functions")

    def _may_be_called(self, function: ir.Operation) -> bool:
        if function.name != "llvm.func" or _PASSTHROUGH not in function.attributes:
            return False
        if not any(_says_inline(attribute) for attribute in function.attributes[_PASSTHROUGH]):
            return False
        arguments = function.regions[0].blocks[0].arguments
        return self.scalars or any(isinstance(value.type, ir.VectorType) for value in arguments)


def _says_inline(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.StringAttr) and attribute.value == _INLINED


def _called(attribute: ir.Attribute) -> ir.Attribute:
    return ir.StringAttr.get(_CALLED) if _says_inline(attribute) else attribute
