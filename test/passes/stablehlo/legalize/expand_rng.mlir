// RUN: %lamina-opt %s --stablehlo-expand-rng | FileCheck %s

// CHECK-LABEL: func.func @uniform
// CHECK: stablehlo.rng_bit_generator {{.*}}algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x5xui32>)
// CHECK: stablehlo.shift_right_logical
// CHECK: stablehlo.bitcast_convert
// CHECK-NOT: stablehlo.rng %
func.func @uniform(%a: tensor<f32>, %b: tensor<f32>, %s: tensor<2xi64>) -> tensor<4x5xf32> {
  %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// Another op, another seed.
// CHECK-LABEL: func.func @normal
// CHECK: stablehlo.constant dense<[1, 0]> : tensor<2xui64>
// CHECK: tensor<2x3xui64>
// CHECK: stablehlo.log
// CHECK: stablehlo.cosine
func.func @normal(%a: tensor<f64>, %b: tensor<f64>, %s: tensor<1xi64>) -> tensor<3xf64> {
  %0 = stablehlo.rng %a, %b, %s, distribution = NORMAL : (tensor<f64>, tensor<f64>, tensor<1xi64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @integers
// CHECK: stablehlo.remainder
func.func @integers(%a: tensor<i8>, %b: tensor<i8>, %s: tensor<1xi64>) -> tensor<3xi8> {
  %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<i8>, tensor<i8>, tensor<1xi64>) -> tensor<3xi8>
  return %0 : tensor<3xi8>
}
