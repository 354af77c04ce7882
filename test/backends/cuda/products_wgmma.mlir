// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_90a --emit ptx | FileCheck %s --check-prefix=HOPPER
// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_80 --emit ptx | FileCheck %s --check-prefix=AMPERE
// RUN: %python -m lamina.tools.lamina_compile %s --target cuda:sm_100a --emit ptx | FileCheck %s --check-prefix=BLACKWELL

// How factors get to where `wgmma` reads them.

// tf32: the left factor lies along k and is copied as boxes, rounded on the way. The right one is read
// into registers, rounded, turned, and stored 16 bytes along k at a time; a fence lets products see it.
// HOPPER: // kernel fused_dot_general_0
// HOPPER-DAG: cp.async.bulk.tensor.2d
// HOPPER-DAG: cvt.rna.tf32.f32
// HOPPER-DAG: st.shared.v4.b32
// HOPPER-DAG: fence.proxy.async.shared::cta
// HOPPER-DAG: mbarrier.arrive.shared.b64
// HOPPER-DAG: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32
// AMPERE: // kernel fused_dot_general_0
// AMPERE: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// BLACKWELL: // kernel fused_dot_general_0
// BLACKWELL: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32

// f8: the same, four bytes of four rows at a time.
// HOPPER: // kernel fused_dot_general_1
// HOPPER-DAG: cp.async.bulk.tensor.2d
// HOPPER-DAG: prmt.b32
// HOPPER-DAG: st.shared.v4.b32
// HOPPER-DAG: fence.proxy.async.shared::cta
// HOPPER-DAG: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.f32.e4m3.e4m3
// BLACKWELL: // kernel fused_dot_general_1
// BLACKWELL: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32

// A convolution: windows by asynchronous copies, weights as boxes of a matrix.
// HOPPER: // kernel fused_convolution_0
// HOPPER-DAG: cp.async.bulk.tensor.2d
// HOPPER-DAG: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16
// HOPPER-DAG: cp.async.wait_group
// HOPPER-DAG: fence.proxy.async.shared::cta
// HOPPER-DAG: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16
// BLACKWELL: // kernel fused_convolution_0
// BLACKWELL: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
module @jit_products {
  func.func public @main(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>, %c: tensor<2048x2048xf8E4M3FN>,
                         %d: tensor<2048x2048xf8E4M3FN>, %x: tensor<8x56x56x64xbf16>, %w: tensor<3x3x64x256xbf16>)
      -> (tensor<2048x2048xf32>, tensor<2048x2048xf32>, tensor<8x56x56x256xbf16>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGH, HIGH]
        : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0]
        : (tensor<2048x2048xf8E4M3FN>, tensor<2048x2048xf8E4M3FN>) -> tensor<2048x2048xf32>
    %2 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1],
                  reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<8x56x56x64xbf16>, tensor<3x3x64x256xbf16>) -> tensor<8x56x56x256xbf16>
    return %0, %1, %2 : tensor<2048x2048xf32>, tensor<2048x2048xf32>, tensor<8x56x56x256xbf16>
  }
}
