// RUN: %lamina-opt %s --pass-pipeline=linalg-split-reductions | FileCheck %s

// CHECK: #[[CHUNK:.*]] = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @sum
// CHECK: %[[P:.*]] = memref.alloc() : memref<64xf32>
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[P]]
// CHECK: %[[X:.*]] = memref.expand_shape %arg0 {{\[\[}}0, 1]] output_shape [64, 15625]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[X]]
// CHECK: arith.mulf
// CHECK: arith.addf {{.*}} fastmath<reassoc>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[P]] {{.*}} outs(%arg1
// CHECK: arith.addf
func.func @sum(%x: memref<1000000xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<1000000xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// Enough results to share out.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: memref.alloc
func.func @rows(%x: memref<1000x1000xf32>, %y: memref<1000xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x1000xf32>) outs(%y : memref<1000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Not associative.
// CHECK-LABEL: func.func @last
// CHECK-NOT: memref.alloc
func.func @last(%x: memref<1000000xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<1000000xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.subf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}
