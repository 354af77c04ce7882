// Rows of taken rows.
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
