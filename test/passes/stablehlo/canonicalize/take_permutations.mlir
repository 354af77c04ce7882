// RUN: %lamina-opt %s --split-input-file --stablehlo-take-permutations | FileCheck %s

// A batch, as JAX's solve leaves it.
// CHECK-LABEL: func.func @batch
// CHECK: %[[LU:.*]]:3 = stablehlo.custom_call @lamina.lapack.getrf
// CHECK-NOT: while
// CHECK: return %[[LU]]#2
func.func @batch(%a: tensor<10x3x3xf32>) -> tensor<10x3xi32> {
  %lu:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<10x3x3xf32>) -> (tensor<10x3x3xf32>, tensor<10x3xi32>, tensor<10x3xi32>)
  %iota = stablehlo.iota dim = 1 : tensor<10x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%count = %zero, %i = %zero, %rows = %iota) : tensor<i32>, tensor<i32>, tensor<10x3xi32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %count, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %j = "stablehlo.gather"(%lu#1, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, slice_sizes = array<i64: 10, 1>}> : (tensor<10x3xi32>, tensor<1xi32>) -> tensor<10x1xi32>
      %x = "stablehlo.gather"(%rows, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, slice_sizes = array<i64: 10, 1>}> : (tensor<10x3xi32>, tensor<1xi32>) -> tensor<10x1xi32>
      %flat = stablehlo.reshape %x : (tensor<10x1xi32>) -> tensor<10xi32>
      %y = "stablehlo.gather"(%rows, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<10x3xi32>, tensor<10x1xi32>) -> tensor<10x1xi32>
      %first = stablehlo.dynamic_update_slice %rows, %y, %zero, %i : (tensor<10x3xi32>, tensor<10x1xi32>, tensor<i32>, tensor<i32>) -> tensor<10x3xi32>
      %both = "stablehlo.scatter"(%first, %j, %flat) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
      ^bb0(%old: tensor<i32>, %new: tensor<i32>):
        stablehlo.return %new : tensor<i32>
      }) : (tensor<10x3xi32>, tensor<10x1xi32>, tensor<10xi32>) -> tensor<10x3xi32>
      %more = stablehlo.add %count, %one : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %more, %next, %both : tensor<i32>, tensor<i32>, tensor<10x3xi32>
    }
  return %0#2 : tensor<10x3xi32>
}

// -----

// One matrix; its pivots handed on by the loop.
// CHECK-LABEL: func.func @one
// CHECK: %[[LU:.*]]:3 = stablehlo.custom_call @lamina.lapack.getrf
// CHECK-NOT: while
// CHECK: return %[[LU]]#2
func.func @one(%a: tensor<4x3xf32>) -> tensor<4xi32> {
  %lu:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xi32>, tensor<4xi32>)
  %iota = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %pivots = %lu#1, %rows = %iota) : tensor<i32>, tensor<3xi32>, tensor<4xi32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %pivots, %i, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
      %j = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %x = stablehlo.dynamic_slice %rows, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %y = stablehlo.dynamic_slice %rows, %j, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %first = stablehlo.dynamic_update_slice %rows, %y, %i : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %both = stablehlo.dynamic_update_slice %first, %x, %j : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %pivots, %both : tensor<i32>, tensor<3xi32>, tensor<4xi32>
    }
  return %0#2 : tensor<4xi32>
}

// -----

// Not all of the exchanges: a loop of its own.
// CHECK-LABEL: func.func @some
// CHECK: stablehlo.while
func.func @some(%a: tensor<4x4xf32>) -> tensor<4xi32> {
  %lu:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<4xi32>)
  %iota = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %rows = %iota) : tensor<i32>, tensor<4xi32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %lu#1, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %j = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %x = stablehlo.dynamic_slice %rows, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %y = stablehlo.dynamic_slice %rows, %j, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %first = stablehlo.dynamic_update_slice %rows, %y, %i : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %both = stablehlo.dynamic_update_slice %first, %x, %j : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %both : tensor<i32>, tensor<4xi32>
    }
  return %0#1 : tensor<4xi32>
}
