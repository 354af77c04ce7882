// RUN: %lamina-opt %s --stablehlo-adopt-lapack | FileCheck %s

// CHECK-LABEL: func.func public @main
// CHECK: %[[L:.*]] = stablehlo.cholesky %arg0, lower = true
// CHECK: %[[I:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: %[[X:.*]] = "stablehlo.triangular_solve"(%[[L]], %arg0) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}>
// CHECK: %[[E:.*]]:2 = stablehlo.custom_call @lamina.lapack.syevd(%arg0) {{.*}}lower = true
// CHECK: return %[[L]], %[[I]], %[[X]], %[[E]]#1
func.func public @main(%a: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {
    mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
  } : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  %1 = stablehlo.custom_call @lapack_strsm_ffi(%0#0, %a) {
    mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}
  } : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {
    mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}
  } : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  return %0#0, %0#1, %1, %2#1 : tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>
}

// Pivots are counted from 1; what LAPACK has as two arrays of floats is one of complex numbers here.
// CHECK-LABEL: func.func private @others
// CHECK: %[[F:.*]]:3 = stablehlo.custom_call @lamina.lapack.getrf(%arg0)
// CHECK: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<4xi32>
// CHECK: %[[P:.*]] = stablehlo.add %[[F]]#1, %[[ONE]]
// CHECK: %[[W:.*]]:2 = stablehlo.custom_call @lamina.lapack.geev(%arg0)
// CHECK: %[[RE:.*]] = stablehlo.real %[[W]]#0
// CHECK: %[[IM:.*]] = stablehlo.imag %[[W]]#0
// CHECK: stablehlo.custom_call @lapack_unknown(%arg0)
// CHECK: return %[[F]]#0, %[[P]], %[[RE]], %[[IM]], %[[W]]#1
func.func private @others(%a: tensor<4x4xf64>)
    -> (tensor<4x4xf64>, tensor<4xi32>, tensor<4xf64>, tensor<4xf64>, tensor<4x4xcomplex<f64>>, tensor<4x4xf64>) {
  %0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%a) {mhlo.backend_config = {}}
    : (tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xi32>, tensor<i32>)
  %1:5 = stablehlo.custom_call @lapack_dgeev_ffi(%a) {
    mhlo.backend_config = {compute_left = 78 : ui8, compute_right = 86 : ui8}
  } : (tensor<4x4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4x4xcomplex<f64>>, tensor<4x4xcomplex<f64>>, tensor<i32>)
  %2 = stablehlo.custom_call @lapack_unknown(%a) : (tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0#0, %0#1, %1#0, %1#1, %1#3, %2
    : tensor<4x4xf64>, tensor<4xi32>, tensor<4xf64>, tensor<4xf64>, tensor<4x4xcomplex<f64>>, tensor<4x4xf64>
}
