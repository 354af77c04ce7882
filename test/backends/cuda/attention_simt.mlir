// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_75 --emit ptx | FileCheck %s

// Attention on f32 by threads: q, k, v and probabilities in shared memory, 16 bytes at a time; the
// highest score and the sum by shuffles; one kernel.
// CHECK: // kernel fused_attention
// CHECK: ld.global{{.*}}.v4.b32
// CHECK: st.shared.v4.b32
// CHECK: bar.sync
// CHECK: ld.shared.v4.b32
// CHECK: fma.rn.f32
// CHECK: shfl.sync.bfly.b32
// CHECK: st.shared.b32
// CHECK: bar.sync
// CHECK: div.rn.f32
// CHECK: st.global
// CHECK-NOT: .entry
module @jit_attention {
  func.func public @main(%q: tensor<32x16xf32>, %k: tensor<64x16xf32>, %v: tensor<64x16xf32>)
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
}
