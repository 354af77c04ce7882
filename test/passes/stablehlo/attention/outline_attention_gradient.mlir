// RUN: %lamina-opt %s --stablehlo-outline-attention-gradient --split-input-file | FileCheck %s

// The result's own ops stay, as its gradient is made from it; of the gradient's, the products alone go
// to memory. A division of each score by its row's sum is one for the row.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK: %[[O:.*]] = stablehlo.dot_general
// CHECK: %[[G:.*]] = stablehlo.multiply %[[O]]
// CHECK-NEXT: %[[D:.*]]:3 = call @fused_attention_gradient_0(%arg0, %arg1, %[[G]], %arg2)
// CHECK-NEXT: return %[[D]]#2, %[[D]]#1, %[[D]]#0
// CHECK: func.func private @fused_attention_gradient_0
// CHECK-SAME: lamina.kind = "attention_gradient", lamina.reason = "gradient of attention over 64 keys
// CHECK: stablehlo.divide {{.*}} : tensor<2x32xf32>
// CHECK-NOT: stablehlo.divide {{.*}} : tensor<2x32x64xf32>
// CHECK: stablehlo.transpose
// CHECK: return
func.func @main(%q: tensor<2x32x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>)
    -> (tensor<2x32x16xf32>, tensor<2x64x16xf32>, tensor<2x64x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xf32>, tensor<2x64x16xf32>) -> tensor<2x32x64xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x32x64xf32>, tensor<f32>) -> tensor<2x32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x64xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x32x64xf32>
  %e = stablehlo.exponential %d : tensor<2x32x64xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x64xf32>, tensor<f32>) -> tensor<2x32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x32x64xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x64xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  %g = stablehlo.multiply %o, %o : tensor<2x32x16xf32>
  %dvt = stablehlo.dot_general %g, %p, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x16xf32>, tensor<2x32x64xf32>) -> tensor<2x16x64xf32>
  %dv = stablehlo.transpose %dvt, dims = [0, 2, 1] : (tensor<2x16x64xf32>) -> tensor<2x64x16xf32>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xf32>, tensor<2x64x16xf32>) -> tensor<2x32x64xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x32x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x32x64xf32>, tensor<f32>) -> tensor<2x32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x32xf32>) -> tensor<2x32x64xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x32x64xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x32x64xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x32x64xf32>, tensor<2x32x16xf32>) -> tensor<2x64x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x64xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  return %dq, %dk, %dv : tensor<2x32x16xf32>, tensor<2x64x16xf32>, tensor<2x64x16xf32>
}

// -----

// Of bf16, scores are f32 but for what products with rows are made of, which the program has rounded. The
// sum's factor of each row, one over its squared sum, is multiplied when the sum is done.
// CHECK-LABEL: func.func @bf16
// CHECK: func.func private @fused_attention_gradient_0
// CHECK: %[[S:.*]] = stablehlo.dot_general {{.*}} -> tensor<32x64xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[S]] : tensor<32x64xf32>
// CHECK: %[[R:.*]] = stablehlo.rsqrt %{{.*}} : tensor<32xf32>
// CHECK: %[[DP:.*]] = stablehlo.dot_general {{.*}} -> tensor<32x64xf32>
// CHECK: %[[X:.*]] = stablehlo.multiply %[[DP]], %[[E]] : tensor<32x64xf32>
// CHECK: %[[T:.*]] = stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.add
// CHECK: stablehlo.multiply %[[T]], %[[R]] : tensor<32xf32>
// CHECK: %[[DS:.*]] = stablehlo.convert {{.*}} : (tensor<32x64xf32>) -> tensor<32x64xbf16>
// CHECK: stablehlo.dot_general %[[DS]], {{.*}} -> tensor<64x16xbf16>
func.func @bf16(%q: tensor<32x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>, %g: tensor<32x16xbf16>)
    -> tensor<64x16xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x16xbf16>, tensor<64x16xbf16>) -> tensor<32x64xbf16>
  %e = stablehlo.exponential %s : tensor<32x64xbf16>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xbf16>, tensor<bf16>) -> tensor<32xbf16>
  %r = stablehlo.rsqrt %l : tensor<32xbf16>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<32xbf16>) -> tensor<32x64xbf16>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<32x16xbf16>, tensor<64x16xbf16>) -> tensor<32x64xbf16>
  %w = stablehlo.multiply %dp, %rb : tensor<32x64xbf16>
  %x = stablehlo.multiply %w, %e : tensor<32x64xbf16>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xbf16>, tensor<bf16>) -> tensor<32xbf16>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<32xbf16>) -> tensor<32x64xbf16>
  %ds = stablehlo.subtract %x, %tb : tensor<32x64xbf16>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<32x64xbf16>, tensor<32x16xbf16>) -> tensor<64x16xbf16>
  return %dk : tensor<64x16xbf16>
}

// -----

// Somebody else reads the scores' gradient.
// CHECK-LABEL: func.func @bias
// CHECK-NOT: call
func.func @bias(%q: tensor<32x16xf32>, %k: tensor<64x16xf32>, %v: tensor<64x16xf32>, %g: tensor<32x16xf32>)
    -> (tensor<64x16xf32>, tensor<32x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %e = stablehlo.exponential %s : tensor<32x64xf32>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %x = stablehlo.multiply %dp, %e : tensor<32x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %ds = stablehlo.subtract %x, %tb : tensor<32x64xf32>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<32x64xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %dk, %ds : tensor<64x16xf32>, tensor<32x64xf32>
}

// -----

// A dense layer and its gradient, without sums over what would be keys.
// CHECK-LABEL: func.func @layer
// CHECK-NOT: call
func.func @layer(%x: tensor<32x16xf32>, %w: tensor<64x16xf32>, %g: tensor<32x16xf32>, %u: tensor<64x16xf32>)
    -> tensor<64x16xf32> {
  %s = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %e = stablehlo.exponential %s : tensor<32x64xf32>
  %dp = stablehlo.dot_general %g, %u, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %ds = stablehlo.multiply %dp, %e : tensor<32x64xf32>
  %dw = stablehlo.dot_general %ds, %x, contracting_dims = [0] x [0] : (tensor<32x64xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %dw : tensor<64x16xf32>
}
