// RUN: %lamina-opt %s --pass-pipeline=math-order-scalars | FileCheck %s

// CHECK-LABEL: func.func @least
// CHECK: %[[L:.*]] = arith.cmpf olt, %arg0, %arg1 : f64
// CHECK: %[[X:.*]] = arith.select %[[L]], %arg0, %arg1 : f64
// CHECK: %[[XB:.*]] = arith.bitcast %[[X]] : f64 to i64
// CHECK: %[[R:.*]] = arith.cmpf olt, %arg1, %arg0 : f64
// CHECK: %[[Y:.*]] = arith.select %[[R]], %arg1, %arg0 : f64
// CHECK: %[[YB:.*]] = arith.bitcast %[[Y]] : f64 to i64
// CHECK: arith.ori %[[XB]], %[[YB]] : i64
func.func @least(%a: f64, %b: f64) -> f64 {
  %0 = arith.minimumf %a, %b : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @greatest
// CHECK-COUNT-2: arith.negf
// CHECK: arith.ori {{.*}} : i32
// CHECK: arith.negf
func.func @greatest(%a: f32, %b: f32) -> f32 {
  %0 = arith.maximumf %a, %b : f32
  return %0 : f32
}

// In loops, of vectors, of other types.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-3: arith.minimumf
func.func @left_alone(%x: memref<9xf32>, %v: vector<4xf32>, %h: bf16) -> (vector<4xf32>, bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %a = memref.load %x[%i] : memref<9xf32>
    %b = arith.minimumf %a, %a : f32
    memref.store %b, %x[%i] : memref<9xf32>
  }
  %0 = arith.minimumf %v, %v : vector<4xf32>
  %1 = arith.minimumf %h, %h : bf16
  return %0, %1 : vector<4xf32>, bf16
}
