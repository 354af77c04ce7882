// RUN: %lamina-opt %s --linalg-widen-columns | FileCheck %s

// CHECK-DAG: #[[WIDE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[ELEMENT:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: #[[CHUNK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>

// Rows of 3 elements, 96 of which are 288 elements; 48 rows are left. What is subtracted from each row is
// repeated once.
// CHECK-LABEL: func.func @around_means
// CHECK: %[[ZERO:.*]] = arith.constant -0.000000e+00
// CHECK: %[[P:.*]] = memref.alloc() : memref<4x288xf32>
// CHECK: linalg.fill ins(%[[ZERO]] : f32) outs(%[[P]]
// CHECK: %[[X:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 78, 288], strides: [22464, 288, 1]
// CHECK: %[[M:.*]] = memref.alloc() : memref<96x3xf32>
// CHECK: linalg.generic {{.*}} ins(%arg1 : memref<3xf32>) outs(%[[M]]
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %[[M]] to offset: [0], sizes: [288]
// CHECK: linalg.generic {indexing_maps = [#[[WIDE]], #[[ELEMENT]], #[[CHUNK]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[X]], %[[ROW]] : {{.*}}) outs(%[[P]]
// CHECK: arith.subf
// CHECK: arith.addf
// CHECK: %[[REST:.*]] = memref.subview %arg0[29952, 0] [48, 3] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[REST]], %arg1 : {{.*}}) outs(%arg2
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[P]] : {{.*}}) outs(%[[Q:.*]] : memref<288xf32>)
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[Q]] to offset: [0], sizes: [96, 3]
// CHECK: linalg.generic {{.*}} ins(%[[ROWS]] : memref<96x3xf32>) outs(%arg2
func.func @around_means(%x: memref<30000x3xf32>, %m: memref<3xf32>, %y: memref<3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]} ins(%x, %m : memref<30000x3xf32>, memref<3xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %mean: f32, %out: f32):
    %0 = arith.subf %in, %mean : f32
    %1 = arith.addf %out, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// In batches, each of which is one chunk; none of their rows is left.
// CHECK-LABEL: func.func @in_batches
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 1, 24, 384], strides: [9216, 9216, 384, 1]
// CHECK-NOT: memref.subview
// CHECK: arith.maxsi
// CHECK-NOT: memref.subview
// CHECK: arith.maxsi
func.func @in_batches(%x: memref<4x3072x3xi8>, %y: memref<4x3xi8>) {
  linalg.generic {indexing_maps = [affine_map<(b, c, i) -> (b, i, c)>, affine_map<(b, c, i) -> (b, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<4x3072x3xi8>) outs(%y : memref<4x3xi8>) {
  ^bb0(%in: i8, %out: i8):
    %1 = arith.maxsi %out, %in : i8
    linalg.yield %1 : i8
  }
  return
}

// Left alone: whole lines, few rows, a number for each row, another combiner.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: memref.reinterpret_cast
func.func @left_alone(%a: memref<30000x16xf32>, %b: memref<100x3xf32>, %c: memref<30000x3xf32>, %w: memref<30000xf32>, %y: memref<16xf32>, %z: memref<3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]} ins(%a : memref<30000x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]} ins(%b : memref<100x3xf32>) outs(%z : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (i)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]} ins(%c, %w : memref<30000x3xf32>, memref<30000xf32>) outs(%z : memref<3xf32>) {
  ^bb0(%in: f32, %of: f32, %out: f32):
    %0 = arith.mulf %in, %of : f32
    %1 = arith.addf %out, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]} ins(%c : memref<30000x3xf32>) outs(%z : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.subf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}
