// RUN: %lamina-opt %s --stablehlo-reduce-further --split-input-file | FileCheck %s

// A sum over all is that of the sums of rows, wherever those stand, and over two dimensions that over one more.
// CHECK-LABEL: func.func @sums
// CHECK: %[[R:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [2] : (tensor<4x6x8xf32>
// CHECK: %[[P:.*]] = stablehlo.reduce(%[[R]] init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>
// CHECK: %[[T:.*]] = stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>
// CHECK: return %[[T]], %[[R]], %[[P]]
func.func @sums(%x: tensor<4x6x8xf32>) -> (tensor<f32>, tensor<4x6xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x8xf32>, tensor<f32>) -> tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %none) applies stablehlo.add across dimensions = [2] : (tensor<4x6x8xf32>, tensor<f32>) -> tensor<4x6xf32>
  %p = stablehlo.reduce(%x init: %none) applies stablehlo.add across dimensions = [1, 2] : (tensor<4x6x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %t, %r, %p : tensor<f32>, tensor<4x6xf32>, tensor<4xf32>
}

// -----

// The greatest of bf16 is one of them: nothing is rounded.
// CHECK-LABEL: func.func @greatest
// CHECK: %[[C:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [0] : (tensor<4x6xbf16>
// CHECK: stablehlo.reduce(%[[C]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0] : (tensor<6xbf16>
func.func @greatest(%x: tensor<4x6xbf16>) -> (tensor<6xbf16>, tensor<bf16>) {
  %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %c = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<6xbf16>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<bf16>
  return %c, %m : tensor<6xbf16>, tensor<bf16>
}

// -----

// Left alone: sums of bf16, sums that begin with one, a sum and a product, sums that go different ways.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-8: stablehlo.reduce(%arg{{.*}} init:
func.func @left_alone(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4x6xf32>, %h: tensor<4x6xbf16>)
    -> (tensor<4xbf16>, tensor<bf16>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<6xf32>) {
  %half = stablehlo.constant dense<0.0> : tensor<bf16>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%h init: %half) applies stablehlo.add across dimensions = [1] : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<4xbf16>
  %1 = stablehlo.reduce(%h init: %half) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<bf16>
  %2 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
  %4 = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.reduce(%y init: %one) applies stablehlo.multiply across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
  %6 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<4xbf16>, tensor<bf16>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<6xf32>
}
