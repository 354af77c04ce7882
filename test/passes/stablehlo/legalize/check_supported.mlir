// RUN: %lamina-opt %s --pass-pipeline=stablehlo-check-supported | FileCheck %s

// CHECK-LABEL: func.func public @fine
// CHECK: stablehlo.reduce
// CHECK: chlo.erf
func.func public @fine(%x: tensor<4xf32>, %y: tensor<2xcomplex<f64>>, %z: tensor<f8E4M3FN>, %i: tensor<3xui4>) -> tensor<f32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %2 = chlo.erf %1 : tensor<f32> -> tensor<f32>
  return %2 : tensor<f32>
}

// CHECK-LABEL: func.func public @calls_python
// CHECK: stablehlo.custom_call @lamina.python_callback
func.func public @calls_python(%x: tensor<4xf32>) {
  stablehlo.custom_call @lamina.python_callback(%x) {api_version = 4 : i32, backend_config = {index = 0 : i64}, has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}
