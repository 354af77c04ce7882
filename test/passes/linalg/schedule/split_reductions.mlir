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

// Siblings stand side by side: what completes the first goes to where its result is read.
// CHECK-LABEL: func.func @siblings
// CHECK: linalg.generic {{.*}}ins(%{{.*}} : memref<64x16384xf32>)
// CHECK-NOT: outs(%arg1
// CHECK: linalg.generic {{.*}}ins(%{{.*}} : memref<64x16384xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%{{.*}} : memref<64xf32>) outs(%arg1
// CHECK: memref.load %arg1
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%{{.*}} : memref<64xf32>) outs(%arg2
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @siblings(%x: memref<1048576xf32>, %s: memref<f32>, %m: memref<f32>, %d: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<1048576xf32>) outs(%s : memref<f32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %b, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<1048576xf32>) outs(%m : memref<f32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.maximumf %b, %a : f32
    linalg.yield %0 : f32
  }
  %v = memref.load %s[] : memref<f32>
  %w = arith.negf %v : f32
  memref.store %w, %d[] : memref<f32>
  return
}
