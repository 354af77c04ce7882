// RUN: %lamina-opt %s --stablehlo-lay-out-contractions | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-lay-out-contractions --stablehlo-simplify --stablehlo-fuse | FileCheck %s --check-prefix=FUSED

// The summed dimensions of the left operand have another one between them.
// CHECK-LABEL: func.func @left
func.func @left(%a: tensor<8x64x16xf32>, %b: tensor<8x16x32xf32>) -> tensor<64x32xf32> {
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<8x64x16xf32>) -> tensor<64x8x16xf32>
  // CHECK-NEXT: stablehlo.dot_general %[[T]], %arg1, contracting_dims = [1, 2] x [0, 1]
  // FUSED: lamina.library = "lamina.product", lamina.reason = "lamina.product does 64x128 by 128x32"
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 2] x [0, 1] : (tensor<8x64x16xf32>, tensor<8x16x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @right_batched
func.func @right_batched(%a: tensor<4x64x128xf32>, %b: tensor<8x4x32x16xf32>) -> tensor<4x64x32xf32> {
  // CHECK-NEXT: %[[A:.*]] = stablehlo.reshape
  // CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 2, 0, 3]
  // CHECK-NEXT: stablehlo.dot_general %[[A]], %[[T]], batching_dims = [0] x [0], contracting_dims = [2, 3] x [2, 3]
  %0 = stablehlo.reshape %a : (tensor<4x64x128xf32>) -> tensor<4x64x8x16xf32>
  %1 = stablehlo.dot_general %0, %b, batching_dims = [0] x [1], contracting_dims = [2, 3] x [0, 3] : (tensor<4x64x8x16xf32>, tensor<8x4x32x16xf32>) -> tensor<4x64x32xf32>
  return %1 : tensor<4x64x32xf32>
}

// Small, readable as it is (transposed, batched in the middle), or of a type without a library.
// CHECK-LABEL: func.func @left_alone
func.func @left_alone(%s: tensor<2x4x2xf32>, %q: tensor<4x64x8x32xf32>, %i: tensor<8x64x16xi32>, %j: tensor<8x16x32xi32>) -> (tensor<4x4xf32>, tensor<4x8x64x64xf32>, tensor<64x32xi32>) {
  // CHECK-NOT: stablehlo.transpose
  // CHECK: return
  %0 = stablehlo.dot_general %s, %s, contracting_dims = [0, 2] x [0, 2] : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot_general %q, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<4x64x8x32xf32>, tensor<4x64x8x32xf32>) -> tensor<4x8x64x64xf32>
  %2 = stablehlo.dot_general %i, %j, contracting_dims = [0, 2] x [0, 1] : (tensor<8x64x16xi32>, tensor<8x16x32xi32>) -> tensor<64x32xi32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x8x64x64xf32>, tensor<64x32xi32>
}
