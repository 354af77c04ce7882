// RUN: %lamina-opt %s --stablehlo-outline-attention --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-outline-attention{whole=16}' --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-outline-attention{whole=16 least-scores=4096}' --split-input-file | FileCheck %s --check-prefix=LARGE

// The scale and a causal mask go in; k lies as (batch, keys, heads, width).
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[O:.*]] = call @fused_attention_0(%arg0, %arg1, %arg3, %arg2)
// CHECK-NEXT: return %[[O]]
// CHECK: func.func private @fused_attention_0
// CHECK-SAME: lamina.kind = "attention", lamina.reason = "attention over 64 keys
// CHECK-COUNT-2: stablehlo.reduce
// CHECK: return
//
// For a CPU, all is f32 up to the probabilities that are multiplied.
// WIDE: func.func private @fused_attention_0
// WIDE-NOT: stablehlo.convert
// WIDE: %[[P:.*]] = stablehlo.divide
// WIDE: %[[ROUNDED:.*]] = stablehlo.convert %[[P]]
// WIDE: stablehlo.dot_general %[[ROUNDED]], {{.*}} : (tensor<2x4x32x64xbf16>, tensor<2x4x64x16xbf16>) -> tensor<2x4x32x16xbf16>
func.func @main(%q: tensor<2x4x32x16xbf16>, %k: tensor<2x64x4x16xbf16>, %v: tensor<2x4x64x16xbf16>,
                %bias: tensor<32x64xf32>) -> tensor<2x4x32x16xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x4x32x16xbf16>, tensor<2x64x4x16xbf16>) -> tensor<2x4x32x64xf32>
  %scale = stablehlo.constant dense<2.5e-01> : tensor<2x4x32x64xf32>
  %t0 = stablehlo.multiply %s, %scale : tensor<2x4x32x64xf32>
  %b = stablehlo.broadcast_in_dim %bias, dims = [2, 3] : (tensor<32x64xf32>) -> tensor<2x4x32x64xf32>
  %t1 = stablehlo.add %t0, %b : tensor<2x4x32x64xf32>
  %i = stablehlo.iota dim = 0 : tensor<32x64xi32>
  %j = stablehlo.iota dim = 1 : tensor<32x64xi32>
  %seen = stablehlo.compare LE, %j, %i, SIGNED : (tensor<32x64xi32>, tensor<32x64xi32>) -> tensor<32x64xi1>
  %mask = stablehlo.broadcast_in_dim %seen, dims = [2, 3] : (tensor<32x64xi1>) -> tensor<2x4x32x64xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x4x32x64xf32>
  %t = stablehlo.select %mask, %t1, %low : tensor<2x4x32x64xi1>, tensor<2x4x32x64xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x32x64xf32>, tensor<f32>) -> tensor<2x4x32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<2x4x32xf32>) -> tensor<2x4x32x64xf32>
  %d = stablehlo.subtract %t, %mb : tensor<2x4x32x64xf32>
  %e = stablehlo.exponential %d : tensor<2x4x32x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x32x64xf32>, tensor<f32>) -> tensor<2x4x32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1, 2] : (tensor<2x4x32xf32>) -> tensor<2x4x32x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x4x32x64xf32>
  %pb = stablehlo.convert %p : (tensor<2x4x32x64xf32>) -> tensor<2x4x32x64xbf16>
  %o = stablehlo.dot_general %pb, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x32x64xbf16>, tensor<2x4x64x16xbf16>) -> tensor<2x4x32x16xbf16>
  return %o : tensor<2x4x32x16xbf16>
}

// -----

// Somebody else reads the probabilities.
// CHECK-LABEL: func.func @gradient
// CHECK-NOT: call
func.func @gradient(%q: tensor<32x16xbf16>, %k: tensor<64x16xbf16>, %v: tensor<64x16xbf16>)
    -> (tensor<32x16xbf16>, tensor<32x64xbf16>) {
  %t = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x16xbf16>, tensor<64x16xbf16>) -> tensor<32x64xbf16>
  %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<32x64xbf16>, tensor<bf16>) -> tensor<32xbf16>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xbf16>) -> tensor<32x64xbf16>
  %d = stablehlo.subtract %t, %mb : tensor<32x64xbf16>
  %e = stablehlo.exponential %d : tensor<32x64xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xbf16>, tensor<bf16>) -> tensor<32xbf16>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<32xbf16>) -> tensor<32x64xbf16>
  %p = stablehlo.divide %e, %lb : tensor<32x64xbf16>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<32x64xbf16>, tensor<64x16xbf16>) -> tensor<32x16xbf16>
  return %o, %p : tensor<32x16xbf16>, tensor<32x64xbf16>
}

// -----

// f32 is done, too; whether tf32 will do is said by the products.
// CHECK-LABEL: func.func @exact
// CHECK-NEXT: call @fused_attention_0
// Few scores of f32 stay in a cache as they are.
// LARGE-LABEL: func.func @exact
// LARGE-NOT: call @fused_attention
// LARGE: return
func.func @exact(%q: tensor<32x16xf32>, %k: tensor<64x16xf32>, %v: tensor<64x16xf32>)
    -> tensor<32x16xf32> {
  %t = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %d = stablehlo.subtract %t, %mb : tensor<32x64xf32>
  %e = stablehlo.exponential %d : tensor<32x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<32x64xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}

// -----

// CHECK-LABEL: func.func @rounded
// CHECK-NEXT: call @fused_attention_0
// CHECK: func.func private @fused_attention_0
// CHECK: dot_general {{.*}} precision = [HIGH, HIGH]
func.func @rounded(%q: tensor<32x16xf32>, %k: tensor<64x16xf32>, %v: tensor<64x16xf32>)
    -> tensor<32x16xf32> {
  %t = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1], precision = [HIGH, HIGH] : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %d = stablehlo.subtract %t, %mb : tensor<32x64xf32>
  %e = stablehlo.exponential %d : tensor<32x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<32x64xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}
