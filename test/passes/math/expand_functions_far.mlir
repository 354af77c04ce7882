// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' --split-input-file | FileCheck %s

// What huge arguments need is a function of its own, with variants for vectors that jump over it
// where no lane has one, and make the loop's registers no fewer: it is rare.
// CHECK-DAG: func.func private @lamina_tan_f32_mend_x16(%[[X:.*]]: vector<16xf32>, %[[NEAR:.*]]: vector<16xf32>){{.*}}llvm.passthrough = ["alwaysinline"]
// CHECK: %[[FAR:.*]] = arith.cmpf oge
// CHECK: %[[ANY:.*]] = "llvm.intr.vector.reduce.or"(%[[FAR]])
// CHECK: cf.cond_br %[[ANY]] weights([1, 2000]), ^[[WORK:.*]], ^[[END:.*]](%[[NEAR]] : vector<16xf32>)
// CHECK: func.func private @lamina_tan_f32_mend_x8(
// CHECK: func.func private @lamina_tan_f32_far(%{{.*}}: f32)
// CHECK-SAME: "noinline"
// CHECK: func.func private @lamina_tan_f32_mend(%[[X:.*]]: f32, %{{.*}}: f32)
// CHECK-SAME: "_ZGV_LLVM_N16vv_lamina_tan_f32_mend(lamina_tan_f32_mend_x16),_ZGV_LLVM_N8vv_lamina_tan_f32_mend(lamina_tan_f32_mend_x8)"
// CHECK: call @lamina_tan_f32_far(%[[X]])
// CHECK: func.func private @lamina_tan_f32(%[[X:.*]]: f32)
// CHECK-SAME: llvm.passthrough = ["alwaysinline"]
// CHECK: %[[NEAR:.*]] = arith.truncf
// CHECK-NEXT: call @lamina_tan_f32_mend(%[[X]], %[[NEAR]])
// CHECK-LABEL: func.func @scalar
// CHECK-NEXT: call @lamina_tan_f32(%arg0)
func.func @scalar(%x: f32) -> f32 {
  %0 = math.tan %x : f32
  return %0 : f32
}

// A vector asks for itself.
// CHECK-LABEL: func.func @vector
// CHECK-NEXT: call @lamina_tan_vector_4xf32(%arg0)
func.func @vector(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.tan %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// -----

// Of f64 the long formula is there once, compiled quickly: scalars and shorter vectors call it, too.
// CHECK-LABEL: func.func private @lamina_sin_f64_far_x8(
// CHECK-SAME: ["noinline", "optnone"]
// CHECK: func.func private @lamina_sin_f64_mend_x8(
// CHECK: call @lamina_sin_f64_far_x8(
// CHECK: func.func private @lamina_sin_f64_mend_x4(
// CHECK: vector.shuffle
// CHECK: call @lamina_sin_f64_far_x8(
// CHECK: func.func private @lamina_sin_f64_far(%{{.*}}: f64)
// CHECK: vector.broadcast
// CHECK: func.func private @lamina_sin_f64(%[[X:.*]]: f64)
// CHECK: %[[SHIFTED:.*]] = math.fma %[[X]],
// CHECK: call @lamina_sin_f64_mend(%[[X]],
// CHECK-LABEL: func.func @double
func.func @double(%x: f64) -> f64 {
  %0 = math.sin %x : f64
  return %0 : f64
}
