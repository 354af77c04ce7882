// RUN: %lamina-opt %s --pass-pipeline=linalg-merge-reductions | FileCheck %s

#rows = affine_map<(b, i, j) -> (b, i, j)>
#each = affine_map<(b, i, j) -> (b)>

// CHECK: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @rows
// CHECK: %[[X:.*]] = memref.reinterpret_cast %arg0 {{.*}} memref<100x12x12xf32> to memref<100x144xf32>
// CHECK: %[[Y:.*]] = memref.reinterpret_cast %arg1 {{.*}} memref<100x12x12xf32> to memref<100x144xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ROWS]], #[[ROWS]], {{.*}}], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[Y]]
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf {{.*}} fastmath<reassoc>
func.func @rows(%x: memref<100x12x12xf32>, %y: memref<100x12x12xf32>, %z: memref<100xf32>) {
  linalg.generic {indexing_maps = [#rows, #rows, #each], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %y : memref<100x12x12xf32>, memref<100x12x12xf32>) outs(%z : memref<100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// Not one behind the other, in another order, or in a temporary.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: memref.reinterpret_cast
func.func @apart(%x: memref<12x100x12xf32>, %y: memref<100x12x12xf32>, %z: memref<100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, b, j)>, #each], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : memref<12x100x12xf32>) outs(%z : memref<100xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %c, %a : f32
    linalg.yield %0 : f32
  }
  %t = memref.alloc() : memref<100x12x12xf32>
  linalg.generic {indexing_maps = [#rows, affine_map<(b, i, j) -> (b, j, i)>, #each], iterator_types = ["parallel", "reduction", "reduction"]} ins(%y, %y : memref<100x12x12xf32>, memref<100x12x12xf32>) outs(%z : memref<100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#rows, #each], iterator_types = ["parallel", "reduction", "reduction"]} ins(%t : memref<100x12x12xf32>) outs(%z : memref<100xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %c, %a : f32
    linalg.yield %0 : f32
  }
  return
}
