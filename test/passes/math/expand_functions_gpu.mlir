// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{gpu=true}' | FileCheck %s

// GPUs have an instruction for powers of two. For 16 bits it alone is exact enough.
// CHECK: func.func private @lamina_exp_rounded_f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK-NOT: math.fma
// CHECK: func.func private @lamina_exp_f32
// CHECK: llvm.inline_asm {{.*}}fma.rn.sat.f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.fma.rm.f"
// CHECK-COUNT-2: math.fma
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @lamina_exp_f32(%arg0) : (f32) -> f32
// CHECK: call @lamina_exp_rounded_f32
// CHECK: call @lamina_exp_f64(%arg2) : (f64) -> f64
func.func @main(%x: f32, %h: f16, %d: f64) -> (f32, f16, f64) {
  %0 = math.exp %x : f32
  %1 = math.exp %h : f16
  %2 = math.exp %d : f64
  return %0, %1, %2 : f32, f16, f64
}
