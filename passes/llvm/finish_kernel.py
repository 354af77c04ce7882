"""Mark functions as LLVM should see them: distinct pointers, vector width, what is exported.

Every pointer argument of every function gets `llvm.noalias`: a kernel's buffers are distinct, since
an argument that shares a result's buffer appears once. `vector_bits` becomes `prefer_vector_width`.
All functions but the public one become internal; with `inline`, they are inlined wherever they are
called, but for those that say `noinline`.

example: test/passes/llvm/finish_kernel.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class FinishKernel(Pass):
    """See the module's docstring."""

    vector_bits: int = 256
    public: str = ""
    inline: bool = False

    def run(self, module: ir.Module) -> None:
        noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        none = ir.DictAttr.get({})
        pointer = ir.Type.parse("!llvm.ptr")
        internal = ir.Attribute.parse("#llvm.linkage<internal>")
        for op in module.body.operations:
            function = op.operation
            if function.name != "llvm.func" or not function.regions[0].blocks:
                continue
            arguments = function.regions[0].blocks[0].arguments
            function.attributes["prefer_vector_width"] = ir.StringAttr.get(str(self.vector_bits))
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [noalias if argument.type == pointer else none for argument in arguments]
            )
            if ir.StringAttr(function.attributes["sym_name"]).value != self.public:
                function.attributes["linkage"] = internal
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
                if self.inline and not _says_noinline(function):
                    function.attributes["always_inline"] = ir.UnitAttr.get()


def _says_noinline(function: ir.Operation) -> bool:
    attributes = function.attributes
    return "passthrough" in attributes and any(
        isinstance(said, ir.StringAttr) and said.value == "noinline"
        for said in ir.ArrayAttr(attributes["passthrough"])
    )
