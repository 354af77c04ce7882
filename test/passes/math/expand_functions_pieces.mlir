// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' | FileCheck %s

// The coefficients of the piece that an argument lies in: as many look-ups as there are.
// CHECK-LABEL: func.func private @lamina_tanh_f32(
// CHECK-NOT: math.exp
// CHECK: call @lamina_lookup_tanh_6
// CHECK-COUNT-5: math.fma
// CHECK: math.copysign
// CHECK-LABEL: func.func @tanh
// CHECK-NEXT: call @lamina_tanh_f32(%arg0)
func.func @tanh(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  return %0 : f32
}
