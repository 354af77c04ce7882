// RUN: %lamina-opt %s --pass-pipeline=cpu-multiply-panels | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
#no = affine_map<(i, j) -> ()>

// CHECK: #[[TURN:.*]] = affine_map<(d0, d1) -> (d1, d0)>

// A weight of few bits is widened and scaled for some columns and a part of the terms at a time, and
// multiplied in blocks of vectors. The last part begins earlier and leaves out what was added before.
// CHECK-LABEL: func.func @weight
// CHECK-NOT: memref.alloc() : memref<400x256xf32>
// CHECK: scf.forall (%[[N:.*]]) = (0) to (256) step (64)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<200x64xf32>
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[PANEL]] {{.*}} to memref<12800xf32>
// CHECK: scf.for
// CHECK: memref.subview %arg1[%[[K:.*]], %[[N]]] [200, 64] [1, 1] : memref<400x256xbf16>
// CHECK: linalg.generic {{.*}} outs(%[[PANEL]] : memref<200x64xf32>)
// CHECK: %[[SUMS:.*]]:30 = scf.for
// CHECK: vector.load %[[ROW]]
// CHECK-COUNT-28: vector.fma
// CHECK: vector.store %[[SUMS]]
func.func @weight(%a: memref<28x400xf32>, %w: memref<400x256xbf16>, %s: memref<256xf32>, %c: memref<28x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<400x256xf32>
  linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%w, %s : memref<400x256xbf16>, memref<256xf32>) outs(%b : memref<400x256xf32>) {
  ^bb0(%x: bf16, %y: f32, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.mulf %0, %y : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<28x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<28x400xf32>, memref<400x256xf32>) outs(%c : memref<28x256xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Of the first factor a task makes its rows. What follows is done on tiles, and the product is not stored.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: memref.alloc() : memref<64x
// CHECK: scf.forall (%[[M:.*]]) = (0) to (64) step (16)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<16x256xf32>
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[PANEL]]
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<16x128xf32>
// CHECK: linalg.generic {{.*}} outs(%[[PANEL]] : memref<16x256xf32>)
// CHECK: math.exp
// CHECK: %[[SUMS:.*]] = memref.reinterpret_cast %[[TILE]]
// CHECK: memref.load %[[ROW]]
// CHECK: vector.store %{{.*}}, %[[SUMS]]
// CHECK: %[[PART:.*]] = memref.subview %[[TILE]]
// CHECK: linalg.generic {{.*}} ins(%[[PART]]
// CHECK-NOT: linalg.generic
func.func @rows(%a: memref<64x512xf32>, %b: memref<512x128xf32>, %bias: memref<128xf32>, %d: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<64x512xf32>
  %c = memref.alloc() : memref<64x128xf32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : memref<64x512xf32>) outs(%e : memref<64x512xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.exp %x : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e, %b : memref<64x512xf32>, memref<512x128xf32>) outs(%c : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%c, %bias : memref<64x128xf32>, memref<128xf32>) outs(%d : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// A large second factor's panels are copied for some rows; for fewer it is read where it is.
// CHECK-LABEL: func.func @copied
// CHECK: scf.forall (%[[N:.*]]) = (0) to (1024)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<128x128xf32>
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[PANEL]]
// CHECK: memref.subview %arg1[%{{.*}}, %[[N]]] [128, 128]
// CHECK: linalg.generic {{.*}} outs(%[[PANEL]]
// CHECK: vector.load %[[ROW]]
// CHECK: vector.fma
// CHECK-LABEL: func.func @not_copied
// CHECK-NOT: vector.fma
// CHECK: return
func.func @copied(%a: memref<32x1024xf32>, %b: memref<1024x1024xf32>, %c: memref<32x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<32x1024xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<32x1024xf32>, memref<1024x1024xf32>) outs(%c : memref<32x1024xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

func.func @not_copied(%a: memref<16x1024xf32>, %b: memref<1024x1024xf32>, %c: memref<16x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x1024xf32>, memref<1024x1024xf32>) outs(%c : memref<16x1024xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A factor that something else reads, too, is made for all.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: memref.alloc() : memref<64x512xf32>
// CHECK-NOT: vector.fma
func.func @read_elsewhere(%a: memref<64x512xf32>, %b: memref<512x128xf32>, %c: memref<64x128xf32>, %d: memref<64x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<64x512xf32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : memref<64x512xf32>) outs(%e : memref<64x512xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.exp %x : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e, %b : memref<64x512xf32>, memref<512x128xf32>) outs(%c : memref<64x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  memref.copy %e, %d : memref<64x512xf32> to memref<64x512xf32>
  return
}

// Of many rows a task could keep sums of few columns only.
// CHECK-LABEL: func.func @many_rows
// CHECK: memref.alloc() : memref<512x256xf32>
// CHECK-NOT: vector.fma
func.func @many_rows(%a: memref<2048x512xf32>, %w: memref<512x256xbf16>, %c: memref<2048x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<512x256xf32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%w : memref<512x256xbf16>) outs(%b : memref<512x256xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %0 = arith.extf %x : bf16 to f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2048x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<2048x512xf32>, memref<512x256xf32>) outs(%c : memref<2048x256xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A transposed second factor is turned: made so where that costs little, else before. The same goes for a
// copy.
// CHECK-LABEL: func.func @turned
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<256x64xf32>
// CHECK: %[[PART:.*]] = memref.subview %arg1[%{{.*}}, %{{.*}}] [64, 256]
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[TURN]]]{{.*}} ins(%[[PART]] {{.*}} outs(%[[PANEL]]
// CHECK: arith.maximumf
// CHECK: vector.fma
func.func @turned(%a: memref<64x512xf32>, %b: memref<256x512xf32>, %c: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<256x512xf32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%b : memref<256x512xf32>) outs(%t : memref<256x512xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = arith.maximumf %x, %zero : f32
    %1 = arith.addf %0, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %t : memref<64x512xf32>, memref<256x512xf32>) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @turned_behind
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<256x64xf32>
// CHECK: %[[MADE:.*]] = memref.alloc() : memref<64x256xf32>
// CHECK: linalg.generic {{.*}} outs(%[[MADE]]
// CHECK: math.exp
// CHECK: linalg.generic {indexing_maps = [#[[TURN]], {{.*}} ins(%[[MADE]] {{.*}} outs(%[[PANEL]]
// CHECK: vector.fma
func.func @turned_behind(%a: memref<64x512xf32>, %b: memref<256x512xf32>, %c: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<256x512xf32>
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%b : memref<256x512xf32>) outs(%t : memref<256x512xf32>) {
  ^bb0(%x: f32, %z: f32):
    %0 = math.exp %x : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %t : memref<64x512xf32>, memref<256x512xf32>) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @turned_copy
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<256x64xf32>
// CHECK: linalg.generic {indexing_maps = [#[[TURN]], {{.*}} outs(%[[PANEL]]
// CHECK: vector.fma
func.func @turned_copy(%a: memref<64x512xf32>, %b: memref<256x512xf32>, %c: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x512xf32>, memref<256x512xf32>) outs(%c : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Of f64, panels are copied for any rows that lie contiguous: here for two times 640, by 64 columns each.
// CHECK-LABEL: func.func @wide
// CHECK: scf.forall (%[[M:.*]], %[[N:.*]]) = (0, 0) to (1280, 512) step (640, 64)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<128x64xf64>
// CHECK: vector.fma
func.func @wide(%a: memref<1280x512xf64>, %b: memref<512x512xf64>, %c: memref<1280x512xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f64) outs(%c : memref<1280x512xf64>) {
  ^bb0(%x: f64, %y: f64):
    linalg.yield %x : f64
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<1280x512xf64>, memref<512x512xf64>) outs(%c : memref<1280x512xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %z, %0 : f64
    linalg.yield %1 : f64
  }
  return
}
