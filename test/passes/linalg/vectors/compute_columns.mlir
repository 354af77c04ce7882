// RUN: %lamina-opt %s --pass-pipeline=linalg-compute-columns | FileCheck %s

#row = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// Sixteen rows of two elements are two vectors, dealt into columns and back; rows at the end that are no
// whole vectors are done with those in front of them. What only they use stays in registers.
// CHECK-LABEL: func.func @swapped
// CHECK-NOT: memref.alloc
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[AT:.*]] = arith.minsi %[[I]]
// CHECK: %[[FIRST:.*]] = vector.load %{{.*}} : memref<200xf32>, vector<16xf32>
// CHECK: %[[SECOND:.*]] = vector.load %{{.*}} : memref<200xf32>, vector<16xf32>
// CHECK: %[[LEFT:.*]] = vector.shuffle %[[FIRST]], %[[SECOND]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: %[[Y:.*]] = vector.load {{.*}} : memref<100xf32>, vector<16xf32>
// CHECK: %[[T:.*]] = arith.mulf %[[LEFT]], %[[Y]] : vector<16xf32>
// CHECK: %[[RIGHT:.*]] = vector.shuffle %[[FIRST]], %[[SECOND]] [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK: %[[A:.*]] = arith.addf %[[RIGHT]], %[[T]] : vector<16xf32>
// CHECK: %[[B:.*]] = arith.subf %[[LEFT]], %[[T]] : vector<16xf32>
// CHECK: %[[LOW:.*]] = vector.shuffle %[[A]], %[[B]] [0, 16, 1, 17,
// CHECK: %[[HIGH:.*]] = vector.shuffle %[[A]], %[[B]] [8, 24, 9, 25,
// CHECK: vector.store %[[LOW]], {{.*}} : memref<200xf32>, vector<16xf32>
// CHECK: vector.store %[[HIGH]], {{.*}} : memref<200xf32>, vector<16xf32>
// CHECK-NOT: linalg.generic
func.func @swapped(%x: memref<100x2xf32>, %y: memref<100x1xf32>, %r: memref<100x2xf32>) {
  %left = memref.subview %x[0, 0] [100, 1] [1, 1] : memref<100x2xf32> to memref<100x1xf32, strided<[2, 1]>>
  %right = memref.subview %x[0, 1] [100, 1] [1, 1] : memref<100x2xf32> to memref<100x1xf32, strided<[2, 1], offset: 1>>
  %t = memref.alloc() : memref<100x1xf32>
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%left, %y : memref<100x1xf32, strided<[2, 1]>>, memref<100x1xf32>) outs(%t : memref<100x1xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  %first = memref.subview %r[0, 0] [100, 1] [1, 1] : memref<100x2xf32> to memref<100x1xf32, strided<[2, 1]>>
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%right, %t : memref<100x1xf32, strided<[2, 1], offset: 1>>, memref<100x1xf32>) outs(%first : memref<100x1xf32, strided<[2, 1]>>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  %second = memref.subview %r[0, 1] [100, 1] [1, 1] : memref<100x2xf32> to memref<100x1xf32, strided<[2, 1], offset: 1>>
  linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]} ins(%left, %t : memref<100x1xf32, strided<[2, 1]>>, memref<100x1xf32>) outs(%second : memref<100x1xf32, strided<[2, 1], offset: 1>>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Where a column is written that the next op reads from other rows, or only one of two is, or a row would be
// read that is not there, nothing is done.
// CHECK-LABEL: func.func @alone
// CHECK-COUNT-6: linalg.generic
func.func @alone(%x: memref<101x2xf32>, %y: memref<100x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = memref.subview %x[0, 0] [100, 1] [1, 1] : memref<101x2xf32> to memref<100x1xf32, strided<[2, 1]>>
  %next = memref.subview %x[1, 1] [100, 1] [1, 1] : memref<101x2xf32> to memref<100x1xf32, strided<[2, 1], offset: 3>>
  %high = memref.subview %x[0, 1] [100, 1] [1, 1] : memref<101x2xf32> to memref<100x1xf32, strided<[2, 1], offset: 1>>
  linalg.generic {indexing_maps = [#one, #row], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%low : memref<100x1xf32, strided<[2, 1]>>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%next : memref<100x1xf32, strided<[2, 1], offset: 3>>) outs(%high : memref<100x1xf32, strided<[2, 1], offset: 1>>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  func.call @other() : () -> ()
  %left = memref.subview %y[0, 0] [100, 1] [1, 1] : memref<100x2xf32> to memref<100x1xf32, strided<[2, 1]>>
  %t = memref.alloc() : memref<100x1xf32>
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%low : memref<100x1xf32, strided<[2, 1]>>) outs(%t : memref<100x1xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%t : memref<100x1xf32>) outs(%left : memref<100x1xf32, strided<[2, 1]>>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  func.call @other() : () -> ()
  %flat = memref.collapse_shape %x [[0, 1]] : memref<101x2xf32> into memref<202xf32>
  %every = memref.subview %flat[3] [100] [2] : memref<202xf32> to memref<100xf32, strided<[2], offset: 3>>
  %fourth = memref.subview %flat[5] [99] [2] : memref<202xf32> to memref<99xf32, strided<[2], offset: 5>>
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%every : memref<100xf32, strided<[2], offset: 3>>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%fourth : memref<99xf32, strided<[2], offset: 5>>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  return
}

func.func private @other()
