"""Calls of LLVM's intrinsics, for what no dialect has an op."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir


def call_intrinsic(name: str, operands: Sequence[ir.Value], result: ir.Type | None = None) -> ir.Value | None:
    """A call of `llvm.<...>`, and what it gives, if anything."""
    op = ir.Operation.create(
        "llvm.call_intrinsic",
        results=[] if result is None else [result],
        operands=list(operands),
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return None if result is None else op.results[0]
