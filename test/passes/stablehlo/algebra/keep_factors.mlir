// RUN: %lamina-opt %s --stablehlo-keep-factors | FileCheck %s

// CHECK: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @turned
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: linalg.contract indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%arg0, %[[E]] {{.*}} outs(%[[ZEROS]]
func.func @turned(%a: tensor<64x32xf32>, %b: tensor<64x128xf32>) -> tensor<32x128xf32> {
  %0 = stablehlo.exponential %b : tensor<64x128xf32>
  %1 = stablehlo.dot_general %a, %0, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
  return %1 : tensor<32x128xf32>
}

// CHECK-LABEL: func.func @batches
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %arg1 : tensor<3x4x5xf64>, tensor<5x3x6xf64>)
func.func @batches(%a: tensor<3x4x5xf64>, %b: tensor<5x3x6xf64>) -> tensor<3x4x6xf64> {
  %0 = stablehlo.abs %a : tensor<3x4x5xf64>
  %1 = stablehlo.dot_general %0, %b, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<3x4x5xf64>, tensor<5x3x6xf64>) -> tensor<3x4x6xf64>
  return %1 : tensor<3x4x6xf64>
}

// Factors from memory, and other numbers, stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: stablehlo.dot_general
func.func @others(%a: tensor<8x8xf32>, %b: tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.abs %b : tensor<8x8xi32>
  %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0] : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xi32>
}
