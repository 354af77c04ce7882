// RUN: %lamina-opt %s --stablehlo-gather-products | FileCheck %s

// x[i] @ u leaves the loop; so does the sum of outer products, for which d is kept. Its other factor is
// the part of xs that the step reads, last steps first.
// CHECK-LABEL: func.func @recurrent
// CHECK: %[[XU:.*]] = stablehlo.dot_general %arg1, %arg2, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
// CHECK: %[[L:.*]]:3 = stablehlo.while({{.*}}) : tensor<i32>, tensor<32xf32>, tensor<16x32xf32>
// CHECK: %[[BACK:.*]] = stablehlo.subtract
// CHECK-NOT: stablehlo.dynamic_slice %arg1
// CHECK: stablehlo.dynamic_slice %[[XU]], %[[BACK]]
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %{{.*}}, %[[BACK]], {{.*}} : (tensor<16x32xf32>, tensor<1x32xf32>
// CHECK: %[[G:.*]] = stablehlo.dot_general %arg1, %[[L]]#2, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
// CHECK: return %[[L]]#1, %[[G]]
func.func @recurrent(%h: tensor<32xf32>, %xs: tensor<16x32xf32>, %u: tensor<32x32xf32>) -> (tensor<32xf32>, tensor<32x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<32x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %h, %g = %none) : tensor<i32>, tensor<32xf32>, tensor<32x32xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %last = stablehlo.constant dense<15> : tensor<i32>
    %b = stablehlo.subtract %last, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %xs, %b, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %x = stablehlo.reshape %1 : (tensor<1x32xf32>) -> tensor<32xf32>
    %xu = stablehlo.dot_general %x, %u, contracting_dims = [0] x [0] : (tensor<32xf32>, tensor<32x32xf32>) -> tensor<32xf32>
    %s = stablehlo.add %c, %xu : tensor<32xf32>
    %d = stablehlo.tanh %s : tensor<32xf32>
    %p = stablehlo.dot_general %x, %d, contracting_dims = [] x [] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %sum = stablehlo.add %g, %p : tensor<32x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %sum : tensor<i32>, tensor<32xf32>, tensor<32x32xf32>
  }
  return %0#1, %0#2 : tensor<32xf32>, tensor<32x32xf32>
}

// The sum is read on the way, and the loop runs as often as its condition says.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK-NOT: stablehlo.dot_general
func.func @others(%h: tensor<32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<32x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %h, %g = %none) : tensor<i32>, tensor<32xf32>, tensor<32x32xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %t = stablehlo.slice %g [0:1, 0:32] : (tensor<32x32xf32>) -> tensor<1x32xf32>
    %d = stablehlo.reshape %t : (tensor<1x32xf32>) -> tensor<32xf32>
    %p = stablehlo.dot_general %c, %d, contracting_dims = [] x [] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %sum = stablehlo.add %g, %p : tensor<32x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %sum : tensor<i32>, tensor<32xf32>, tensor<32x32xf32>
  }
  %1:3 = stablehlo.while(%i = %zero, %c = %h, %g = %none) : tensor<i32>, tensor<32xf32>, tensor<32x32xf32>
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %d = stablehlo.tanh %c : tensor<32xf32>
    %p = stablehlo.dot_general %c, %d, contracting_dims = [] x [] : (tensor<32xf32>, tensor<32xf32>) -> tensor<32x32xf32>
    %sum = stablehlo.add %g, %p : tensor<32x32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %sum : tensor<i32>, tensor<32xf32>, tensor<32x32xf32>
  }
  return %0#2, %1#2 : tensor<32x32xf32>, tensor<32x32xf32>
}
