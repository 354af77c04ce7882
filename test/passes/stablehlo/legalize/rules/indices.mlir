// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @unsigned
// CHECK: %[[MOST:.*]] = stablehlo.constant dense<9223372036854775807> : tensor<ui64>
// CHECK: %[[INDEX:.*]] = stablehlo.minimum %arg1, %[[MOST]]
// CHECK: stablehlo.dynamic_slice %arg0, %[[INDEX]]
func.func @unsigned(%x: tensor<9xf32>, %i: tensor<ui64>) -> tensor<3xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<9xf32>, tensor<ui64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @narrower
// CHECK-NEXT: stablehlo.dynamic_slice %arg0, %arg1
func.func @narrower(%x: tensor<9xf32>, %i: tensor<ui32>) -> tensor<3xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<9xf32>, tensor<ui32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
