// RUN: %lamina-opt %s --pass-pipeline=linalg-find-extremes-first --split-input-file | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
#none = affine_map<(i) -> ()>
#row = affine_map<(i) -> (i)>

// Elements are computed once, and compared from there.
// CHECK-LABEL: func.func @largest
// CHECK: %[[D:.*]] = linalg.generic {{.*}}["parallel", "parallel"]} ins(%arg0, %arg1
// CHECK: arith.mulf
// CHECK: %[[MOST:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[D]] :
// CHECK: arith.maximumf
// CHECK: %[[WHERE:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[D]], %[[MOST]] :
// CHECK: linalg.index 1
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf une
// CHECK: arith.minsi
// CHECK: return %[[MOST]], %[[WHERE]]
func.func @largest(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8xf32>
  %n = tensor.empty() : tensor<8xi32>
  %m = linalg.generic {indexing_maps = [#none, #row], iterator_types = ["parallel"]} ins(%low : f32) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  %k = linalg.generic {indexing_maps = [#none, #row], iterator_types = ["parallel"]} ins(%zero : i32) outs(%n : tensor<8xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<8xi32>
  %r:2 = linalg.generic {indexing_maps = [#full, #full, #first, #first], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<8x64xf32>, tensor<8x64xf32>) outs(%m, %k : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: f32, %b: f32, %most: f32, %at: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %v = arith.mulf %a, %b : f32
    %0 = arith.cmpf ogt, %most, %v : f32
    %1 = arith.cmpf une, %most, %most : f32
    %2 = arith.ori %0, %1 : i1
    %3 = arith.cmpf oeq, %most, %v : f32
    %4 = arith.cmpi slt, %at, %j : i32
    %5 = arith.andi %3, %4 : i1
    %6 = arith.ori %2, %5 : i1
    %7 = arith.select %2, %most, %v : f32
    %8 = arith.select %6, %at, %j : i32
    linalg.yield %7, %8 : f32, i32
  } -> (tensor<8xf32>, tensor<8xi32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
#none = affine_map<(i) -> ()>
#row = affine_map<(i) -> (i)>

// The last of equal ones is another rule; and one that begins with zero has something to win against.
// CHECK-LABEL: func.func @others
// CHECK: %{{.*}}:2 = linalg.generic
func.func @others(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8xf32>
  %n = tensor.empty() : tensor<8xi32>
  %m = linalg.generic {indexing_maps = [#none, #row], iterator_types = ["parallel"]} ins(%low : f32) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  %k = linalg.generic {indexing_maps = [#none, #row], iterator_types = ["parallel"]} ins(%zero : i32) outs(%n : tensor<8xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<8xi32>
  %r:2 = linalg.generic {indexing_maps = [#full, #first, #first], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>) outs(%m, %k : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: f32, %most: f32, %at: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %v = arith.negf %a : f32
    %0 = arith.cmpf ogt, %most, %v : f32
    %7 = arith.select %0, %most, %v : f32
    %8 = arith.select %0, %at, %j : i32
    linalg.yield %7, %8 : f32, i32
  } -> (tensor<8xf32>, tensor<8xi32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>
}
