// RUN: %lamina-opt %s --pass-pipeline=stablehlo-lower-solvers | FileCheck %s

// CHECK-LABEL: func.func @triangular
// CHECK: linalg.copy
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: arith.subf
// CHECK: arith.divf
// CHECK-NOT: triangular_solve
func.func @triangular(%a: tensor<4x4xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// A unit diagonal divides nothing.
// CHECK-LABEL: func.func @unit
// CHECK-NOT: arith.divf
func.func @unit(%a: tensor<4x4xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @factor
// CHECK: complex.conj
// CHECK: math.sqrt
// CHECK: complex.div
func.func @factor(%a: tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<4x4xcomplex<f32>>
  return %0 : tensor<4x4xcomplex<f32>>
}
