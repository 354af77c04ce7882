// RUN: %lamina-opt %s --stablehlo-compute-steps-together | FileCheck %s

// A sum of weighted exponentials: the function of all elements by vectors, the sum step by step. What the
// functions need goes with them; what is cheap and needed beside them stays.
// CHECK-LABEL: func.func @sum
// CHECK: %[[X:.*]] = stablehlo.dynamic_slice %arg0, %{{.*}}, sizes = [100] : (tensor<101xf64>
// CHECK: %[[V:.*]] = stablehlo.reshape %[[X]] : (tensor<100xf64>) -> tensor<100xf64>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[V]] : tensor<100xf64>
// CHECK: %[[W:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<100xf64>
// CHECK: %[[T:.*]] = stablehlo.multiply %[[E]], %[[W]] : tensor<100xf64>
// CHECK: stablehlo.while(%[[I:[^ ]*]] =
// CHECK: do {
// CHECK-NOT: exponential
// CHECK: %[[ONE:.*]] = stablehlo.dynamic_slice %[[T]], %[[I]], sizes = [1]
// CHECK: %[[NOW:.*]] = stablehlo.reshape %[[ONE]] : (tensor<1xf64>) -> tensor<f64>
// CHECK: stablehlo.add %{{.*}}, %[[NOW]] : tensor<f64>
func.func @sum(%x: tensor<101xf64>, %w: tensor<f64>) -> tensor<f64> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %first = stablehlo.constant dense<1> : tensor<i64>
  %start = stablehlo.constant dense<0.0> : tensor<f64>
  %0:3 = stablehlo.while(%i = %zero, %k = %first, %s = %start) : tensor<i32>, tensor<i64>, tensor<f64> attributes {lamina.trip_count = 100 : i64}
  cond {
    %end = stablehlo.constant dense<100> : tensor<i32>
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %x, %k, sizes = [1] : (tensor<101xf64>, tensor<i64>) -> tensor<1xf64>
    %b = stablehlo.reshape %a : (tensor<1xf64>) -> tensor<f64>
    %e = stablehlo.exponential %b : tensor<f64>
    %t = stablehlo.multiply %e, %w : tensor<f64>
    %n = stablehlo.add %s, %t : tensor<f64>
    %by = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %by : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %l = stablehlo.add %k, %one : tensor<i64>
    stablehlo.return %j, %l, %n : tensor<i32>, tensor<i64>, tensor<f64>
  }
  return %0#2 : tensor<f64>
}

// Left alone: a function of what is carried, of elements that a slice may be moved to read, and what is only
// stored.
// CHECK-LABEL: func.func @left_alone
// CHECK: do {
// CHECK: stablehlo.sine
// CHECK: stablehlo.cosine
// CHECK: stablehlo.exponential
func.func @left_alone(%x: tensor<99xf64>, %y: tensor<100xf64>) -> (tensor<f64>, tensor<100xf64>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<f64>
  %0:3 = stablehlo.while(%i = %zero, %s = %start, %o = %y) : tensor<i32>, tensor<f64>, tensor<100xf64> attributes {lamina.trip_count = 100 : i64}
  cond {
    %end = stablehlo.constant dense<100> : tensor<i32>
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<99xf64>, tensor<i32>) -> tensor<1xf64>
    %b = stablehlo.reshape %a : (tensor<1xf64>) -> tensor<f64>
    %c = stablehlo.sine %b : tensor<f64>
    %d = stablehlo.add %s, %c : tensor<f64>
    %e = stablehlo.cosine %d : tensor<f64>
    %f = stablehlo.dynamic_slice %y, %i, sizes = [1] : (tensor<100xf64>, tensor<i32>) -> tensor<1xf64>
    %g = stablehlo.exponential %f : tensor<1xf64>
    %p = stablehlo.dynamic_update_slice %o, %g, %i : (tensor<100xf64>, tensor<1xf64>, tensor<i32>) -> tensor<100xf64>
    %by = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %by : tensor<i32>
    stablehlo.return %j, %e, %p : tensor<i32>, tensor<f64>, tensor<100xf64>
  }
  return %0#1, %0#2 : tensor<f64>, tensor<100xf64>
}
