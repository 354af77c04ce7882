"""The types that values may have, seen as tables, as libraries with arrays of their own fill them.

    pytype_aval_mappings[MyArray] = lambda x: ShapedArray(x.shape, x.dtype)
    canonicalize_dtype_handlers[MyArray] = np.asarray        # what programs are given in its place

Both are views of what `register_value_type` registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from lamina.core import trace
from lamina.core.avals import ShapedArray


class _Types(MutableMapping[type, Callable[[Any], Any]]):
    def __init__(self, rules: dict[type, Callable[[Any], Any]]) -> None:
        self._rules = rules

    def __getitem__(self, kind: type) -> Callable[[Any], Any]:
        return self._rules[kind]

    def __setitem__(self, kind: type, rule: Callable[[Any], Any]) -> None:
        self._rules[kind] = rule

    def __delitem__(self, kind: type) -> None:
        del self._rules[kind]

    def __iter__(self) -> Iterator[type]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)


def _array_of(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return trace.physical(array.astype(trace.get_aval(array).dtype, copy=False))


class _ArraysOfTypes(_Types):
    """The arrays in place of values; NumPy's arrays have a rule, too, which others may share."""

    def __getitem__(self, kind: type) -> Callable[[Any], Any]:
        return _array_of if kind is np.ndarray else super().__getitem__(kind)

    def __setitem__(self, kind: type, rule: Callable[[Any], Any]) -> None:
        super().__setitem__(kind, rule)
        _foreign.add(kind)

    def __delitem__(self, kind: type) -> None:
        super().__delitem__(kind)
        _foreign.discard(kind)


_foreign: set[type] = set()


def as_own_arrays(values: Sequence[Any]) -> Sequence[Any]:
    """Values with arrays in the place of those whose types libraries have added, or that make arrays
    of themselves."""
    values = [x.__jax_array__() if trace.makes_array(x) else x for x in values]
    return [trace.physical(x) if type(x) in _foreign else x for x in values]


pytype_aval_mappings: MutableMapping[type, Callable[[Any], ShapedArray]] = _Types(trace._aval_rules)
"""value -> its type, by the value's class."""
canonicalize_dtype_handlers: MutableMapping[type, Callable[[Any], Any]] = _ArraysOfTypes(
    trace._physical
)
"""value -> the array that programs are given, by the value's class."""
