"""Vectors of which some elements are there, in LLVM IR, for the product that all products of a type share."""

from __future__ import annotations

from lamina.passes.kernels.cpu.gemm.product_shape import Shape


def masks(shape: Shape, count: str, name: str, vectors: int) -> list[str]:
    """Which elements of some vectors are among the first `count`, as `%name0` and on."""
    lanes, of = shape.lanes, f"<{shape.lanes} x i64>"
    lines = [
        f"  %{name}_all0 = insertelement {of} poison, i64 {count}, i64 0",
        f"  %{name}_all = shufflevector {of} %{name}_all0, {of} poison, <{lanes} x i32> zeroinitializer",
    ]
    for part in range(vectors):
        numbers = ", ".join(f"i64 {part * lanes + i}" for i in range(lanes))
        lines.append(f"  %{name}{part} = icmp slt {of} <{numbers}>, %{name}_all")
    return lines


def load(shape: Shape, place: str, mask: str) -> str:
    """A vector of what a mask allows, zeros beside it."""
    return (
        f"call {shape.vector} @llvm.masked.load.{shape.suffix}.p0(ptr align {shape.bytes} {place}, "
        f"{shape.mask} {mask}, {shape.vector} zeroinitializer)"
    )
