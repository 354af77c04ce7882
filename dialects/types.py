"""Between array types (shape, NumPy or ml_dtypes dtype) and MLIR tensor types."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lamina.dialects.context import forget_with_contexts
from lamina.dialects.vendors import ir

DYNAMIC: int = ir.ShapedType.get_dynamic_size()
"""How MLIR writes a dimension whose size is not known (`?`)."""


def _signless(width: int) -> Callable[[], ir.Type]:
    return lambda: ir.IntegerType.get_signless(width)


def _unsigned(width: int) -> Callable[[], ir.Type]:
    return lambda: ir.IntegerType.get_unsigned(width)


_FLOATS: dict[str, tuple[Callable[[], ir.Type], Any]] = {
    "bf16": (ir.BF16Type.get, ml_dtypes.bfloat16),
    "f16": (ir.F16Type.get, np.float16),
    "f32": (ir.F32Type.get, np.float32),
    "f64": (ir.F64Type.get, np.float64),
    "f8E3M4": (ir.Float8E3M4Type.get, ml_dtypes.float8_e3m4),
    "f8E4M3": (ir.Float8E4M3Type.get, ml_dtypes.float8_e4m3),
    "f8E4M3B11FNUZ": (ir.Float8E4M3B11FNUZType.get, ml_dtypes.float8_e4m3b11fnuz),
    "f8E4M3FN": (ir.Float8E4M3FNType.get, ml_dtypes.float8_e4m3fn),
    "f8E4M3FNUZ": (ir.Float8E4M3FNUZType.get, ml_dtypes.float8_e4m3fnuz),
    "f8E5M2": (ir.Float8E5M2Type.get, ml_dtypes.float8_e5m2),
    "f8E5M2FNUZ": (ir.Float8E5M2FNUZType.get, ml_dtypes.float8_e5m2fnuz),
    "f8E8M0FNU": (ir.Float8E8M0FNUType.get, ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": (ir.Float6E2M3FNType.get, ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": (ir.Float6E3M2FNType.get, ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": (ir.Float4E2M1FNType.get, ml_dtypes.float4_e2m1fn),
}
_INTEGERS: dict[str, tuple[Callable[[], ir.Type], Any]] = {
    "i1": (_signless(1), np.bool_),
    **{f"i{w}": (_signless(w), f"int{w}") for w in (8, 16, 32, 64)},
    **{f"ui{w}": (_unsigned(w), f"uint{w}") for w in (8, 16, 32, 64)},
    **{f"i{w}": (_signless(w), getattr(ml_dtypes, f"int{w}")) for w in (2, 4)},
    **{f"ui{w}": (_unsigned(w), getattr(ml_dtypes, f"uint{w}")) for w in (2, 4)},
}
_COMPLEX: dict[str, tuple[Callable[[], ir.Type], Any]] = {
    "complex<f32>": (lambda: ir.ComplexType.get(ir.F32Type.get()), np.complex64),
    "complex<f64>": (lambda: ir.ComplexType.get(ir.F64Type.get()), np.complex128),
}
_MAKERS = {np.dtype(d): make for make, d in (_FLOATS | _INTEGERS | _COMPLEX).values()}
_DTYPES = {name: np.dtype(d) for name, (_, d) in (_FLOATS | _INTEGERS | _COMPLEX).items()}


def element_type(dtype: Any) -> ir.Type:
    """The MLIR element type of a NumPy or ml_dtypes dtype: bool is i1, unsigned integers are ui."""
    dtype = np.dtype(dtype)
    make = _MAKERS.get(dtype)
    if make is None:
        raise TypeError(f"no MLIR element type for dtype {dtype.name!r}")
    return make()


def tensor_type(shape: Sequence[int], dtype: Any) -> ir.RankedTensorType:
    """`tensor<shape x dtype>`; a dimension may be `DYNAMIC`."""
    return ir.RankedTensorType.get(shape, element_type(dtype))


class _Known(threading.local):
    """The dtypes and names of element types seen in this thread's context, with which they go."""

    def __init__(self) -> None:
        self.dtypes: dict[ir.Type, np.dtype] = {}
        self.names: dict[ir.Type, str] = {}


_known = _Known()
forget_with_contexts(lambda: _known.dtypes.clear())
forget_with_contexts(lambda: _known.names.clear())


def dtype_of(of: ir.Type) -> np.dtype:
    """The dtype of a tensor type or of an element type; raises TypeError when there is none."""
    if isinstance(of, ir.ShapedType):
        of = of.element_type
    dtype = _known.dtypes.get(of)
    if dtype is None:
        dtype = _DTYPES.get(str(of))
        if dtype is None:
            raise TypeError(f"no NumPy dtype for MLIR type {of}")
        _known.dtypes[of] = dtype
    return dtype


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is one of floats, of which ml_dtypes' are of another kind than NumPy's."""
    return dtype.kind == "f" or "float" in dtype.name


def element_name(of: ir.Type) -> str:
    """How MLIR writes the element type of a tensor type: f32, i1, ui8, ..."""
    element = of.element_type
    name = _known.names.get(element)
    if name is None:
        name = _known.names[element] = str(element)
    return name


def shape_of(of: ir.Type) -> tuple[int, ...]:
    """The dimensions of a ranked tensor type, `DYNAMIC` where not known."""
    return tuple(of.shape)


def byte_size(of: ir.Type) -> int:
    """The bytes that an array of this type, of known shape, takes in memory; elements narrower than
    a byte take one."""
    return math.prod(of.shape) * dtype_of(of).itemsize
