// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' | FileCheck %s

// The processor's guess of fourteen bits and one step; the same guess where there is one argument.
// CHECK: func.func private @lamina_rsqrt_guess_x16(%[[X:.*]]: vector<16xf32>)
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.rsqrt14.ps.512"(%[[X]],
// CHECK: func.func private @lamina_rsqrt_guess(%[[X:.*]]: f32)
// CHECK: %[[MANY:.*]] = llvm.insertelement %[[X]]
// CHECK: %[[GUESS:.*]] = llvm.call_intrinsic "llvm.x86.avx512.rsqrt14.ps.512"(%[[MANY]],
// CHECK: llvm.extractelement %[[GUESS]]
// CHECK: func.func private @lamina_rsqrt_f32(
// CHECK: call @lamina_rsqrt_guess
// CHECK: call @lamina_limits_of_rsqrt
// CHECK-LABEL: func.func @rsqrt
// CHECK-NEXT: call @lamina_rsqrt_f32(%arg0)
func.func @rsqrt(%x: f32) -> f32 {
  %0 = math.rsqrt %x : f32
  return %0 : f32
}
