// RUN: %lamina-opt %s --stablehlo-take-parts | FileCheck %s

// A crop over a boundary.
// CHECK-LABEL: func.func @crop
// CHECK: %[[A:.*]] = stablehlo.slice %arg0 [2:4, 0:3]
// CHECK: %[[B:.*]] = stablehlo.slice %arg1 [0:4, 0:3]
// CHECK: stablehlo.concatenate %[[A]], %[[B]], dim = 0
// CHECK-NOT: stablehlo.slice
// CHECK: return
func.func @crop(%a: tensor<4x5xf32>, %b: tensor<6x5xf32>) -> tensor<6x3xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<10x5xf32>
  %1 = stablehlo.slice %0 [2:8, 0:3] : (tensor<10x5xf32>) -> tensor<6x3xf32>
  return %1 : tensor<6x3xf32>
}

// Padded by reflection along two dimensions: all parts are read where they lie.
// CHECK-LABEL: func.func @reflected
// CHECK: %[[E0:.*]] = stablehlo.slice %arg0 [1:2, 0:4]
// CHECK: %[[E:.*]] = stablehlo.reverse %[[E0]], dims = [0]
// CHECK: %[[C0:.*]] = stablehlo.slice %arg0 [1:2, 1:2]
// CHECK: %[[C1:.*]] = stablehlo.reverse %[[C0]], dims = [0]
// CHECK: %[[C:.*]] = stablehlo.reverse %[[C1]], dims = [1]
// CHECK: %[[D0:.*]] = stablehlo.slice %arg0 [0:5, 1:2]
// CHECK: %[[D:.*]] = stablehlo.reverse %[[D0]], dims = [1]
// CHECK: %[[LEFT:.*]] = stablehlo.concatenate %[[C]], %[[D]], dim = 0
// CHECK: %[[REST:.*]] = stablehlo.concatenate %[[E]], %arg0, dim = 0
// CHECK: stablehlo.concatenate %[[LEFT]], %[[REST]], dim = 1
func.func @reflected(%x: tensor<5x4xf32>) -> tensor<6x5xf32> {
  %0 = stablehlo.slice %x [1:2, 0:4] : (tensor<5x4xf32>) -> tensor<1x4xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<1x4xf32>
  %2 = stablehlo.concatenate %1, %x, dim = 0 : (tensor<1x4xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %3 = stablehlo.slice %2 [0:6, 1:2] : (tensor<6x4xf32>) -> tensor<6x1xf32>
  %4 = stablehlo.reverse %3, dims = [1] : tensor<6x1xf32>
  %5 = stablehlo.slice %2 [0:6, 0:4] : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %6 = stablehlo.concatenate %4, %5, dim = 1 : (tensor<6x1xf32>, tensor<6x4xf32>) -> tensor<6x5xf32>
  return %6 : tensor<6x5xf32>
}

// Reversed along the boundaries: the last part comes first.
// CHECK-LABEL: func.func @reversed
// CHECK: %[[B0:.*]] = stablehlo.slice %arg1 [0:5]
// CHECK: %[[B:.*]] = stablehlo.reverse %[[B0]]
// CHECK: %[[A0:.*]] = stablehlo.slice %arg0 [1:4]
// CHECK: %[[A:.*]] = stablehlo.reverse %[[A0]]
// CHECK: stablehlo.concatenate %[[B]], %[[A]], dim = 0
func.func @reversed(%a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<8xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %1 = stablehlo.slice %0 [1:9] : (tensor<10xf32>) -> tensor<8xf32>
  %2 = stablehlo.reverse %1, dims = [0] : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// What is also read as a whole, or at several places, stays.
// CHECK-LABEL: func.func @stays
// CHECK: %[[ALL:.*]] = stablehlo.concatenate %arg0, %arg1
// CHECK: stablehlo.slice %[[ALL]] [0:9]
// CHECK: stablehlo.slice %[[ALL]] [1:10]
func.func @stays(%a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<9xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %1 = stablehlo.slice %0 [0:9] : (tensor<10xf32>) -> tensor<9xf32>
  %2 = stablehlo.slice %0 [1:10] : (tensor<10xf32>) -> tensor<9xf32>
  %3 = stablehlo.subtract %1, %2 : tensor<9xf32>
  return %3 : tensor<9xf32>
}

// Every second element over a boundary, and what a loop cuts out again and again.
// CHECK-LABEL: func.func @strided
// CHECK: stablehlo.concatenate %arg0, %arg1
// CHECK: stablehlo.slice {{.*}} [0:10:2]
func.func @strided(%a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<5xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %1 = stablehlo.slice %0 [0:10:2] : (tensor<10xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}

// CHECK-LABEL: func.func @in_a_loop
// CHECK: stablehlo.concatenate %arg0, %arg1
// CHECK: stablehlo.while
// CHECK: stablehlo.slice {{.*}} [2:8]
func.func @in_a_loop(%a: tensor<4xf32>, %b: tensor<6xf32>, %s: tensor<6xf32>, %n: tensor<i32>) -> tensor<6xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %1:2 = stablehlo.while(%i = %zero, %c = %s) : tensor<i32>, tensor<6xf32>
  cond {
    %2 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.slice %0 [2:8] : (tensor<10xf32>) -> tensor<6xf32>
    %3 = stablehlo.add %c, %2 : tensor<6xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<6xf32>
  }
  return %1#1 : tensor<6xf32>
}
