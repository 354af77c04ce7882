// RUN: %lamina-opt %s --pass-pipeline=linalg-choose-loops,linalg-share-loops | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline=linalg-choose-loops,linalg-share-loops,linalg-lower-to-loops,canonicalize | FileCheck %s --check-prefix=LOOPS

#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#flipped = affine_map<(i, j) -> (j, i)>

// A row is squared, summed and divided before the next one: one loop over rows, and a temporary of one row.
// CHECK-LABEL: func.func @rows
// CHECK: lamina.shared = array<i64: 0, 1>
// CHECK: lamina.shared = array<i64: 0, 1>
// CHECK: lamina.shared = array<i64: 0, 1>
// LOOPS-LABEL: func.func @rows
// LOOPS: scf.for
// LOOPS-DAG: memref.alloc() : memref<16xf32>
// LOOPS-DAG: memref.alloc() : memref<f32>
// LOOPS-COUNT-3: scf.for
// LOOPS-NOT: scf.for
// LOOPS: return
func.func @rows(%x: memref<8x16xf32>, %z: memref<8x16xf32>) {
  %y = memref.alloc() : memref<8x16xf32>
  %s = memref.alloc() : memref<8xf32>
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<8x16xf32>) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]} ins(%y, %s : memref<8x16xf32>, memref<8xf32>) outs(%z : memref<8x16xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// Equal shapes share every loop.
// CHECK-LABEL: func.func @two_results
// CHECK: lamina.shared = array<i64: 0, 2>
// CHECK: lamina.shared = array<i64: 0, 2>
// LOOPS-LABEL: func.func @two_results
// LOOPS: scf.for
// LOOPS-NEXT: scf.for
// LOOPS: memref.store {{.*}}, %arg1
// LOOPS: memref.store {{.*}}, %arg2
func.func @two_results(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%y : memref<8x16xf32>) outs(%z : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// A row of the second needs all rows of the first.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: lamina.shared
func.func @transposed(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %z: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#flipped, #full], iterator_types = ["parallel", "parallel"]} ins(%y : memref<8x8xf32>) outs(%z : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// The second loads what the first writes, wherever it likes.
// CHECK-LABEL: func.func @gathered
// CHECK-NOT: lamina.shared
func.func @gathered(%x: memref<8xf32>, %y: memref<8xf32>, %i: memref<8xindex>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : memref<8xindex>) outs(%z : memref<8xf32>) {
  ^bb0(%in: index, %out: f32):
    %0 = memref.load %y[%in] : memref<8xf32>
    linalg.yield %0 : f32
  }
  return
}

// Something in between may look at memory.
// CHECK-LABEL: func.func @interrupted
// CHECK-NOT: lamina.shared
func.func @interrupted(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  func.call @look(%y) : (memref<8xf32>) -> ()
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y : memref<8xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
func.func private @look(memref<8xf32>)

// Blocks of columns: what is summed down them is then divided block by block.
// CHECK-LABEL: func.func @columns
// CHECK: lamina.loops = array<i64: 0, 128, 1, 1, 0, 1>, lamina.shared = array<i64: 0, 1>, lamina.tasks
// CHECK: lamina.loops = array<i64: 1, 128, 0, 1, 1, 1>, lamina.shared = array<i64: 0, 1>, lamina.tasks
func.func @columns(%x: memref<512x1024xf32>, %s: memref<1024xf32>, %y: memref<512x1024xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<512x1024xf32>) outs(%s : memref<1024xf32>) attrs = {lamina.loops = array<i64: 0, 128, 1, 1, 0, 1>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<512x1024xf32>, memref<1024xf32>) outs(%y : memref<512x1024xf32>) attrs = {lamina.loops = array<i64: 0, 1, 1, 1>} {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// In a part of a larger op, too, and serially: that is a task already.
// CHECK-LABEL: func.func @part
// CHECK: linalg.generic {{.*}} attrs = {lamina.loops = array<i64: 0, 1, 1, 1>, lamina.part, lamina.shared = array<i64: 0, 1>}
// CHECK: linalg.generic {{.*}} lamina.shared = array<i64: 0, 1>}
func.func @part(%x: memref<64x4096xf32>, %y: memref<64xf32>) {
  scf.forall (%t) = (0) to (1) step (1) {
    %s = memref.alloc() : memref<64xf32>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x4096xf32>) outs(%s : memref<64xf32>) attrs = {lamina.loops = array<i64: 0, 1, 1, 1>, lamina.part} {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%s : memref<64xf32>) outs(%y : memref<64xf32>) attrs = {lamina.loops = array<i64: 0, 1>} {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.mulf %a, %a : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// What is loaded at the loop's own index keeps to its part; at one that is computed it may not.
// CHECK-LABEL: func.func @picked
// CHECK-COUNT-2: lamina.shared = array<i64: 0, 1>
// CHECK-NOT: lamina.shared
func.func @picked(%i: memref<8xi32>, %x: memref<8x9xf32>, %j: memref<8xi32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : memref<8xi32>) outs(%j : memref<8xi32>) attrs = {lamina.loops = array<i64: 0, 1>} {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.muli %a, %a : i32
    linalg.yield %0 : i32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) attrs = {lamina.loops = array<i64: 0, 1>} {
  ^bb0(%b: f32):
    %n = linalg.index 0 : index
    %0 = memref.load %j[%n] : memref<8xi32>
    %1 = arith.index_cast %0 : i32 to index
    %2 = memref.load %x[%n, %1] : memref<8x9xf32>
    linalg.yield %2 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%z : memref<8xf32>) attrs = {lamina.loops = array<i64: 0, 1>} {
  ^bb0(%b: f32):
    %n = linalg.index 0 : index
    %0 = memref.load %i[%n] : memref<8xi32>
    %1 = arith.index_cast %0 : i32 to index
    %2 = memref.load %y[%1] : memref<8xf32>
    linalg.yield %2 : f32
  }
  return
}
