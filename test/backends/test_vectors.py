"""Each class of kernel becomes vector code as wide as the machine's: none falls to scalar code."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernel_runner import kernel_for

import lamina
import lamina.numpy as jnp
from lamina.backends.target import Target

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
    made = kernel_for(target, f"func.func private @k{signature} {{\n {body}\n}}")
    of, width = ("double", 64) if name in DOUBLE else ("float", 32)
    lanes = target.vector_bits // width  # LLVM may take two registers at a time
    assert any(f"<{n} x {of}>" in made.texts["llvm"] for n in (lanes, 2 * lanes))
    assert "masked.scatter" not in made.texts["llvm"]
    assert not any(name.startswith(("exp", "log", "tanh", "sin", "cos")) for name in made.imports)


@pytest.mark.parametrize("size", [1, 7, 127, 129, 1000, 4099, 600_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_long_chains_of_any_length_of_array(size: int, dtype: str) -> None:
    """Eight vectors at a time, then single ones, then a part of one: of what a core does and of shares."""

    def chain(x, where):
        y = x
        for step in range(90):
            y = y * 3 if step % 3 == 0 else y - x
            if step % 3 == 1:
                y = where(abs(y) > 5, x - step, y)
        return y

    x = (np.arange(size) % 23 - 11).astype(dtype)
    with lamina.enable_x64(dtype == "float64"), np.errstate(over="ignore"):
        compiled = lamina.jit(lambda x: chain(x, jnp.where)).lower(x).compile()
        assert compiled.as_text("fused").count("func.func private") == 1
        np.testing.assert_array_equal(np.asarray(compiled(x)), chain(x, np.where))
