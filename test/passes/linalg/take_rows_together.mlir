// RUN: %lamina-opt %s --pass-pipeline=linalg-take-rows-together | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Eight views of the rows; what is the same for all rows is read once. Blocks are pages of long rows.
// CHECK-LABEL: func.func @sum
// CHECK: %[[FIRST:.*]] = memref.subview %arg0[0, 0] [256, 4096] [8, 1]
// CHECK: %[[SECOND:.*]] = memref.subview %arg0[1, 0] [256, 4096] [8, 1]
// CHECK: %[[LAST:.*]] = memref.subview %arg0[7, 0] [256, 4096] [8, 1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[FIRST]], %arg1, %[[SECOND]],
// CHECK-SAME: lamina.loops = array<i64: 1, 1024, 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
// CHECK: ^bb0(%[[X:[a-z_0-9]+]]: f32, %[[S:[a-z_0-9]+]]: f32, %[[Y:[a-z_0-9]+]]: f32, {{.*}}%[[OUT:out[_0-9]*]]: f32):
// CHECK-NEXT: %[[XS:.*]] = arith.mulf %[[X]], %[[S]]
// CHECK-NEXT: %[[ONE:.*]] = arith.addf %[[OUT]], %[[XS]]
// CHECK-NEXT: %[[YS:.*]] = arith.mulf %[[Y]], %[[S]]
// CHECK-NEXT: %[[TWO:.*]] = arith.addf %[[ONE]], %[[YS]]
// CHECK-COUNT-6: arith.addf
func.func @sum(%x: memref<2048x4096xf32>, %s: memref<4096xf32>, %y: memref<4096xf32>) {
  linalg.generic {indexing_maps = [#full, #column, #column], iterator_types = ["reduction", "parallel"]} ins(%x, %s : memref<2048x4096xf32>, memref<4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %0 = arith.mulf %in, %scale : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Half pages of shorter rows, so that there are tasks enough.
// CHECK-LABEL: func.func @shorter
// CHECK: lamina.loops = array<i64: 1, 256, 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
func.func @shorter(%x: memref<2048x1024xf64>, %y: memref<1024xf64>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x1024xf64>) outs(%y : memref<1024xf64>) {
  ^bb0(%in: f64, %out: f64):
    %0 = arith.maximumf %out, %in : f64
    linalg.yield %0 : f64
  }
  return
}

// A factor of each row is a view, too; ten rows where there are no multiples of eight.
// CHECK-LABEL: func.func @product
// CHECK: %[[X:.*]] = memref.subview %arg0[0] [210] [10] : memref<2100xf64> to memref<210xf64, strided<[10]>>
// CHECK: %[[A:.*]] = memref.subview %arg1[0, 0] [210, 2000] [10, 1]
// CHECK: memref.subview %arg0[9] [210] [10]
// CHECK: memref.subview %arg1[9, 0] [210, 2000] [10, 1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[A]],
// CHECK-SAME: lamina.loops = array<i64:
// CHECK-COUNT-10: arith.mulf
func.func @product(%x: memref<2100xf64>, %a: memref<2100x2000xf64>, %y: memref<2000xf64>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i)>, affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x, %a : memref<2100xf64>, memref<2100x2000xf64>) outs(%y : memref<2000xf64>) {
  ^bb0(%factor: f64, %in: f64, %out: f64):
    %0 = arith.mulf %factor, %in : f64
    %1 = arith.addf %out, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// Left alone: other numbers of rows, short rows, sums along rows.
// CHECK-LABEL: func.func @others
// CHECK-NOT: memref.subview
func.func @others(%x: memref<2062x4096xf32>, %y: memref<4096xf32>, %u: memref<8192x512xf32>, %v: memref<512xf32>, %w: memref<8192xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2062x4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%u : memref<8192x512xf32>) outs(%v : memref<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%u : memref<8192x512xf32>) outs(%w : memref<8192xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}
