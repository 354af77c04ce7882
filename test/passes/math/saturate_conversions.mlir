// RUN: %lamina-opt %s --pass-pipeline=math-saturate-conversions | FileCheck %s

// CHECK-LABEL: func.func @to_i32
// CHECK: %[[LIMIT:.*]] = arith.constant 2.14748365E+9 : f32
// CHECK: %[[IN:.*]] = arith.cmpf olt, %{{.*}}, %[[LIMIT]] : f32
// CHECK: %[[SAFE:.*]] = arith.select %[[IN]], %arg0, %{{.*}} : f32
// CHECK: %[[VALUE:.*]] = arith.fptosi %[[SAFE]] : f32 to i32
// CHECK: arith.constant -2147483648 : i32
// CHECK: arith.constant 2147483647 : i32
// CHECK: arith.select %[[IN]], %[[VALUE]], %{{.*}} : i32
func.func @to_i32(%x: f32) -> i32 {
  %0 = arith.fptosi %x : f32 to i32
  return %0 : i32
}

// A narrow integer is cut from an i32 that holds its limits.
// CHECK-LABEL: func.func @to_u8
// CHECK: arith.fptosi %{{.*}} : f32 to i32
// CHECK: arith.trunci %{{.*}} : i32 to i8
// CHECK: arith.constant -1 : i8
func.func @to_u8(%x: f32) -> i8 {
  %0 = arith.fptoui %x : f32 to i8
  return %0 : i8
}

// CHECK-LABEL: func.func @others
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: return
func.func @others(%x: i32) -> f32 {
  %0 = arith.sitofp %x : i32 to f32
  return %0 : f32
}
