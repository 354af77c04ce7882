// RUN: %lamina-opt %s --stablehlo-hoist-gathers --split-input-file | FileCheck %s

// The label's element of each row of log_softmax: picked from what it is computed from.
// CHECK-LABEL: func.func @gather
// CHECK: %[[P:.*]] = "stablehlo.gather"(%arg0, %arg2)
// CHECK-SAME: (tensor<8x100xf32>, tensor<8x1x1xi32>) -> tensor<8x1xf32>
// CHECK: %[[M:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK: %[[D:.*]] = stablehlo.subtract %[[P]], %[[M]] : tensor<8x1xf32>
// CHECK: %[[C:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<8x1xf32>
// CHECK: %[[R:.*]] = stablehlo.multiply %[[D]], %[[C]]
// CHECK: return %[[R]]
func.func @gather(%x: tensor<8x100xf32>, %m: tensor<8xf32>, %i: tensor<8x1x1xi32>) -> tensor<8x1xf32> {
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x100xf32>
  %d = stablehlo.subtract %x, %b : tensor<8x100xf32>
  %c = stablehlo.constant dense<2.0> : tensor<8x100xf32>
  %y = stablehlo.multiply %d, %c : tensor<8x100xf32>
  %p = "stablehlo.gather"(%y, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
    index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<8x100xf32>, tensor<8x1x1xi32>) -> tensor<8x1xf32>
  return %p : tensor<8x1xf32>
}

// -----

// As many elements as there are: made once, they are read as they are.
// CHECK-LABEL: func.func @many
// CHECK: %[[Y:.*]] = stablehlo.exponential %arg0
// CHECK: "stablehlo.gather"(%[[Y]], %arg1)
func.func @many(%x: tensor<8x100xf32>, %i: tensor<8x90x1xi32>) -> tensor<8x90xf32> {
  %y = stablehlo.exponential %x : tensor<8x100xf32>
  %p = "stablehlo.gather"(%y, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
    index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<8x100xf32>, tensor<8x90x1xi32>) -> tensor<8x90xf32>
  return %p : tensor<8x90xf32>
}

// -----

// Its derivative: a comparison with each element's place. Columns are rows along dimension 0.
// CHECK-LABEL: func.func @scatter
// CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<100x8xi32>
// CHECK: %[[I:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [1] : (tensor<8xi32>) -> tensor<100x8xi32>
// CHECK: %[[THERE:.*]] = stablehlo.compare EQ, %[[IOTA]], %[[I]]
// CHECK: %[[U:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [1] : (tensor<8xf32>) -> tensor<100x8xf32>
// CHECK: %[[S:.*]] = stablehlo.add %{{.*}}, %[[U]]
// CHECK: stablehlo.select %[[THERE]], %[[S]], %{{.*}}
func.func @scatter(%i: tensor<8x1x1xi32>, %u: tensor<8x1xf32>) -> tensor<100x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<100x8xf32>
  %r = "stablehlo.scatter"(%z, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<100x8xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<100x8xf32>
  return %r : tensor<100x8xf32>
}

// -----

// Two in a row may be the same one; an array that is there is updated in place.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-2: "stablehlo.scatter"
func.func @left_alone(%x: tensor<8x100xf32>, %i: tensor<8x2x1xi32>, %u: tensor<8x2xf32>,
                      %j: tensor<8x1x1xi32>, %v: tensor<8x1xf32>) -> (tensor<8x100xf32>, tensor<8x100xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<8x100xf32>
  %r = "stablehlo.scatter"(%z, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x100xf32>, tensor<8x2x1xi32>, tensor<8x2xf32>) -> tensor<8x100xf32>
  %t = "stablehlo.scatter"(%x, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x100xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x100xf32>
  return %r, %t : tensor<8x100xf32>, tensor<8x100xf32>
}
