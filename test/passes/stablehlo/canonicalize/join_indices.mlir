// RUN: %lamina-opt %s --stablehlo-join-indices | FileCheck %s

// One index into all elements takes the place of two, each clamped.
// CHECK-LABEL: func.func @gathered
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<5x7xf32>) -> tensor<35xf32>
// CHECK: %[[I:.*]] = stablehlo.clamp %{{.*}}, %arg1
// CHECK: %[[ROW:.*]] = stablehlo.multiply %[[I]]
// CHECK: %[[J:.*]] = stablehlo.clamp %{{.*}}, %arg2
// CHECK: %[[AT:.*]] = stablehlo.add %[[ROW]], %[[J]]
// CHECK: "stablehlo.gather"(%[[X]], %[[AT]])
// CHECK-SAME: collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1
// CHECK-SAME: slice_sizes = array<i64: 1>
func.func @gathered(%x: tensor<5x7xf32>, %i: tensor<9x1xi32>, %j: tensor<9x1xi32>) -> tensor<9xf32> {
  %at = stablehlo.concatenate %i, %j, dim = 1 : (tensor<9x1xi32>, tensor<9x1xi32>) -> tensor<9x2xi32>
  %0 = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x7xf32>, tensor<9x2xi32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// What lies outside of one dimension must not end up in another: it is outside of all.
// CHECK-LABEL: func.func @scattered
// CHECK: stablehlo.compare LT, %arg1
// CHECK: stablehlo.compare GE, %arg1
// CHECK: %[[AT:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<9x1xi1>, tensor<9x1xi32>
// CHECK: %[[NEW:.*]] = "stablehlo.scatter"(%{{.*}}, %[[AT]], %arg3)
// CHECK-SAME: update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]
// CHECK: stablehlo.reshape %[[NEW]] : (tensor<35x4xf32>) -> tensor<5x7x4xf32>
func.func @scattered(%x: tensor<5x7x4xf32>, %i: tensor<9x1xi32>, %j: tensor<9x1xui8>, %u: tensor<9x4xf32>) -> tensor<5x7x4xf32> {
  %k = stablehlo.convert %j : (tensor<9x1xui8>) -> tensor<9x1xi32>
  %at = stablehlo.concatenate %i, %k, dim = 1 : (tensor<9x1xi32>, tensor<9x1xi32>) -> tensor<9x2xi32>
  %0 = "stablehlo.scatter"(%x, %at, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>} : (tensor<5x7x4xf32>, tensor<9x2xi32>, tensor<9x4xf32>) -> tensor<5x7x4xf32>
  return %0 : tensor<5x7x4xf32>
}

// Dimensions that are not neighbours stay, and so does what is an array of vectors already.
// CHECK-LABEL: func.func @apart
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}start_index_map = [0, 2]
// CHECK: "stablehlo.gather"(%arg0, %arg3){{.*}}start_index_map = [0, 1]
func.func @apart(%x: tensor<5x7x4xf32>, %i: tensor<9x1xi32>, %j: tensor<9x1xi32>, %v: tensor<9x2xi32>) -> (tensor<9x7xf32>, tensor<9x4xf32>) {
  %at = stablehlo.concatenate %i, %j, dim = 1 : (tensor<9x1xi32>, tensor<9x1xi32>) -> tensor<9x2xi32>
  %0 = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 2], start_index_map = [0, 2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 7, 1>}> : (tensor<5x7x4xf32>, tensor<9x2xi32>) -> tensor<9x7xf32>
  %1 = "stablehlo.gather"(%x, %v) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<5x7x4xf32>, tensor<9x2xi32>) -> tensor<9x4xf32>
  return %0, %1 : tensor<9x7xf32>, tensor<9x4xf32>
}
