// Rows of taken rows, and the same row often.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-simplify{fold=true},stablehlo-dce' | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK: %[[I:.*]] = stablehlo.reshape %arg1 : (tensor<6x1xi32>) -> tensor<6xi32>
// CHECK: %[[J:.*]] = "stablehlo.gather"(%[[I]], %arg2) {{.*}}slice_sizes = array<i64: 1>
// CHECK: %[[AT:.*]] = stablehlo.reshape %[[J]] : (tensor<9xi32>) -> tensor<9x1xi32>
// CHECK: "stablehlo.gather"(%arg0, %[[AT]]) {{.*}}slice_sizes = array<i64: 1, 4>
// CHECK-NOT: gather
func.func @rows(%x: tensor<8x4xf32>, %i: tensor<6x1xi32>, %j: tensor<9x1xi32>) -> tensor<9x4xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  %1 = "stablehlo.gather"(%0, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<9x1xi32>) -> tensor<9x4xf32>
  return %1 : tensor<9x4xf32>
}

// Along the second dimension, by an array of two.
// CHECK-LABEL: func.func @columns
// CHECK: "stablehlo.gather"({{.*}} -> tensor<2x3xi32>
// CHECK: "stablehlo.gather"(%arg0, {{.*}}(tensor<4x8xf32>, tensor<2x3x1xi32>) -> tensor<4x2x3xf32>
func.func @columns(%x: tensor<4x8xf32>, %i: tensor<6x1xi32>, %j: tensor<2x3x1xi32>) -> tensor<4x2x3xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 4, 1>}> : (tensor<4x8xf32>, tensor<6x1xi32>) -> tensor<4x6xf32>
  %1 = "stablehlo.gather"(%0, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 4, 1>}> : (tensor<4x6xf32>, tensor<2x3x1xi32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// Left alone: what is read otherwise, too; single elements more often than there are; another dimension.
// CHECK-LABEL: func.func @left_alone
// CHECK: "stablehlo.gather"(%arg0, %arg2)
// CHECK: "stablehlo.gather"(%arg0, %arg2)
// CHECK: "stablehlo.gather"(%arg1, %arg2)
// CHECK: -> tensor<9xf32>
func.func @left_alone(%x: tensor<8x4xf32>, %v: tensor<8xf32>, %i: tensor<6x1xi32>, %j: tensor<9x1xi32>) -> (tensor<6x4xf32>, tensor<9x4xf32>, tensor<6x9xf32>, tensor<9xf32>) {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  %1 = "stablehlo.gather"(%0, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<9x1xi32>) -> tensor<9x4xf32>
  %2 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  %3 = "stablehlo.gather"(%2, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 6, 1>}> : (tensor<6x4xf32>, tensor<9x1xi32>) -> tensor<6x9xf32>
  %4 = "stablehlo.gather"(%v, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<8xf32>, tensor<6x1xi32>) -> tensor<6xf32>
  %5 = "stablehlo.gather"(%4, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<6xf32>, tensor<9x1xi32>) -> tensor<9xf32>
  return %0, %1, %3, %5 : tensor<6x4xf32>, tensor<9x4xf32>, tensor<6x9xf32>, tensor<9xf32>
}

// One place, where it is clamped to, for each of six, which lie along the second dimension of the result.
// CHECK-LABEL: func.func @one_place
// CHECK: %[[COLUMN:.*]] = stablehlo.slice %arg0 [0:8, 1:2]
// CHECK: stablehlo.broadcast_in_dim %[[COLUMN]], dims = [0, 2] : (tensor<8x1xf32>) -> tensor<8x6x1xf32>
// CHECK: %[[LAST:.*]] = stablehlo.slice %{{.*}} [6:8, 0:1] : (tensor<8x6xf32>) -> tensor<2x1xf32>
// CHECK: stablehlo.broadcast_in_dim %[[LAST]], dims = [0, 2] : (tensor<2x1xf32>) -> tensor<2x6x1xf32>
// CHECK-NOT: gather
// CHECK: return
func.func @one_place(%x: tensor<8x4xf32>) -> tensor<2x6xf32> {
  %i = stablehlo.constant dense<1> : tensor<6x1xi32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<8x6x1xf32>
  %j = stablehlo.constant dense<9> : tensor<6x1xi32>
  %1 = stablehlo.reshape %0 : (tensor<8x6x1xf32>) -> tensor<8x6xf32>
  %2 = "stablehlo.gather"(%1, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}> : (tensor<8x6xf32>, tensor<6x1xi32>) -> tensor<2x6x1xf32>
  %3 = stablehlo.reshape %2 : (tensor<2x6x1xf32>) -> tensor<2x6xf32>
  return %3 : tensor<2x6xf32>
}

// JAX's batched b[rows]: dimensions of 1 and transposes around it go.
// CHECK-LABEL: func.func @rows_of_batch
// CHECK: %[[I:.*]] = stablehlo.reshape %arg1
// CHECK: %[[ROWS:.*]] = "stablehlo.gather"(%arg0, %[[I]])
// CHECK-SAME: offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2
// CHECK-SAME: slice_sizes = array<i64: 1, 1, 2>
// CHECK: return %[[ROWS]]
func.func @rows_of_batch(%b: tensor<9x3x2xf32>, %rows: tensor<9x3xi32>) -> tensor<9x3x2xf32> {
  %0 = stablehlo.transpose %b, dims = [0, 2, 1] : (tensor<9x3x2xf32>) -> tensor<9x2x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<9x2x3xf32>) -> tensor<9x2x3x1xf32>
  %i = stablehlo.reshape %rows : (tensor<9x3xi32>) -> tensor<9x3x1xi32>
  %2 = "stablehlo.gather"(%1, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 3], collapsed_slice_dims = [2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 1, 1>}> : (tensor<9x2x3x1xf32>, tensor<9x3x1xi32>) -> tensor<9x2x3x1xf32>
  %3 = stablehlo.transpose %2, dims = [0, 2, 3, 1] : (tensor<9x2x3x1xf32>) -> tensor<9x3x1x2xf32>
  %4 = stablehlo.reshape %3 : (tensor<9x3x1x2xf32>) -> tensor<9x3x2xf32>
  return %4 : tensor<9x3x2xf32>
}

// Left alone: an index of what a reshape split, windows that change places, indices that do.
// CHECK-LABEL: func.func @other_places
// CHECK: stablehlo.reshape %arg0
// CHECK: "stablehlo.gather"(%{{.*}}, %arg1)
// CHECK: stablehlo.transpose %arg2
// CHECK: "stablehlo.gather"(%{{.*}}, %arg1)
// CHECK: "stablehlo.gather"(%arg2, %arg3)
// CHECK: stablehlo.transpose
func.func @other_places(%x: tensor<12x5xf32>, %i: tensor<7x1xi32>, %y: tensor<3x4x5xf32>, %j: tensor<6x7x1xi32>) -> (tensor<7x3x5xf32>, tensor<7x5x3xf32>, tensor<7x6x4x5xf32>) {
  %0 = stablehlo.reshape %x : (tensor<12x5xf32>) -> tensor<3x4x5xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 1, 5>}> : (tensor<3x4x5xf32>, tensor<7x1xi32>) -> tensor<7x3x5xf32>
  %2 = stablehlo.transpose %y, dims = [2, 1, 0] : (tensor<3x4x5xf32>) -> tensor<5x4x3xf32>
  %3 = "stablehlo.gather"(%2, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 5, 1, 3>}> : (tensor<5x4x3xf32>, tensor<7x1xi32>) -> tensor<7x5x3xf32>
  %4 = "stablehlo.gather"(%y, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4, 5>}> : (tensor<3x4x5xf32>, tensor<6x7x1xi32>) -> tensor<6x7x4x5xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0, 2, 3] : (tensor<6x7x4x5xf32>) -> tensor<7x6x4x5xf32>
  return %1, %3, %5 : tensor<7x3x5xf32>, tensor<7x5x3xf32>, tensor<7x6x4x5xf32>
}
