"""Prefetches: in loops over what is not in the cache, and in no others."""

from __future__ import annotations

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.backends.prefetch import with_prefetches

LOOP = """define void @f(ptr %a, ptr %b) {
vector.ph:
  %first = load <16 x float>, ptr %a, align 4
  br label %vector.body

vector.body:                                      ; preds = %vector.body, %vector.ph
  %wide.load = load <16 x float>, ptr %a, align 4
  br label %inlined.exit

inlined.exit:
  store <16 x float> %wide.load, ptr %b, align 4
  br i1 poison, label %middle.block, label %vector.body

middle.block:                                     ; preds = %vector.body
  store <16 x float> %first, ptr %b, align 4
  ret void
}
"""


def test_loads_and_stores_of_the_loop() -> None:
    lines = [line.strip() for line in with_prefetches(LOOP, 2048).splitlines()]
    at = lines.index("%wide.load = load <16 x float>, ptr %a, align 4")
    assert lines[at + 1 : at + 3] == [
        "%lamina.ahead.0 = getelementptr i8, ptr %a, i64 2048",
        "call void @llvm.prefetch.p0(ptr %lamina.ahead.0, i32 0, i32 3, i32 1)",
    ]
    at = lines.index("store <16 x float> %wide.load, ptr %b, align 4")
    assert lines[at + 2] == "call void @llvm.prefetch.p0(ptr %lamina.ahead.1, i32 1, i32 3, i32 1)"
    assert sum("call void @llvm.prefetch" in line for line in lines) == 2


def test_no_loop_is_left_as_it_is() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert with_prefetches(text, 2048) == text


@pytest.mark.parametrize(
    ("shape", "axis", "is_asked_ahead"),
    [((1 << 20,), None, True), ((1 << 14,), None, False), ((2048, 2048), 0, False)],
    ids=["large", "small", "reduction"],
)
def test_kernels(shape: tuple[int, ...], axis: int | None, is_asked_ahead: bool) -> None:
    def program(x):
        return jnp.tanh(x) if axis is None else jnp.sum(x, axis)

    code = lamina.jit(program).lower(np.zeros(shape, np.float32)).compile().as_text("llvm")
    assert ("@llvm.prefetch" in code) == is_asked_ahead
