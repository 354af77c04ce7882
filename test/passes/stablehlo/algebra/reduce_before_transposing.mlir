// RUN: %lamina-opt %s --stablehlo-reduce-before-transposing | FileCheck %s

// Through element-wise ops, constants, what is repeated and counts; what is left lies as the result does.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: transpose
// CHECK-DAG: %[[N:.*]] = stablehlo.iota dim = 1 : tensor<8x6xf32>
// CHECK-DAG: %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<6xf32>) -> tensor<8x6xf32>
// CHECK: %[[S:.*]] = stablehlo.subtract %arg0, %[[B]] : tensor<8x6xf32>
// CHECK: %[[M:.*]] = stablehlo.multiply %[[S]], %[[S]]
// CHECK: %[[A:.*]] = stablehlo.add %[[M]], %[[N]]
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[A]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<8x6xf32>, %mean: tensor<6xf32>) -> tensor<6xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %b = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<6xf32>) -> tensor<6x8xf32>
  %s = stablehlo.subtract %t, %b : tensor<6x8xf32>
  %m = stablehlo.multiply %s, %s : tensor<6x8xf32>
  %n = stablehlo.iota dim = 0 : tensor<6x8xf32>
  %a = stablehlo.add %m, %n : tensor<6x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x8xf32>, tensor<f32>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// What is left is turned.
// CHECK-LABEL: func.func @planes
// CHECK: %[[R:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [0] : (tensor<5x3x4xf32>
// CHECK: %[[T:.*]] = stablehlo.transpose %[[R]], dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
// CHECK: return %[[T]]
func.func @planes(%x: tensor<5x3x4xf32>) -> tensor<4x3xf32> {
  %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<5x3x4xf32>) -> tensor<5x4x3xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<5x4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// Several results at once.
// CHECK-LABEL: func.func @where
// CHECK: %[[N:.*]] = stablehlo.iota dim = 0 : tensor<8x6xi32>
// CHECK: stablehlo.reduce(%arg0 init: %{{.*}}), (%[[N]] init: %{{.*}}) across dimensions = [0]
func.func @where(%x: tensor<8x6xf32>) -> tensor<6xi32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %n = stablehlo.iota dim = 1 : tensor<6x8xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%t init: %least), (%n init: %zero) across dimensions = [1] : (tensor<6x8xf32>, tensor<6x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
    %w = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  return %r#1 : tensor<6xi32>
}

// Rows first, where nothing is left and not all is turned.
// CHECK-LABEL: func.func @both_ways
// CHECK: %[[R:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<32x32xf32>
// CHECK: %[[S:.*]] = stablehlo.reduce(%[[R]] init: {{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: return %[[S]]
func.func @both_ways(%x: tensor<32x32xf32>) -> tensor<f32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %m = stablehlo.multiply %t, %x : tensor<32x32xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// Left alone: an array that is read as it lies, another order, what others read, and halves of an array.
// CHECK-LABEL: func.func @left_alone
// CHECK: applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>
// CHECK: applies stablehlo.add across dimensions = [2] : (tensor<4x2x3xf32>
// CHECK: applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>
// CHECK: applies stablehlo.add across dimensions = [0] : (tensor<2x3x4xf32>
func.func @left_alone(%x: tensor<8x8xf32>, %y: tensor<2x3x4xf32>, %z: tensor<3x2x4xf32>, %u: tensor<2x4x3xf32>) -> (tensor<8xf32>, tensor<4x2xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<3x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.add %0, %x : tensor<8x8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %4 = stablehlo.transpose %z, dims = [2, 1, 0] : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  %5 = stablehlo.add %3, %4 : tensor<4x2x3xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
  %7 = stablehlo.exponential %0 : tensor<8x8xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %9 = stablehlo.transpose %u, dims = [0, 2, 1] : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %10 = stablehlo.reduce(%9 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  return %2, %6, %8, %7, %10 : tensor<8xf32>, tensor<4x2xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<3x4xf32>
}
