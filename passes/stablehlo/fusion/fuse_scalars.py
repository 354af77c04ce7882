"""Functions of scalars that `stablehlo-fuse` makes kernels of one op, which kernels of kind scalar call.

    x = sin(x) + 1;  x = sin(x) + 2;  ...  ->  one kernel for `sin`, called a thousand times

A function is tens of instructions where it is inlined, and code that runs once is worth no more than a
call of it. So where scalars take many more functions than there are different ones, the time to compile
them no longer depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Hashable

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND, REASON
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import ELEMENTWISE
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels
from lamina.passes.stablehlo.analysis.keys import attributes_key
from lamina.passes.stablehlo.analysis.scalar_work import INSTRUCTIONS, is_of_scalars, is_scalar_op
from lamina.passes.stablehlo.fusion.fuse_ops import is_elementwise

_LEAST_TIMES = 8  # code
"""How often a function is called at least, on average: a kernel takes as long to compile as eight
functions in another."""
_CHLO = tuple(
    f"chlo.{name}"
    for name in "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc lgamma"
    " next_after polygamma sinh square tan zeta".split()
)
_FUNCTIONS = (*sorted(ELEMENTWISE - INSTRUCTIONS), *_CHLO)


def calls_pay(function: ir.Operation) -> bool:
    """Whether in a function that many scalars take functions of a few kinds."""
    found = [op for op in find_ops(function, *_FUNCTIONS) if is_called(op)]
    return len(found) > _LEAST_TIMES * len({_key(op) for op in found})


def is_called(op: ir.Operation) -> bool:
    """Whether an op is a function of scalars."""
    return is_of_scalars(op) and is_elementwise(op) and not is_scalar_op(op)


class Callees:
    """The kernels of one function each."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._names: dict[Hashable, str] = {}

    def call(self, op: ir.Operation, operands: list[ir.Value]) -> list[ir.Value]:
        """The results of an op on other operands, by a call of the kernel that does it."""
        types = [value.type for value in op.results]
        key = _key(op)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._made(op)
        with op.location:
            return list(hlo.call(name, operands, types))

    def _made(self, op: ir.Operation) -> str:
        with self._kernels.insertion_point(), op.location:
            function, block = hlo.function(
                "", [v.type for v in op.operands], [v.type for v in op.results], "private"
            )
        short = op.name.split(".")[-1]
        function.attributes[KIND] = ir.StringAttr.get("loop")
        function.attributes[REASON] = ir.StringAttr.get(f"{short} of many scalars")
        with ir.InsertionPoint(block) as end, op.location:
            clone = op.clone(end).operation
            for number, argument in enumerate(block.arguments):
                clone.operands[number] = argument
            hlo.return_(list(clone.results))
        return self._kernels.add(function, short)


def _key(op: ir.Operation) -> Hashable:
    types = tuple([value.type for value in (*op.operands, *op.results)])
    return (op.name, types, attributes_key(op))
