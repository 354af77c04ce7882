// RUN: %lamina-opt %s --pass-pipeline=linalg-scalars-first | FileCheck %s

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// CHECK-LABEL: func.func @update
// CHECK: tensor.extract
// CHECK: arith.subf
// CHECK: tensor.from_elements
// CHECK: linalg.generic
// CHECK-NOT: tensor.from_elements
// CHECK: linalg.generic
func.func @update(%x: tensor<4xf32>, %t: tensor<f32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %3 = math.exp %a : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %n = tensor.extract %t[] : tensor<f32>
  %m = arith.subf %one, %n : f32
  %u = tensor.from_elements %m : tensor<f32>
  %2 = linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel"]} ins(%1, %u : tensor<4xf32>, tensor<f32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %3 = arith.divf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// What is made from an array waits for it.
// CHECK-LABEL: func.func @of_an_array
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK: tensor.from_elements
func.func @of_an_array(%x: tensor<4xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %3 = math.exp %a : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  %n = tensor.extract %1[%c0] : tensor<4xf32>
  %u = tensor.from_elements %n : tensor<f32>
  return %u : tensor<f32>
}
