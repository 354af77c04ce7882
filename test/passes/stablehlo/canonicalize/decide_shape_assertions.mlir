// RUN: %lamina-opt %s --pass-pipeline=stablehlo-decide-shape-assertions | FileCheck %s

// CHECK-LABEL: func.func public @holds
// CHECK-NOT: shape_assertion
// CHECK: custom_call @another
func.func public @holds() {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %n = stablehlo.constant dense<3> : tensor<i32>
  stablehlo.custom_call @shape_assertion(%true, %n) {error_message = "no", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  stablehlo.custom_call @another(%true) {has_side_effect = true} : (tensor<i1>) -> ()
  return
}

// The condition may be computed from sizes.
// CHECK-LABEL: func.func public @of_sizes
// CHECK-NOT: shape_assertion
func.func public @of_sizes(%x: tensor<6x4xf32>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<6x4xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %1 = stablehlo.remainder %0, %two : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.compare EQ, %1, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%2, %1) {error_message = "odd", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return
}
