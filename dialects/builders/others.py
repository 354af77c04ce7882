"""Builders of ops that stand alone: random bits, linear algebra, FFT, custom calls, CHLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.dialects.builders.arrays import constant
from lamina.dialects.builders.creation import Value, create, dims_attribute, i32, i64, tensor
from lamina.dialects.types import dtype_of, tensor_type
from lamina.dialects.vendors import ir, stablehlo_ext


def rng_bit_generator(
    state: Value, shape: Sequence[int], dtype: Any, algorithm: str = "DEFAULT"
) -> list[Value]:
    """The next state and random bits; algorithm is DEFAULT, THREE_FRY or PHILOX."""
    op = create(
        "stablehlo.rng_bit_generator",
        results=[state.type, tensor_type(shape, dtype)],
        operands=[state],
        attributes={"rng_algorithm": stablehlo_ext.RngAlgorithmAttr.get(algorithm)},
    )
    return list(op.results)


def rng(a: Value, b: Value, shape: Sequence[int], distribution: str) -> Value:
    """Random numbers; distribution is UNIFORM in [a, b) or NORMAL of mean a and deviation b."""
    return create(
        "stablehlo.rng",
        results=[tensor_type(shape, dtype_of(a.type))],
        operands=[a, b, constant(np.asarray(shape, np.int64))],
        attributes={"rng_distribution": stablehlo_ext.RngDistributionAttr.get(distribution)},
    ).result


def optimization_barrier(xs: Sequence[Value]) -> list[Value]:
    """The same values, across which no pass moves anything."""
    op = create("stablehlo.optimization_barrier", results=[x.type for x in xs], operands=list(xs))
    return list(op.results)


def fft(x: Value, kind: str, length: Sequence[int]) -> Value:
    """The Fourier transform FFT, IFFT, RFFT or IRFFT over the last len(length) dimensions."""
    return create(
        "stablehlo.fft",
        operands=[x],
        attributes={
            "fft_type": stablehlo_ext.FftTypeAttr.get(kind),
            "fft_length": dims_attribute(length),
        },
        infer_type=True,
    ).result


def cholesky(x: Value, lower: bool) -> Value:
    """The Cholesky factor of each matrix."""
    return create(
        "stablehlo.cholesky",
        results=[x.type],
        operands=[x],
        attributes={"lower": ir.BoolAttr.get(lower)},
    ).result


def triangular_solve(
    a: Value, b: Value, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Value:
    """x with op(a) x = b, or x op(a) = b; transpose_a is NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
    return create(
        "stablehlo.triangular_solve",
        results=[b.type],
        operands=[a, b],
        attributes={
            "left_side": ir.BoolAttr.get(left_side),
            "lower": ir.BoolAttr.get(lower),
            "unit_diagonal": ir.BoolAttr.get(unit_diagonal),
            "transpose_a": stablehlo_ext.TransposeAttr.get(transpose_a),
        },
    ).result


def custom_call(
    target: str,
    operands: Sequence[Value],
    result_types: Sequence[ir.Type],
    *,
    has_side_effect: bool = False,
    backend_config: ir.Attribute | None = None,
) -> list[Value]:
    """A call to something StableHLO does not define, found by name by the backend."""
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(target),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
    }
    if backend_config is not None:
        # 4 is the API version whose configuration is a dictionary.
        version = 4 if isinstance(backend_config, ir.DictAttr) else 2
        attributes |= {"backend_config": backend_config, "api_version": i32(version)}
    op = create(
        "stablehlo.custom_call",
        results=list(result_types),
        operands=list(operands),
        attributes=attributes,
    )
    return list(op.results)


def lapack(
    routine: str, operands: Sequence[Value], results: Sequence[Any], **options: bool
) -> list[Value]:
    """A routine of LAPACK on each matrix of a batch; results are given by shape and dtype."""
    config = {name: ir.BoolAttr.get(value) for name, value in options.items()}
    return custom_call(
        f"lamina.lapack.{routine}",
        operands,
        [tensor_type(of.shape, of.dtype) for of in results],
        backend_config=ir.DictAttr.get(config) if config else None,
    )


def chlo(
    name: str,
    operands: Sequence[Value],
    result_type: ir.Type,
    attributes: dict[str, ir.Attribute] | None = None,
) -> Value:
    """`chlo.<name>` (erf, erf_inv, lgamma, ...), which chlo-legalize-to-stablehlo expands."""
    return create(
        f"chlo.{name}", results=[result_type], operands=list(operands), attributes=attributes
    ).result


def top_k(x: Value, k: int) -> list[Value]:
    """The k greatest elements of the last dimension, the greatest first, and their places."""
    shape = [*x.type.shape[:-1], k]
    op = create(
        "chlo.top_k",
        results=[tensor(shape, x.type.element_type), tensor_type(shape, np.int32)],
        operands=[x],
        attributes={"k": i64(k)},
    )
    return list(op.results)
