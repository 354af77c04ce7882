// RUN: %lamina-opt %s --stablehlo-outline-small-matrices --split-input-file | FileCheck %s

// Factors, the rows of a right-hand side in their order, and both triangular systems are one kernel:
// what passes between them is never in memory.
// CHECK-LABEL: func.func @solve
func.func @solve(%a: tensor<50x3x3xf32>, %b: tensor<50x3x1xf32>) -> tensor<50x3x1xf32> {
  // CHECK-NEXT: %[[X:.*]] = call @fused_triangular_solve_0(%arg0, %arg1)
  // CHECK-NEXT: return %[[X]]
  %0:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<50x3x3xf32>) -> (tensor<50x3x3xf32>, tensor<50x3xi32>, tensor<50x3xi32>)
  %1 = stablehlo.reshape %0#2 : (tensor<50x3xi32>) -> tensor<50x3x1x1xi32>
  %2 = "stablehlo.gather"(%b, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 2], start_index_map = [1], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<50x3x1xf32>, tensor<50x3x1x1xi32>) -> tensor<50x3x1xf32>
  %3 = "stablehlo.triangular_solve"(%0#0, %2) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<50x3x3xf32>, tensor<50x3x1xf32>) -> tensor<50x3x1xf32>
  %4 = "stablehlo.triangular_solve"(%0#0, %3) <{left_side = true, lower = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<50x3x3xf32>, tensor<50x3x1xf32>) -> tensor<50x3x1xf32>
  return %4 : tensor<50x3x1xf32>
}
// CHECK: func.func private @fused_triangular_solve_0(%arg0: tensor<50x3x3xf32>, %arg1: tensor<50x3x1xf32>) -> tensor<50x3x1xf32>
// CHECK-SAME: lamina.kind = "library", lamina.library = "lamina.small_matrices", lamina.reason = "getrf, rows, 2 trsm of 3x3 50 times, one in each vector lane"

// -----

// A system whose right-hand side depends on the first one's solution elsewhere is another kernel;
// the factors that it reads are a result of the first.
// CHECK-LABEL: func.func @twice
func.func @twice(%a: tensor<8x4x4xf64>, %b: tensor<8x4x2xf64>) -> tensor<8x4x2xf64> {
  // CHECK-NEXT: %[[L:.*]]:2 = call @fused_triangular_solve_0(%arg0, %arg1)
  // CHECK-NEXT: %[[S:.*]] = stablehlo.sine %[[L]]#1
  // CHECK-NEXT: call @fused_triangular_solve_1(%[[L]]#0, %[[S]])
  %0 = stablehlo.cholesky %a, lower = true : tensor<8x4x4xf64>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<8x4x4xf64>, tensor<8x4x2xf64>) -> tensor<8x4x2xf64>
  %2 = stablehlo.sine %1 : tensor<8x4x2xf64>
  %3 = "stablehlo.triangular_solve"(%0, %2) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<8x4x4xf64>, tensor<8x4x2xf64>) -> tensor<8x4x2xf64>
  return %3 : tensor<8x4x2xf64>
}
// CHECK: lamina.reason = "potrf, trsm of 4x4 8 times, one in each vector lane"
// CHECK: lamina.reason = "trsm of 4x4 8 times, one in each vector lane"

// -----

// Few matrices, large ones, and what is no float are left to LAPACK or to loops.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: lamina.library
func.func @left_alone(%a: tensor<3x4x4xf32>, %b: tensor<9x33x33xf32>, %x: tensor<9x4x2xf32>, %i: tensor<9x4xi32>) -> (tensor<3x4x4xf32>, tensor<9x33x33xf32>, tensor<9x4x2xf32>) {
  %0 = stablehlo.cholesky %a, lower = true : tensor<3x4x4xf32>
  %1 = stablehlo.cholesky %b, lower = true : tensor<9x33x33xf32>
  %2 = stablehlo.reshape %i : (tensor<9x4xi32>) -> tensor<9x4x1xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<9x4x2xf32>, tensor<9x4x1xi32>) -> tensor<9x4x2xf32>
  return %0, %1, %3 : tensor<3x4x4xf32>, tensor<9x33x33xf32>, tensor<9x4x2xf32>
}
