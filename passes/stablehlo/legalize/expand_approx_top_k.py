"""Replace a search for about the k greatest elements by an exact one: a sort, and a slice of it.

    custom_call @ApproxTopK(%x, %i, %least, %none)           sort %x, %i by @comparator
        {called_computations = [@comparator],        ->      slice its first k
         mhlo.backend_config = {top_k = 2, ...}}

How many elements are kept is what the result has room for. Results are those of a recall of 1.

example: test/passes/stablehlo/legalize/expand_approx_top_k.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import find_ops

_TARGET = "ApproxTopK"


class ExpandApproxTopK(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.custom_call",))

    def run(self, module: ir.Module) -> None:
        symbols = ir.SymbolTable(module.operation)
        comparators: set[str] = set()
        for op in find_ops(module, "stablehlo.custom_call"):
            if op.attributes["call_target_name"].value != _TARGET:
                continue
            name = _comparator(op)
            with ir.InsertionPoint(op), op.location:
                results = _sorted(op, symbols[name].operation)
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
            comparators.add(name)
            self.count("searches")
        for name in comparators:  # what else called them has been inlined
            symbols[name].operation.erase()


def _comparator(op: ir.Operation) -> str:
    called = list(op.attributes["called_computations"]) if "called_computations" in op.attributes else []
    if len(called) != 1:
        raise CompileError.at(op, "names no function that compares")
    return str(ir.FlatSymbolRefAttr(called[0]).value)


def _sorted(op: ir.Operation, comparator: ir.Operation) -> list[ir.Value]:
    arrays = list(op.operands)[: len(op.results)]
    attributes = op.attributes
    of = "mhlo.backend_config" if "mhlo.backend_config" in attributes else "backend_config"
    config = attributes[of] if of in attributes else None
    if not isinstance(config, ir.DictAttr) or "reduction_dim" not in config:
        raise CompileError.at(op, "does not say along which dimension it searches")
    dimension = ir.IntegerAttr(config["reduction_dim"]).value
    block = comparator.regions[0].blocks[0]
    found = hlo.sort(arrays, dimension, True, lambda *given: _copied(block, given))
    kept = [list(shape_of(result.type)) for result in op.results]
    return [
        hlo.slice(x, [0] * len(shape), shape, [1] * len(shape)) for x, shape in zip(found, kept)
    ]


def _copied(block: ir.Block, given: tuple[ir.Value, ...]) -> list[ir.Value]:
    """The values that a block returns, computed again from other arguments."""
    values = dict(zip(block.arguments, given, strict=True))
    *body, last = [op.operation for op in block.operations]
    for op in body:
        copy = op.clone().operation
        for i, operand in enumerate(op.operands):
            copy.operands[i] = values[operand]
        values.update(zip(op.results, copy.results, strict=True))
    return [values[value] for value in last.operands]
