// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @of_f64
// CHECK-NOT: chlo.erf
// CHECK-NOT: stablehlo.divide
// CHECK-COUNT-1: stablehlo.exponential
// CHECK-NOT: stablehlo.exponential
// CHECK: stablehlo.select
// CHECK: %[[RESULT:.*]] = stablehlo.select
// CHECK-NEXT: return %[[RESULT]]
func.func @of_f64(%x: tensor<2xf64>) -> tensor<2xf64> {
  %0 = chlo.erf %x : tensor<2xf64> -> tensor<2xf64>
  return %0 : tensor<2xf64>
}

// The others are left to upstream.
// CHECK-LABEL: func.func @of_f32
// CHECK-NEXT: chlo.erf
func.func @of_f32(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
