// RUN: %lamina-opt %s --stablehlo-reduce-windows | FileCheck %s

// CHECK-LABEL: func.func @pooled
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<8x6x5xf32>) -> tensor<4x2x3x2x5xf32>
// CHECK: stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [1, 3]
// CHECK-SAME: -> tensor<4x3x5xf32>
// CHECK-NOT: reduce_window
func.func @pooled(%x: tensor<8x6x5xf32>) -> tensor<4x3x5xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 2, 2, 1>, window_strides = array<i64: 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x6x5xf32>, tensor<f32>) -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}

// The last two rows are in no window.
// CHECK-LABEL: func.func @left_over
// CHECK: %[[S:.*]] = stablehlo.slice %arg0 [0:6, 0:5]
// CHECK: %[[X:.*]] = stablehlo.reshape %[[S]] : (tensor<6x5xi32>) -> tensor<2x3x5xi32>
// CHECK: stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
func.func @left_over(%x: tensor<8x5xi32>) -> tensor<2x5xi32> {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 3, 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<8x5xi32>, tensor<i32>) -> tensor<2x5xi32>
  return %0 : tensor<2x5xi32>
}

// Windows that overlap, or reach into padding, are windows.
// CHECK-LABEL: func.func @alone
// CHECK-COUNT-2: "stablehlo.reduce_window"
// CHECK-NOT: stablehlo.reduce(
func.func @alone(%x: tensor<8xi32>) -> (tensor<3xi32>, tensor<4xi32>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<8xi32>, tensor<i32>) -> tensor<3xi32>
  %2 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 3>, padding = dense<[[2, 2]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<8xi32>, tensor<i32>) -> tensor<4xi32>
  return %0, %2 : tensor<3xi32>, tensor<4xi32>
}
