"""Fold what folds and drop what nothing uses, without any pattern.

A buffer is lowered to a struct of its pointer, sizes and strides, of which most functions read the
pointer alone: folded, that is the argument itself, and the struct is gone, a fifth of all ops. Takes
a third of the time of `canonicalize`, whose patterns find nothing in the llvm dialect.

example: test/passes/llvm/fold.mlir
"""

from __future__ import annotations

from lamina.dialects.context import kept_with
from lamina.dialects.vendors import ir, rewrite
from lamina.passes.framework.base import Pass


class Fold(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        config = rewrite.GreedyRewriteConfig()
        config.region_simplification_level = rewrite.GreedySimplifyRegionLevel.DISABLED
        rewrite.apply_patterns_and_fold_greedily(module, _nothing(module.context), config)


def _nothing(context: ir.Context) -> rewrite.FrozenRewritePatternSet:
    """No patterns, frozen once for a context."""
    kept = kept_with(context)
    if Fold not in kept:
        kept[Fold] = rewrite.RewritePatternSet(context).freeze()
    return kept[Fold]
