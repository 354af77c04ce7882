// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=100,l2_bytes=32768 --linalg-block-columns | FileCheck %s

#no = affine_map<(j) -> ()>
#j = affine_map<(j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>
#of = affine_map<(i, j) -> (j)>
#i = affine_map<(i, j) -> (i)>

// A softmax over the first axis: the block is copied once, its exponentials take the copy's place, and
// the result is written where it belongs.
// CHECK-LABEL: func.func @softmax
// CHECK: scf.forall (%[[J:.*]]) = (0) to (1024) step (64)
// CHECK-NEXT: %[[T:.*]] = memref.alloc() : memref<64x64xf32>
// CHECK: %[[X:.*]] = memref.subview %arg0[0, %[[J]]] [64, 64]
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]} ins(%[[X]] {{.*}} outs(%[[T]]
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[T]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[T]], {{.*}} outs(%[[T]],
// CHECK: math.exp
// CHECK: %[[Y:.*]] = memref.subview %arg1[0, %[[J]]] [64, 64]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] : {{.*}} outs(%[[Y]]
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %[[E:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.divf %[[E]], %[[S]]
// CHECK: lamina.grain
func.func @softmax(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<1024xf32>
  %s = memref.alloc() : memref<1024xf32>
  linalg.generic {indexing_maps = [#no, #j], iterator_types = ["parallel"]} ins(%least : f32) outs(%m : memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#ij, #of], iterator_types = ["reduction", "parallel"]} ins(%x : memref<64x1024xf32>) outs(%m : memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.maximumf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #j], iterator_types = ["parallel"]} ins(%zero : f32) outs(%s : memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#ij, #of, #ij, #of], iterator_types = ["reduction", "parallel"]} ins(%x, %m : memref<64x1024xf32>, memref<1024xf32>) outs(%y, %s : memref<64x1024xf32>, memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %z: f32):
    %0 = arith.subf %u, %v : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %1, %2 : f32, f32
  }
  linalg.generic {indexing_maps = [#of, #ij], iterator_types = ["parallel", "parallel"]} ins(%s : memref<1024xf32>) outs(%y : memref<64x1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.divf %v, %u : f32
    linalg.yield %0 : f32
  }
  return
}

// What is walked twice is walked fast: nothing is copied. And where a block reads what others write,
// as sums of rows are, no block can be done alone.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: scf.forall
// CHECK-LABEL: func.func @rows
// CHECK-NOT: scf.forall
func.func @twice(%x: memref<64x1024xf32>, %s: memref<1024xf32>, %y: memref<64x1024xf32>) {
  linalg.generic {indexing_maps = [#ij, #of], iterator_types = ["reduction", "parallel"]} ins(%x : memref<64x1024xf32>) outs(%s : memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#ij, #of, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<64x1024xf32>, memref<1024xf32>) outs(%y : memref<64x1024xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %0 = arith.subf %u, %v : f32
    linalg.yield %0 : f32
  }
  return
}
func.func @rows(%x: memref<64x1024xf32>, %s: memref<1024xf32>, %r: memref<64xf32>, %y: memref<64x1024xf32>) {
  linalg.generic {indexing_maps = [#ij, #of], iterator_types = ["reduction", "parallel"]} ins(%x : memref<64x1024xf32>) outs(%s : memref<1024xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x1024xf32>) outs(%r : memref<64xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#ij, #of, #i, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %s, %r : memref<64x1024xf32>, memref<1024xf32>, memref<64xf32>) outs(%y : memref<64x1024xf32>) {
  ^bb0(%u: f32, %v: f32, %t: f32, %w: f32):
    %0 = arith.subf %u, %v : f32
    %1 = arith.mulf %0, %t : f32
    linalg.yield %1 : f32
  }
  return
}
