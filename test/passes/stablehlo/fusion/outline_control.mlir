// RUN: %lamina-opt %s --stablehlo-outline-control --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-outline-control=max-cost=0 --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: %lamina-opt %s --stablehlo-outline-control=gpu --split-input-file | FileCheck %s --check-prefix=GPU

// For GPUs it says who does the steps.
// GPU-LABEL: func.func private @fused_while_0(%arg0: tensor<100x8xf32> {lamina.inout = 0 : i32}
// GPU-SAME: lamina.form = "thread"
// GPU-LABEL: func.func @large
// GPU: lamina.form = "thread"
// GPU-LABEL: func.func @wide
// GPU: lamina.form = "block"
// GPU-LABEL: func.func @sorts
// GPU-NOT: call
// GPU: lamina.reason = "sort: a kernel of its own"
// A loop of small steps is one kernel. Big carries are updated in place, constants go in, and what
// only the loop needs does not come out.
// OFF-NOT: lamina.kind
// CHECK-LABEL: func.func @sum
func.func @sum(%xs: tensor<100x8xf32>, %out: tensor<100x8xf32>) -> tensor<100x8xf32> {
  // CHECK: %[[R:.*]] = call @fused_while_0(%arg1, %arg0) : (tensor<100x8xf32>, tensor<100x8xf32>) -> tensor<100x8xf32>
  // CHECK-NEXT: return %[[R]]
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<100> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<1x8xf32>
  %0:3 = stablehlo.while(%i = %zero, %s = %start, %o = %out) : tensor<i32>, tensor<1x8xf32>, tensor<100x8xf32>
    attributes {lamina.trip_count = 100 : i64}
    cond {
      %p = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %x = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 8] : (tensor<100x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
      %t = stablehlo.add %s, %x : tensor<1x8xf32>
      %u = stablehlo.dynamic_update_slice %o, %t, %i, %zero : (tensor<100x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<100x8xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %t, %u : tensor<i32>, tensor<1x8xf32>, tensor<100x8xf32>
    }
  return %0#2 : tensor<100x8xf32>
}
// CHECK: func.func private @fused_while_0(%arg0: tensor<100x8xf32> {lamina.inout = 0 : i32}, %arg1: tensor<100x8xf32>)
// CHECK-SAME: lamina.kind = "control", lamina.reason = "while of 5 ops, about 3 ns a step, 100 times: too small for calls"
// CHECK: stablehlo.constant dense<100>
// CHECK: %[[W:.*]]:3 = stablehlo.while(
// CHECK: return %[[W]]#2 : tensor<100x8xf32>

// -----

// Work worth threads, and effects, stay where they are; a small loop inside becomes a kernel.
// CHECK-LABEL: func.func @large
func.func @large(%p: tensor<i1>, %x: tensor<2000x2000xf32>, %n: tensor<i32>) -> (tensor<2000x2000xf32>, tensor<i32>) {
  // CHECK: "stablehlo.if"(%arg0)
  // CHECK: call @fused_while_0(%arg2)
  // CHECK: lamina.reason = "exponential takes about 2400 us: a kernel of its own"
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = "stablehlo.if"(%p) ({
    %e = stablehlo.exponential %x : tensor<2000x2000xf32>
    stablehlo.return %e, %zero : tensor<2000x2000xf32>, tensor<i32>
  }, {
    %c = stablehlo.while(%i = %zero) : tensor<i32>
      cond {
        %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j : tensor<i32>
      }
    stablehlo.return %x, %c : tensor<2000x2000xf32>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<2000x2000xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<2000x2000xf32>, tensor<i32>
}

// -----

// CHECK-LABEL: func.func @effect
func.func @effect(%n: tensor<i32>) -> tensor<i32> {
  // CHECK: stablehlo.while
  // CHECK-SAME: lamina.reason = "custom_call: a kernel of its own"
  %c = stablehlo.while(%i = %n) : tensor<i32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.custom_call @print(%i) {has_side_effect = true} : (tensor<i32>) -> tensor<i32>
      stablehlo.return %j : tensor<i32>
    }
  return %c : tensor<i32>
}

// -----

// CHECK-LABEL: func.func @wide
func.func @wide(%n: tensor<i32>, %x: tensor<300xf32>) -> tensor<300xf32> {
  // CHECK: call @fused_while_0(
  %c:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<300xf32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %w = stablehlo.tanh %v : tensor<300xf32>
      stablehlo.return %i, %w : tensor<i32>, tensor<300xf32>
    }
  return %c#1 : tensor<300xf32>
}

// -----

// CHECK-LABEL: func.func @sorts
func.func @sorts(%n: tensor<i32>, %x: tensor<300xf32>) -> tensor<300xf32> {
  // CHECK: call @fused_while_0(
  %c:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<300xf32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %w = "stablehlo.sort"(%v) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }) {dimension = 0 : i64} : (tensor<300xf32>) -> tensor<300xf32>
      stablehlo.return %i, %w : tensor<i32>, tensor<300xf32>
    }
  return %c#1 : tensor<300xf32>
}

// -----

// The numbers of places are made in the kernel.
// CHECK-LABEL: func.func @places
// CHECK: call @fused_while_0(%{{[^,]*}}) : (tensor<i32>) -> tensor<i32>
// CHECK: func.func private @fused_while_0
// CHECK: stablehlo.iota
func.func @places(%n: tensor<i32>) -> tensor<i32> {
  %p = stablehlo.iota dim = 0 : tensor<100xi32>
  %c = stablehlo.while(%i = %n) : tensor<i32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %s = stablehlo.reduce(%p init: %i) applies stablehlo.add across dimensions = [0] : (tensor<100xi32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %s : tensor<i32>
    }
  return %c : tensor<i32>
}

// -----

// Lanes of a batch are threads: the loop around them stays.
// CHECK-LABEL: func.func @around_lanes
// GPU-LABEL: func.func @around_lanes
func.func @around_lanes(%n: tensor<i32>) -> tensor<i32> {
  // CHECK-NEXT: call @fused_while_0(
  // GPU: stablehlo.while
  // GPU-SAME: lamina.reason = "lanes of a batch: a kernel of their own"
  // GPU: call @fused_while_0(
  // GPU: lamina.form = "lanes"
  %c = stablehlo.while(%i = %n) : tensor<i32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %d = stablehlo.while(%j = %i) : tensor<i32> attributes {lamina.lanes = 5 : i64}
        cond {
          %l = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %l : tensor<i1>
        } do {
          %k = stablehlo.add %j, %n : tensor<i32>
          stablehlo.return %k : tensor<i32>
        }
      stablehlo.return %d : tensor<i32>
    }
  return %c : tensor<i32>
}
