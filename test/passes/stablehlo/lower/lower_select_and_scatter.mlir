// RUN: %lamina-opt %s --pass-pipeline=stablehlo-lower-select-and-scatter | FileCheck %s

// CHECK-LABEL: func.func @max_pool_gradient
// CHECK: stablehlo.broadcast_in_dim %arg2
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.cmpi ult
// CHECK: stablehlo.compare{{ *}}GE
// CHECK: stablehlo.add
// CHECK: tensor.insert
// CHECK-NOT: select_and_scatter
func.func @max_pool_gradient(%x: tensor<10xf32>, %s: tensor<5xf32>, %init: tensor<f32>) -> tensor<10xf32> {
  %0 = "stablehlo.select_and_scatter"(%x, %s, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<10xf32>, tensor<5xf32>, tensor<f32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}
