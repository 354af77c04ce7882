// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_80 --emit ptx | FileCheck %s --check-prefixes=CHECK,AMPERE
// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_90a --emit ptx | FileCheck %s --check-prefixes=CHECK,HOPPER

// Each class of kernel, and what its PTX must have.

// Element by element: 16 bytes at a time.
// CHECK: // kernel fused_multiply
// AMPERE: .target sm_80
// HOPPER: .target sm_90a
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32

// A transpose: each thread turns a square in its registers.
// CHECK: // kernel {{.*}}transpose
// CHECK-COUNT-4: ld.global.nc.v4.b32
// CHECK-NOT: bar.sync
// CHECK-COUNT-4: st.global.v4.b32

// Rows: 16 bytes at a time, shuffles in a warp, shared memory between warps.
// CHECK: // kernel {{.*}}reduce
// CHECK: ld.global{{.*}}.v4.b32
// CHECK: shfl.sync.bfly.b32
// CHECK: bar.sync
// CHECK: st.global.b32

// A product: asynchronous copies, ldmatrix and mma.sync; or boxes, barriers and wgmma.
// CHECK: // kernel {{.*}}dot_general
// AMPERE: cp.async.cg.shared.global [{{.*}}], 16
// AMPERE: ldmatrix.sync.aligned.m8n8.x4{{.*}}.b16
// AMPERE: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// AMPERE: cvt.rn.bf16
// HOPPER: .extern .shared .align 1024
// HOPPER: .param .align 64 .b8 {{.*}}[128]
// HOPPER: .minnctapersm 1
// HOPPER: mbarrier.init.shared.b64
// HOPPER: fence.mbarrier_init.release.cluster
// HOPPER: mbarrier.try_wait.parity.shared.b64
// HOPPER: mbarrier.arrive.expect_tx.shared.b64
// HOPPER: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// HOPPER: wgmma.fence.sync.aligned
// HOPPER: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16
// HOPPER: wgmma.commit_group.sync.aligned
// HOPPER: wgmma.wait_group.sync.aligned
// HOPPER: cvt.rn.bf16

// Sort: each row in shared memory.
// CHECK: // kernel {{.*}}sort
// CHECK: .shared
// CHECK: bar.sync

// Cholesky: a block for each matrix.
// CHECK: // kernel {{.*}}cholesky
// CHECK: sqrt.rn{{.*}}f32
// CHECK: bar.sync
module @jit_classes {
  func.func public @main(%x: tensor<512x1024xf32>, %a: tensor<2048x2048xbf16>, %b: tensor<2048x2048xbf16>,
                         %s: tensor<20x20xf32>)
      -> (tensor<512x1024xf32>, tensor<1024x512xf32>, tensor<512xf32>, tensor<2048x2048xbf16>,
          tensor<512x1024xf32>, tensor<20x20xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %x, %x : tensor<512x1024xf32>
    %1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<512x1024xf32>) -> tensor<1024x512xf32>
    %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512xf32>
    %3 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %4 = "stablehlo.sort"(%x) ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %less = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }) {dimension = 1 : i64, is_stable = true} : (tensor<512x1024xf32>) -> tensor<512x1024xf32>
    %5 = stablehlo.cholesky %s, lower = true : tensor<20x20xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<512x1024xf32>, tensor<1024x512xf32>, tensor<512xf32>,
        tensor<2048x2048xbf16>, tensor<512x1024xf32>, tensor<20x20xf32>
  }
}
