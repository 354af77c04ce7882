// RUN: %lamina-opt %s --gpu-write-kernels | FileCheck %s
// RUN: %lamina-opt %s --gpu-write-kernels="arch=sm_75" | FileCheck %s --check-prefix=OLD

// Where tf32 will do, attention of f32 is done by tensor cores from sm_80 on: v lies in shared memory by
// rows, which are read one by one, as the left factor is made of sums in registers.
// CHECK: gpu.func @tf32_0
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK: nvgpu.device_async_copy
// CHECK: scf.for
// CHECK: nvgpu.ldmatrix
// CHECK: nvgpu.mma.sync{{.*}}tf32Enabled
// CHECK: nvvm.convert.float.to.tf32
// OLD: gpu.func @tf32_0
// OLD-NOT: nvgpu
func.func @tf32(%q: tensor<64x16xf32>, %k: tensor<192x16xf32>, %v: tensor<192x16xf32>)
    -> tensor<64x16xf32> attributes {lamina.kind = "attention"} {
  %t = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1], precision = [HIGH, HIGH] : (tensor<64x16xf32>, tensor<192x16xf32>) -> tensor<64x192xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<64x192xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x192xf32>
  %d = stablehlo.subtract %t, %mb : tensor<64x192xf32>
  %e = stablehlo.exponential %d : tensor<64x192xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x192xf32>, tensor<f32>) -> tensor<64xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<64xf32>) -> tensor<64x192xf32>
  %p = stablehlo.divide %e, %lb : tensor<64x192xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : (tensor<64x192xf32>, tensor<192x16xf32>) -> tensor<64x16xf32>
  return %o : tensor<64x16xf32>
}
