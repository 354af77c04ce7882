// RUN: %lamina-opt %s --stablehlo-sum-few-products --split-input-file | FileCheck %s

// With a vector, and one column, a sum along rows; nothing is sliced.
// CHECK-LABEL: func.func @vector
// CHECK: %[[E:.*]] = stablehlo.exponential %arg0
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1]
// CHECK: %[[P:.*]] = stablehlo.multiply %[[E]], %[[B]]
// CHECK: stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK-NOT: stablehlo.slice
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1]
// CHECK: stablehlo.reshape {{.*}} -> tensor<128x1xf32>
func.func @vector(%a: tensor<128x256xf32>, %v: tensor<256xf32>, %c: tensor<256x1xf32>) -> (tensor<128xf32>, tensor<128x1xf32>) {
  %e = stablehlo.exponential %a : tensor<128x256xf32>
  %0 = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<128x256xf32>, tensor<256xf32>) -> tensor<128xf32>
  %1 = stablehlo.dot_general %e, %c, contracting_dims = [1] x [0] : (tensor<128x256xf32>, tensor<256x1xf32>) -> tensor<128x1xf32>
  return %0, %1 : tensor<128xf32>, tensor<128x1xf32>
}

// -----

// Two rows by a matrix: sums down its columns, the rows of the result.
// CHECK-LABEL: func.func @rows
// CHECK: %[[R0:.*]] = stablehlo.slice %arg1 [0:1, 0:128]
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<128x256xf32>
// CHECK: stablehlo.slice %arg1 [1:2, 0:128]
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<128x256xf32>
// CHECK: stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<2x256xf32>
func.func @rows(%a: tensor<128x256xf32>, %b: tensor<2x128xf32>) -> tensor<2x256xf32> {
  %e = stablehlo.abs %a : tensor<128x256xf32>
  %0 = stablehlo.dot_general %b, %e, contracting_dims = [1] x [0] : (tensor<2x128xf32>, tensor<128x256xf32>) -> tensor<2x256xf32>
  return %0 : tensor<2x256xf32>
}

// -----

// In memory: rows of many.
// CHECK-LABEL: func.func @in_memory
// CHECK-COUNT-3: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<512x256xf32>
// CHECK: stablehlo.concatenate {{.*}} dim = 1
func.func @in_memory(%a: tensor<512x256xf32>, %b: tensor<256x3xf32>) -> tensor<512x3xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x3xf32>) -> tensor<512x3xf32>
  return %0 : tensor<512x3xf32>
}

// -----

// Left alone: columns, or one, of a matrix in memory; what is returned as well; many columns.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: stablehlo.dot_general
func.func @left_alone(%a: tensor<512x256xf32>, %b: tensor<3x512xf32>, %v: tensor<256xf32>, %w: tensor<256x9xf32>)
    -> (tensor<3x256xf32>, tensor<512xf32>, tensor<512x256xf32>, tensor<512xf32>, tensor<512x9xf32>) {
  %0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<3x512xf32>, tensor<512x256xf32>) -> tensor<3x256xf32>
  %1 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256xf32>) -> tensor<512xf32>
  %e = stablehlo.exponential %a : tensor<512x256xf32>
  %2 = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256xf32>) -> tensor<512xf32>
  %f = stablehlo.abs %a : tensor<512x256xf32>
  %3 = stablehlo.dot_general %f, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x9xf32>) -> tensor<512x9xf32>
  return %0, %1, %e, %2, %3 : tensor<3x256xf32>, tensor<512xf32>, tensor<512x256xf32>, tensor<512xf32>, tensor<512x9xf32>
}

// -----

// A library was asked for.
module attributes {lamina.matrix_products = "library"} {
  // CHECK-LABEL: func.func @library
  // CHECK: stablehlo.dot_general
  func.func @library(%a: tensor<512x256xf32>, %b: tensor<256x3xf32>) -> tensor<512x3xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x3xf32>) -> tensor<512x3xf32>
    return %0 : tensor<512x3xf32>
  }
}
