"""Each class of kernel becomes vector code as wide as the machine's: none falls to scalar code."""

from __future__ import annotations

import pytest

from lamina.backends.cpu.kernel import compile_kernel
from lamina.backends.target import Target
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir

OF, ROWS, COLUMN = "tensor<4096xf32>", "tensor<64x512xf32>", "tensor<1048576x1xf32>"
INDICES = "tensor<4096xi32>"


def unary(op: str) -> tuple[str, str]:
    return f"(%x: {OF}) -> {OF}", f"%r = stablehlo.{op} %x : {OF}\n return %r : {OF}"


def reduction(axis: int) -> tuple[str, str]:
    result = f"tensor<{(512, 64)[axis]}xf32>"
    return f"(%x: {ROWS}) -> {result}", f"""
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [{axis}]
        : ({ROWS}, tensor<f32>) -> {result}
      return %r : {result}"""


DOUBLE = ("cbrt", "sine", "sine and cosine")
KERNELS = {
    **{op: unary(op) for op in ("exponential", "log", "tanh", "logistic", "rsqrt")},
    "row sum": reduction(1),
    "column sum": reduction(0),
    "gather": (  # its indices are computed where they are needed
        f"(%x: {OF}, %i: {INDICES}) -> {OF}",
        f"""%j = stablehlo.add %i, %i : {INDICES}
          %r = "stablehlo.gather"(%x, %j) <{{dimension_numbers = #stablehlo.gather<
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
            slice_sizes = array<i64: 1>}}> : ({OF}, {INDICES}) -> {OF}
          return %r : {OF}""",
    ),
    "one column": (  # its long dimension is the innermost loop
        f"(%x: {COLUMN}) -> {COLUMN}",
        f"%r = stablehlo.add %x, %x : {COLUMN}\n return %r : {COLUMN}",
    ),
    # computed in f64
    "cbrt": unary("cbrt"),
    "sine": unary("sine"),
    "sine and cosine": (
        f"(%x: {OF}) -> {OF}",
        f"%s = stablehlo.sine %x : {OF}\n %c = stablehlo.cosine %x : {OF}\n"
        f" %r = stablehlo.add %s, %c : {OF}\n return %r : {OF}",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_vectors_fill_the_machine_s(name: str) -> None:
    signature, body = KERNELS[name]
    target = Target.host()
    with context(), ir.Location.unknown():
        module = parse(f"func.func private @k{signature} {{\n {body}\n}}")
        made = compile_kernel(module.body.operations[0].operation, target, keep_texts=True)
    of, width = ("double", 64) if name in DOUBLE else ("float", 32)
    lanes = target.vector_bits // width  # LLVM may take two registers at a time
    assert any(f"<{n} x {of}>" in made.texts["llvm"] for n in (lanes, 2 * lanes))
    assert "masked.scatter" not in made.texts["llvm"]
    assert not any(name.startswith(("exp", "log", "tanh", "sin", "cos")) for name in made.imports)
