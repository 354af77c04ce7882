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

// Narrow numbers in memory are converted on the way: one column in any layout, several where rows are summed.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[W:.*]] = stablehlo.convert %arg0 : (tensor<512x256xbf16>) -> tensor<512x256xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<512x256xf32>
// CHECK: stablehlo.convert {{.*}} -> tensor<1x256xbf16>
// CHECK-COUNT-3: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<512x256xf32>
// CHECK: stablehlo.convert {{.*}} -> tensor<3x512xf16>
func.func @narrow(%a: tensor<512x256xbf16>, %h: tensor<512x256xf16>, %b: tensor<1x512xbf16>, %c: tensor<3x256xf16>) -> (tensor<1x256xbf16>, tensor<3x512xf16>) {
  %0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<1x512xbf16>, tensor<512x256xbf16>) -> tensor<1x256xbf16>
  %1 = stablehlo.dot_general %c, %h, contracting_dims = [1] x [1] : (tensor<3x256xf16>, tensor<512x256xf16>) -> tensor<3x512xf16>
  return %0, %1 : tensor<1x256xbf16>, tensor<3x512xf16>
}

// -----

// Left alone: few columns of narrow numbers, eight of bf16, which processors have tiles for, and bytes.
// CHECK-LABEL: func.func @narrow_left_alone
// CHECK-COUNT-3: stablehlo.dot_general
func.func @narrow_left_alone(%a: tensor<512x256xbf16>, %b: tensor<2x512xbf16>, %c: tensor<8x256xbf16>, %i: tensor<512x256xi8>, %j: tensor<1x512xi8>)
    -> (tensor<2x256xbf16>, tensor<8x512xbf16>, tensor<1x256xi32>) {
  %0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<2x512xbf16>, tensor<512x256xbf16>) -> tensor<2x256xbf16>
  %1 = stablehlo.dot_general %c, %a, contracting_dims = [1] x [1] : (tensor<8x256xbf16>, tensor<512x256xbf16>) -> tensor<8x512xbf16>
  %2 = stablehlo.dot_general %j, %i, contracting_dims = [1] x [0] : (tensor<1x512xi8>, tensor<512x256xi8>) -> tensor<1x256xi32>
  return %0, %1, %2 : tensor<2x256xbf16>, tensor<8x512xbf16>, tensor<1x256xi32>
}

// -----

// Complex numbers by a vector, in memory or made on the way.
// CHECK-LABEL: func.func @complex
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<4096xcomplex<f32>>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<64x32xcomplex<f32>>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<64x32xcomplex<f32>>
// CHECK: stablehlo.dot_general {{.*}} (tensor<9xcomplex<f32>>
func.func @complex(%x: tensor<4096xcomplex<f32>>, %y: tensor<4096xcomplex<f32>>, %a: tensor<64x32xcomplex<f32>>, %v: tensor<64xcomplex<f32>>,
    %w: tensor<32x1xcomplex<f32>>, %u: tensor<9xcomplex<f32>>)
    -> (tensor<complex<f32>>, tensor<32xcomplex<f32>>, tensor<64x1xcomplex<f32>>, tensor<complex<f32>>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4096xcomplex<f32>>, tensor<4096xcomplex<f32>>) -> tensor<complex<f32>>
  %1 = stablehlo.dot_general %v, %a, contracting_dims = [0] x [0] : (tensor<64xcomplex<f32>>, tensor<64x32xcomplex<f32>>) -> tensor<32xcomplex<f32>>
  %2 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<64x32xcomplex<f32>>, tensor<32x1xcomplex<f32>>) -> tensor<64x1xcomplex<f32>>
  %3 = stablehlo.dot_general %u, %u, contracting_dims = [0] x [0] : (tensor<9xcomplex<f32>>, tensor<9xcomplex<f32>>) -> tensor<complex<f32>>
  return %0, %1, %2, %3 : tensor<complex<f32>>, tensor<32xcomplex<f32>>, tensor<64x1xcomplex<f32>>, tensor<complex<f32>>
}

// -----

// Vectors that are made on the way, or read at a traced place, however short.
// CHECK-LABEL: func.func @vectors
// CHECK-NOT: dot_general
// CHECK: stablehlo.reduce
// CHECK-NOT: dot_general
// CHECK: stablehlo.reduce
// CHECK: stablehlo.dot_general
func.func @vectors(%a: tensor<20x30xf64>, %i: tensor<i32>, %m: tensor<30xi1>, %x: tensor<30xf64>)
    -> (tensor<f64>, tensor<f64>, tensor<f64>) {
  %none = stablehlo.constant dense<0.0> : tensor<30xf64>
  %0 = stablehlo.select %m, %x, %none : tensor<30xi1>, tensor<30xf64>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : (tensor<30xf64>, tensor<30xf64>) -> tensor<f64>
  %2 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 30] : (tensor<20x30xf64>, tensor<i32>, tensor<i32>) -> tensor<1x30xf64>
  %3 = stablehlo.reshape %2 : (tensor<1x30xf64>) -> tensor<30xf64>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [0] x [0] : (tensor<30xf64>, tensor<30xf64>) -> tensor<f64>
  %5 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<30xf64>, tensor<30xf64>) -> tensor<f64>
  return %1, %4, %5 : tensor<f64>, tensor<f64>, tensor<f64>
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
