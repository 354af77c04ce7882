// RUN: %lamina-opt %s --stablehlo-fuse --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-fuse{prologues=false}' --split-input-file | FileCheck %s --check-prefix=APART

// What makes a factor is in the product's kernel.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @fused_dot_general_0(%arg1, %arg2, %arg0)
// CHECK: with 3 ops before and 1 ops after
// APART-LABEL: func.func @main
// APART: call @fused_
// APART: call @fused_
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xbf16>, %s: tensor<128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.convert %w : (tensor<256x128xbf16>) -> tensor<256x128xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<128xf32>) -> tensor<256x128xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<256x128xf32>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %4 = stablehlo.tanh %3 : tensor<64x128xf32>
  return %4 : tensor<64x128xf32>
}

// -----

// What follows a product is made with that, not with the next one.
// CHECK-LABEL: func.func @main
// CHECK: call @fused_dot_general_0
// CHECK: call @fused_dot_general_1
// CHECK: dot_general with 1 ops after
// CHECK: dot_general alone; stopped at tanh: follows what is another kernel's
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xf32>, %v: tensor<128x256xf32>) -> tensor<64x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %1 = stablehlo.tanh %0 : tensor<64x128xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  return %2 : tensor<64x256xf32>
}

// -----

// So is what is needed elsewhere, or by a library.
// CHECK-LABEL: func.func @main
// CHECK: call @fused_exponential_0
// CHECK: call @fused_dot_general_0
// CHECK: call @fused_abs_0
// CHECK: call @fused_dot_general_1
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xf32>, %y: tensor<2048x2048xf32>) -> (tensor<64x256xf32>, tensor<64x128xf32>, tensor<2048x2048xf32>) {
  %0 = stablehlo.exponential %x : tensor<64x256xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %2 = stablehlo.abs %y : tensor<2048x2048xf32>
  %3 = stablehlo.dot_general %2, %y, contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %0, %1, %3 : tensor<64x256xf32>, tensor<64x128xf32>, tensor<2048x2048xf32>
}
