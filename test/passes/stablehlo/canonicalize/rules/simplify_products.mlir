// RUN: %lamina-opt %s --pass-pipeline=stablehlo-simplify | FileCheck %s

// CHECK-LABEL: func.func @outer
// CHECK: %[[X:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<5x3xf32>) -> tensor<5x3x4xf32>
// CHECK: %[[Y:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<5x4xf32>) -> tensor<5x3x4xf32>
// CHECK: %[[Z:.*]] = stablehlo.multiply %[[X]], %[[Y]]
// CHECK: return %[[Z]]
func.func @outer(%x: tensor<5x3xf32>, %y: tensor<5x4xf32>) -> tensor<5x3x4xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<5x3x4xf32>
  return %0 : tensor<5x3x4xf32>
}

// A column by a row, wider than they are.
// CHECK-LABEL: func.func @column_by_row
// CHECK-DAG: stablehlo.convert {{.*}}bf16>) -> tensor<{{.*}}f32>
// CHECK: stablehlo.multiply {{.*}} : tensor<3x4xf32>
// CHECK-NOT: stablehlo.dot_general
func.func @column_by_row(%x: tensor<3x1xbf16>, %y: tensor<1x4xbf16>) -> tensor<3x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x1xbf16>, tensor<1x4xbf16>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @product
// CHECK: stablehlo.dot_general
func.func @product(%x: tensor<3x2xf32>, %y: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
