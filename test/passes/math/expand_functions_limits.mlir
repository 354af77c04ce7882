// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' | FileCheck %s

// One instruction for zeros, negative numbers, infinities and NaN, where there are sixteen of them.
// CHECK: func.func private @lamina_limits_of_log_x16(%[[X:.*]]: vector<16xf32>, %[[Y:.*]]: vector<16xf32>)
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.fixupimm.ps.512"(%[[Y]], %[[X]],
// CHECK: func.func private @lamina_limits_of_log(%{{.*}}: f32, %{{.*}}: f32)
// CHECK-SAME: "_ZGV_LLVM_N16vv_lamina_limits_of_log(lamina_limits_of_log_x16)"
// CHECK-COUNT-3: arith.select
// CHECK-LABEL: func.func @log
// CHECK-NEXT: call @lamina_log_f32(%arg0)
func.func @log(%x: f32) -> f32 {
  %0 = math.log %x : f32
  return %0 : f32
}
