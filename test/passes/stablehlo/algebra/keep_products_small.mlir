// RUN: %lamina-opt %s --stablehlo-keep-products-small --stablehlo-dce | FileCheck %s

// Three terms instead of a sum over k; a sum of products instead of a matrix in memory.
// CHECK-LABEL: func.func @distances
// CHECK-NOT: tensor<256x256x3xf32>
// CHECK: stablehlo.slice %arg0 [0:256, 0:1]
// CHECK: stablehlo.slice %arg0 [0:256, 1:2]
// CHECK: stablehlo.slice %arg0 [0:256, 2:3]
// CHECK: stablehlo.exponential {{.*}} : tensor<256x256xf32>
// CHECK: %[[W:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1]
// CHECK: %[[P:.*]] = stablehlo.multiply %{{.*}}, %[[W]] : tensor<256x256xf32>
// CHECK: stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK-NOT: stablehlo.dot_general
func.func @distances(%x: tensor<256x3xf32>, %y: tensor<256x3xf32>, %w: tensor<256xf32>) -> tensor<256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<256x3xf32>) -> tensor<256x256x3xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<256x3xf32>) -> tensor<256x256x3xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<256x256x3xf32>
  %3 = stablehlo.multiply %2, %2 : tensor<256x256x3xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<256x256x3xf32>, tensor<f32>) -> tensor<256x256xf32>
  %5 = stablehlo.negate %4 : tensor<256x256xf32>
  %6 = stablehlo.exponential %5 : tensor<256x256xf32>
  %7 = stablehlo.dot_general %6, %w, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %7 : tensor<256xf32>
}

// A matrix that is read from memory is BLAS's; sums of arrays in memory stay.
// CHECK-LABEL: func.func @in_memory
// CHECK: stablehlo.reduce
// CHECK: stablehlo.dot_general
func.func @in_memory(%a: tensor<256x256x3xf32>, %w: tensor<256xf32>) -> tensor<256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %a, %a : tensor<256x256x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<256x256x3xf32>, tensor<f32>) -> tensor<256x256xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %2 : tensor<256xf32>
}

// A sum that keeps three elements, for each of which it needs the same exponential: three sums over the
// smaller space; ones are no factor.
// CHECK-LABEL: func.func @directions
// CHECK-NOT: stablehlo.dot_general
// CHECK-COUNT-1: stablehlo.exponential {{.*}} : tensor<256x128xf32>
// CHECK-NOT: stablehlo.exponential
// CHECK-NOT: tensor<256x128x3xf32>
// CHECK-COUNT-3: applies stablehlo.add across dimensions = [1] : (tensor<256x128xf32>, tensor<f32>) -> tensor<256xf32>
// CHECK: stablehlo.concatenate {{.*}} dim = 1 : (tensor<256x1xf32>, tensor<256x1xf32>, tensor<256x1xf32>) -> tensor<256x3xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<256x128xf32>, tensor<f32>) -> tensor<128xf32>
func.func @directions(%x: tensor<256x3xf32>, %y: tensor<128xf32>) -> (tensor<256x3xf32>, tensor<128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<256xf32>
  %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<128xf32>) -> tensor<256x128xf32>
  %1 = stablehlo.exponential %0 : tensor<256x128xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<256x128xf32>) -> tensor<256x128x3xf32>
  %3 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<256x3xf32>) -> tensor<256x128x3xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<256x128x3xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<256x128x3xf32>, tensor<f32>) -> tensor<256x3xf32>
  %6 = stablehlo.dot_general %ones, %1, contracting_dims = [0] x [0] : (tensor<256xf32>, tensor<256x128xf32>) -> tensor<128xf32>
  return %5, %6 : tensor<256x3xf32>, tensor<128xf32>
}

// Nothing smaller is spread over the three: they stay together.
// CHECK-LABEL: func.func @together
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<256x128x3xf32>, tensor<f32>) -> tensor<256x3xf32>
func.func @together(%x: tensor<256x3xf32>, %y: tensor<128x3xf32>) -> tensor<256x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<256x3xf32>) -> tensor<256x128x3xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<128x3xf32>) -> tensor<256x128x3xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<256x128x3xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<256x128x3xf32>, tensor<f32>) -> tensor<256x3xf32>
  return %3 : tensor<256x3xf32>
}
