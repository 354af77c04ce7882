"""Let what devices combine be of a type, and by an operation, that the runtime's transport knows.

    %r = all_reduce %x, maximum  // f32        %k = bits of %x, ordered as integers are; NaN first
                                         ->    %m = all_reduce %k, maximum  // i32
                                               %r = those bits as f32

Threads and MPI sum on the CPU all but the smallest types, which are widened. With `nccl`, NCCL does sums, products,
minima and maxima of integers of 8, 32 and 64 bits, sums and products of floats. Others become these: booleans
numbers of 8 bits, integers of 16 bits such of 32, minima and maxima of floats those of integers, since what NaN does
in NCCL's is not documented. Bitwise operations, and products of complex numbers, are done by each device on what all
have (`all_gather`, of a `reduce_scatter` by `all_to_all`). A sum of complex numbers stays: it is one of pairs.

Expects what `stablehlo-lay-out-collectives` leaves.
example: test/passes/stablehlo/collectives/legalize_reductions.mlir
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.collectives.collective import (
    CHANNEL,
    device_counts,
    groups_among,
    reducer,
)

Combine = Callable[[ir.Value, ir.Value], ir.Value]
_COMBINERS: dict[str, Combine] = {
    "add": hlo.add, "multiply": hlo.multiply, "maximum": hlo.maximum, "minimum": hlo.minimum,
    "and": hlo.and_, "or": hlo.or_, "xor": hlo.xor,
}  # fmt: skip
_SMALL = {name: np.dtype(np.int8) for name in ("int2", "int4")} | {
    name: np.dtype(np.uint8) for name in ("uint2", "uint4")
}
_OF_BOOLEANS = {"add": "maximum", "or": "maximum", "maximum": "maximum", "multiply": "minimum", "and": "minimum",
                "minimum": "minimum"}  # fmt: skip


class LegalizeReductions(Pass):
    """The pass `stablehlo-legalize-reductions`."""

    nccl: bool = False

    only_with = frozenset(("stablehlo.all_reduce", "stablehlo.reduce_scatter"))

    def run(self, module: ir.Module) -> None:
        devices = max(device_counts(module))
        for op in find_ops(module, "stablehlo.all_reduce", "stablehlo.reduce_scatter"):
            (x,) = op.operands
            with ir.InsertionPoint(op), op.location:
                how = _Reduction(op, groups_among(op, devices), self.nccl)
                found = how.legal(x, reducer(op))
            if found is not None:
                replace(op, [found])
                self.count("reductions")


class _Reduction:
    """A reduction between devices that is made anew on other types."""

    def __init__(self, op: ir.Operation, groups: list[list[int]], nccl: bool) -> None:
        self.op, self.groups, self.nccl = op, groups, nccl
        self.scatters = op.name == "stablehlo.reduce_scatter"

    def legal(self, x: ir.Value, how: str) -> ir.Value | None:
        """The values of the devices combined; None where that is known as it is."""
        dtype = dtype_of(x.type)
        if dtype.name in _SMALL:
            return self._widened(x, how, _SMALL[dtype.name])
        if dtype.name.startswith("float") and dtype.itemsize == 1:
            return self._widened(x, how, np.dtype(np.float32))
        if not self.nccl:
            return None
        if dtype == np.bool_:
            return self._of_booleans(x, how)
        if how in ("and", "or", "xor") or (dtype.kind == "c" and how == "multiply"):
            return self._here(x, how)
        if dtype in (np.int16, np.uint16):
            return self._widened(x, how, np.dtype(np.int32 if dtype == np.int16 else np.uint32))
        if how in ("maximum", "minimum") and dtype in (np.float16, ml_dtypes.bfloat16):
            return self._widened(x, how, np.dtype(np.float32))
        if how in ("maximum", "minimum") and dtype.kind == "f":
            return self._ordered(x, how)
        return None

    def _combined(self, x: ir.Value, how: str) -> ir.Value:
        found = self.legal(x, how)
        if found is not None:
            return found
        if self.scatters:
            return hlo.reduce_scatter(x, 0, self.groups, CHANNEL, _COMBINERS[how])
        return hlo.all_reduce(x, self.groups, CHANNEL, _COMBINERS[how])

    def _widened(self, x: ir.Value, how: str, dtype: np.dtype) -> ir.Value:
        narrow = dtype_of(x.type)
        return hlo.convert(self._combined(hlo.convert(x, dtype), how), narrow)

    def _of_booleans(self, x: ir.Value, how: str) -> ir.Value:
        numbers = hlo.convert(x, np.dtype(np.uint8))
        if how != "xor":
            return hlo.convert(self._combined(numbers, _OF_BOOLEANS[how]), np.dtype(np.bool_))
        total = self._combined(numbers, "add")  # wraps around, which keeps the last bit
        one = hlo.full(1, list(total.type.shape), np.dtype(np.uint8))
        return hlo.convert(hlo.and_(total, one), np.dtype(np.bool_))

    def _ordered(self, x: ir.Value, how: str) -> ir.Value:
        """A minimum or maximum of the bits, of which those of negative numbers are turned round."""
        dtype = dtype_of(x.type)
        signed = np.dtype(f"int{8 * dtype.itemsize}")
        limits = np.iinfo(signed)

        def turned(bits: ir.Value) -> ir.Value:
            shape = list(bits.type.shape)
            other = hlo.xor(bits, hlo.full(limits.max, shape, signed))
            return hlo.select(hlo.compare(bits, hlo.full(0, shape, signed), "LT"), other, bits)

        shape = list(x.type.shape)
        of_nan = hlo.full(limits.max if how == "maximum" else limits.min, shape, signed)
        key = turned(hlo.bitcast_convert(x, shape, signed))
        found = self._combined(hlo.select(hlo.compare(x, x, "NE"), of_nan, key), how)
        return hlo.bitcast_convert(turned(found), list(found.type.shape), dtype)

    def _here(self, x: ir.Value, how: str) -> ir.Value:
        """Combined by each device, of what the others have."""
        if len({len(group) for group in self.groups}) > 1:
            raise CompileError.at(
                self.op,
                f"combines by {how} what groups of unequal size have, which NCCL does not",
                "gather the values (all_gather) and reduce them on each device",
            )
        shape, dtype = list(x.type.shape), dtype_of(x.type)
        if self.scatters:
            every = hlo.all_to_all(x, 0, 0, self.groups, CHANNEL)
        else:
            every = hlo.all_gather(hlo.reshape(x, [1, *shape]), 0, self.groups, CHANNEL)
        identity = {"and": -1, "multiply": 1}.get(how, 0)
        if identity < 0 and dtype.kind == "u":
            identity = np.iinfo(dtype).max
        first = hlo.full(identity, [], dtype)
        (total,) = hlo.reduce([every], [first], [0], lambda a, b: [_COMBINERS[how](a, b)])
        return hlo.reshape(total, [1, *shape[1:]] if self.scatters else shape)
