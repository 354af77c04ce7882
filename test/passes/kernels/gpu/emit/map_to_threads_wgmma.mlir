// RUN: %lamina-opt %s --gpu-map-to-threads | FileCheck %s

// The right factor is contiguous along its columns: its boxes are 64 of those by a depth, and a
// descriptor says how far it is from box to box. The left one's box is all rows.
// The library that could do it has columns where we have rows: its a is our right factor.
// CHECK: gpu.module @product_gpu attributes {lamina.library = {a = {argument = 1 : i64, bytes = 16777216 : i64, columns = 2048 : i64, leading = 4096 : i64, rows = 4096 : i64, stride = 1 : i64, transposed = 0 : i64, type = 14 : i64}, b = {argument = 0
// CHECK-SAME: batches = 1 : i64, choose = "measure", compute = 68 : i64, d = {argument = 2
// CHECK: memref.global "private" @[[SHARED:.*]] : memref<{{[0-9]+}}xi8, 3> {alignment = 1024 : i64}
// CHECK: gpu.func @product_0({{.*}}, %[[MAP_A:.*]]: !llvm.ptr, %[[MAP_B:.*]]: !llvm.ptr) kernel
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK-SAME: lamina.dynamic_shared_bytes = {{[0-9]+}}
// CHECK-SAME: lamina.tensor_maps = [{argument = 0 : i64, box = array<i64: 64, 128>, element = bf16, offset = 0 : i64, sizes = array<i64: 2048, 4096>, strides = array<i64: 4096>}, {argument = 1 : i64, box = array<i64: 64, 64>
// CHECK-SAME: lamina.tiling = "wgmma.bf16 128x256x64, 4 stages, {{[0-9]+}} cycles"
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-5: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: else
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>
// CHECK: nvvm.wgmma.commit.group
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: nvvm.barrier
// CHECK: nvvm.barrier
// CHECK: memref.store {{.*}} : memref<4096x4096xf32>
func.func @product(%x: memref<4096x2048xbf16>, %w: memref<2048x4096xbf16>, %y: memref<4096x4096xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%y : memref<4096x4096xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4096x2048xbf16>, memref<2048x4096xbf16>) outs(%y : memref<4096x4096xf32>) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %b : bf16 to f32
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
