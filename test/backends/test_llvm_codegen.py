"""TargetMachine code of LLVM text: the way of selecting instructions is of one module, not of the process."""

from __future__ import annotations

from dataclasses import replace

from lamina.backends.llvm_codegen import FAST, CodegenOptions, TargetMachine, emit

_HASWELL = TargetMachine("x86_64-unknown-linux-gnu", "haswell", "")
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


_ROW = """define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %from = getelementptr <8 x float>, ptr %x, i64 %i
  %v = load <8 x float>, ptr %from
  %to = getelementptr <8 x float>, ptr %y, i64 %i
  store <8 x float> %v, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def instructions(options: CodegenOptions) -> list[str]:
    code = emit(_ROW, _HASWELL, options, keep_texts=True).assembly or ""
    return [line.split()[0] for line in code.splitlines() if line.startswith("\t") and line[1] != "."]


def test_strength_is_reduced_where_it_is_asked_for() -> None:
    counting = replace(CodegenOptions(), passes=(), reduce_strength=True)
    for _ in range(2):
        one, other = instructions(counting), instructions(replace(counting, reduce_strength=False))
        assert one != other
