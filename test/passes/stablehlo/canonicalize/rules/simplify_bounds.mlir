// Comparisons, clamps and extremes of integers whose bounds are known.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-simplify{fold=true},stablehlo-dce' | FileCheck %s

// A counter from 1 to an end that is not known: it is not negative, but may be beyond what is there.
// CHECK-LABEL: func.func @counter
// CHECK: do {
// CHECK-NOT: compare LT
// CHECK: stablehlo.compare LE
func.func @counter(%n: tensor<i32>, %x: tensor<i32>) -> tensor<i32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %one, %a = %x) : tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %most = stablehlo.constant dense<9> : tensor<i32>
    %negative = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %inside = stablehlo.compare LE, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %0 = stablehlo.select %negative, %zero, %a : tensor<i1>, tensor<i32>
    %1 = stablehlo.select %inside, %0, %i : tensor<i1>, tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}

// One that goes down, and one that goes along with it.
// CHECK-LABEL: func.func @two_counters
// CHECK: do {
// CHECK-NOT: stablehlo.clamp
// CHECK: stablehlo.return
func.func @two_counters(%x: tensor<i32>) -> tensor<i32> {
  %first = stablehlo.constant dense<9> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:3 = stablehlo.while(%i = %first, %j = %zero, %a = %x) : tensor<i32>, tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare GE, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %most = stablehlo.constant dense<18> : tensor<i32>
    %0 = stablehlo.clamp %zero, %i, %first : tensor<i32>
    %1 = stablehlo.clamp %zero, %j, %most : tensor<i32>
    %2 = stablehlo.add %0, %1 : tensor<i32>
    %3 = stablehlo.multiply %a, %2 : tensor<i32>
    %4 = stablehlo.subtract %i, %one : tensor<i32>
    %5 = stablehlo.add %j, %two : tensor<i32>
    stablehlo.return %4, %5, %3 : tensor<i32>, tensor<i32>, tensor<i32>
  }
  return %r#2 : tensor<i32>
}

// A sum that may go around says nothing.
// CHECK-LABEL: func.func @goes_around
// CHECK: stablehlo.compare
func.func @goes_around(%x: tensor<i32>) -> tensor<i1> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %least = stablehlo.constant dense<-2147483647> : tensor<i32>
  %0 = stablehlo.add %x, %one : tensor<i32>
  %1 = stablehlo.compare GE, %0, %least : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %1 : tensor<i1>
}

// Positions are counted in the bits that are asked for, and have no others.
// CHECK-LABEL: func.func @positions
// CHECK-NOT: ui64
// CHECK-DAG: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<8x4xui32>
// CHECK-DAG: stablehlo.iota dim = 0 : tensor<8x4xui32>
// CHECK-DAG: stablehlo.iota dim = 1 : tensor<8x4xui32>
// CHECK: return %[[ZERO]], %{{.*}} : tensor<8x4xui32>, tensor<8x4xui32>
func.func @positions() -> (tensor<8x4xui32>, tensor<8x4xui32>) {
  %four = stablehlo.constant dense<4> : tensor<8x4xui64>
  %half = stablehlo.constant dense<32> : tensor<8x4xui64>
  %i = stablehlo.iota dim = 0 : tensor<8x4xui64>
  %j = stablehlo.iota dim = 1 : tensor<8x4xui64>
  %rows = stablehlo.multiply %i, %four : tensor<8x4xui64>
  %at = stablehlo.add %rows, %j : tensor<8x4xui64>
  %high = stablehlo.shift_right_logical %at, %half : tensor<8x4xui64>
  %0 = stablehlo.convert %high : (tensor<8x4xui64>) -> tensor<8x4xui32>
  %1 = stablehlo.convert %at : (tensor<8x4xui64>) -> tensor<8x4xui32>
  return %0, %1 : tensor<8x4xui32>, tensor<8x4xui32>
}

// A type that does not hold the positions: they go around, and are counted as before.
// CHECK-LABEL: func.func @too_many
// CHECK: stablehlo.iota dim = 0 : tensor<300xi32>
// CHECK: stablehlo.shift_right_logical
func.func @too_many() -> (tensor<300xi8>, tensor<300xi32>) {
  %eight = stablehlo.constant dense<8> : tensor<300xi32>
  %i = stablehlo.iota dim = 0 : tensor<300xi32>
  %0 = stablehlo.convert %i : (tensor<300xi32>) -> tensor<300xi8>
  %1 = stablehlo.shift_right_logical %i, %eight : tensor<300xi32>
  return %0, %1 : tensor<300xi8>, tensor<300xi32>
}

// Rows that a factorisation exchanged, taken from an array that a loop hands on.
// CHECK-LABEL: func.func @pivots
// CHECK-NOT: stablehlo.select
// CHECK: return
func.func @pivots(%a: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<i32> {
  %lu:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<4xi32>)
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %pivots = %lu#1, %sum = %zero) : tensor<i32>, tensor<4xi32>, tensor<i32>
    cond {
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %x = stablehlo.dynamic_slice %pivots, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %y = stablehlo.reshape %x : (tensor<1xi32>) -> tensor<i32>
      %negative = stablehlo.compare LT, %y, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %from_end = stablehlo.add %y, %four : tensor<i32>
      %z = stablehlo.select %negative, %from_end, %y : tensor<i1>, tensor<i32>
      %s = stablehlo.add %sum, %z : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %pivots, %s : tensor<i32>, tensor<4xi32>, tensor<i32>
    }
  return %0#2 : tensor<i32>
}
