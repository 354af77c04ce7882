// RUN: %lamina-opt %s --stablehlo-fuse --split-input-file | FileCheck %s

// A masked row of an array: the row is read where it lies, the numbers of its places are made on the way.
// CHECK-LABEL: func.func @masked_rows
// CHECK-NOT: stablehlo.iota
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[FLAT:.*]] = stablehlo.reshape %{{.*}} : (tensor<40x50xf32>) -> tensor<2000xf32>
// CHECK: call @fused_reduce_0({{.*}}%[[FLAT]]
// CHECK: stablehlo.return
// CHECK: func.func private @fused_reduce_0
// CHECK-DAG: stablehlo.iota
// CHECK-DAG: stablehlo.dynamic_slice {{.*}} sizes = [50] : (tensor<2000xf32>, tensor<i32>) -> tensor<50xf32>
// CHECK: stablehlo.reduce
func.func @masked_rows(%x: tensor<40x50xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<40> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %places = stablehlo.iota dim = 0 : tensor<50xi32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %none) : tensor<i32>, tensor<f32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 50] : (tensor<40x50xf32>, tensor<i32>, tensor<i32>) -> tensor<1x50xf32>
      %v = stablehlo.reshape %row : (tensor<1x50xf32>) -> tensor<50xf32>
      %all = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<50xi32>
      %mask = stablehlo.compare LT, %places, %all : (tensor<50xi32>, tensor<50xi32>) -> tensor<50xi1>
      %no = stablehlo.constant dense<0.0> : tensor<50xf32>
      %w = stablehlo.select %mask, %v, %no : tensor<50xi1>, tensor<50xf32>
      %s = stablehlo.reduce(%w init: %sum) applies stablehlo.add across dimensions = [0] : (tensor<50xf32>, tensor<f32>) -> tensor<f32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}

// -----

// Dimensions of one become one with those behind them; starts are what the slice takes, of a wide enough type.
// CHECK-LABEL: func.func @planes
// CHECK: stablehlo.reshape %arg0 : (tensor<4x5x6x7xf32>) -> tensor<4x30x7xf32>
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [2, 3, 7] : (tensor<4x30x7xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
func.func @planes(%x: tensor<4x5x6x7xf32>, %i: tensor<i8>) -> tensor<2x3x7xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %i, %i, %i, sizes = [2, 1, 3, 7] : (tensor<4x5x6x7xf32>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>) -> tensor<2x1x3x7xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x1x3x7xf32>) -> tensor<2x3x7xf32>
  %2 = stablehlo.sine %1 : tensor<2x3x7xf32>
  return %2 : tensor<2x3x7xf32>
}

// -----

// Left as they are: columns, other reshapes, and rows of which each element is read many times, so that
// the array may be overwritten.
// CHECK-LABEL: func.func @left_alone
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [8, 1]
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [1, 8]
func.func @left_alone(%x: tensor<8x8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<2x4xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 1] : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<8x1xf32>) -> tensor<8xf32>
  %2 = stablehlo.sine %1 : tensor<8xf32>
  %3 = stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 8] : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x8xf32>) -> tensor<2x4xf32>
  %5 = stablehlo.sine %4 : tensor<2x4xf32>
  %6 = stablehlo.reshape %3 : (tensor<1x8xf32>) -> tensor<8xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %8 = stablehlo.add %x, %7 : tensor<8x8xf32>
  return %2, %5, %8 : tensor<8xf32>, tensor<2x4xf32>, tensor<8x8xf32>
}

// -----

// A sum reads a column where it lies: all that it multiplies has the same dimension of one behind the others.
// CHECK-LABEL: func.func @summed_column
// CHECK-NOT: stablehlo.dynamic_slice
// CHECK: call @fused_reduce_0
// CHECK: func.func private @fused_reduce_0
// CHECK-DAG: stablehlo.iota dim = 0 : tensor<8x1xi32>
// CHECK-DAG: stablehlo.dynamic_slice {{.*}} sizes = [8, 1] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0, 1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<f32>
func.func @summed_column(%x: tensor<8x6xf32>, %y: tensor<8xf32>, %i: tensor<i32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %no = stablehlo.constant dense<0.0> : tensor<8xf32>
  %places = stablehlo.iota dim = 0 : tensor<8xi32>
  %all = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<8xi32>
  %mask = stablehlo.compare LT, %places, %all : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %row = stablehlo.select %mask, %y, %no : tensor<8xi1>, tensor<8xf32>
  %0 = stablehlo.dynamic_slice %x, %zero, %i, sizes = [8, 1] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<8x1xf32>) -> tensor<8xf32>
  %2 = stablehlo.multiply %row, %1 : tensor<8xf32>
  %3 = stablehlo.reduce(%2 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Not what others read, too: it is copied once.
// CHECK-LABEL: func.func @read_twice
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] :
func.func @read_twice(%x: tensor<8x6xf32>, %i: tensor<i32>) -> (tensor<f32>, tensor<8xf32>) {
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 1] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<8x1xf32>) -> tensor<8xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<8xf32>
  %3 = stablehlo.reduce(%2 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %4 = stablehlo.sine %1 : tensor<8xf32>
  return %3, %4 : tensor<f32>, tensor<8xf32>
}

// -----

// What repeats a smaller array before a loop is done on the way in it, not stored.
// CHECK-LABEL: func.func @repeated_before
// CHECK-NOT: stablehlo.broadcast_in_dim
// CHECK: stablehlo.while
// CHECK: call @fused_multiply_0(%arg1, %{{.*}}) : (tensor<50xf32>, tensor<40x50xf32>) -> tensor<40x50xf32>
// CHECK: func.func private @fused_multiply_0
// CHECK: stablehlo.broadcast_in_dim
func.func @repeated_before(%x: tensor<40x50xf32>, %y: tensor<50xf32>) -> tensor<40x50xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<40> : tensor<i32>
  %all = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<50xf32>) -> tensor<40x50xf32>
  %0:2 = stablehlo.while(%i = %zero, %held = %x) : tensor<i32>, tensor<40x50xf32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %next = stablehlo.multiply %held, %all : tensor<40x50xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next : tensor<i32>, tensor<40x50xf32>
    }
  return %0#1 : tensor<40x50xf32>
}
