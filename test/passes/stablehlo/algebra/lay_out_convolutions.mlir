// RUN: %lamina-opt %s --stablehlo-lay-out-convolutions | FileCheck %s

// Channels become innermost: rows of 28 are no whole vectors.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x64x28x28xf32>, %k: tensor<32x64x3x3xf32>) -> tensor<4x32x28x28xf32> {
  // CHECK-NEXT: %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1]
  // CHECK-NEXT: %[[K:.*]] = stablehlo.transpose %arg1, dims = [2, 3, 1, 0]
  // CHECK-NEXT: %[[C:.*]] = stablehlo.convolution(%[[X]], %[[K]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]{{.*}} -> tensor<4x28x28x32xf32>
  // CHECK-NEXT: stablehlo.transpose %[[C]], dims = [0, 3, 1, 2]
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x28x28xf32>, tensor<32x64x3x3xf32>) -> tensor<4x32x28x28xf32>
  return %0 : tensor<4x32x28x28xf32>
}

// The gradient to the kernel: what is summed over comes first, as the batch does above, so that both
// take the same transpose of an input.
// CHECK-LABEL: func.func @to_kernel
func.func @to_kernel(%x: tensor<4x64x28x28xf32>, %d: tensor<4x32x28x28xf32>) -> tensor<32x64x3x3xf32> {
  // CHECK-NEXT: %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1]
  // CHECK-NEXT: %[[D:.*]] = stablehlo.transpose %arg1, dims = [0, 2, 3, 1]
  // CHECK-NEXT: %[[C:.*]] = stablehlo.convolution(%[[X]], %[[D]]) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]{{.*}} -> tensor<3x3x64x32xf32>
  // CHECK-NEXT: stablehlo.transpose %[[C]], dims = [3, 2, 0, 1]
  %0 = stablehlo.convolution(%x, %d) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x28x28xf32>, tensor<4x32x28x28xf32>) -> tensor<32x64x3x3xf32>
  return %0 : tensor<32x64x3x3xf32>
}

// Left alone: rows of whole vectors, few channels, little work, channels that are innermost already.
// CHECK-LABEL: func.func @as_they_are
// CHECK-NOT: stablehlo.transpose
func.func @as_they_are(%x: tensor<4x64x32x32xf32>, %k: tensor<32x64x3x3xf32>, %few: tensor<4x64x3x3xf32>,
    %y: tensor<4x28x28x64xf32>, %l: tensor<3x3x64x32xf32>, %z: tensor<1x8x14x14xf32>, %p: tensor<8x8x1x1xf32>)
    -> (tensor<4x32x32x32xf32>, tensor<4x4x30x30xf32>, tensor<4x26x26x32xf32>, tensor<1x8x14x14xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x32x32xf32>, tensor<32x64x3x3xf32>) -> tensor<4x32x32x32xf32>
  %1 = stablehlo.convolution(%x, %few) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x32x32xf32>, tensor<4x64x3x3xf32>) -> tensor<4x4x30x30xf32>
  %2 = stablehlo.convolution(%y, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x28x28x64xf32>, tensor<3x3x64x32xf32>) -> tensor<4x26x26x32xf32>
  %3 = stablehlo.convolution(%z, %p) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x14x14xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x14x14xf32>
  return %0, %1, %2, %3 : tensor<4x32x32x32xf32>, tensor<4x4x30x30xf32>, tensor<4x26x26x32xf32>, tensor<1x8x14x14xf32>
}
