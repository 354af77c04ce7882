// Parts of views and of computed arrays, read at places that are not known.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-simplify{fold=true},stablehlo-cse,stablehlo-dce' | FileCheck %s

// CHECK-LABEL: func.func @of_a_slice
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK: stablehlo.dynamic_slice %arg0, %arg1, %[[ONE]], sizes = [1, 4]
func.func @of_a_slice(%x: tensor<8x6xf32>, %i: tensor<i32>) -> tensor<1x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.slice %x [0:8, 1:5] : (tensor<8x6xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// The start is clamped to what the slice has before it is moved.
// CHECK-LABEL: func.func @of_rows
// CHECK: %[[AT:.*]] = stablehlo.clamp %{{.*}}, %arg1, %{{.*}}
// CHECK: %[[MOVED:.*]] = stablehlo.add %[[AT]]
// CHECK: stablehlo.dynamic_slice %arg0, %[[MOVED]]
func.func @of_rows(%x: tensor<8x6xf32>, %i: tensor<i32>) -> tensor<1x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.slice %x [2:6, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 6] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// CHECK-LABEL: func.func @of_what_is_computed
// CHECK: %[[ROW:.*]] = stablehlo.dynamic_slice %arg0, %arg1
// CHECK: stablehlo.sine %[[ROW]] : tensor<1x6xf32>
func.func @of_what_is_computed(%x: tensor<8x6xf32>, %i: tensor<i32>) -> tensor<1x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.sine %x : tensor<8x6xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// Most of it is read, or all of it elsewhere: it is computed once.
// CHECK-LABEL: func.func @of_what_is_read_whole
// CHECK: stablehlo.sine %arg0 : tensor<8x6xf32>
// CHECK: stablehlo.cosine %arg0 : tensor<8x6xf32>
func.func @of_what_is_read_whole(%x: tensor<8x6xf32>, %i: tensor<i32>) -> (tensor<6x6xf32>, tensor<1x6xf32>, tensor<8x6xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.sine %x : tensor<8x6xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [6, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<6x6xf32>
  %2 = stablehlo.cosine %x : tensor<8x6xf32>
  %3 = stablehlo.dynamic_slice %2, %i, %zero, sizes = [1, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  return %1, %3, %2 : tensor<6x6xf32>, tensor<1x6xf32>, tensor<8x6xf32>
}

// CHECK-LABEL: func.func @of_padding
// CHECK: %[[ROW:.*]] = stablehlo.dynamic_slice %arg0, %{{.*}}, sizes = [1, 6]
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.select %{{.*}}, %[[ROW]]
func.func @of_padding(%x: tensor<8x6xf32>, %i: tensor<i32>) -> tensor<1x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %one, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<10x6xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 6] : (tensor<10x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// CHECK-LABEL: func.func @of_what_lies_side_by_side
// CHECK-NOT: stablehlo.concatenate
// CHECK: stablehlo.select
func.func @of_what_lies_side_by_side(%x: tensor<8x6xf32>, %y: tensor<4x6xf32>, %i: tensor<i32>) -> tensor<1x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<12x6xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 6] : (tensor<12x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// What is made before a loop is made once, and read as it is.
// CHECK-LABEL: func.func @made_before_a_loop
// CHECK: stablehlo.sine %arg0 : tensor<8x6xf32>
// CHECK: stablehlo.while
func.func @made_before_a_loop(%x: tensor<8x6xf32>, %n: tensor<i32>, %z: tensor<1x6xf32>) -> tensor<1x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.sine %x : tensor<8x6xf32>
  %r:2 = stablehlo.while(%i = %zero, %a = %z) : tensor<i32>, tensor<1x6xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0, %i, %zero, sizes = [1, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
    %2 = stablehlo.add %a, %1 : tensor<1x6xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<1x6xf32>
  }
  return %r#1 : tensor<1x6xf32>
}

// CHECK-LABEL: func.func @gathered
// CHECK: %[[ROWS:.*]] = "stablehlo.gather"(%arg0, %arg1)
// CHECK: stablehlo.convert %[[ROWS]] : (tensor<2x6xf32>) -> tensor<2x6xf64>
func.func @gathered(%x: tensor<8x6xf32>, %i: tensor<2x1xi32>) -> tensor<2x6xf64> {
  %0 = stablehlo.convert %x : (tensor<8x6xf32>) -> tensor<8x6xf64>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<8x6xf64>, tensor<2x1xi32>) -> tensor<2x6xf64>
  return %1 : tensor<2x6xf64>
}
