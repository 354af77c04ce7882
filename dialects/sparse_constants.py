"""Constants that name the places of their elements other than zero (`sparse<[[0, 1]], [2.5]>`).

Passes know dense constants; what is sparse in a program's text is written as they are.
"""

from __future__ import annotations

import re

import numpy as np

from lamina.dialects.constants import array_in, dense
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir

_LIST = r'"0x[0-9A-Fa-f]*"|\[[^>]*\]|[^\[\]>,]+|\([^)>]*\)'
_USE = re.compile(
    rf"(?<![\w.])sparse<(?:({_LIST}), ({_LIST}))?> : (tensor<[^<>]*(?:<[^>]*>)?>)"
)
_INDEX_BYTES = 8


def write_sparse_as_dense(text: str) -> str:
    """The program with each `sparse` constant as the `dense` one of the same elements. Raises ValueError
    for one with places that it does not have."""
    if "sparse<" not in text:
        return text
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return _USE.sub(_as_dense, text)


def _as_dense(use: re.Match[str]) -> str:
    places, elements, written = use.groups()
    of = ir.Type.parse(written)
    shape = shape_of(of)
    array = np.zeros(shape, dtype_of(of))
    count = 0 if places is None else _count(places, len(shape))
    if count:
        where = _array(places, f"tensor<{count}x{len(shape)}xi64>")
        if (where < 0).any() or (where >= shape).any():
            raise ValueError(f"{use[0][:80]}: a place is outside of {written}")
        array[tuple(where.T)] = _array(elements, f"tensor<{count}x{of.element_type}>")
    return f"{dense(array)}"


def _count(places: str, rank: int) -> int:
    """How many places a list of rows, or of their bytes, names."""
    if places.startswith('"'):
        return (len(places) - len('"0x"')) // 2 // (_INDEX_BYTES * rank)
    return max(places.count("[") - 1, 1) if places.strip("[] ") else 0


def _array(elements: str, of: str) -> np.ndarray:
    module = ir.Module.parse(f'"constant"() {{value = dense<{elements}> : {of}}} : () -> ()')
    return array_in(module.body.operations[0], "value", ir.Type.parse(of))
