"""Custom calls of this process: the Python functions of JAX's callbacks, handlers of FFI targets.

    custom_call @xla_ffi_python_cpu_callback(%x) {mhlo.backend_config = {index = 1 : ui64}}
    custom_call @scale(%x) {mhlo.backend_config = {by = 2.0 : f32}}
        ->   custom_call @lamina.python_callback(%x) {backend_config = {index = 0}}

The new `index` counts in a list that goes to the executable. What a call says besides (attributes of a
handler, JAX's own index) is not in the program afterwards, so that programs that differ in nothing
else have the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lamina.jax_plugin.handlers import Handler
from lamina.jax_plugin.tokens import tokens_of
from lamina.records import Record

_CALL = "stablehlo.custom_call"
_CONFIG = "mhlo.backend_config"
_CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
_Types = list[tuple[np.dtype, tuple[int, ...]]]


class CallbackSlot(Record):
    """Calls the Python function that JAX gives a running program under a number.

    index    that number.
    token_operands, token_results  where the function is given tokens, and gives them back: None.
    """

    index: int
    token_operands: tuple[int, ...] = ()
    token_results: tuple[int, ...] = ()

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        from lamina.runtime import _runtime

        given = list(arrays)
        for place in self.token_operands:
            given.insert(place, None)
        results = _runtime.running_function(self.index)(*given)
        return tuple(
            np.asarray(x, order="C") for i, x in enumerate(results) if i not in self.token_results
        )

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "index": self.index,
            "token_operands": list(self.token_operands),
            "token_results": list(self.token_results),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> CallbackSlot:
        """What `row` gave, again."""
        return cls(row["index"], tuple(row["token_operands"]), tuple(row["token_results"]))


class HostCall(Record):
    """A place in a program that calls a function."""

    function: CallbackSlot | Handler
    inputs: _Types
    outputs: _Types
    place: str
    """Where the user has it, as "file.py:12:4 in f"."""

    def for_runtime(self) -> tuple[Any, _Types, _Types, str]:
        """As the runtime's loader takes it."""
        return self.function, self.inputs, self.outputs, self.place

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "function": self.function.row(),
            "inputs": [[dtype.name, list(shape)] for dtype, shape in self.inputs],
            "outputs": [[dtype.name, list(shape)] for dtype, shape in self.outputs],
            "place": self.place,
        }

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> HostCall:
        """What `row` gave, again. Raises LoadError for a handler that this process does not have."""
        from lamina.runtime.executable import dtype_named

        inputs, outputs = (
            [(dtype_named(name), tuple(shape)) for name, shape in row[which]]
            for which in ("inputs", "outputs")
        )
        given = row["function"]
        is_handler = "target" in given
        function = Handler.of_row(given, outputs) if is_handler else CallbackSlot.of_row(given)
        return cls(function, inputs, outputs, row["place"])


def bind_host_calls(module: Any) -> tuple[HostCall, ...]:
    """Makes calls of this process calls of numbered functions, and gives these.

    Raises NotImplementedError for handlers that need what is not there.
    """
    from lamina.dialects.vendors import ir
    from lamina.passes.framework.find import find_ops
    from lamina.passes.stablehlo.legalize.adopt_lapack import is_adopted

    found: list[HostCall] = []
    for call in find_ops(module, _CALL):
        target = call.attributes["call_target_name"].value
        function: Any = None
        with ir.Location.unknown(call.context):
            if target in _CALLBACKS:
                function = CallbackSlot(int(config_of(call)["index"]), *tokens_of(call))
            elif is_typed(call) and not is_adopted(target):
                function = Handler.of(call, config_of(call), _specs(call.results))
        if function is not None:
            made = HostCall(function, _specs(call.operands), _specs(call.results), _place(call))
            _rename(call, len(found))
            found.append(made)
    return tuple(found)


def is_typed(call: Any) -> bool:
    """Whether a custom call is of XLA's typed interface, whose options are a dictionary."""
    from lamina.dialects.vendors import ir

    attributes = call.attributes
    if _CONFIG in attributes:
        return True
    return "backend_config" in attributes and isinstance(attributes["backend_config"], ir.DictAttr)


def config_of(call: Any) -> dict[str, Any]:
    """A typed custom call's options as values of Python and NumPy."""
    attributes = call.attributes
    return values_of(attributes[_CONFIG] if _CONFIG in attributes else attributes["backend_config"])


def values_of(given: Any) -> dict[str, Any]:
    """The entries of a dictionary attribute as what handlers are given."""
    from lamina.dialects.vendors import ir

    return {entry.name: _value(entry.attr) for entry in ir.DictAttr(given)}


def _rename(call: Any, index: int) -> None:
    from lamina.dialects.vendors import ir
    from lamina.passes.stablehlo.analysis.facts import PYTHON_CALLBACK

    for name in [one if isinstance(one, str) else one.name for one in call.attributes]:
        if name not in ("has_side_effect", "call_target_name"):
            del call.attributes[name]
    with call.context:
        word, number = (ir.IntegerType.get_signless(n) for n in (32, 64))
        call.attributes["call_target_name"] = ir.StringAttr.get(PYTHON_CALLBACK)
        call.attributes["api_version"] = ir.IntegerAttr.get(word, 4)
        call.attributes["backend_config"] = ir.DictAttr.get(
            {"index": ir.IntegerAttr.get(number, index)}
        )


def _specs(values: Any) -> list[tuple[np.dtype, tuple[int, ...]]]:
    from lamina.dialects.types import dtype_of, shape_of

    return [(dtype_of(value.type), tuple(shape_of(value.type))) for value in values]


def _place(call: Any) -> str:
    from lamina.passes.framework.base import source_frames

    frames = source_frames(call.location)
    return str(frames[0]) if frames else ""


def _value(given: Any) -> Any:
    """An attribute as what a handler is given."""
    from lamina.dialects.types import dtype_of
    from lamina.dialects.vendors import ir

    if isinstance(given, ir.BoolAttr):
        return np.bool_(ir.BoolAttr(given).value)
    if isinstance(given, ir.IntegerAttr) or isinstance(given, ir.FloatAttr):
        of = ir.IntegerAttr if isinstance(given, ir.IntegerAttr) else ir.FloatAttr
        tensor = ir.RankedTensorType.get([], given.type)
        return dtype_of(tensor).type(of(given).value)
    if isinstance(given, ir.StringAttr):
        return ir.StringAttr(given).value
    if isinstance(given, ir.DictAttr):
        return values_of(given)
    if isinstance(given, ir.DenseBoolArrayAttr):
        return np.array(list(ir.DenseBoolArrayAttr(given)), bool)
    for of, dtype in (
        (ir.DenseI8ArrayAttr, np.int8), (ir.DenseI16ArrayAttr, np.int16),
        (ir.DenseI32ArrayAttr, np.int32), (ir.DenseI64ArrayAttr, np.int64),
        (ir.DenseF32ArrayAttr, np.float32), (ir.DenseF64ArrayAttr, np.float64),
    ):  # fmt: skip
        if isinstance(given, of):
            return np.array(list(of(given)), dtype)
    if isinstance(given, ir.DenseElementsAttr):
        return np.array(ir.DenseElementsAttr(given))
    if isinstance(given, ir.ArrayAttr):
        return {str(i): _value(one) for i, one in enumerate(ir.ArrayAttr(given))}
    raise NotImplementedError(f"an option of a custom call is {given}, which handlers are not given")
