// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' | FileCheck %s

// What huge arguments need is a function of its own, with variants for vectors that jump over it
// where no lane has one.
// CHECK: func.func private @lamina_sin_f32_far_x16(%[[X:.*]]: vector<16xf32>, %[[WANTED:.*]]: vector<16xi1>)
// CHECK-SAME: llvm.passthrough = ["alwaysinline"]
// CHECK: %[[ANY:.*]] = "llvm.intr.vector.reduce.or"(%[[WANTED]])
// CHECK: cf.cond_br %[[ANY]], ^[[WORK:.*]], ^[[END:.*]](%[[X]] : vector<16xf32>)
// CHECK: func.func private @lamina_sin_f32_far_x8(
// CHECK: func.func private @lamina_sin_f32_far(%{{.*}}: f32)
// CHECK-SAME: "noinline"
// CHECK-SAME: "_ZGV_LLVM_M16v_lamina_sin_f32_far(lamina_sin_f32_far_x16),_ZGV_LLVM_M8v_lamina_sin_f32_far(lamina_sin_f32_far_x8)"
// CHECK: func.func private @lamina_sin_f32(%[[X:.*]]: f32)
// CHECK-SAME: llvm.passthrough = ["alwaysinline"]
// CHECK: %[[FAR:.*]] = arith.cmpf oge
// CHECK: cf.cond_br %[[FAR]]
// CHECK: call @lamina_sin_f32_far(%[[X]])
// CHECK-LABEL: func.func @scalar
// CHECK-NEXT: call @lamina_sin_f32(%arg0)
func.func @scalar(%x: f32) -> f32 {
  %0 = math.sin %x : f32
  return %0 : f32
}

// A vector asks for itself.
// CHECK-LABEL: func.func @vector
// CHECK-NEXT: call @lamina_cos_vector_4xf32(%arg0)
func.func @vector(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.cos %x : vector<4xf32>
  return %0 : vector<4xf32>
}
