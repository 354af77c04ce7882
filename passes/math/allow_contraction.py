"""Let LLVM fuse a multiplication into the addition that uses it.

Sets fast-math `contract` on each `arith.addf`, `arith.subf` and `arith.mulf`, beside the flags it
has: XLA fuses in the same way, so this is also what gives its bits. Runs before functions are
expanded: their formulas say themselves what is fused.

example: test/passes/math/allow_contraction.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass

_CONTRACTED = frozenset(("arith.addf", "arith.subf", "arith.mulf"))


@dataclass(frozen=True)
class AllowContraction(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        flags: dict[str, ir.Attribute] = {}

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name in _CONTRACTED:
                before = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
                if before not in flags:
                    flags[before] = _with_contract(before)
                op.attributes["fastmath"] = flags[before]
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)


def _with_contract(flags: str) -> ir.Attribute:
    names = set(flags.partition("<")[2].rstrip(">").split(",")) - {"", "none"}
    if "fast" in names or "contract" in names:
        return ir.Attribute.parse(flags)
    return ir.Attribute.parse(f"#arith.fastmath<{','.join(sorted({*names, 'contract'}))}>")
