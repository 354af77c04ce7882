// RUN: %lamina-opt %s --pass-pipeline=stablehlo-define-reductions | FileCheck %s

// CHECK-LABEL: func.func @wider
// CHECK: %[[X:.*]] = stablehlo.convert %arg0 : (tensor<4xf16>) -> tensor<4xf32>
// CHECK: %[[I:.*]] = stablehlo.convert %arg1 : (tensor<f16>) -> tensor<f32>
// CHECK: stablehlo.reduce(%[[X]] init: %[[I]])
func.func @wider(%x: tensor<4xf16>, %init: tensor<f16>) -> tensor<f32> {
  %0 = "stablehlo.reduce"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf16>, tensor<f16>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @barrier
// CHECK-NEXT: return %arg0
func.func @barrier(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @same
// CHECK-NOT: stablehlo.convert
func.func @same(%x: tensor<4xf32>, %init: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
