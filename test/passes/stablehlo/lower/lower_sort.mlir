// RUN: %lamina-opt %s --pass-pipeline=stablehlo-lower-sort | FileCheck %s

// Two buffers of two halves; the comparator stands in the innermost loop, asked whether the right run goes first.
// CHECK-LABEL: func.func @two_operands
// CHECK-DAG: memref.alloc() : memref<2x5xi32>
// CHECK-DAG: memref.alloc() : memref<2x5xf32>
// CHECK: scf.for
// CHECK: stablehlo.compare{{ *}}LT
// CHECK: tensor.insert
// CHECK-NOT: stablehlo.sort
func.func @two_operands(%x: tensor<3x5xui32>, %y: tensor<3x5xf32>) -> (tensor<3x5xui32>, tensor<3x5xf32>) {
  %0:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<ui32>, %b: tensor<ui32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x5xui32>, tensor<3x5xf32>) -> (tensor<3x5xui32>, tensor<3x5xf32>)
  return %0#0, %0#1 : tensor<3x5xui32>, tensor<3x5xf32>
}
