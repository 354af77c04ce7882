// RUN: %lamina-opt %s --stablehlo-lower-convolutions | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-lower-convolutions,stablehlo-legalize-to-linalg,func.func(linalg-generalize-named-ops),empty-tensor-to-alloc-tensor,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},cpu-block-contractions' | FileCheck %s --check-prefix=VECTORS

// CHECK-DAG: #[[READ:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d6, d0 + d4 * 2, d1 + d5 * 2, d2)>
// CHECK-DAG: #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d6, d4, d5, d3)>
// CHECK-DAG: #[[CHANNEL:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
// CHECK-DAG: #[[ITS_KERNEL:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, 0, d3)>
// CHECK-DAG: #[[GROUPS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 + d5, d2 + d6, d3, d7)>

// The gradient of a convolution in steps to its kernel: nothing is spread over zeros.
// CHECK-LABEL: func.func @to_kernel
// CHECK: %[[X:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0, 0, 0], high = [0, 1, 1, 0]
// CHECK: linalg.generic {indexing_maps = [#[[READ]], #[[TAPS]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%[[X]], %arg1
// VECTORS-LABEL: func.func @to_kernel
// VECTORS: vector.fma {{.*}} : vector<16xf32>
func.func @to_kernel(%x: tensor<4x28x28x16xf32>, %d: tensor<4x14x14x32xf32>) -> tensor<3x3x16x32xf32> {
  %0 = stablehlo.convolution(%x, %d) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x28x28x16xf32>, tensor<4x14x14x32xf32>) -> tensor<3x3x16x32xf32>
  return %0 : tensor<3x3x16x32xf32>
}

// An input that is spread by zeros: two phases along a line, each with every other tap.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<1x16x32xf32>
// CHECK: stablehlo.slice %arg1 [0:4:2, 0:16, 0:32]
// CHECK: %[[EVEN:.*]] = linalg.generic
// CHECK: %[[HALF:.*]] = tensor.insert_slice %[[EVEN]] into %[[EMPTY]][0, 0, 0] [1, 8, 32] [1, 2, 1]
// CHECK: tensor.extract_slice %[[HALF]][0, 1, 0] [1, 8, 32] [1, 2, 1]
// CHECK: stablehlo.slice %arg1 [1:4:2, 0:16, 0:32]
// CHECK: %[[ODD:.*]] = linalg.generic
// CHECK: tensor.insert_slice %[[ODD]] into %[[HALF]][0, 1, 0] [1, 8, 32] [1, 2, 1]
// VECTORS-LABEL: func.func @transposed
// VECTORS-COUNT-2: scf.for {{.*}} iter_args
// VECTORS: vector.fma {{.*}} : vector<16xf32>
func.func @transposed(%x: tensor<1x8x16xf32>, %k: tensor<4x16x32xf32>) -> tensor<1x16x32xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x16xf32>, tensor<4x16x32xf32>) -> tensor<1x16x32xf32>
  return %0 : tensor<1x16x32xf32>
}

// One tap: the other phases stay zero.
// CHECK-LABEL: func.func @mostly_zeros
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<1x8x8xf32>
// CHECK-COUNT-1: linalg.generic
// CHECK: tensor.insert_slice %{{.*}} into %[[ZEROS]][0, 1, 0] [1, 4, 8] [1, 2, 1]
// CHECK-NOT: linalg.generic
func.func @mostly_zeros(%x: tensor<1x4x8xf32>, %k: tensor<1x8x8xf32>) -> tensor<1x8x8xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  return %0 : tensor<1x8x8xf32>
}

// Groups are a dimension that all three have.
// CHECK-LABEL: func.func @groups
// CHECK-DAG: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<1x9x9x16xf32>) -> tensor<1x9x9x2x8xf32>
// CHECK-DAG: %[[K:.*]] = stablehlo.reshape %arg1 : (tensor<3x3x8x32xf32>) -> tensor<3x3x8x2x16xf32>
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[GROUPS]]{{.*}} ins(%[[X]], %[[K]]
// CHECK: stablehlo.reshape %[[C]] : (tensor<1x7x7x2x16xf32>) -> tensor<1x7x7x32xf32>
func.func @groups(%x: tensor<1x9x9x16xf32>, %k: tensor<3x3x8x32xf32>) -> tensor<1x7x7x32xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x9x9x16xf32>, tensor<3x3x8x32xf32>) -> tensor<1x7x7x32xf32>
  return %0 : tensor<1x7x7x32xf32>
}

// By channel: the groups are the channels, and nothing is reshaped.
// CHECK-LABEL: func.func @by_channel
// CHECK-NOT: stablehlo.reshape
// CHECK: linalg.generic {indexing_maps = [#[[CHANNEL]], #[[ITS_KERNEL]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%arg0, %arg1
func.func @by_channel(%x: tensor<1x9x9x16xf32>, %k: tensor<3x3x1x16xf32>) -> tensor<1x7x7x16xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 16 : i64} : (tensor<1x9x9x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x7x7x16xf32>
  return %0 : tensor<1x7x7x16xf32>
}

// Integers stay, and what is spread and walked in steps.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: stablehlo.convolution
func.func @others(%x: tensor<1x8x16xi32>, %k: tensor<4x16x32xi32>, %y: tensor<1x8x16xf32>, %l: tensor<4x16x32xf32>) -> (tensor<1x5x32xi32>, tensor<1x6x32xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x16xi32>, tensor<4x16x32xi32>) -> tensor<1x5x32xi32>
  %1 = stablehlo.convolution(%y, %l) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x16xf32>, tensor<4x16x32xf32>) -> tensor<1x6x32xf32>
  return %0, %1 : tensor<1x5x32xi32>, tensor<1x6x32xf32>
}

// What makes a factor of a product of matrices stays apart from it: of an input, and of what a kernel's
// gradient sums over.
// CHECK-LABEL: func.func @made
// CHECK: %[[X:.*]] = stablehlo.negate %arg0
// CHECK: %[[K:.*]] = tensor.extract_slice %arg1[0, 0, 0, 0] [1, 1, 16, 32] {{.*}} to tensor<16x32xf32>
// CHECK: %[[C:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[K]] : tensor<2x9x9x16xf32>, tensor<16x32xf32>)
// CHECK: %[[D:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[C]] : {{.*}} -> tensor<16x32xf32>
// CHECK: tensor.insert_slice %[[D]] into %{{.*}}[0, 0, 0, 0] [1, 1, 16, 32]
func.func @made(%x: tensor<2x9x9x16xf32>, %k: tensor<1x1x16x32xf32>) -> (tensor<2x9x9x32xf32>, tensor<1x1x16x32xf32>) {
  %0 = stablehlo.negate %x : tensor<2x9x9x16xf32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x9x16xf32>, tensor<1x1x16x32xf32>) -> tensor<2x9x9x32xf32>
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x9x16xf32>, tensor<2x9x9x32xf32>) -> tensor<1x1x16x32xf32>
  return %1, %2 : tensor<2x9x9x32xf32>, tensor<1x1x16x32xf32>
}
