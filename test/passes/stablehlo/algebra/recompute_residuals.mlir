// RUN: %lamina-opt %s --stablehlo-recompute-residuals="least-peak=4096 least-bytes=1024" | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-recompute-residuals | FileCheck %s --check-prefix=SMALL

// %g is made again from %a and %t, which the end needs too; what used it before the peak still does.
// CHECK-LABEL: func.func public @gelu
// CHECK: %[[T:.*]] = stablehlo.tanh %arg0
// CHECK: %[[G:.*]] = stablehlo.multiply %arg0, %[[T]]
// CHECK: %[[Y:.*]] = stablehlo.dot_general %[[G]], %arg1
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[AGAIN:.*]] = stablehlo.multiply %arg0, %[[T]]
// CHECK: stablehlo.dot_general %[[AGAIN]], %[[E]]
// CHECK: stablehlo.subtract %arg0, %[[T]]

// SMALL-LABEL: func.func public @gelu
// SMALL-COUNT-1: stablehlo.multiply
// SMALL-NOT: stablehlo.multiply
func.func public @gelu(%a: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %t = stablehlo.tanh %a : tensor<32x32xf32>
  %g = stablehlo.multiply %a, %t : tensor<32x32xf32>
  %y = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = stablehlo.exponential %y : tensor<32x32xf32>
  %dw = stablehlo.dot_general %g, %e, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = stablehlo.subtract %a, %t : tensor<32x32xf32>
  return %dw, %d : tensor<32x32xf32>, tensor<32x32xf32>
}

// Of a row's own normalisation only the centred row and the scale are kept, seen as a matrix or not.
// CHECK-LABEL: func.func public @normalised
// SMALL-LABEL: func.func public @normalised
// CHECK: %[[C:.*]] = stablehlo.subtract
// CHECK: %[[Q:.*]] = stablehlo.multiply %[[C]]
// CHECK: %[[V:.*]] = stablehlo.reshape %[[Q]]
// CHECK: stablehlo.dot_general %[[V]], %arg1
// CHECK: stablehlo.exponential
// CHECK: %[[Q2:.*]] = stablehlo.multiply %[[C]]
// CHECK: %[[V2:.*]] = stablehlo.reshape %[[Q2]]
// CHECK: stablehlo.dot_general %[[V2]]
func.func public @normalised(%x: tensor<4x8x32xf32>, %w: tensor<32x32xf32>, %m: tensor<4x8xf32>) -> (tensor<32x32xf32>, tensor<4x8x32xf32>) {
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x32xf32>
  %c = stablehlo.subtract %x, %mb : tensor<4x8x32xf32>
  %s = stablehlo.rsqrt %m : tensor<4x8xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x32xf32>
  %q = stablehlo.multiply %c, %sb : tensor<4x8x32xf32>
  %v = stablehlo.reshape %q : (tensor<4x8x32xf32>) -> tensor<32x32xf32>
  %y = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = stablehlo.exponential %y : tensor<32x32xf32>
  %dw = stablehlo.dot_general %v, %e, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %cc = stablehlo.sine %c : tensor<4x8x32xf32>
  return %dw, %cc : tensor<32x32xf32>, tensor<4x8x32xf32>
}

// Costly ops are not repeated, nor is anything kept alive for it: %a is not used again.
// CHECK-LABEL: func.func public @kept
// CHECK-COUNT-1: stablehlo.tanh
// CHECK-NOT: stablehlo.tanh
// CHECK-COUNT-1: stablehlo.negate
// CHECK-NOT: stablehlo.negate
func.func public @kept(%a: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %t = stablehlo.tanh %a : tensor<32x32xf32>
  %l = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %n = stablehlo.negate %l : tensor<32x32xf32>
  %y = stablehlo.dot_general %n, %t, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = stablehlo.exponential %y : tensor<32x32xf32>
  %dw = stablehlo.dot_general %t, %e, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %dn = stablehlo.dot_general %n, %e, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %dw, %dn : tensor<32x32xf32>, tensor<32x32xf32>
}
