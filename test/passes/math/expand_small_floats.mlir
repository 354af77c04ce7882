// RUN: %lamina-opt %s --pass-pipeline=math-expand-small-floats | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='math-expand-small-floats{native=bf16}' | FileCheck %s --check-prefix=NATIVE

// CHECK-LABEL: func.func @add_bf16
// CHECK: %[[CODE:.*]] = arith.bitcast %arg0 : bf16 to i16
// CHECK: %[[WIDE:.*]] = arith.extui %[[CODE]] : i16 to i32
// CHECK: arith.shli %[[WIDE]]
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK: arith.bitcast %{{.*}} : i16 to bf16

// NATIVE-LABEL: func.func @add_bf16
// NATIVE: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// NATIVE-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
// NATIVE-NEXT: return %[[ROUNDED]]
func.func @add_bf16(%a: bf16, %b: bf16) -> bf16 {
  %0 = arith.addf %a, %b : bf16
  return %0 : bf16
}

// A constant operand is widened here; the comparison gives its truth as it is.
// CHECK-LABEL: func.func @compare_f8
// CHECK: %[[ONE:.*]] = arith.constant 1.500000e+00 : f32
// CHECK: arith.cmpf olt, %{{.*}}, %[[ONE]] : f32
func.func @compare_f8(%a: f8E4M3FN) -> i1 {
  %one = arith.constant 1.5 : f8E4M3FN
  %0 = arith.cmpf olt, %a, %one : f8E4M3FN
  return %0 : i1
}

// One rounding, in integers of f64's width.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: arith.truncf
// CHECK: arith.trunci %{{.*}} : i64 to i16
func.func @narrow(%a: f64) -> bf16 {
  %0 = arith.truncf %a : f64 to bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @moves
// CHECK-NEXT: arith.select
// CHECK-NEXT: return
func.func @moves(%p: i1, %a: f8E5M2, %b: f8E5M2) -> f8E5M2 {
  %0 = arith.select %p, %a, %b : f8E5M2
  return %0 : f8E5M2
}

// An op on vectors that says so is left to the processor.
// CHECK-LABEL: func.func @native
// CHECK: arith.truncf %arg0 {lamina.native} : vector<16xf32> to vector<16xbf16>
// CHECK: arith.trunci %{{.*}} : i32 to i16
func.func @native(%x: vector<16xf32>, %y: f32) -> (vector<16xbf16>, bf16) {
  %0 = arith.truncf %x {lamina.native} : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %y {lamina.native} : f32 to bf16
  return %0, %1 : vector<16xbf16>, bf16
}
