// RUN: %lamina-opt %s --pass-pipeline=stablehlo-multiply-columns | FileCheck %s

// CHECK-LABEL: func.func @complex_product
// CHECK: %[[ROWS:.*]] = stablehlo.reshape %arg0 : (tensor<4x3x768xcomplex<f32>>) -> tensor<4x3x16x48xcomplex<f32>>
// CHECK: %[[PARTIAL:.*]] = stablehlo.reduce(%[[ROWS]] init: %{{.*}}) applies stablehlo.multiply across dimensions = [0, 2] : {{.*}} -> tensor<3x48xcomplex<f32>>
// CHECK: stablehlo.reduce(%[[PARTIAL]] init: %arg1) applies stablehlo.multiply across dimensions = [1] : {{.*}} -> tensor<3xcomplex<f32>>
func.func @complex_product(%x: tensor<4x3x768xcomplex<f32>>, %init: tensor<complex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.multiply across dimensions = [0, 2] : (tensor<4x3x768xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}

// Of few, of what no columns divide, of what is computed on the way, and of columns already.
// CHECK-LABEL: func.func @other_products
// CHECK-NOT: stablehlo.reshape
func.func @other_products(%x: tensor<240xcomplex<f32>>, %y: tensor<1000x4096xcomplex<f32>>, %z: tensor<4096xcomplex<f32>>, %init: tensor<complex<f32>>) -> (tensor<complex<f32>>, tensor<4096xcomplex<f32>>, tensor<complex<f32>>) {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.multiply across dimensions = [0] : (tensor<240xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  %1 = stablehlo.reduce(%y init: %init) applies stablehlo.multiply across dimensions = [0] : (tensor<1000x4096xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4096xcomplex<f32>>
  %2 = stablehlo.exponential %z : tensor<4096xcomplex<f32>>
  %3 = stablehlo.reduce(%2 init: %init) applies stablehlo.multiply across dimensions = [0] : (tensor<4096xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  return %0, %1, %3 : tensor<complex<f32>>, tensor<4096xcomplex<f32>>, tensor<complex<f32>>
}
