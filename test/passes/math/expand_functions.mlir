// RUN: %lamina-opt %s --pass-pipeline=math-expand-functions | FileCheck %s

// One function for both uses; it is inlined before loops are vectorised.
// CHECK: func.func private @lamina_exp_f32(%arg0: f32) -> f32
// CHECK-SAME: passthrough = ["alwaysinline"]
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK-LABEL: func.func @main
func.func @main(%x: f32, %h: f16) -> (f32, f16) {
  // CHECK: call @lamina_exp_f32(%arg0) : (f32) -> f32
  %0 = math.exp %x : f32
  // CHECK: %[[WIDE:.*]] = arith.extf %arg1 : f16 to f32
  // CHECK: %[[EXP:.*]] = call @lamina_exp_f32(%[[WIDE]]) : (f32) -> f32
  // CHECK: arith.truncf %[[EXP]] : f32 to f16
  %1 = math.exp %h : f16
  return %0, %1 : f32, f16
}

// CHECK-LABEL: func.func @remainder
// CHECK-NEXT: call @lamina_remf_f32(%arg0, %arg1)
func.func @remainder(%x: f32, %y: f32) -> f32 {
  %0 = arith.remf %x, %y : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.erf
func.func @left_alone(%x: f64) -> f64 {
  %0 = math.sqrt %x : f64
  %1 = math.erf %0 : f64
  return %1 : f64
}

// Of one operand both: formulas that have most of their steps in common.
// CHECK-LABEL: func.func @pair
// CHECK-NEXT: call @lamina_sin_beside_f32(%arg0)
// CHECK-NEXT: call @lamina_cos_beside_f32(%arg0)
// CHECK-NEXT: call @lamina_sin_f32(%arg1)
func.func @pair(%x: f32, %y: f32) -> (f32, f32, f32) {
  %0 = math.sin %x : f32
  %1 = math.cos %x : f32
  %2 = math.sin %y : f32
  return %0, %1, %2 : f32, f32, f32
}

// Without vectors in sight, one formula for all arguments.
// CHECK-LABEL: func.func @tangent
// CHECK-NEXT: call @lamina_tan_f32(%arg0)
func.func @tangent(%x: f32) -> f32 {
  %0 = math.tan %x : f32
  return %0 : f32
}

// The root's formula, of scalars and of vectors.
// CHECK-LABEL: func.func @three_halves
// CHECK: call @lamina_three_halves_f64(%arg0, %{{.*}})
// CHECK: call @lamina_three_halves_vector_8xf32(%arg1, %{{.*}})
// CHECK: call @lamina_powf_f64(%arg0, %{{.*}})
// CHECK: call @lamina_inverse_three_halves_f64(%arg0, %{{.*}})
func.func @three_halves(%x: f64, %v: vector<8xf32>) -> (f64, vector<8xf32>, f64, f64) {
  %one_and_a_half = arith.constant 1.5 : f64
  %narrow = arith.constant 1.5 : f32
  %two_and_a_half = arith.constant 2.5 : f64
  %splat = vector.broadcast %narrow : f32 to vector<8xf32>
  %0 = math.powf %x, %one_and_a_half : f64
  %1 = math.powf %v, %splat : vector<8xf32>
  %2 = math.powf %x, %two_and_a_half : f64
  %inverse = arith.constant -1.5 : f64
  %3 = math.powf %x, %inverse : f64
  return %0, %1, %2, %3 : f64, vector<8xf32>, f64, f64
}
