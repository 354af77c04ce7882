"""Let LLVM fuse a multiplication into the addition that uses it.

Sets fast-math `contract` on each `arith.addf`, `arith.subf` and `arith.mulf`, beside the flags it
has: XLA fuses in the same way, so this is also what gives its bits. Runs before functions are
expanded: their formulas say themselves what is fused.

example: test/passes/math/allow_contraction.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops


class AllowContraction(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        flags: dict[ir.Attribute | None, ir.Attribute] = {}
        for op in find_ops(module, "arith.addf", "arith.subf", "arith.mulf"):
            attributes = op.attributes
            before = attributes["fastmath"] if "fastmath" in attributes else None
            if before not in flags:
                flags[before] = _with_contract("" if before is None else str(before))
            attributes["fastmath"] = flags[before]


def _with_contract(flags: str) -> ir.Attribute:
    names = set(flags.partition("<")[2].rstrip(">").split(",")) - {"", "none"}
    if "fast" in names or "contract" in names:
        return ir.Attribute.parse(flags)
    return ir.Attribute.parse(f"#arith.fastmath<{','.join(sorted({*names, 'contract'}))}>")
