// RUN: %lamina-opt %s --pass-pipeline=stablehlo-drop-empty-tensors | FileCheck %s

// CHECK-LABEL: func.func @concatenate
// CHECK-NEXT: return %arg0
func.func @concatenate(%x: tensor<3xf32>, %y: tensor<0xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %y, %y : tensor<0xf32>
  %1 = stablehlo.concatenate %x, %0, dim = 0 : (tensor<3xf32>, tensor<0xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK-LABEL: func.func @pad
// CHECK-NEXT: stablehlo.broadcast_in_dim %arg1
func.func @pad(%x: tensor<0xf32>, %y: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.pad %x, %y, low = [1], high = [2], interior = [0] : (tensor<0xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @contraction
// CHECK-NEXT: stablehlo.constant dense<0.000000e+00> : tensor<2x3xf32>
func.func @contraction(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reduction
// CHECK-NEXT: stablehlo.broadcast_in_dim %arg1
func.func @reduction(%x: tensor<2x0xf32>, %init: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<2x0xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @not_empty
// CHECK-NEXT: stablehlo.add
func.func @not_empty(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
