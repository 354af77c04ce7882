// RUN: %lamina-opt %s --gpu-write-kernels | FileCheck %s

// Blocks of queries: three sweeps over the keys for the maximum, the sum of exponentials, and what softmax's
// derivative adds up, which go to memory; a fourth one for dq, whose scores are f32, in three parts.
// CHECK: gpu.func @gradient_0
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 4, 1, 1>
// CHECK: scf.for
// CHECK: nvgpu.mma.sync
// CHECK: arith.maximumf
// CHECK: gpu.shuffle
// CHECK: scf.for
// CHECK: nvgpu.mma.sync
// CHECK-NOT: arith.maximumf
// CHECK: gpu.shuffle
// CHECK: scf.for
// CHECK: gpu.shuffle
// CHECK: memref.store
// CHECK: scf.for
// CHECK: nvgpu.ldmatrix
// CHECK: arith.cmpf ord
// CHECK: gpu.return
// Blocks of keys: one sweep over the queries for dk and dv.
// CHECK: gpu.func @gradient_1
// CHECK-SAME: known_grid_size = array<i32: 4, 1, 1>
// CHECK: scf.for
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
// CHECK-NOT: gpu.func
func.func @gradient(%arg0: tensor<2x96x16xbf16>, %arg1: tensor<2x80x16xbf16>, %arg2: tensor<2x96x16xbf16>, %arg3: tensor<2x80x16xbf16>) -> (tensor<2x80x16xbf16>, tensor<2x80x16xf32>, tensor<2x96x16xf32>) attributes {lamina.kind = "attention_gradient", lamina.reason = "gradient of attention over 80 keys: scores are computed anew and stay out of memory"} {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x96x16xbf16>, tensor<2x80x16xbf16>) -> tensor<2x96x80xf32>
  %1 = stablehlo.reduce(%0 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<2x96x80xf32>, tensor<f32>) -> tensor<2x96xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x96xf32>) -> tensor<2x96x80xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<2x96x80xf32>
  %4 = stablehlo.exponential %3 : tensor<2x96x80xf32>
  %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x96x80xf32>, tensor<f32>) -> tensor<2x96xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x96xf32>) -> tensor<2x96x80xf32>
  %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<2x96xf32>
  %7 = stablehlo.divide %cst_1, %5 : tensor<2x96xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x96xf32>) -> tensor<2x96x80xf32>
  %9 = stablehlo.multiply %4, %8 : tensor<2x96x80xf32>
  %10 = stablehlo.convert %9 : (tensor<2x96x80xf32>) -> tensor<2x96x80xbf16>
  %11 = stablehlo.dot_general %10, %arg2, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x96x80xbf16>, tensor<2x96x16xbf16>) -> tensor<2x80x16xbf16>
  %12 = stablehlo.dot_general %arg2, %arg3, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x96x16xbf16>, tensor<2x80x16xbf16>) -> tensor<2x96x80xf32>
  %13 = stablehlo.multiply %12, %9 : tensor<2x96x80xf32>
  %14 = stablehlo.reduce(%13 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x96x80xf32>, tensor<f32>) -> tensor<2x96xf32>
  %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<2x96xf32>) -> tensor<2x96x80xf32>
  %16 = stablehlo.subtract %12, %15 : tensor<2x96x80xf32>
  %17 = stablehlo.multiply %16, %9 : tensor<2x96x80xf32>
  %18 = stablehlo.dot_general %17, %arg0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x96x80xf32>, tensor<2x96x16xbf16>) -> tensor<2x80x16xf32>
  %19 = stablehlo.dot_general %17, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x96x80xf32>, tensor<2x80x16xbf16>) -> tensor<2x96x16xf32>
  return %11, %18, %19 : tensor<2x80x16xbf16>, tensor<2x80x16xf32>, tensor<2x96x16xf32>
}
