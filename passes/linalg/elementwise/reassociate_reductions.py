"""Let LLVM reorder the additions and multiplications that a reduction accumulates with.

Sets fast-math `reassoc` on the `arith.addf` or `arith.mulf` that combines a reduction's accumulator
with the next element, and on nothing else: sums are vectorised, all other arithmetic keeps its
order. A maximum or minimum in that place gets `nsz`: which of two zeros is found first depends on the
order, and telling them apart would double its instructions.

example: test/passes/linalg/elementwise/reassociate_reductions.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.reducing import reduced_dimensions


class ReassociateReductions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        found = [
            op
            for op in find_ops(module, "linalg.generic")
            if reduced_dimensions(op)
        ]
        if not found:
            return
        flags = {
            name: ir.Attribute.parse(f"#arith.fastmath<{flag}>") for name, flag in _FLAGS.items()
        }
        for op in found:
            _mark(op, flags)


_FLAGS = {
    "arith.addf": "reassoc", "arith.mulf": "reassoc",
    "arith.maximumf": "nsz", "arith.minimumf": "nsz",
}  # fmt: skip


def _mark(generic: ir.Operation, flags: dict[str, ir.Attribute]) -> None:
    inputs = ir.DenseI32ArrayAttr(generic.attributes["operandSegmentSizes"])[0]
    block = generic.regions[0].blocks[0]
    accumulators = list(block.arguments)[inputs:]
    yielded = block.operations[len(block.operations) - 1].operands
    for accumulator, value in zip(accumulators, yielded, strict=True):
        combiner = value.owner
        if isinstance(combiner, ir.Block) or combiner.operation.name not in flags:
            continue
        if accumulator in list(combiner.operands):
            combiner.attributes["fastmath"] = flags[combiner.operation.name]
