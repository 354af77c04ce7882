// RUN: %lamina-opt %s --pass-pipeline=stablehlo-expand-fft | FileCheck %s

// A small size is one contraction with the matrix of roots of unity.
// CHECK-LABEL: func.func @small
// CHECK: stablehlo.dot_general
// CHECK-NOT: stablehlo.dot_general
// CHECK-NOT: stablehlo.fft
func.func @small(%x: tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>>
  return %0 : tensor<3x8xcomplex<f32>>
}

// 128 = 64 * 2: two contractions and a multiplication between them.
// CHECK-LABEL: func.func @composite
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.multiply
// CHECK: stablehlo.dot_general
func.func @composite(%x: tensor<128xcomplex<f32>>) -> tensor<128xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [128] : (tensor<128xcomplex<f32>>) -> tensor<128xcomplex<f32>>
  return %0 : tensor<128xcomplex<f32>>
}

// CHECK-LABEL: func.func @real
// CHECK: stablehlo.complex %arg0
// CHECK: stablehlo.slice {{.*}} -> tensor<5xcomplex<f64>>
func.func @real(%x: tensor<8xf64>) -> tensor<5xcomplex<f64>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf64>) -> tensor<5xcomplex<f64>>
  return %0 : tensor<5xcomplex<f64>>
}
