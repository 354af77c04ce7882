"""Custom calls of ours in programs from outside, with types that they do not have: the loops behind them
trust their sizes."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
from lamina import lax
from lamina.passes.framework.base import CompileError

M = "tensor<4x4xf32>"
EYE = np.eye(4, dtype=np.float32)


def program(call: str, types: str, given: str = M) -> str:
    made = types.split("->")[1].strip().strip("()")
    count = made.count("tensor")
    results = ", ".join(f"%r#{i}" for i in range(count)) if count > 1 else "%r"
    return f"""func.func public @main(%a: {given}) -> ({made}) {{
  %r{f":{count}" if count > 1 else ""} = stablehlo.custom_call @{call} : {types}
  return {results} : {made}
}}"""


WRONG = {
    "a result too few": ("lamina.lapack.getrf(%a)", f"({M}) -> {M}", "has 1 operands and 1 results"),
    "small results": (
        "lamina.lapack.getrf(%a)", f"({M}) -> (tensor<1xf32>, tensor<1xi32>, tensor<i32>)",
        "tensor<1xf32> does not fit",
    ),
    "no operands": (
        "lamina.lapack.getrf()", f"() -> ({M}, tensor<4xi32>, tensor<4xi32>)", "has 0 operands",
    ),
    "another dtype": (
        "lamina.lapack.getrf(%a)", f"({M}) -> (tensor<4x4xf64>, tensor<4xi32>, tensor<4xi32>)",
        "tensor<4x4xf64> does not fit",
    ),
    "pivots of another dtype": (
        "lamina.lapack.getrf(%a)", f"({M}) -> ({M}, tensor<4xi8>, tensor<4xi32>)", "tensor<4xi8> does not fit",
    ),
    "vectors that were not asked for": (
        "lamina.lapack.gesdd(%a)", f"({M}) -> (tensor<4xf32>, {M}, {M})", "has 1 operands and 3 results",
    ),
    "an option that is none": (
        'lamina.lapack.syevd(%a) {api_version = 4 : i32, backend_config = {lower = "x"}}',
        f"({M}) -> ({M}, tensor<4xf32>)", "must be a boolean",
    ),
    "options that are none": (
        'lamina.lapack.syevd(%a) {backend_config = "lower"}', f"({M}) -> ({M}, tensor<4xf32>)",
        "a dictionary of booleans",
    ),
    "too many reflectors": (
        "lamina.lapack.ormqr(%a, %t, %c) {api_version = 4 : i32, backend_config = {left = true}}",
        "(tensor<4x5xf32>, tensor<5xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>", "t <= r",
    ),
    "an op's routine": ("lamina.lapack.trsm(%a, %a)", f"({M}, {M}) -> {M}", "no function of that name"),
    "no function's number": ("lamina.python_callback(%a)", f"({M}) -> {M}", "without the number"),
    "a number below zero": (
        "lamina.python_callback(%a) {api_version = 4 : i32, backend_config = {index = -1 : i64}}",
        f"({M}) -> {M}", "without the number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_other_types_are_refused(kind: str) -> None:
    call, types, message = WRONG[kind]
    text = program(call, types)
    if kind == "too many reflectors":
        text = text.replace(f"%a: {M}", "%a: tensor<4x5xf32>, %t: tensor<5xf32>, %c: tensor<4x2xf32>")
    with pytest.raises(CompileError, match=message) as caught:
        lamina.compile_stablehlo(text)
    assert "<stablehlo>:2" in str(caught.value)


def test_a_matrix_that_lapack_does_not_count() -> None:
    long = "tensor<3000000000x1xf32>"
    types = f"({long}) -> ({long}, tensor<1xi32>, tensor<3000000000xi32>)"
    with pytest.raises(CompileError, match="LAPACK counts to 2147483647"):
        lamina.compile_stablehlo(program("lamina.lapack.getrf(%a)", types, long))


def test_a_python_function_that_is_not_there() -> None:
    call = "lamina.python_callback(%a) {api_version = 4 : i32, backend_config = {index = 7 : i64}}"
    compiled = lamina.compile_stablehlo(program(call, f"({M}) -> {M}"))
    with pytest.raises(lamina.errors.JaxRuntimeError, match="number 7, and it was loaded without"):
        np.asarray(compiled(EYE)[0])


SQUARE = np.arange(18, dtype=np.float32).reshape(2, 3, 3) + 9 * np.eye(3, dtype=np.float32)
ROUTINES = {
    "lu": lambda x: lax.linalg.lu(x),
    "lu of a wide one": lambda x: lax.linalg.lu(x[:, :2]),
    "permutation": lambda x: lax.linalg.lu_pivots_to_permutation(lax.linalg.lu(x)[1], 3),
    "qr": lambda x: lax.linalg.qr(x[..., :2], full_matrices=False),
    "full qr": lambda x: lax.linalg.qr(x[..., :2], full_matrices=True),
    "qr with pivots": lambda x: lax.linalg.qr(x, pivoting=True),
    "ormqr": lambda x: lax.linalg.ormqr(*lax.linalg.geqrf(x), x, left=False),
    "hessenberg": lax.linalg.hessenberg,
    "tridiagonal": lax.linalg.tridiagonal,
    "eigh": lax.linalg.eigh,
    "svd": lambda x: lax.linalg.svd(x[:, :2]),
    "thin svd": lambda x: lax.linalg.svd(x[:, :2], full_matrices=False),
    "singular values": lambda x: lax.linalg.svd(x, compute_uv=False),
    "svd by qr": lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR),
    "eig": lambda x: lax.linalg.eig(x),
    "eigenvalues": lambda x: lax.linalg.eig(
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    ),
    "schur": lax.linalg.schur,
    "schur form": lambda x: lax.linalg.schur(x, compute_schur_vectors=False),
    "tridiagonal_solve": lambda x: lax.linalg.tridiagonal_solve(x[..., 0], x[..., 1], x[..., 2], x),
    "cholesky_update": lambda x: lax.linalg.cholesky_update(x, x[..., 0]),
}


@pytest.mark.parametrize(
    ("routine", "dtype"),
    [(name, dtype) for name in ROUTINES for dtype in (np.float32, np.complex64)
     if name != "cholesky_update" or dtype is np.float32],
)  # fmt: skip
def test_what_a_frontend_writes_is_what_the_types_say(routine: str, dtype: type) -> None:
    """Through text, as another program would bring it."""
    x = SQUARE.astype(dtype)
    lowered = lamina.jit(lambda x: _several(ROUTINES[routine](x))).lower(x)
    text = lowered.as_text()
    assert "lamina.lapack." in text
    for found, expected in zip(lamina.compile_stablehlo(text)(x), lowered.compile()(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def _several(given: object) -> tuple:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)
