// RUN: %lamina-opt %s --pass-pipeline=stablehlo-forward-tuples | FileCheck %s

// CHECK-LABEL: func.func public @nested
// CHECK-SAME: (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<i32>)
// CHECK-NEXT: return %[[B]]
func.func public @nested(%a: tensor<f32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<i32>>
  %1 = stablehlo.tuple %0, %a : tuple<tuple<tensor<f32>, tensor<i32>>, tensor<f32>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tuple<tensor<f32>, tensor<i32>>, tensor<f32>>) -> tuple<tensor<f32>, tensor<i32>>
  %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>
  return %3 : tensor<i32>
}

// A tuple from outside stays.
// CHECK-LABEL: func.func public @argument
// CHECK: stablehlo.get_tuple_element
func.func public @argument(%t: tuple<tensor<f32>>) -> tensor<f32> {
  %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<f32>>) -> tensor<f32>
  return %0 : tensor<f32>
}
