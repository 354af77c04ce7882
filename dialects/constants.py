"""Between NumPy arrays and dense MLIR attributes, for every dtype, bit for bit."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np

from lamina.dialects.context import forget_with_contexts
from lamina.dialects.types import dtype_of, shape_of, tensor_type
from lamina.dialects.vendors import ir

_DIRECT = frozenset("?bBhHiIlLqQefd")  # typecodes that dense attributes expose as buffers


def dense(value: Any) -> ir.Attribute:
    """The dense attribute that holds an array; equal elements everywhere become a splat."""
    value = np.asarray(value)
    if value.flags.c_contiguous is False:
        value = value.copy(order="C")
    return ir.DenseElementsAttr.get(value, type=tensor_type(value.shape, value.dtype))


def dense_splat(value: Any, shape: tuple[int, ...], dtype: Any) -> ir.Attribute:
    """The dense attribute of a shape with one value everywhere, without building the array."""
    element = np.asarray(value).astype(dtype)
    return ir.DenseElementsAttr.get(element, type=tensor_type(shape, element.dtype))


def array_of(constant: ir.Operation) -> np.ndarray:
    """The value of a `stablehlo.constant` (or any op with a dense `value`), read-only.

    A view of the attribute's memory where MLIR allows; a splat is broadcast from one element,
    so a large one costs nothing.
    """
    return array_in(constant, "value", constant.results[0].type)


def array_in(constant: ir.Operation, name: str, of: ir.Type) -> np.ndarray:
    """The dense attribute `name` of an op, whose elements and shape are those of the type."""
    dtype, shape = dtype_of(of), shape_of(of)
    if dtype.isbuiltin == 1 and dtype.char in _DIRECT:  # ml_dtypes reuses NumPy's codes
        attribute = constant.attributes[name]
        if isinstance(attribute, ir.DenseResourceElementsAttr):
            raise ValueError("a dense_resource constant can't be read back through the bindings")
        return np.asarray(attribute)
    # The bindings can't hand out complex, bf16, f8 and i4 elements: read the printed form.
    return _array_of_text(printed(constant), dtype, shape)


def is_splat(constant: ir.Operation) -> bool:
    """Whether a constant op has equal elements everywhere (an empty one does not)."""
    try:
        return constant.attributes["value"].is_splat
    except (TypeError, AttributeError):  # complex elements; dense_resource
        return re.search(r"dense<\(", printed(constant, large_elements_limit=2)) is not None


def printed(op: ir.Operation, large_elements_limit: int | None = None) -> str:
    """An op by itself as text. Else the whole function around it would be looked over, for names and for mistakes."""
    return op.get_asm(
        large_elements_limit=large_elements_limit, use_local_scope=True, assume_verified=True
    )


class _Seen(threading.local):
    """The elements of splat attributes in this thread's context, with which they go."""

    def __init__(self) -> None:
        self.elements: dict[ir.Attribute, np.generic] = {}


_seen = _Seen()
forget_with_contexts(lambda: _seen.elements.clear())
_MOST_SEEN = 4096


def splat_element(constant: ir.Operation) -> np.generic | None:
    """The element that a constant op has everywhere; None if there is no such one."""
    try:
        attribute = constant.attributes["value"]
    except TypeError:  # the bindings can't hold complex elements
        return _first_element(constant) if is_splat(constant) else None
    known = _seen.elements.get(attribute)
    if known is not None:
        return known
    if not is_splat(constant):
        return None
    element = _first_element(constant)
    if element is not None:
        if len(_seen.elements) == _MOST_SEEN:
            _seen.elements.clear()
        _seen.elements[attribute] = element
    return element


def _first_element(constant: ir.Operation) -> np.generic | None:
    array = array_of(constant)
    return array[(0,) * array.ndim] if array.size else None


_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|true|false")


def _array_of_text(text: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    body = re.search(r'dense<(?:"0x([0-9A-Fa-f]*)"|([^>]*))>', text)
    if body is None:
        raise ValueError(f"no dense elements in {text[:80]!r}")
    if body[1] is not None:
        flat = np.frombuffer(bytes.fromhex(body[1]), dtype=dtype)
    else:
        part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        tokens = _TOKEN.findall(body[2])
        flat = np.array([_number(token, part) for token in tokens], dtype=part)
        if dtype.kind == "c":
            flat = flat.view(dtype)
    result = np.broadcast_to(flat.reshape(()), shape) if flat.size == 1 else flat.reshape(shape)
    if result.flags.writeable:
        result.flags.writeable = False
    return result


def _number(token: str, dtype: np.dtype) -> Any:
    if token.startswith("0x"):  # the bits of a NaN or an infinity
        bits = int(token, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(bits, dtype=dtype)[0]
    if token in ("true", "false"):
        return token == "true"
    is_integer = dtype.kind in "iu" or "int" in dtype.name
    return np.asarray(int(token) if is_integer else float(token)).astype(dtype)
