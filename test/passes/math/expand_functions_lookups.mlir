// RUN: %lamina-opt %s --pass-pipeline='math-expand-functions{vector-bits=512}' | FileCheck %s

// Sine and cosine look up the next of 32 angles: in memory where there is one argument, in registers
// where there are sixteen. Of one operand both look up the same.
// CHECK: func.func private @lamina_cos_f32(
// CHECK: call @lamina_lookup_angles_beyond
// CHECK: func.func private @lamina_lookup_angles_cos_x16(%[[AT:.*]]: vector<16xi32>)
// CHECK-SAME: llvm.passthrough = ["alwaysinline"]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.ps.512"(%{{.*}}, %[[AT]], %{{.*}})
// CHECK: func.func private @lamina_lookup_angles_cos(%[[AT:.*]]: i32)
// CHECK-SAME: "_ZGV_LLVM_N16v_lamina_lookup_angles_cos(lamina_lookup_angles_cos_x16)"
// CHECK: %[[ROW:.*]] = arith.andi %[[AT]]
// CHECK: memref.get_global @lamina_table_angles_cos
// CHECK: memref.load
// CHECK: func.func private @lamina_sin_f32(
// CHECK-LABEL: func.func @pair
// CHECK-NEXT: call @lamina_sin_f32(%arg0)
// CHECK-NEXT: call @lamina_cos_f32(%arg0)
func.func @pair(%x: f32) -> (f32, f32) {
  %0 = math.sin %x : f32
  %1 = math.cos %x : f32
  return %0, %1 : f32, f32
}

// CHECK-LABEL: func.func @vector
// CHECK-NEXT: call @lamina_sin_vector_16xf32(%arg0)
func.func @vector(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sin %x : vector<16xf32>
  return %0 : vector<16xf32>
}
