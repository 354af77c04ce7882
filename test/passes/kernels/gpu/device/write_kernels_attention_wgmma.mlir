// RUN: %lamina-opt %s --gpu-write-kernels | FileCheck %s
// RUN: %lamina-opt %s --gpu-write-kernels="arch=sm_100a" | FileCheck %s --check-prefix=OTHER

// Two warpgroups have 64 queries each. The first thread has boxes of 64 columns copied: of q, of k for
// three steps, of v for one; then, in each step, of what lies in stages that all warps are done with.
// Scores of a step are multiplied while the exponentials of the one before, in registers, are with v.
// CHECK: gpu.func @heads_0({{.*}}, %[[Q:[a-z0-9]+]]: !llvm.ptr, %[[K:[a-z0-9]+]]: !llvm.ptr, %[[V:[a-z0-9]+]]: !llvm.ptr) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: lamina.dynamic_shared_bytes = 196864
// CHECK-SAME: lamina.tensor_maps = [{argument = 0 : i64, box = array<i64: 64, 128, 1>, element = bf16, offset = 0 : i64, sizes = array<i64: 128, 1024, 2>, strides = array<i64: 256, 262144>}, {argument = 1
// CHECK-SAME: lamina.tiling = "wgmma.bf16 128x128, 3 and 2 stages"
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[Q]],
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[K]],
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[V]],
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[K]],
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence
// CHECK-COUNT-8: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>
// CHECK: nvvm.wgmma.commit.group
// CHECK: "wgmma.wait_group.sync.aligned 0;"
// CHECK: nvvm.mbarrier.arrive
// CHECK: gpu.shuffle
// CHECK: "llvm.nvvm.ex2.approx.ftz.f"
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-8: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: "wgmma.fence.sync.aligned;"
// CHECK-COUNT-8: "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group
// CHECK: "wgmma.wait_group.sync.aligned 1;"
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[K]],
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}%[[V]],
// CHECK: "llvm.nvvm.ex2.approx.ftz.f"
// CHECK: "wgmma.wait_group.sync.aligned 0;"
// CHECK: nvvm.mbarrier.arrive
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: "llvm.nvvm.rcp.approx.ftz.f"
// CHECK: memref.store {{.*}} : memref<2x1024x128xbf16>
// OTHER: gpu.func @heads_0
// OTHER-SAME: lamina.tiling = "mma.bf16 64x64"
// OTHER: nvgpu.mma.sync
// OTHER-NOT: wgmma
func.func @heads(%q: tensor<2x1024x128xbf16>, %k: tensor<2x1024x128xbf16>, %v: tensor<2x1024x128xbf16>)
    -> tensor<2x1024x128xbf16> attributes {lamina.kind = "attention"} {
  %t = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x1024x128xbf16>, tensor<2x1024x128xbf16>) -> tensor<2x1024x1024xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x1024x1024xf32>, tensor<f32>) -> tensor<2x1024xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x1024xf32>) -> tensor<2x1024x1024xf32>
  %d = stablehlo.subtract %t, %mb : tensor<2x1024x1024xf32>
  %e = stablehlo.exponential %d : tensor<2x1024x1024xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x1024x1024xf32>, tensor<f32>) -> tensor<2x1024xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x1024xf32>) -> tensor<2x1024x1024xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x1024x1024xf32>
  %c = stablehlo.convert %p : (tensor<2x1024x1024xf32>) -> tensor<2x1024x1024xbf16>
  %o = stablehlo.dot_general %c, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1024x1024xbf16>, tensor<2x1024x128xbf16>) -> tensor<2x1024x128xbf16>
  return %o : tensor<2x1024x128xbf16>
}
