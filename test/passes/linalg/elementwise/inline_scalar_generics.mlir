// RUN: %lamina-opt %s --pass-pipeline=linalg-inline-scalar-generics,canonicalize | FileCheck %s

// CHECK-LABEL: func.func @scalar
// CHECK-SAME: (%[[X:.*]]: f32)
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: return %[[Y]]
func.func @scalar(%x: f32) -> f32 {
  %0 = tensor.from_elements %x : tensor<f32>
  %1 = tensor.empty() : tensor<f32>
  %2 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%0 : tensor<f32>) outs(%1 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %in, %in : f32
    linalg.yield %4 : f32
  } -> tensor<f32>
  %3 = tensor.extract %2[] : tensor<f32>
  return %3 : f32
}

// CHECK-LABEL: func.func @with_a_dimension
// CHECK: linalg.generic
func.func @with_a_dimension(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.empty() : tensor<3xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<3xf32>) outs(%0 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %in, %in : f32
    linalg.yield %2 : f32
  } -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
