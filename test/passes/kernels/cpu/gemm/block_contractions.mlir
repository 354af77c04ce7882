// RUN: %lamina-opt %s --pass-pipeline=cpu-block-contractions | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
#no = affine_map<(i, j) -> ()>
#row = affine_map<(i, j) -> (0, j)>

// Blocks of nine rows by two vectors; the sum over k is carried in registers, stored once. Elements are
// found by one index each, which goes on by what lies between one term and the next.
// CHECK-LABEL: func.func @product
// CHECK: scf.for %[[M:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: %[[A:.*]] = memref.reinterpret_cast %arg0 {{.*}} to memref<1152xf32>
// CHECK-NEXT: %[[B:.*]] = memref.reinterpret_cast %arg1 {{.*}} to memref<2048xf32>
// CHECK-NEXT: %[[C:.*]] = memref.reinterpret_cast %arg2 {{.*}} to memref<576xf32>
// CHECK: %[[SUMS:.*]]:20 = scf.for {{.*}} iter_args({{.*}}, %[[PLACE:.*]] = %{{[^,]*}}, %[[PLACE_B:.*]] = %{{[^,]*}}) ->
// CHECK: vector.load %[[B]][%[[PLACE_B]]] : memref<2048xf32>, vector<16xf32>
// CHECK: memref.load %[[A]][%[[PLACE]]]
// CHECK: vector.broadcast {{.*}} : f32 to vector<16xf32>
// CHECK: %[[ROW:.*]] = arith.addi %[[PLACE]], %c64
// CHECK: memref.load %[[A]][%[[ROW]]]
// CHECK-COUNT-16: vector.fma
// CHECK: arith.addi %[[PLACE]], %c1
// CHECK: arith.addi %[[PLACE_B]], %c32
// CHECK: scf.yield
// CHECK-COUNT-18: vector.store %[[SUMS]]{{.*}}, %[[C]]
func.func @product(%a: memref<18x64xf32>, %b: memref<64x32xf32>, %c: memref<18x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xf32>, memref<64x32xf32>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A factor whose columns are not contiguous is laid out first.
// CHECK-LABEL: func.func @laid_out
// CHECK: %[[B:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: linalg.generic {{.*}} ins(%arg1 : memref<32x64xf32>) outs(%[[B]] : memref<64x32xf32>)
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[B]]
// CHECK: vector.load %[[ROW]]
func.func @laid_out(%a: memref<18x64xf32>, %b: memref<32x64xf32>, %c: memref<18x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xf32>, memref<32x64xf32>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// What follows reads blocks, not the product, which is never stored. The fill is the sums' start.
// CHECK-LABEL: func.func @with_bias
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: vector.broadcast %[[ZERO]]
// CHECK: vector.fma
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<9x32xf32>
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[TILE]]
// CHECK: vector.store %{{.*}}, %[[ROW]]
// CHECK: linalg.generic {{.*}} ins(%[[TILE]], %{{.*}} : memref<9x32xf32>, memref<32xf32, strided<[1], offset: ?>>)
// CHECK-NOT: linalg.generic
func.func @with_bias(%a: memref<18x64xf32>, %b: memref<64x32xf32>, %bias: memref<32xf32>, %d: memref<18x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<18x32xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xf32>, memref<64x32xf32>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%c, %bias : memref<18x32xf32>, memref<32xf32>) outs(%d : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// Integers, and what is small, stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT: vector.fma
// CHECK: linalg.generic
func.func @others(%a: memref<18x64xi32>, %b: memref<64x32xi32>, %c: memref<18x32xi32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xi32>, memref<64x32xi32>) outs(%c : memref<18x32xi32>) {
  ^bb0(%x: i32, %y: i32, %z: i32):
    %0 = arith.muli %x, %y : i32
    %1 = arith.addi %z, %0 : i32
    linalg.yield %1 : i32
  }
  return
}

// Far rows are fetched ahead, and of long sums over them a part is added at a time.
// CHECK-LABEL: func.func @parts
// CHECK: scf.for %[[LOW:.*]] = %c0{{.*}} to %c600{{.*}} step %c200
// CHECK: arith.addi %[[LOW]], %c200
// CHECK: scf.for %{{.*}} = %[[LOW]] to
// CHECK: memref.prefetch %{{.*}}[%{{.*}}], read, locality<3>, data : memref<307200xf32>
func.func @parts(%a: memref<18x600xf32>, %b: memref<600x512xf32>, %c: memref<18x512xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x600xf32>, memref<600x512xf32>) outs(%c : memref<18x512xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A part of a product is done in the task it is in. A factor from outside is laid out outside.
// CHECK-LABEL: func.func @part
// CHECK: %[[B:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: linalg.generic {{.*}} outs(%[[B]] : memref<64x32xf32>)
// CHECK: scf.forall
// CHECK-NOT: scf.forall
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[B]]
// CHECK: vector.load %[[ROW]]
// CHECK-COUNT-28: vector.fma
// CHECK: lamina.grain
func.func @part(%a: memref<1120x64xf32>, %b: memref<32x64xf32>, %c: memref<1120x32xf32>) {
  scf.forall (%i) = (0) to (1120) step (560) {
    %rows = memref.subview %a[%i, 0] [560, 64] [1, 1] : memref<1120x64xf32> to memref<560x64xf32, strided<[64, 1], offset: ?>>
    %sums = memref.subview %c[%i, 0] [560, 32] [1, 1] : memref<1120x32xf32> to memref<560x32xf32, strided<[32, 1], offset: ?>>
    linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], lamina.part} ins(%rows, %b : memref<560x64xf32, strided<[64, 1], offset: ?>>, memref<32x64xf32>) outs(%sums : memref<560x32xf32, strided<[32, 1], offset: ?>>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    }
  } {lamina.grain = 1 : i64}
  return
}

// What follows may see its other operands by a view made after the product, at a constant place.
// CHECK-LABEL: func.func @view_behind
// CHECK: vector.fma
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<9x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[TILE]], %{{.*}} : memref<9x32xf32>, memref<1x32xf32, strided<[32, 1], offset: ?>>)
// CHECK-NOT: linalg.generic
func.func @view_behind(%a: memref<18x64xf32>, %b: memref<64x32xf32>, %bias: memref<4x32xf32>, %d: memref<18x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<18x32xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xf32>, memref<64x32xf32>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  %row = memref.subview %bias[2, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<1x32xf32, strided<[32, 1], offset: 64>>
  linalg.generic {indexing_maps = [#ij, #row, #ij], iterator_types = ["parallel", "parallel"]} ins(%c, %row : memref<18x32xf32>, memref<1x32xf32, strided<[32, 1], offset: 64>>) outs(%d : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// Not what follows an op that writes what the product reads: it would be done too early or too late.
// CHECK-LABEL: func.func @written_between
// CHECK: vector.fma
// CHECK: linalg.generic {{.*}} outs(%arg1
// CHECK: linalg.generic {{.*}} outs(%arg2
func.func @written_between(%a: memref<18x64xf32>, %b: memref<64x32xf32>, %d: memref<18x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<18x32xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xf32>, memref<64x32xf32>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%b : memref<64x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<18x32xf32>) outs(%d : memref<18x32xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.addf %x, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// Factors of narrower floats are widened before, each once.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[B:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[A:.*]] = memref.alloc() : memref<18x64xf32>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[ROW_OF_A:.*]] = memref.reinterpret_cast %[[A]]
// CHECK: %[[ROW_OF_B:.*]] = memref.reinterpret_cast %[[B]]
// CHECK: vector.load %[[ROW_OF_B]]{{.*}} vector<16xf32>
// CHECK: memref.load %[[ROW_OF_A]]
// CHECK: vector.fma
func.func @narrow(%a: memref<18x64xbf16>, %b: memref<64x32xbf16>, %c: memref<18x32xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<18x64xbf16>, memref<64x32xbf16>) outs(%c : memref<18x32xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// Where a task's rows are no multiple of a block's, by a few, the last block begins earlier: 5 of 13 for 64.
// CHECK-LABEL: func.func @twice
// CHECK: scf.forall
// CHECK: arith.minsi
// CHECK: vector.load %{{.*}} : memref<{{[0-9]+}}xf32>
// CHECK-COUNT-26: vector.fma
// CHECK-NOT: vector.fma
func.func @twice(%a: memref<4x64x512xf32>, %b: memref<4x64x32xf32>, %w: memref<512x32xf32>, %new: memref<512x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<512x32xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<512x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n, i, k) -> (i, k, m)>, affine_map<(m, n, i, k) -> (i, k, n)>, affine_map<(m, n, i, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%a, %b : memref<4x64x512xf32>, memref<4x64x32xf32>) outs(%c : memref<512x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c, %w : memref<512x32xf32>, memref<512x32xf32>) outs(%new : memref<512x32xf32>) {
  ^bb0(%x: f32, %old: f32, %unused: f32):
    %0 = arith.subf %old, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// But for rows that are overwritten where they were read, as those of weights are: 4 blocks of 13 and one of 12.
// CHECK-LABEL: func.func @in_place
// CHECK-COUNT-26: vector.fma
// CHECK-COUNT-24: vector.fma
func.func @in_place(%a: memref<4x64x512xf32>, %b: memref<4x64x32xf32>, %w: memref<512x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<512x32xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<512x32xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n, i, k) -> (i, k, m)>, affine_map<(m, n, i, k) -> (i, k, n)>, affine_map<(m, n, i, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%a, %b : memref<4x64x512xf32>, memref<4x64x32xf32>) outs(%c : memref<512x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<512x32xf32>) outs(%w : memref<512x32xf32>) {
  ^bb0(%x: f32, %old: f32):
    %0 = arith.subf %old, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// For many rows columns are taken two vectors at a time, though their number is odd: one is left at the end.
// CHECK-LABEL: func.func @odd
// CHECK: %[[END:.*]] = arith.constant 576 : index
// CHECK: %[[TWO:.*]] = arith.constant 32 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]] step %[[TWO]] {
func.func @odd(%a: memref<256x64xf32>, %b: memref<64x592xf32>, %c: memref<256x592xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<256x592xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<256x64xf32>, memref<64x592xf32>) outs(%c : memref<256x592xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %0 = arith.mulf %in, %in_0 : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
