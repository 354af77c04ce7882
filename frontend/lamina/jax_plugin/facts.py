"""What JAX's program says of its arguments and results besides their types."""

from __future__ import annotations

from typing import Any

from lamina.jax_plugin.failures import PluginError
from lamina.jax_plugin.layouts import Layout
from lamina.records import Record

DEVICE_MEMORY = "device"
_MEMORY_KIND = "mhlo.memory_kind"


class Facts(Record):
    """Each with one list for the arguments and one for the results of @main."""

    tokens: list[list[int]]
    """Which of them are tokens of JAX's, which order effects."""
    donated: list[int]
    """The arguments that are JAX's no more after a call: a result is to be in their memory."""
    donors: list[int]
    """Those that are so if there is a result that could take their memory over."""
    memory_kinds: list[list[str]]
    """The kind of memory of each: "device", "pinned_host" or "unpinned_host"."""
    shardings: list[list[str]]
    """Of a program over several devices, an xla.OpSharding of each, serialised, in hexadecimal digits; of
    others nothing."""
    layouts: list[list[Layout]]
    """The order of the dimensions of each in memory."""

    @staticmethod
    def of_module(
        module: Any, tokens: list[list[int]], shardings: list[list[str]], layouts: list[list[Layout]]
    ) -> Facts:
        """Those of a module, whose tokens and layouts have been replaced already. PluginError where it has no
        @main."""
        from lamina.dialects.attributes import DONATION, attributes_of_each
        from lamina.dialects.vendors import ir

        symbols = ir.SymbolTable(module.operation)
        if "main" not in symbols:
            raise PluginError("INVALID_ARGUMENT", "the program has no function @main")
        main = symbols["main"].operation
        type = main.attributes["function_type"].value
        arguments = attributes_of_each(main, "arg_attrs", len(type.inputs))
        results = attributes_of_each(main, "res_attrs", len(type.results))
        donated, donors = ([i for i, given in enumerate(arguments) if name in given] for name in DONATION)
        return Facts(
            tokens,
            donated,
            donors,
            [[_memory_kind(given) for given in side] for side in (arguments, results)],
            shardings,
            layouts,
        )

    @staticmethod
    def of_row(row: Any) -> Facts:
        """From what `row` gave. Raises TypeError or ValueError for other things."""
        tokens, donated, donors, kinds, shardings, layouts = row
        return Facts(
            [list(map(int, side)) for side in tokens],
            list(map(int, donated)),
            list(map(int, donors)),
            [list(map(str, side)) for side in kinds],
            [list(map(str, side)) for side in shardings],
            [[list(map(int, layout)) for layout in side] for side in layouts],
        )

    def row(self) -> Any:
        """As JSON has it."""
        return [self.tokens, self.donated, self.donors, self.memory_kinds, self.shardings, self.layouts]


def _memory_kind(given: Any) -> str:
    return given[_MEMORY_KIND].value if _MEMORY_KIND in given else DEVICE_MEMORY
