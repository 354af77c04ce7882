// RUN: %lamina-opt %s --pass-pipeline=stablehlo-simplify | FileCheck %s

// Vectors beside one factor are the rows of one system.
// CHECK-LABEL: func.func @vectors
// CHECK: %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<6x5x4x1xf32>) -> tensor<30x4xf32>
// CHECK: %[[X:.*]] = "stablehlo.triangular_solve"(%arg0, %[[B]]) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = true}>
// CHECK: stablehlo.reshape %[[X]] : (tensor<30x4xf32>) -> tensor<6x5x4x1xf32>
func.func @vectors(%l: tensor<4x4xf32>, %b: tensor<6x5x4x1xf32>) -> tensor<6x5x4x1xf32> {
  %0 = stablehlo.broadcast_in_dim %l, dims = [2, 3] : (tensor<4x4xf32>) -> tensor<6x5x4x4xf32>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<6x5x4x4xf32>, tensor<6x5x4x1xf32>) -> tensor<6x5x4x1xf32>
  return %1 : tensor<6x5x4x1xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: (%arg0, %{{.*}}) <{left_side = false, lower = false, transpose_a = #stablehlo<transpose ADJOINT>
// CHECK-SAME: (tensor<4x4xcomplex<f32>>, tensor<18x4xcomplex<f32>>)
func.func @rows(%l: tensor<4x4xcomplex<f32>>, %b: tensor<6x3x4xcomplex<f32>>) -> tensor<6x3x4xcomplex<f32>> {
  %0 = stablehlo.broadcast_in_dim %l, dims = [1, 2] : (tensor<4x4xcomplex<f32>>) -> tensor<6x4x4xcomplex<f32>>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = false, lower = false, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<6x4x4xcomplex<f32>>, tensor<6x3x4xcomplex<f32>>) -> tensor<6x3x4xcomplex<f32>>
  return %1 : tensor<6x3x4xcomplex<f32>>
}

// Matrices would have to be transposed, and a conjugate alone is no way to solve.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: left_side = true
func.func @others(%l: tensor<4x4xcomplex<f32>>, %b: tensor<6x4x3xcomplex<f32>>, %v: tensor<6x4x1xcomplex<f32>>) -> (tensor<6x4x3xcomplex<f32>>, tensor<6x4x1xcomplex<f32>>) {
  %0 = stablehlo.broadcast_in_dim %l, dims = [1, 2] : (tensor<4x4xcomplex<f32>>) -> tensor<6x4x4xcomplex<f32>>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<6x4x4xcomplex<f32>>, tensor<6x4x3xcomplex<f32>>) -> tensor<6x4x3xcomplex<f32>>
  %2 = "stablehlo.triangular_solve"(%0, %v) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<6x4x4xcomplex<f32>>, tensor<6x4x1xcomplex<f32>>) -> tensor<6x4x1xcomplex<f32>>
  return %1, %2 : tensor<6x4x3xcomplex<f32>>, tensor<6x4x1xcomplex<f32>>
}
