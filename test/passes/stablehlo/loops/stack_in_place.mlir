// RUN: %lamina-opt %s --stablehlo-stack-in-place | FileCheck %s

// The rows of %xu are read last ones first, and those that the loop makes are written there.
// CHECK-LABEL: func.func @rows
// CHECK: %[[XU:.*]] = stablehlo.dot_general
// CHECK: stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %arg0, %[[YS:.*]] = %[[XU]])
// CHECK: %[[BACK:.*]] = stablehlo.subtract
// CHECK: stablehlo.dynamic_slice %[[YS]], %[[BACK]]
// CHECK: stablehlo.dynamic_update_slice %[[YS]], %{{.*}}, %[[BACK]]
func.func @rows(%h: tensor<32xf32>, %xs: tensor<16x32xf32>, %u: tensor<32x32xf32>) -> tensor<16x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<16x32xf32>
  %xu = stablehlo.dot_general %xs, %u, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %h, %ys = %none) : tensor<i32>, tensor<32xf32>, tensor<16x32xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %last = stablehlo.constant dense<15> : tensor<i32>
    %b = stablehlo.subtract %last, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %xu, %b, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %x = stablehlo.reshape %1 : (tensor<1x32xf32>) -> tensor<32xf32>
    %s = stablehlo.add %c, %x : tensor<32xf32>
    %d = stablehlo.tanh %s : tensor<32xf32>
    %row = stablehlo.reshape %d : (tensor<32xf32>) -> tensor<1x32xf32>
    %stack = stablehlo.dynamic_update_slice %ys, %row, %b, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %stack : tensor<i32>, tensor<32xf32>, tensor<16x32xf32>
  }
  return %0#2 : tensor<16x32xf32>
}

// What is read is an argument, is returned, or lies at another index than what is written.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: stablehlo.dynamic_slice %{{arg1|0|1}},
// CHECK-COUNT-3: stablehlo.dynamic_update_slice
func.func @others(%h: tensor<32xf32>, %xs: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<16x32xf32>
  %returned = stablehlo.sine %xs : tensor<16x32xf32>
  %turned = stablehlo.cosine %xs : tensor<16x32xf32>
  %0:5 = stablehlo.while(%i = %zero, %c = %h, %ys = %none, %zs = %none, %vs = %none) : tensor<i32>, tensor<32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %last = stablehlo.constant dense<15> : tensor<i32>
    %b = stablehlo.subtract %last, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %2 = stablehlo.dynamic_slice %returned, %i, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %3 = stablehlo.dynamic_slice %turned, %b, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %s = stablehlo.add %1, %2 : tensor<1x32xf32>
    %t = stablehlo.add %s, %3 : tensor<1x32xf32>
    %d = stablehlo.tanh %t : tensor<1x32xf32>
    %y = stablehlo.dynamic_update_slice %ys, %d, %i, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %z = stablehlo.dynamic_update_slice %zs, %t, %i, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %v = stablehlo.dynamic_update_slice %vs, %s, %i, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %c, %y, %z, %v : tensor<i32>, tensor<32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
  }
  return %0#2, %0#3, %0#4, %returned : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}

// Some of what is made of the row that is read is not for the row that is written: it might be made later.
// Nor is an array taken of which the loop leaves a part as it was.
// CHECK-LABEL: func.func @kept
// CHECK: %[[A:.*]] = stablehlo.sine
// CHECK: stablehlo.dynamic_slice %[[A]]
// CHECK: %[[B:.*]] = stablehlo.cosine
// CHECK: stablehlo.dynamic_slice %[[B]]
func.func @kept(%h: tensor<1x32xf32>, %xs: tensor<16x32xf32>) -> (tensor<1x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<16x32xf32>
  %a = stablehlo.sine %xs : tensor<16x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %h, %ys = %none) : tensor<i32>, tensor<1x32xf32>, tensor<16x32xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %a, %i, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %d = stablehlo.add %c, %1 : tensor<1x32xf32>
    %y = stablehlo.dynamic_update_slice %ys, %c, %i, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %y : tensor<i32>, tensor<1x32xf32>, tensor<16x32xf32>
  }
  %b = stablehlo.cosine %xs : tensor<16x32xf32>
  %2:3 = stablehlo.while(%i = %zero, %c = %h, %ys = %none) : tensor<i32>, tensor<1x32xf32>, tensor<16x32xf32> attributes {lamina.trip_count = 15 : i64}
  cond {
    %n = stablehlo.constant dense<15> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %b, %i, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %d = stablehlo.add %c, %1 : tensor<1x32xf32>
    %y = stablehlo.dynamic_update_slice %ys, %d, %i, %zero : (tensor<16x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<16x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %y : tensor<i32>, tensor<1x32xf32>, tensor<16x32xf32>
  }
  return %0#1, %0#2, %2#2 : tensor<1x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}
