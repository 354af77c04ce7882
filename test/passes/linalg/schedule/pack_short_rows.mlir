// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=100 --pass-pipeline='linalg-pack-short-rows' | FileCheck %s

#no = affine_map<(i) -> ()>
#r = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// CHECK-DAG: #[[IJ:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[JI:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[I:.*]] = affine_map<(d0, d1) -> (d0)>

// A softmax: a block is turned, its exponentials are turned back. The last block begins where 256 rows end.
// CHECK-LABEL: func.func @softmax
// CHECK: scf.forall (%[[AT:.*]]) = (0) to (1000) step (256)
// CHECK: %[[I0:.*]] = arith.minsi %[[AT]], %c744
// CHECK: %[[M:.*]] = memref.alloc() : memref<256xf32>
// CHECK: linalg.generic {{.*}} outs(%[[M]]
// CHECK: %[[T:.*]] = memref.alloc() : memref<10x256xf32>
// CHECK: %[[X:.*]] = memref.subview %arg0[%[[I0]], 0] [256, 10]
// CHECK: linalg.generic {indexing_maps = [#[[JI]], #[[IJ]]], {{.*}} ins(%[[X]] {{.*}} outs(%[[T]]
// CHECK: linalg.generic {indexing_maps = [#[[JI]], #[[I]]], iterator_types = ["parallel", "reduction"]} ins(%[[T]] {{.*}} outs(%[[M]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {indexing_maps = [#[[JI]], #[[I]], #[[JI]], #[[I]]], {{.*}} ins(%[[T]], %[[M]]
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: %[[Y:.*]] = memref.subview %arg1[%[[I0]], 0] [256, 10]
// CHECK: linalg.generic {indexing_maps = [#[[JI]], #[[IJ]]], {{.*}} outs(%[[Y]]
// CHECK: lamina.grain
func.func @softmax(%x: memref<1000x10xf32>, %y: memref<1000x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<1000xf32>
  %s = memref.alloc() : memref<1000xf32>
  linalg.generic {indexing_maps = [#no, #r], iterator_types = ["parallel"]} ins(%least : f32) outs(%m : memref<1000xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x10xf32>) outs(%m : memref<1000xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.maximumf %v, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #r], iterator_types = ["parallel"]} ins(%zero : f32) outs(%s : memref<1000xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x, %m : memref<1000x10xf32>, memref<1000xf32>) outs(%y, %s : memref<1000x10xf32>, memref<1000xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %z: f32):
    %0 = arith.subf %u, %v : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %1, %2 : f32, f32
  }
  linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%s : memref<1000xf32>) outs(%y : memref<1000x10xf32>) {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.divf %v, %u : f32
    linalg.yield %0 : f32
  }
  return
}

// Few rows are one block, without a loop; what is the same for all rows stays where it is.
// CHECK-LABEL: func.func @few
// CHECK-NOT: scf.for
// CHECK: memref.alloc() : memref<10x200xf32>
// CHECK: ins(%{{.*}}, %arg1 : memref<10x200xf32>, memref<10xf32>)
// CHECK: math.exp
func.func @few(%x: memref<200x10xf32>, %b: memref<10xf32>, %s: memref<200xf32>) {
  linalg.generic {indexing_maps = [#ij, #j, #i], iterator_types = ["parallel", "reduction"]} ins(%x, %b : memref<200x10xf32>, memref<10xf32>) outs(%s : memref<200xf32>) {
  ^bb0(%u: f32, %v: f32, %z: f32):
    %0 = arith.addf %u, %v : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// Rows that would be done once more are not, where they are changed in place.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @in_place(%x: memref<1000x10xf32>, %s: memref<1000xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} outs(%x, %s : memref<1000x10xf32>, memref<1000xf32>) {
  ^bb0(%u: f32, %z: f32):
    %0 = math.exp %u : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// A sum costs less than turning does; rows of whole vectors are vectors.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @left_alone(%x: memref<1000x10xf32>, %y: memref<1000x32xf32>, %s: memref<1000xf32>, %t: memref<1000xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x10xf32>) outs(%s : memref<1000xf32>) {
  ^bb0(%u: f32, %z: f32):
    %0 = arith.addf %z, %u : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%y : memref<1000x32xf32>) outs(%t : memref<1000xf32>) {
  ^bb0(%u: f32, %z: f32):
    %0 = math.exp %u : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
