// RUN: %lamina-opt %s --split-input-file --verify-diagnostics --pass-pipeline=stablehlo-decide-shape-assertions

func.func public @fails() {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %n = stablehlo.constant dense<3> : tensor<i32>
  // expected-error@+1 {{[custom_call] expected 2*b rows, there are 3}}
  stablehlo.custom_call @shape_assertion(%false, %n) {error_message = "expected 2*b rows, there are {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return
}

// -----

func.func public @unknown(%p: tensor<i1>) {
  // expected-error@+1 {{[custom_call] asserts something of sizes that are not known}}
  stablehlo.custom_call @shape_assertion(%p) {error_message = "no", has_side_effect = true} : (tensor<i1>) -> ()
  return
}
