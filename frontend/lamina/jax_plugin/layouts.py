"""Layouts of arguments and results: @main takes and gives arrays in the order in which they lie in memory.

    func.func public @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"})
        ->
    func.func public @main(%x: tensor<3x2xf32>) {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>

JAX writes the dimensions from the fastest to the slowest. "default" is row-major. "auto" leaves the choice: a
result that is a transposed value lies as that value does, so that nothing is moved; all others are row-major.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lamina.jax_plugin.failures import PluginError

Layout = list[int]
"""The dimensions of an array from the slowest to the fastest; empty where it is row-major."""

_MODE = "mhlo.layout_mode"
_DIMENSIONS = re.compile(r"\{([\d,]*)(?::E\(\d+\))?\}")
_TRANSPOSE = "stablehlo.transpose"


def lay_out(module: Any) -> list[list[Layout]]:
    """Gives @main arrays as they lie in memory. Returns the layouts of its arguments and of its results.

    Raises PluginError for layouts that are more than an order of the dimensions.
    """
    from lamina.dialects.attributes import DONATION, attributes_of_each
    from lamina.dialects.vendors import ir

    symbols = ir.SymbolTable(module.operation)
    if "main" not in symbols:
        return [[], []]
    main = symbols["main"].operation
    block = main.regions[0].blocks[0]
    given = attributes_of_each(main, "arg_attrs", len(block.arguments))
    inputs = [_layout(_mode(one), value.type) for one, value in zip(given, block.arguments, strict=True)]
    returned = block.operations[len(block.operations) - 1].operation
    modes = [_mode(one) for one in attributes_of_each(main, "res_attrs", len(returned.operands))]
    takes_over = DONATION[0]
    aliased = {one[takes_over].value: inputs[i] for i, one in enumerate(given) if takes_over in one}
    outputs = [
        _layout(mode, value.type) if mode != "auto" else aliased[i] if i in aliased else _without_moving(value)
        for i, (mode, value) in enumerate(zip(modes, returned.operands, strict=True))
    ]
    if any(inputs) or any(outputs):
        _retype(main, block, returned, inputs, outputs)
    return [inputs, outputs]


def logical_shape(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """The shape of an array that lies in memory in this one."""
    if not layout:
        return tuple(shape)
    return tuple(shape[layout.index(dimension)] for dimension in range(len(shape)))


def _mode(given: Any) -> str:
    return given[_MODE].value if _MODE in given else "default"


def _layout(mode: str, of: Any) -> Layout:
    if mode in ("default", "auto"):
        return []
    found = _DIMENSIONS.fullmatch(mode)
    order = [int(text) for text in reversed(found[1].split(","))] if found and found[1] else []
    if found is None or sorted(order) != list(range(of.rank)):
        raise PluginError(
            "UNIMPLEMENTED",
            f"the layout {mode} of an array of type {of}: layouts are orders of the dimensions, without tiles",
        )
    return _unless_row_major(order)


def _unless_row_major(order: Sequence[int]) -> Layout:
    return list(order) if list(order) != sorted(order) else []


def _without_moving(value: Any) -> Layout:
    """The layout of a result that costs nothing."""
    from lamina.passes.stablehlo.analysis.facts import ints, made_by

    transposed = made_by(value, _TRANSPOSE)
    if transposed is None:
        return []
    dims = ints(transposed, "permutation")
    return _unless_row_major([dims.index(d) for d in range(len(dims))])


def _retype(main: Any, block: Any, returned: Any, inputs: list[Layout], outputs: list[Layout]) -> None:
    from lamina.dialects import stablehlo as hlo
    from lamina.dialects.vendors import ir

    with main.context, main.location:
        for argument, layout in zip(block.arguments, inputs, strict=True):
            if layout:
                logical = argument.type
                argument.set_type(
                    ir.RankedTensorType.get([logical.shape[d] for d in layout], logical.element_type)
                )
                with ir.InsertionPoint.at_block_begin(block):
                    turned = hlo.transpose(argument, [layout.index(d) for d in range(logical.rank)])
                argument.replace_all_uses_except(turned, turned.owner.operation)
        with ir.InsertionPoint(returned):
            for i, layout in enumerate(outputs):
                if layout:
                    returned.operands[i] = hlo.transpose(returned.operands[i], layout)
        types = [[value.type for value in side] for side in (block.arguments, returned.operands)]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
