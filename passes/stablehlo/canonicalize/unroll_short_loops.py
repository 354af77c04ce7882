"""Write the steps of a short loop over whole arrays out, so that they become one kernel.

    stablehlo.while(%i = 0, %x = %a) while %i < 2 {       %b = stablehlo.xor %a, %k
      %y = stablehlo.xor %x, %k                     ->    %c = stablehlo.xor %b, %k
      return %i + 1, %y

Each step of the loop walks over its arrays; written out, each element goes through all steps at once. Taken
are loops whose counter and bound are known, of at most `most_steps` steps and `most_ops` ops in all, whose
steps do nothing but compute elements and move them within small arrays, and that carry an array of at least
`least_elements`: smaller ones are kernels with their loops. So JAX's random bits are: threefry is a loop of
five steps to it, and its keys and rotations take turns as what the loop carries. What became known is
folded afterwards.

example: test/passes/stablehlo/canonicalize/unroll_short_loops.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import CONSTANT, computes_elements, size_of
from lamina.passes.stablehlo.analysis.trips import trips
from lamina.passes.stablehlo.canonicalize.simplify import Simplify

_FREE = frozenset((CONSTANT, "stablehlo.broadcast_in_dim", "stablehlo.iota", "stablehlo.reshape"))
_MOVES = frozenset(
    f"stablehlo.{name}" for name in ("slice", "concatenate", "dynamic_slice", "reverse", "transpose")
)
_FEW = 64  # code: elements that it costs nothing to move


class UnrollShortLoops(Pass):
    """The pass `stablehlo-unroll-short-loops`."""

    only_with = frozenset(("stablehlo.while",))

    most_steps: int = 8  # code
    most_ops: int = 320  # code
    least_elements: int = 1024  # code

    def run(self, module: ir.Module) -> None:
        unrolled = 0
        for loop in find_ops(module, "stablehlo.while"):
            steps = self._steps(loop)
            if steps is not None:
                _write_out(loop, steps)
                unrolled += 1
        if unrolled:
            self.count("loops", unrolled)
            Simplify(fold=True).run(module)

    def _steps(self, loop: ir.Operation) -> int | None:
        """How often to write the step of a loop; None for one that stays."""
        if max(size_of(value.type) for value in loop.operands) < self.least_elements:
            return None
        ops = [view.operation for view in loop.regions[1].blocks[0].operations][:-1]
        if not all(map(_is_element_by_element, ops)):
            return None
        steps = trips(loop, self.most_steps)
        return steps if steps is not None and steps * len(ops) <= self.most_ops else None


def _is_element_by_element(op: ir.Operation) -> bool:
    if op.name in _MOVES:
        return all(size_of(value.type) <= _FEW for value in (*op.operands, *op.results))
    return op.name in _FREE or computes_elements(op)


def _write_out(loop: ir.Operation, steps: int) -> None:
    block = loop.regions[1].blocks[0]
    ops = [view.operation for view in block.operations]
    carried = list(loop.operands)
    for _ in range(steps):
        new = dict(zip(block.arguments, carried, strict=True))
        for op in ops[:-1]:
            with ir.InsertionPoint(loop):
                copy = op.clone().operation
            for place, value in enumerate(op.operands):
                copy.operands[place] = new.get(value, value)
            new.update(zip(op.results, copy.results, strict=True))
        carried = [new.get(value, value) for value in ops[-1].operands]
    for result, value in zip(loop.results, carried, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()
