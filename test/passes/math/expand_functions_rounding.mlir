// RUN: %lamina-opt %s --pass-pipeline=math-expand-functions | FileCheck %s

// Denormals count as zero in hardware: they are told by their bits.
// CHECK: func.func private @lamina_floor_f32(%[[X:.*]]: f32)
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK: arith.cmpi ult
// CHECK: %[[DOWN:.*]] = math.floor %[[X]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[DOWN]]
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @lamina_floor_f32
func.func @main(%x: f32) -> f32 {
  %0 = math.floor %x : f32
  return %0 : f32
}
