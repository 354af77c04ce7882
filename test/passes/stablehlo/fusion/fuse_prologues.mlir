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

// Weights of bytes, too, where products of bf16 have few rows; not where these are many.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @fused_dot_general_0(%arg2, %arg3, %arg0)
// CHECK-NEXT: call @fused_multiply_0(%arg2, %arg3)
// CHECK-NEXT: call @fused_dot_general_1
// CHECK: dot_general with 3 ops before
func.func @main(%x: tensor<16x512xbf16>, %y: tensor<256x512xbf16>, %w: tensor<512x1024xi8>, %s: tensor<1024xbf16>) -> (tensor<16x1024xbf16>, tensor<256x1024xbf16>) {
  %0 = stablehlo.convert %w : (tensor<512x1024xi8>) -> tensor<512x1024xbf16>
  %1 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<1024xbf16>) -> tensor<512x1024xbf16>
  %2 = stablehlo.multiply %0, %1 : tensor<512x1024xbf16>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<16x512xbf16>, tensor<512x1024xbf16>) -> tensor<16x1024xbf16>
  %4 = stablehlo.convert %w : (tensor<512x1024xi8>) -> tensor<512x1024xbf16>
  %5 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<1024xbf16>) -> tensor<512x1024xbf16>
  %6 = stablehlo.multiply %4, %5 : tensor<512x1024xbf16>
  %7 = stablehlo.dot_general %y, %6, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x1024xbf16>) -> tensor<256x1024xbf16>
  return %3, %7 : tensor<16x1024xbf16>, tensor<256x1024xbf16>
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

// -----

// A convolution of one place each makes its input by what each kernel would have to write; one that pads
// its input makes that in the copy. What the statistics of a batch are made from is read again.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = call @fused_reduce_0(%arg0)
// CHECK-NEXT: call @fused_convolution_0(%[[S]], %arg0, %arg1)
// CHECK-NEXT: call @fused_convolution_1(
// CHECK-NOT: call
// CHECK: convolution with 3 ops before
// CHECK: convolution with 1 ops before
func.func @main(%x: tensor<8x28x28x64xf32>, %k: tensor<1x1x64x64xf32>, %l: tensor<3x3x64x64xf32>) -> (tensor<8x28x28x64xf32>, tensor<8x28x28x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x28x28x64xf32>, tensor<f32>) -> tensor<64xf32>
  %0 = stablehlo.broadcast_in_dim %s, dims = [3] : (tensor<64xf32>) -> tensor<8x28x28x64xf32>
  %1 = stablehlo.subtract %x, %0 : tensor<8x28x28x64xf32>
  %2 = stablehlo.exponential %1 : tensor<8x28x28x64xf32>
  %3 = stablehlo.convolution(%2, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<1x1x64x64xf32>) -> tensor<8x28x28x64xf32>
  %4 = stablehlo.abs %x : tensor<8x28x28x64xf32>
  %5 = stablehlo.convolution(%4, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x28x28x64xf32>
  return %3, %5 : tensor<8x28x28x64xf32>, tensor<8x28x28x64xf32>
}

// -----

// Not what costs much, where windows of two parts would make it twice; nor where nothing is padded, or it
// is spread by zeros; nor what follows another convolution.
// CHECK-LABEL: func.func @main
// CHECK: convolution with 1 ops after; stopped at abs: follows what is costly
// CHECK: convolution alone; stopped at negate: follows what is another kernel's
// CHECK: "convolution alone"
// CHECK: "convolution alone"
func.func @main(%x: tensor<8x28x28x64xf32>, %l: tensor<3x3x64x64xf32>) -> (tensor<8x28x28x64xf32>, tensor<8x26x26x64xf32>, tensor<8x56x56x64xf32>) {
  %0 = stablehlo.exponential %x : tensor<8x28x28x64xf32>
  %1 = stablehlo.abs %0 : tensor<8x28x28x64xf32>
  %2 = stablehlo.convolution(%1, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x28x28x64xf32>
  %3 = stablehlo.negate %2 : tensor<8x28x28x64xf32>
  %4 = stablehlo.convolution(%3, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x28x28x64xf32>
  %5 = stablehlo.sign %x : tensor<8x28x28x64xf32>
  %6 = stablehlo.convolution(%5, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x26x26x64xf32>
  %7 = stablehlo.floor %x : tensor<8x28x28x64xf32>
  %8 = stablehlo.convolution(%7, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x56x56x64xf32>
  return %4, %6, %8 : tensor<8x28x28x64xf32>, tensor<8x26x26x64xf32>, tensor<8x56x56x64xf32>
}
