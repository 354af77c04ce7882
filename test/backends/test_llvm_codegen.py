"""Machine code of LLVM text: the way of selecting instructions is of one module, not of the process."""

from __future__ import annotations

from dataclasses import replace

from lamina.backends.llvm_codegen import FAST, CodegenOptions, Machine, emit

_HASWELL = Machine("x86_64-unknown-linux-gnu", "haswell", "")
_PRODUCT_AND_SUM = """define float @f(float %a, float %b, float %c) {
  %product = fmul contract float %a, %b
  %sum = fadd contract float %product, %c
  ret float %sum
}
"""


def fused(options: CodegenOptions) -> bool:
    code = emit(_PRODUCT_AND_SUM, _HASWELL, options, keep_texts=True)
    assert code.assembly is not None
    return "vfmadd" in code.assembly


def test_what_is_selected_fast_changes_no_other_code() -> None:
    for _ in range(2):
        assert fused(CodegenOptions()) and fused(FAST)
        assert not fused(replace(FAST, select_fast=True))
