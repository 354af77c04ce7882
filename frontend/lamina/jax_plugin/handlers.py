"""Calls of handlers of FFI targets, such as `jax.ffi.ffi_call` makes, as what a program can be kept with.

    custom_call @scale(%x) {mhlo.backend_config = {by = 2.0 : f32}}    ->    Handler("scale", {"by": 2.0}, ...)

What is kept is the target's name: the handler is looked for where the program is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from lamina.jax_plugin import ffi_targets
from lamina.records import Record

_ALIAS = re.compile(r"output_tuple_indices = \[(\d*)\], operand_index = (\d+)")
_Orders = tuple[tuple[int, ...] | None, ...] | None


class Handler(Record):
    """Calls the handler of a target.

    address     of the handler in this process.
    attributes  what it is given besides arrays: numbers and arrays of NumPy, strings, dictionaries of such.
    in_orders, out_orders  for each array its dimensions, the slowest first; None: as they come.
    aliases     result -> the operand whose memory it takes over.
    outputs     the results' types.
    """

    target: str
    address: int
    attributes: dict[str, Any]
    in_orders: _Orders
    out_orders: _Orders
    aliases: dict[int, int]
    outputs: list[tuple[np.dtype, tuple[int, ...]]]

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        from lamina.core.avals import ShapedArray
        from lamina.ffi.call import Call

        call = Call(self.target, self.attributes, self.in_orders, self.out_orders, self.aliases)
        return call.run(self.address, [ShapedArray(shape, dtype) for dtype, shape in self.outputs], *arrays)

    @classmethod
    def of(cls, call: Any, attributes: dict[str, Any], outputs: Any) -> Handler | None:
        """That of a custom call; None where its target has no handler.

        Raises NotImplementedError for handlers that need what is not there.
        """
        target = call.attributes["call_target_name"].value
        address = ffi_targets.address_of(target)
        if address is None:
            return None
        in_orders, out_orders = _orders(call, "operand_layouts"), _orders(call, "result_layouts")
        return cls(target, address, attributes, in_orders, out_orders, _aliases(call), outputs)

    def row(self) -> dict[str, Any]:
        """As JSON has it, but for the results' types."""
        return {
            "target": self.target,
            "attributes": _plain(self.attributes),
            "orders": [self.in_orders, self.out_orders],
            "aliases": list(self.aliases.items()),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any], outputs: Any) -> Handler:
        """What `row` gave, again. Raises LoadError where this process has no handler of the target."""
        from lamina.runtime.executable import LoadError

        target = row["target"]
        address = ffi_targets.address_of(target)
        if address is None:
            raise LoadError(
                f"the program calls the FFI target {target!r}, which is not registered in this process: "
                "call jax.ffi.register_ffi_target before it is loaded"
            )
        in_orders, out_orders = (
            None if side is None else tuple(map(_order, side)) for side in row["orders"]
        )
        aliases = {int(result): int(operand) for result, operand in row["aliases"]}
        attributes = _value(row["attributes"])
        return cls(target, address, attributes, in_orders, out_orders, aliases, outputs)


def _plain(value: Any) -> Any:
    """An attribute as JSON has it: a string, or a dictionary that says what it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {"entries": {name: _plain(entry) for name, entry in value.items()}}
    array = np.asarray(value)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": array.tobytes().hex()}


def _value(plain: Any) -> Any:
    """What `_plain` was given."""
    from lamina.runtime.executable import dtype_named

    if isinstance(plain, str):
        return plain
    if "entries" in plain:
        return {name: _value(entry) for name, entry in plain["entries"].items()}
    array = np.frombuffer(bytes.fromhex(plain["bytes"]), dtype_named(plain["dtype"]))
    return array.reshape(plain["shape"])[()]


def _order(given: Any) -> tuple[int, ...] | None:
    return None if given is None else tuple(map(int, given))


def _orders(call: Any, name: str) -> _Orders:
    if name not in call.attributes:
        return None
    orders = []
    for layout in call.attributes[name]:
        order = tuple(int(d) for d in reversed(np.asarray(layout)))
        orders.append(None if order == tuple(range(len(order))) else order)
    return tuple(orders)


def _aliases(call: Any) -> dict[int, int]:
    if "output_operand_aliases" not in call.attributes:
        return {}
    text = str(call.attributes["output_operand_aliases"])
    return {int(result or 0): int(operand) for result, operand in _ALIAS.findall(text)}
