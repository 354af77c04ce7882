// RUN: %lamina-opt %s --pass-pipeline=linalg-fill-lanes | FileCheck %s

#left = affine_map<(b, i, k, j) -> (b, i, j)>
#right = affine_map<(b, i, k, j) -> (b, j, k)>
#out = affine_map<(b, i, k, j) -> (b, i, k)>
#fill = affine_map<(b, i, k) -> ()>
#all = affine_map<(b, i, k) -> (b, i, k)>

// A matrix is a vector: its elements along rows are shuffled, each row of the other one is repeated.
// CHECK-LABEL: func.func @four
// CHECK: scf.forall ({{.*}}) in (10000)
// CHECK: vector.load {{.*}} : memref<160000xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12]
// CHECK: vector.load {{.*}} : memref<160000xf32>, vector<4xf32>
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK-COUNT-4: arith.addf {{.*}} : vector<16xf32>
// CHECK-NEXT: vector.store {{.*}} : memref<160000xf32>, vector<16xf32>
// CHECK-NOT: linalg.generic
func.func @four(%x: memref<10000x4x4xf32>, %y: memref<10000x4x4xf32>, %z: memref<10000x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#fill, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%z : memref<10000x4x4xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : memref<10000x4x4xf32>, memref<10000x4x4xf32>) outs(%z : memref<10000x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Vectors of 16 matrices' results; the last block does some of the one before again.
// CHECK-LABEL: func.func @odd
// CHECK: scf.for %[[B:.*]] = %{{.*}} to %{{.*}} step
// CHECK: arith.minsi %[[B]]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 0, 1, 2, 0, 1, 2, 9, 10, 11, 9, 10, 11, 9] : vector<16xf32>, vector<16xf32>
// CHECK-COUNT-9: vector.store {{.*}} : memref<153xf32>, vector<16xf32>
func.func @odd(%x: memref<17x3x3xf32>, %y: memref<17x3x3xf32>, %z: memref<17x3x3xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#fill, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%z : memref<17x3x3xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : memref<17x3x3xf32>, memref<17x3x3xf32>) outs(%z : memref<17x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Rows that fill vectors, elements one behind the other, and results in the place of an operand.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: vector.
// CHECK-COUNT-3: linalg.generic
func.func @left_alone(%x: memref<100x128xf32>, %y: memref<100xf32>, %z: memref<100x128xf32>, %u: memref<100x3xf32>, %v: memref<100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %y : memref<100x128xf32>, memref<100xf32>) outs(%z : memref<100x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%u : memref<100x3xf32>) outs(%u : memref<100x3xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%u, %v : memref<100x3xf32>, memref<100xf32>) outs(%u : memref<100x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows that are whole vectors are copied as they are.
// CHECK-LABEL: func.func @rows_of_vectors
// CHECK-NOT: vector.
func.func @rows_of_vectors(%x: memref<4x4x64x32xf32>, %y: memref<4x64x4x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(b, s, h, d) -> (b, h, s, d)>, affine_map<(b, s, h, d) -> (b, s, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<4x4x64x32xf32>) outs(%y : memref<4x64x4x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// One loop does both without the temporary (schedule-generics).
// CHECK-LABEL: func.func @temporary
// CHECK-NOT: vector.
func.func @temporary(%x: memref<100x64xf32>, %y: memref<32xf32>, %z: memref<100x32xf32>) {
  %t = memref.alloc() : memref<100x32xf32>
  %even = memref.subview %x[0, 0] [100, 32] [1, 2] : memref<100x64xf32> to memref<100x32xf32, strided<[64, 2]>>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<32xf32>) outs(%t : memref<100x32xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%even, %t : memref<100x32xf32, strided<[64, 2]>>, memref<100x32xf32>) outs(%z : memref<100x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
