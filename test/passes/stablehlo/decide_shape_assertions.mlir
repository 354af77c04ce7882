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
