// RUN: %lamina-opt %s --pass-pipeline=cpu-multiply-tiles | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
#no = affine_map<(i, j) -> ()>

// What follows is done on a tile of the sums, which are stored where it overwrites them.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: memref.alloc() : memref<128x
// CHECK: scf.forall (%[[N:.*]]) = (0) to (512) step (32)
// CHECK: memref.extract_aligned_pointer_as_index %arg0
// CHECK: memref.extract_aligned_pointer_as_index %arg1
// CHECK: memref.extract_aligned_pointer_as_index %arg2
// CHECK: %[[JOB:.*]] = memref.alloc() : memref<[[WORDS:.*]]xi64>
// CHECK: vector.store %{{.*}}, %[[JOB]][%{{.*}}] : memref<[[WORDS]]xi64>, vector<[[WORDS]]xi64>
// CHECK-COUNT-3: memref.store {{.*}}, %[[JOB]]
// CHECK: llvm.call @lamina_product_f32_nn(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, i64) -> ()
// CHECK: scf.for %{{.*}} = %{{.*}} to %c128
// CHECK: %[[ROW:.*]] = memref.subview %arg2[%{{.*}}, %[[N]]] [1, 32] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[ROW]] : {{.*}}) outs(%{{.*}} : memref<1x32xf32
// CHECK: math.tanh
func.func @in_place(%a: memref<128x784xf32>, %b: memref<784x512xf32>, %d: memref<128x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<128x512xf32>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<128x512xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<128x784xf32>, memref<784x512xf32>) outs(%c : memref<128x512xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<128x512xf32>) outs(%d : memref<128x512xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = math.tanh %x : f32
    linalg.yield %0 : f32
  }
  return
}

// Results of another type have no room for sums, which are in a tile of the task's own; the right factor is
// transposed. The last tile of some columns has as many rows as are left; columns that are left are tiles of their own.
// CHECK-LABEL: func.func @own_tile
// CHECK: scf.forall (%[[M:.*]], %[[N:.*]]) = (0, 0) to (301, 448) step ([[ROWS:.*]], [[COLUMNS:.*]])
// CHECK: %[[LEFT:.*]] = arith.subi %c301{{.*}}, %[[M]]
// CHECK: %[[HEIGHT:.*]] = arith.minsi %{{.*}}, %[[LEFT]]
// CHECK: %[[OWN:.*]] = memref.alloc() : memref<[[ROWS]]x[[COLUMNS]]xf64>
// CHECK: memref.extract_aligned_pointer_as_index %[[OWN]]
// CHECK: llvm.call @lamina_product_f64_nt
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[HEIGHT]]
// CHECK: %[[ROW:.*]] = memref.subview %[[OWN]][%{{.*}}, 0] [1, [[COLUMNS]]]
// CHECK: linalg.generic {{.*}} ins(%[[ROW]] : {{.*}}) outs(%{{.*}} : memref<1x[[COLUMNS]]xi1
// CHECK: scf.forall (%{{.*}}) = (0) to (301) step ([[ROWS]])
// CHECK: llvm.call @lamina_product_f64_nt
// CHECK: memref<1x61xi1
func.func @own_tile(%a: memref<301x211xf64>, %b: memref<509x211xf64>, %d: memref<301x509xi1>) {
  %zero = arith.constant 0.0 : f64
  %c = memref.alloc() : memref<301x509xf64>
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f64) outs(%c : memref<301x509xf64>) {
  ^bb0(%x: f64, %y: f64):
    linalg.yield %x : f64
  }
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<301x211xf64>, memref<509x211xf64>) outs(%c : memref<301x509xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %z, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%c : memref<301x509xf64>) outs(%d : memref<301x509xi1>) {
  ^bb0(%x: f64, %y: i1):
    %half = arith.constant 0.5 : f64
    %0 = arith.cmpf ogt, %x, %half : f64
    linalg.yield %0 : i1
  }
  return
}

// A weight of few bits is widened and scaled for some columns and a part of the terms at a time.
// CHECK-LABEL: func.func @weight
// CHECK-NOT: memref.alloc() : memref<400x256xf32>
// CHECK: scf.forall (%[[N:.*]]) = (0) to (256) step (64)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<[[DEPTH:.*]]x64xf32>
// CHECK: scf.for %[[PART:.*]] = %c0
// CHECK: memref.subview %arg1[%{{.*}}, %[[N]]] {{\[}}[[DEPTH]], 64] [1, 1] : memref<400x256xbf16>
// CHECK: linalg.generic {{.*}} outs(%[[PANEL]] : memref<[[DEPTH]]x64xf32>)
// CHECK: %[[ADDS:.*]] = arith.minsi %[[PART]], %c1
// CHECK: memref.extract_aligned_pointer_as_index %[[PANEL]]
// CHECK: llvm.call @lamina_product_f32_nn
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

// Of the first factor a task makes its rows; the sums lie where what follows writes. The last part of the terms begins
// earlier, and leaves out what was added before.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: memref.alloc() : memref<64x
// CHECK: scf.forall (%[[M:.*]]) = (0) to (64) step (16)
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<16x[[DEPTH:.*]]xf32>
// CHECK: %[[BEGIN:.*]] = arith.minsi %[[WANTED:.*]], %c341
// CHECK: %[[FIRST:.*]] = arith.subi %[[WANTED]], %[[BEGIN]]
// CHECK: linalg.generic {{.*}} outs(%[[PANEL]]
// CHECK: math.exp
// CHECK: arith.subi %c[[DEPTH]]{{.*}}, %[[FIRST]]
// CHECK: memref.extract_aligned_pointer_as_index %[[PANEL]]
// CHECK: memref.extract_aligned_pointer_as_index %arg1
// CHECK: memref.extract_aligned_pointer_as_index %arg3
// CHECK: llvm.call @lamina_product_f32_nn
// CHECK: scf.for
// CHECK: linalg.generic
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

// A factor that something else reads, too, is made for all, and one of which each task would make too many rows.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: memref.alloc() : memref<64x512xf32>
// CHECK-NOT: scf.forall
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

// CHECK-LABEL: func.func @many_rows
// CHECK: memref.alloc() : memref<512x256xf32>
// CHECK: llvm.call
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

// A panel of a transposed second factor is transposed, too.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[PANEL:.*]] = memref.alloc() : memref<64x[[DEPTH:.*]]xf32>
// CHECK: %[[PART:.*]] = memref.subview %arg1[%{{.*}}, %{{.*}}] [64, [[DEPTH]]]
// CHECK: linalg.generic {{.*}} ins(%[[PART]] {{.*}} outs(%[[PANEL]]
// CHECK: llvm.call @lamina_product_f32_nt
func.func @transposed(%a: memref<64x512xf32>, %b: memref<256x512xf32>, %c: memref<64x256xf32>) {
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

// Sums that begin with another number, and products that the user wants code for, are left to others.
// CHECK-LABEL: func.func @from_one
// CHECK-NOT: llvm.call
// CHECK-LABEL: func.func @own_code
// CHECK-NOT: llvm.call
// CHECK: llvm.func @lamina_product_f32_nn(!llvm.ptr, i64, i64)
// CHECK-NEXT: llvm.func @lamina_product_f32_nt(!llvm.ptr, i64, i64)
// CHECK-NEXT: llvm.func @lamina_product_f64_nt(!llvm.ptr, i64, i64)
func.func @from_one(%a: memref<128x128xf32>, %b: memref<128x128xf32>, %c: memref<128x128xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%one : f32) outs(%c : memref<128x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<128x128xf32>, memref<128x128xf32>) outs(%c : memref<128x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

func.func @own_code(%a: memref<128x128xf32>, %b: memref<128x128xf32>, %c: memref<128x128xf32>) attributes {lamina.matrix_products = "kernel"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #ij], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<128x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<128x128xf32>, memref<128x128xf32>) outs(%c : memref<128x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
