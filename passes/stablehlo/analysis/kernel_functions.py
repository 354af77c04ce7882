"""The kernels of a module: private functions, which `@main` and control flow in it call."""

from __future__ import annotations

from collections.abc import Hashable

from lamina.dialects.attributes import KIND, REASON
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONTROL
from lamina.passes.stablehlo.analysis.keys import attributes_key, region_key


class Kernels:
    """The kernel functions of a module, equal ones once."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._names: dict[Hashable, str] = {}
        self.names_of_groups: dict[Hashable, str] = {}
        """Kernels by what says which ops they would be made of, so that most equal ones need not be
        made."""
        self._taken = {
            op.operation.attributes["sym_name"].value
            for op in module.body.operations
            if "sym_name" in op.operation.attributes
        }
        self._next: dict[str, int] = {}
        self._given = {
            op.operation.attributes["sym_name"].value
            for op in module.body.operations
            if KIND in op.operation.attributes
        }

    def __contains__(self, name: str) -> bool:
        """Whether a function was a kernel before."""
        return name in self._given

    def __len__(self) -> int:
        return len(self._names)

    def new_name(self, root: str) -> str:
        """An unused name for a kernel around an op."""
        while True:
            number = self._next.get(root, 0)
            self._next[root] = number + 1
            name = f"fused_{root}_{number}"
            if name not in self._taken:
                return name

    def add(self, function: ir.Operation, root: str) -> str:
        """Name a function made at the end of the module, or erase it for an equal one; returns
        the name to call."""
        without = ("sym_name", REASON)
        attributes = tuple(pair for pair in attributes_key(function) if pair[0] not in without)
        key = (attributes, region_key(function.regions[0], {}))
        name = self._names.get(key)
        if name is not None:
            function.erase()
            return name
        name = self._names[key] = self.new_name(root)
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        return name

    def insertion_point(self) -> ir.InsertionPoint:
        """Where new kernels go."""
        return ir.InsertionPoint(self._module.body)


def blocks_of(module: ir.Module) -> list[ir.Block]:
    """The bodies of functions that are no kernels, and of control flow in them, which come first."""
    found: list[ir.Block] = []

    def visit(block: ir.Block) -> None:
        for op in block.operations:
            if op.operation.name in CONTROL:
                for region in op.operation.regions:
                    visit(region.blocks[0])
        found.append(block)

    for op in module.body.operations:
        if op.operation.name == "func.func" and op.operation.regions[0].blocks:
            if KIND not in op.operation.attributes:
                visit(op.operation.regions[0].blocks[0])
    return found
