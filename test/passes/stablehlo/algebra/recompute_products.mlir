// RUN: %lamina-opt %s --pass-pipeline='stablehlo-recompute-products' | FileCheck %s

// Sums along rows and along columns of a space that is made of two vectors: the second has one of its own,
// in which what is summed is last.
// CHECK-LABEL: func.func @both_directions
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: stablehlo.reduce(%[[E]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: %[[X:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<512xf32>) -> tensor<256x512xf32>
// CHECK: %[[Y:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<256xf32>) -> tensor<256x512xf32>
// CHECK: %[[P:.*]] = stablehlo.multiply %[[X]], %[[Y]]
// CHECK: %[[F:.*]] = stablehlo.exponential %[[P]] : tensor<256x512xf32>
// CHECK: stablehlo.reduce(%[[F]] init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<256x512xf32>, tensor<f32>) -> tensor<256xf32>
func.func @both_directions(%x: tensor<512xf32>, %y: tensor<256xf32>) -> (tensor<512xf32>, tensor<256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<512xf32>) -> tensor<512x256xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<256xf32>) -> tensor<512x256xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<512x256xf32>
  %3 = stablehlo.exponential %2 : tensor<512x256xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<512xf32>
  %5 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %4, %5 : tensor<512xf32>, tensor<256xf32>
}

// What would be read from memory across its rows stays in its order; constants and indices turn.
// CHECK-LABEL: func.func @of_a_smaller_space
// CHECK: stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: %[[G:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
// CHECK: %[[M:.*]] = stablehlo.multiply %[[G]], %{{.*}}
// CHECK: stablehlo.reduce(%[[M]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK-LABEL: func.func @turned
// CHECK: %[[C:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<256x512xf32>
// CHECK: %[[I:.*]] = stablehlo.iota dim = 1 : tensor<256x512xf32>
// CHECK: %[[M:.*]] = stablehlo.multiply %[[C]], %[[I]] : tensor<256x512xf32>
// CHECK: stablehlo.reduce(%[[M]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
func.func @of_a_smaller_space(%g: tensor<64x64xf32>, %x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<64x64x64xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  %4 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  return %3, %4 : tensor<64x64xf32>, tensor<64x64xf32>
}

func.func @turned() -> tensor<256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<512x256xf32>
  %0 = stablehlo.iota dim = 0 : tensor<512x256xf32>
  %1 = stablehlo.multiply %two, %0 : tensor<512x256xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %2 : tensor<256xf32>
}

// An array from memory is read again, not computed; what is returned is in memory; what is small stays
// in a cache; and a power costs more than to store it.
// CHECK-LABEL: func.func @from_memory
// CHECK-COUNT-1: stablehlo.exponential
// CHECK-NOT: stablehlo.exponential
func.func @from_memory(%a: tensor<512x256xf32>) -> (tensor<512xf32>, tensor<256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %a : tensor<512x256xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<512xf32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %1, %2 : tensor<512xf32>, tensor<256xf32>
}

// CHECK-LABEL: func.func @returned
// CHECK-COUNT-1: stablehlo.exponential
// CHECK-NOT: stablehlo.exponential
func.func @returned(%x: tensor<512xf32>) -> (tensor<512xf32>, tensor<256xf32>, tensor<512x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<512xf32>) -> tensor<512x256xf32>
  %1 = stablehlo.exponential %0 : tensor<512x256xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<512xf32>
  %3 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %2, %3, %1 : tensor<512xf32>, tensor<256xf32>, tensor<512x256xf32>
}

// CHECK-LABEL: func.func @costly
// CHECK-COUNT-1: stablehlo.power
// CHECK-NOT: stablehlo.power
func.func @costly(%x: tensor<512xf32>, %y: tensor<256xf32>) -> (tensor<512xf32>, tensor<256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<512xf32>) -> tensor<512x256xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<256xf32>) -> tensor<512x256xf32>
  %2 = stablehlo.power %0, %1 : tensor<512x256xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<512xf32>
  %4 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %3, %4 : tensor<512xf32>, tensor<256xf32>
}

// CHECK-LABEL: func.func @small
// CHECK-COUNT-1: stablehlo.exponential
// CHECK-NOT: stablehlo.exponential
func.func @small(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.exponential %0 : tensor<64x64xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %2, %3 : tensor<64xf32>, tensor<64xf32>
}
