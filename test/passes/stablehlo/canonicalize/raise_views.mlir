// RUN: %lamina-opt %s --stablehlo-raise-views | FileCheck %s

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<2x2x8xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
  // CHECK-DAG: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  // CHECK-DAG: %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [2] : (tensor<8xf32>) -> tensor<2x2x8xf32>
  // CHECK: %[[S:.*]] = stablehlo.add %[[X]], %[[B]]
  // CHECK: %[[Q:.*]] = stablehlo.multiply %[[S]], %[[S]]
  // CHECK: %[[R:.*]] = stablehlo.multiply %[[Q]], %{{.*}} : tensor<2x2x8xf32>
  // CHECK: return %[[R]]
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<4x8xf32>
  %3 = stablehlo.multiply %2, %two : tensor<4x8xf32>
  %4 = stablehlo.reshape %3 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  return %4 : tensor<2x2x8xf32>
}

// The broadcast spreads rows and keeps columns, which the reshape joins.
// CHECK-LABEL: func.func @mixed_broadcast
func.func @mixed_broadcast(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<32xf32> {
  // CHECK: stablehlo.add %{{.*}} : tensor<4x8xf32>
  // CHECK-NEXT: stablehlo.reshape
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x8xf32>) -> tensor<32xf32>
  return %2 : tensor<32xf32>
}

// Somebody else reads the sum in its own shape.
// CHECK-LABEL: func.func @other_users
func.func @other_users(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) {
  // CHECK-NEXT: stablehlo.add %arg0, %arg0 : tensor<4x8xf32>
  // CHECK-NEXT: stablehlo.reshape
  %0 = stablehlo.add %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x8xf32>) -> tensor<32xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<32xf32>
}

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<4x8xf32>, %v: tensor<4xf32>) -> tensor<2x8xf32> {
  // CHECK-DAG: stablehlo.slice %arg0 [1:3, 0:8]
  // CHECK-DAG: %[[V:.*]] = stablehlo.slice %arg1 [1:3]
  // CHECK-DAG: stablehlo.broadcast_in_dim %[[V]], dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  // CHECK: stablehlo.multiply {{.*}} : tensor<2x8xf32>
  // CHECK: stablehlo.exponential {{.*}} : tensor<2x8xf32>
  %0 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4x8xf32>
  %2 = stablehlo.exponential %1 : tensor<4x8xf32>
  %3 = stablehlo.slice %2 [1:3, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// A slice of an iota is not an iota.
// CHECK-LABEL: func.func @slice_of_iota
func.func @slice_of_iota(%x: tensor<8xi32>) -> tensor<2xi32> {
  // CHECK: stablehlo.add %{{.*}} : tensor<8xi32>
  // CHECK-NEXT: stablehlo.slice
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.add %x, %0 : tensor<8xi32>
  %2 = stablehlo.slice %1 [1:3] : (tensor<8xi32>) -> tensor<2xi32>
  return %2 : tensor<2xi32>
}

// Indices take the result's shape.
// CHECK-LABEL: func.func @indices
func.func @indices(%x: tensor<9xf32>, %i: tensor<4x5xi32>) -> tensor<4x5xf32> {
  // CHECK-NEXT: %[[I:.*]] = stablehlo.add %arg1, %arg1 : tensor<4x5xi32>
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %[[I]]) {{.*}}index_vector_dim = 2
  %0 = stablehlo.add %i, %i : tensor<4x5xi32>
  %1 = stablehlo.reshape %0 : (tensor<4x5xi32>) -> tensor<4x5x1xi32>
  %2 = "stablehlo.gather"(%x, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<4x5x1xi32>) -> tensor<4x5xf32>
  return %2 : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @vectors_of_one
func.func @vectors_of_one(%x: tensor<9xf32>, %i: tensor<4x1xi32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[I:.*]] = stablehlo.reshape %arg1 : (tensor<4x1xi32>) -> tensor<4xi32>
  // CHECK-NEXT: %[[S:.*]] = stablehlo.add %[[I]], %[[I]] : tensor<4xi32>
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %[[S]])
  %0 = stablehlo.add %i, %i : tensor<4x1xi32>
  %1 = "stablehlo.gather"(%x, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<4x1xi32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Two reshapes that undo each other are none.
// CHECK-LABEL: func.func @there_and_back
func.func @there_and_back(%x: tensor<9xf32>, %i: tensor<4xi32>, %j: tensor<4xi32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[M:.*]] = stablehlo.multiply %arg1, %arg2 : tensor<4xi32>
  // CHECK-NEXT: %[[S:.*]] = stablehlo.add %[[M]], %arg1 : tensor<4xi32>
  // CHECK-NEXT: "stablehlo.gather"(%arg0, %[[S]])
  // CHECK-NEXT: return
  %0 = stablehlo.multiply %i, %j : tensor<4xi32>
  %1 = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = stablehlo.reshape %i : (tensor<4xi32>) -> tensor<4x1xi32>
  %3 = stablehlo.add %1, %2 : tensor<4x1xi32>
  %4 = "stablehlo.gather"(%x, %3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<4x1xi32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// What takes one of a dimension is a slice of the array without that dimension: along the next one, or
// in steps along the one before.
// CHECK-LABEL: func.func @one_of_a_dimension
func.func @one_of_a_dimension(%x: tensor<4x8x3xf32>, %y: tensor<4x3xf32>, %z: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x8xf32>) {
  // CHECK-DAG: %[[ROWS:.*]] = stablehlo.reshape %arg0 : (tensor<4x8x3xf32>) -> tensor<4x24xf32>
  // CHECK-DAG: %[[ROW:.*]] = stablehlo.slice %[[ROWS]] [0:4, 15:18]
  // CHECK-DAG: stablehlo.multiply %[[ROW]], %arg1 : tensor<4x3xf32>
  %0 = stablehlo.slice %x [0:4, 5:6, 0:3] : (tensor<4x8x3xf32>) -> tensor<4x1x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x1x3xf32>) -> tensor<4x3xf32>
  %2 = stablehlo.multiply %1, %y : tensor<4x3xf32>
  // CHECK-DAG: %[[EACH:.*]] = stablehlo.slice %{{.*}} [0:4, 1:23:3] : (tensor<4x24xf32>) -> tensor<4x8xf32>
  // CHECK-DAG: %[[E:.*]] = stablehlo.exponential %[[EACH]] : tensor<4x8xf32>
  // CHECK-DAG: stablehlo.multiply %[[E]], %arg2 : tensor<4x8xf32>
  // CHECK-NOT: tensor<4x8x1xf32>
  %3 = stablehlo.slice %x [0:4, 0:8, 1:2] : (tensor<4x8x3xf32>) -> tensor<4x8x1xf32>
  %4 = stablehlo.exponential %3 : tensor<4x8x1xf32>
  %5 = stablehlo.reshape %4 : (tensor<4x8x1xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.multiply %5, %z : tensor<4x8xf32>
  return %2, %6 : tensor<4x3xf32>, tensor<4x8xf32>
}

// Not where the array is itself made by a kernel, nor where dimensions are joined besides.
// CHECK-LABEL: func.func @slices_left_alone
func.func @slices_left_alone(%x: tensor<4x8x3xf32>) -> (tensor<4x3xf32>, tensor<12xf32>) {
  // CHECK: %[[S:.*]] = stablehlo.slice %{{.*}} [0:4, 5:6, 0:3]
  // CHECK: stablehlo.reshape %[[S]] : (tensor<4x1x3xf32>) -> tensor<4x3xf32>
  // CHECK: %[[T:.*]] = stablehlo.slice %arg0 [0:4, 5:6, 0:3]
  // CHECK: stablehlo.reshape %[[T]] : (tensor<4x1x3xf32>) -> tensor<12xf32>
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4x8x3xf32>
  %1 = stablehlo.slice %0 [0:4, 5:6, 0:3] : (tensor<4x8x3xf32>) -> tensor<4x1x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x1x3xf32>) -> tensor<4x3xf32>
  %3 = stablehlo.slice %x [0:4, 5:6, 0:3] : (tensor<4x8x3xf32>) -> tensor<4x1x3xf32>
  %4 = stablehlo.reshape %3 : (tensor<4x1x3xf32>) -> tensor<12xf32>
  return %2, %4 : tensor<4x3xf32>, tensor<12xf32>
}
