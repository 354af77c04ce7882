// RUN: %lamina-opt %s --stablehlo-reduce-in-chunks=least-elements=4096 --split-input-file | FileCheck %s

// The sum of a softmax over all: of each row shifted by the largest element of the row.
// CHECK-LABEL: func.func @exponentials
// CHECK: %[[MC:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1] : (tensor<8x512xf32>
// CHECK: %[[M:.*]] = stablehlo.reduce(%[[MC]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0]
// CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK: %[[LEAST:.*]] = stablehlo.maximum %[[MC]]
// CHECK: %[[NEAR:.*]] = stablehlo.minimum %[[LEAST]]
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %[[NEAR]], dims = [0]
// CHECK: %[[D:.*]] = stablehlo.subtract %arg0, %[[B]]
// CHECK: %[[E:.*]] = stablehlo.exponential %[[D]]
// CHECK: %[[SC:.*]] = stablehlo.reduce(%[[E]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: %[[OFF:.*]] = stablehlo.subtract %[[NEAR]], %[[SHIFT]]
// CHECK: %[[F:.*]] = stablehlo.exponential %[[OFF]]
// CHECK: %[[P:.*]] = stablehlo.multiply %[[SC]], %[[F]]
// CHECK: %[[S:.*]] = stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: return %[[M]], %[[S]]
func.func @exponentials(%x: tensor<8x512xf32>) -> (tensor<f32>, tensor<f32>) {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<8x512xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<8x512xf32>
  %d = stablehlo.subtract %x, %b : tensor<8x512xf32>
  %e = stablehlo.exponential %d : tensor<8x512xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x512xf32>, tensor<f32>) -> tensor<f32>
  return %m, %s : tensor<f32>, tensor<f32>
}

// -----

// A variance: an array of one dimension is seen as chunks, and what it is made of, too.
// CHECK-LABEL: func.func @squares
// CHECK: %[[V:.*]] = stablehlo.reshape %arg0 : (tensor<65536xbf16>) -> tensor<8x8192xbf16>
// CHECK: %[[X:.*]] = stablehlo.convert %[[V]]
// CHECK: %[[TC:.*]] = stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: %[[K:.*]] = stablehlo.constant dense<1.22070313E-4> : tensor<8xf32>
// CHECK: %[[NEAR:.*]] = stablehlo.multiply %[[TC]], %[[K]]
// CHECK: %[[SQUARES:.*]] = stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.constant dense<8.192000e+03> : tensor<8xf32>
// CHECK: stablehlo.add %[[SQUARES]]
func.func @squares(%h: tensor<65536xbf16>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.constant dense<1.52587891E-5> : tensor<f32>
  %x = stablehlo.convert %h : (tensor<65536xbf16>) -> tensor<65536xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<65536xf32>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.multiply %t, %k : tensor<f32>
  %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<65536xf32>
  %d = stablehlo.subtract %x, %b : tensor<65536xf32>
  %q = stablehlo.multiply %d, %d : tensor<65536xf32>
  %s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<65536xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// Left alone: a shift that is given, few elements, a number of them that no length of a chunk divides.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-5: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<{{16384|100|65537}}xf32>
// CHECK-NOT: stablehlo.reduce
func.func @left_alone(%x: tensor<16384xf32>, %t: tensor<f32>, %y: tensor<100xf32>, %z: tensor<65537xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<16384xf32>
  %d = stablehlo.subtract %x, %b : tensor<16384xf32>
  %e = stablehlo.exponential %d : tensor<16384xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16384xf32>, tensor<f32>) -> tensor<f32>
  %m1 = stablehlo.reduce(%y init: %lowest) applies stablehlo.maximum across dimensions = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
  %b1 = stablehlo.broadcast_in_dim %m1, dims = [] : (tensor<f32>) -> tensor<100xf32>
  %d1 = stablehlo.subtract %y, %b1 : tensor<100xf32>
  %e1 = stablehlo.exponential %d1 : tensor<100xf32>
  %s1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
  %m2 = stablehlo.reduce(%z init: %lowest) applies stablehlo.maximum across dimensions = [0] : (tensor<65537xf32>, tensor<f32>) -> tensor<f32>
  %b2 = stablehlo.broadcast_in_dim %m2, dims = [] : (tensor<f32>) -> tensor<65537xf32>
  %d2 = stablehlo.subtract %z, %b2 : tensor<65537xf32>
  %e2 = stablehlo.exponential %d2 : tensor<65537xf32>
  %s2 = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<65537xf32>, tensor<f32>) -> tensor<f32>
  return %s, %s1, %s2 : tensor<f32>, tensor<f32>, tensor<f32>
}
