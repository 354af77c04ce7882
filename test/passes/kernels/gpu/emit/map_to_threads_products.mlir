// RUN: %lamina-opt %s --gpu-map-to-threads --split-input-file | FileCheck %s

// A product with what follows it: one kernel, that starts from no memory and writes the result only.
// CHECK: gpu.module @product_gpu attributes {lamina.scratch_bytes = 0 : i64}
// CHECK: memref.global "private" @{{.*}} : memref<9216xi8, 3> = uninitialized
// CHECK: gpu.func @product_0
// CHECK-SAME: known_grid_size = array<i32: 6, 1, 1>
// CHECK-SAME: lamina.tiling = "fma32 32x32x16, 2 stages, {{[0-9]+}} cycles"
// CHECK: memref.view {{.*}} : memref<9216xi8, 3> to memref<2x16x36xf32, 3>
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: vector.load {{.*}} {alignment = 8 : i64} : memref<2x16x36xf32, 3>, vector<2xf32>
// CHECK: gpu.barrier
// CHECK: arith.negf
// CHECK: memref.store {{.*}} : memref<64x70xf32>
// CHECK-NOT: @product_1
func.func @product(%x: memref<64x50xf32>, %w: memref<50x70xf32>, %y: memref<64x70xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<64x70xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%t : memref<64x70xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x50xf32>, memref<50x70xf32>) outs(%t : memref<64x70xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%t : memref<64x70xf32>) outs(%y : memref<64x70xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Few tiles: parts of k, which a second kernel adds in order.
// CHECK: gpu.func @split_0
// CHECK-SAME: lamina.tiling = "fma32 32x32x16, 2 stages, [[PARTS:[0-9]+]] parts of k
// CHECK: memref.view {{.*}} to memref<[[PARTS]]x1x16x16xf32>
// CHECK: gpu.func @split_1
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.store {{.*}} : memref<16x16xf32>
func.func @split(%x: memref<16x4096xf32>, %w: memref<4096x16xf32>, %y: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<16x4096xf32>, memref<4096x16xf32>) outs(%y : memref<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
