// RUN: %lamina-opt %s --stablehlo-outline-attention-gradient="tensor-cores=true" | FileCheck %s

// What tensor cores multiply: bf16, and scores of f32 by bf16, but not by f16.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @fused_attention_gradient_0(%arg0, %arg1, %arg3, %arg2)
// CHECK-LABEL: func.func @halves
// CHECK-NOT: call
func.func @main(%q: tensor<2x32x16xbf16>, %k: tensor<2x80x16xbf16>, %v: tensor<2x80x16xbf16>, %g: tensor<2x32x16xbf16>)
    -> (tensor<2x32x16xf32>, tensor<2x80x16xf32>, tensor<2x80x16xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xbf16>, tensor<2x80x16xbf16>) -> tensor<2x32x80xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x32x80xf32>
  %e = stablehlo.exponential %d : tensor<2x32x80xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x32x80xf32>
  %pb = stablehlo.convert %p : (tensor<2x32x80xf32>) -> tensor<2x32x80xbf16>
  %dv = stablehlo.dot_general %pb, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x80xbf16>, tensor<2x32x16xbf16>) -> tensor<2x80x16xbf16>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xbf16>, tensor<2x80x16xbf16>) -> tensor<2x32x80xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x32x80xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x32x80xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x32x80xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x80xf32>, tensor<2x32x16xbf16>) -> tensor<2x80x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x80xf32>, tensor<2x80x16xbf16>) -> tensor<2x32x16xf32>
  return %dq, %dk, %dv : tensor<2x32x16xf32>, tensor<2x80x16xf32>, tensor<2x80x16xbf16>
}
func.func @halves(%q: tensor<2x32x16xf16>, %k: tensor<2x80x16xf16>, %v: tensor<2x80x16xf16>, %g: tensor<2x32x16xf16>)
    -> (tensor<2x32x16xf32>, tensor<2x80x16xf32>, tensor<2x80x16xf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xf16>, tensor<2x80x16xf16>) -> tensor<2x32x80xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x32x80xf32>
  %e = stablehlo.exponential %d : tensor<2x32x80xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x32x80xf32>
  %pb = stablehlo.convert %p : (tensor<2x32x80xf32>) -> tensor<2x32x80xf16>
  %dv = stablehlo.dot_general %pb, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x80xf16>, tensor<2x32x16xf16>) -> tensor<2x80x16xf16>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xf16>, tensor<2x80x16xf16>) -> tensor<2x32x80xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x32x80xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x80xf32>, tensor<f32>) -> tensor<2x32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x80xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x32x80xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x32x80xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x80xf32>, tensor<2x32x16xf16>) -> tensor<2x80x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x80xf32>, tensor<2x80x16xf16>) -> tensor<2x32x16xf32>
  return %dq, %dk, %dv : tensor<2x32x16xf32>, tensor<2x80x16xf32>, tensor<2x80x16xf16>
}
