"""How sample applications of primitives are described: arrays to draw, and rows of the table."""

from __future__ import annotations

import dataclasses
import operator
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from lamina import lax
from lamina.core import Primitive

bfloat16 = np.dtype(ml_dtypes.bfloat16)


@dataclasses.dataclass(frozen=True)
class Spec:
    """How to make an array: by drawing from [low, high), or from the given values."""

    shape: tuple[int, ...]
    dtype: np.dtype
    low: float = -2.0
    high: float = 2.0
    values: Any = None

    def make(self, rng: np.random.Generator) -> np.ndarray:
        if self.values is not None:
            return np.asarray(self.values, self.dtype)
        if self.dtype.kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if self.dtype.kind in "iu":
            return rng.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)
        drawn = rng.uniform(self.low, self.high, self.shape)
        if self.dtype.kind == "c":
            drawn = drawn + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(drawn).astype(self.dtype)

    def widened(self) -> Spec:
        """The same in double precision."""
        wide = {"float32": np.float64, "complex64": np.complex128}.get(self.dtype.name, self.dtype)
        return dataclasses.replace(self, dtype=np.dtype(wide))

    def __str__(self) -> str:
        name = {"bfloat16": "bf16", "bool": "bool"}.get(
            self.dtype.name, self.dtype.kind + str(8 * self.dtype.itemsize)
        )
        return f"{name}[{','.join(map(str, self.shape))}]"


def arrays_of(dtype: Any, low: float, high: float) -> Callable[..., Spec]:
    """A maker of specs of one dtype: of a shape, or of given values."""

    def spec(*shape: int, low: float = low, high: float = high, values: Any = None) -> Spec:
        found = np.shape(values) if values is not None else shape
        return Spec(tuple(found), np.dtype(dtype), low, high, values)

    return spec


f16, f32, f64 = (arrays_of(d, -2, 2) for d in ("float16", "float32", "float64"))
bf16 = arrays_of(bfloat16, -2, 2)
c64 = arrays_of("complex64", -2, 2)
i8, i16, i32, i64 = (arrays_of(d, -100, 100) for d in ("int8", "int16", "int32", "int64"))
u8, u16, u32 = (arrays_of(d, 0, 200) for d in ("uint8", "uint16", "uint32"))
b1 = arrays_of(bool, 0, 1)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One row: an application of a primitive. See the fields of `row`."""

    primitive: Primitive
    function: Callable[..., Any]
    specs: tuple[Spec, ...]
    numpy: Callable[..., Any] | None
    derivatives: bool
    smooth: bool
    widen: bool
    vmap: bool
    jax_jvp: bool
    rtol: float
    note: str

    def __str__(self) -> str:
        args = ",".join(map(str, self.specs))
        return f"{self.primitive}({args}){'-' + self.note if self.note else ''}"

    def arrays(self, *, wide: bool = False, seed: int = 0) -> list[np.ndarray]:
        """The arguments, the same at every call."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()) + seed)
        return [(s.widened() if wide else s).make(rng) for s in self.specs]


ROWS: list[Sample] = []


def row(
    primitive: str,
    *specs: Spec,
    function: str = "",
    call: Callable[..., Any] | None = None,
    numpy: Callable[..., Any] | None = None,
    value_only: bool = False,
    smooth: bool = True,
    widen: bool = True,
    vmap: bool | None = None,
    jax_jvp: bool = True,
    rtol: float = 0.0,
    note: str = "",
    **params: Any,
) -> None:
    """Adds a row: lax.<primitive>(*arrays, **params). Names may have dots: linalg.qr.

    function the name of the function in lax, if it is not the primitive's.
    call     call(lax, *arrays), where the parameters are more than keywords.
    numpy    a reference for the value, of the arrays alone.
    value_only  neither derivatives nor batches: the rules do not depend on what the row varies.
    smooth   whether derivatives are to be compared with finite differences.
    widen    whether the sample also makes sense in double precision.
    vmap     whether to batch it: by default all but what is value_only.
    jax_jvp  whether JAX's derivative is right (it is not everywhere).
    rtol     a tolerance in place of the one that goes with the dtype.
    """
    name = function or primitive

    def apply(lib: Any, *xs: Any) -> Any:
        return operator.attrgetter(name)(lib)(*xs, **params)

    ROWS.append(
        Sample(
            operator.attrgetter(primitive + "_p")(lax), call or apply, specs, numpy, not value_only, smooth,
            widen, not value_only if vmap is None else vmap, jax_jvp, rtol, note,
        )
    )  # fmt: skip
