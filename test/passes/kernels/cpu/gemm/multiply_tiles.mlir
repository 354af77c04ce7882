// RUN: %lamina-opt %s --pass-pipeline=cpu-multiply-tiles | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#no = affine_map<(i, j) -> ()>

// What follows is done on a tile of the sums, which are stored where it overwrites them.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: memref.alloc() : memref<128x
// CHECK: scf.forall (%[[N:.*]]) = (0) to (512) step (32)
// CHECK: memref.extract_aligned_pointer_as_index %arg2
// CHECK: memref.extract_aligned_pointer_as_index %arg0
// CHECK: memref.extract_aligned_pointer_as_index %arg1
// CHECK: %[[JOB:.*]] = memref.alloc() : memref<17xi64>
// CHECK-COUNT-17: memref.store {{.*}}, %[[JOB]]
// CHECK: llvm.call @lamina_product_f32_nn(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, i64) -> ()
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c128
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
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[HEIGHT]]
// CHECK: %[[ROW:.*]] = memref.subview %[[OWN]][%[[I]], 0] [1, [[COLUMNS]]]
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

// Sums that begin with another number, and products that the user wants code for, are left to others.
// CHECK-LABEL: func.func @from_one
// CHECK-NOT: llvm.call
// CHECK-LABEL: func.func @own_code
// CHECK-NOT: llvm.call
// CHECK: llvm.func @lamina_product_f32_nn(!llvm.ptr, i64, i64)
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
