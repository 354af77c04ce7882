// RUN: %lamina-opt %s --linalg-read-in-step | FileCheck %s

#id = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>

// The places of a table that were just computed are an operand; the table's elements lie anywhere.
// CHECK-LABEL: func.func @look_up
// CHECK: %[[PLACES:.*]] = linalg.generic
// CHECK: linalg.generic {{.*}} ins(%[[PLACES]] : tensor<8xi32>)
// CHECK-NEXT: ^bb0(%[[AT:.*]]: i32, %{{.*}}: f32):
// CHECK-NEXT: linalg.index
// CHECK-NEXT: %[[PLACE:.*]] = arith.index_cast %[[AT]]
// CHECK-NEXT: tensor.extract %arg1[%[[PLACE]]]
func.func @look_up(%i: tensor<8xi32>, %table: tensor<100xf32>) -> (tensor<8xi32>, tensor<8xf32>) {
  %empty = tensor.empty() : tensor<8xi32>
  %places = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : tensor<8xi32>) outs(%empty : tensor<8xi32>) {
  ^bb0(%a: i32, %out: i32):
    %0 = arith.addi %a, %a : i32
    linalg.yield %0 : i32
  } -> tensor<8xi32>
  %none = tensor.empty() : tensor<8xf32>
  %found = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%none : tensor<8xf32>) {
  ^bb0(%out: f32):
    %n = linalg.index 0 : index
    %at = tensor.extract %places[%n] : tensor<8xi32>
    %place = arith.index_cast %at : i32 to index
    %element = tensor.extract %table[%place] : tensor<100xf32>
    linalg.yield %element : f32
  } -> tensor<8xf32>
  return %places, %found : tensor<8xi32>, tensor<8xf32>
}

// Left alone: a part of an array, and what is no other generic's result.
// CHECK-LABEL: func.func @left_alone
// CHECK: tensor.extract
// CHECK: tensor.extract
func.func @left_alone(%x: tensor<9x4xf32>, %y: tensor<8x4xf32>) -> (tensor<9x4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<9x4xf32>
  %wide = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<9x4xf32>) outs(%empty : tensor<9x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<9x4xf32>
  %none = tensor.empty() : tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%none : tensor<8x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = tensor.extract %wide[%i, %j] : tensor<9x4xf32>
    %b = tensor.extract %y[%i, %j] : tensor<8x4xf32>
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %wide, %sum : tensor<9x4xf32>, tensor<8x4xf32>
}
