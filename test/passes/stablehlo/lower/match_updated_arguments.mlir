// RUN: %lamina-opt %s --pass-pipeline=stablehlo-match-updated-arguments | FileCheck %s

// CHECK-LABEL: func.func @other_shape(%arg0: tensor<20xf32> {lamina.inout = 0 : i32}) -> tensor<20xf32>
// CHECK: stablehlo.reshape %arg0 : (tensor<20xf32>) -> tensor<4x5xf32>
func.func @other_shape(%x: tensor<4x5xf32> {lamina.inout = 0 : i32}) -> tensor<20xf32> {
  %0 = stablehlo.add %x, %x : tensor<4x5xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x5xf32>) -> tensor<20xf32>
  return %1 : tensor<20xf32>
}

// CHECK-LABEL: func.func @same(%arg0: tensor<4xf32> {lamina.inout = 0 : i32}, %arg1: tensor<2x2xf32>)
// CHECK-NEXT: stablehlo.add
func.func @same(%x: tensor<4xf32> {lamina.inout = 0 : i32}, %y: tensor<2x2xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
