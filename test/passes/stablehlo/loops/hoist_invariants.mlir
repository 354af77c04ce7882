// RUN: %lamina-opt %s --stablehlo-hoist-invariants | FileCheck %s

// The transpose of what does not change leaves both loops, with the sum that it needs; what a kernel
// does along the way, and what depends on the step, stays.
// CHECK-LABEL: func.func @loops
// CHECK: %[[S:.*]] = stablehlo.add %arg0, %arg0
// CHECK-NEXT: %[[T:.*]] = stablehlo.transpose %[[S]]
// CHECK-NEXT: stablehlo.while
// CHECK: do
// CHECK: stablehlo.while
// CHECK: do
// CHECK-NOT: transpose
// CHECK: stablehlo.negate %arg0
// CHECK: stablehlo.dot_general %{{.*}}, %[[T]]
// CHECK: stablehlo.exponential
func.func @loops(%w: tensor<4x4xf32>, %x: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4x4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %1:2 = stablehlo.while(%j = %zero, %b = %a) : tensor<i32>, tensor<4x4xf32>
        cond {
          %p = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %s = stablehlo.add %w, %w : tensor<4x4xf32>
          %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
          %m = stablehlo.negate %w : tensor<4x4xf32>
          %d = stablehlo.dot_general %b, %t, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %e = stablehlo.add %d, %m : tensor<4x4xf32>
          %f = stablehlo.exponential %e : tensor<4x4xf32>
          %k = stablehlo.add %j, %one : tensor<i32>
          stablehlo.return %k, %f : tensor<i32>, tensor<4x4xf32>
        }
      %k = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %k, %1#1 : tensor<i32>, tensor<4x4xf32>
    }
  return %0#1 : tensor<4x4xf32>
}

// What may not run, stays.
// CHECK-LABEL: func.func @branch
// CHECK: "stablehlo.if"
// CHECK: stablehlo.exponential
func.func @branch(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.while(%a = %x) : tensor<4xf32>
    cond {
      stablehlo.return %p : tensor<i1>
    } do {
      %0 = "stablehlo.if"(%p) ({
        %e = stablehlo.exponential %x : tensor<4xf32>
        stablehlo.return %e : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      stablehlo.return %0 : tensor<4xf32>
    }
  return %c : tensor<4xf32>
}

// A scatter's indices are stored for it, whatever makes them: once. What it adds varies.
// CHECK-LABEL: func.func @sparse
// CHECK: stablehlo.compare LT, %arg1
// CHECK: stablehlo.select
// CHECK: stablehlo.while
// CHECK: do {
// CHECK-NOT: compare
// CHECK: stablehlo.multiply
// CHECK: stablehlo.scatter
func.func @sparse(%x: tensor<100xf64>, %rows: tensor<100x1xi64>, %values: tensor<100xf64>, %p: tensor<i1>) -> tensor<100xf64> {
  %zero = stablehlo.constant dense<0> : tensor<100x1xi64>
  %size = stablehlo.constant dense<100> : tensor<100x1xi64>
  %r = stablehlo.while(%a = %x) : tensor<100xf64>
    cond {
      stablehlo.return %p : tensor<i1>
    } do {
      %negative = stablehlo.compare LT, %rows, %zero : (tensor<100x1xi64>, tensor<100x1xi64>) -> tensor<100x1xi1>
      %from_end = stablehlo.add %rows, %size : tensor<100x1xi64>
      %at = stablehlo.select %negative, %from_end, %rows : tensor<100x1xi1>, tensor<100x1xi64>
      %t = stablehlo.multiply %values, %a : tensor<100xf64>
      %s = "stablehlo.scatter"(%a, %at, %t) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f64>, %new: tensor<f64>):
        %sum = stablehlo.add %old, %new : tensor<f64>
        stablehlo.return %sum : tensor<f64>
      }) : (tensor<100xf64>, tensor<100x1xi64>, tensor<100xf64>) -> tensor<100xf64>
      stablehlo.return %s : tensor<100xf64>
    }
  return %r : tensor<100xf64>
}
