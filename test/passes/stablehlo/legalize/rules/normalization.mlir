// RUN: %lamina-opt %s --stablehlo-legalize-ops=only=normalization | FileCheck %s

// CHECK-LABEL: func.func @inference
// CHECK-NOT: batch_norm
// CHECK: stablehlo.sqrt
// CHECK: stablehlo.divide
func.func @inference(%x: tensor<4x3xf32>, %f: tensor<3xf32>) -> tensor<4x3xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %f, %f, %f, %f) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @training
// CHECK-COUNT-2: stablehlo.reduce
// CHECK-NOT: batch_norm
func.func @training(%x: tensor<4x3xf32>, %f: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %f, %f) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}
