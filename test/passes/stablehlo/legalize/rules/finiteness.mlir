// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @small
// CHECK: %[[WIDE:.*]] = stablehlo.convert %arg0 : (tensor<2xf8E4M3FN>) -> tensor<2xf32>
// CHECK: stablehlo.is_finite %[[WIDE]]
func.func @small(%x: tensor<2xf8E4M3FN>) -> tensor<2xi1> {
  %0 = stablehlo.is_finite %x : (tensor<2xf8E4M3FN>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}

// CHECK-LABEL: func.func @usual
// CHECK-NEXT: stablehlo.is_finite
func.func @usual(%x: tensor<2xbf16>) -> tensor<2xi1> {
  %0 = stablehlo.is_finite %x : (tensor<2xbf16>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
