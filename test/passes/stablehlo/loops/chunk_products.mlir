// RUN: %lamina-opt %s --stablehlo-chunk-products="least-bytes=1024" | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-chunk-products | FileCheck %s --check-prefix=SMALL

// Rows of the product are read last ones first: so are chunks, and the rows of each.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: stablehlo.dot_general
// CHECK: %[[O:.*]]:4 = stablehlo.while(%[[N:[^ ]+]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %arg0, %{{.*}} = %{{.*}}) : {{.*}}lamina.trip_count = 4
// CHECK: %[[BACK:.*]] = stablehlo.subtract %{{.*}}, %[[N]]
// CHECK: %[[START:.*]] = stablehlo.multiply %[[BACK]]
// CHECK: %[[X:.*]] = stablehlo.dynamic_slice %arg1, %[[START]], %{{.*}}, sizes = [4, 8]
// CHECK: %[[P:.*]] = stablehlo.dot_general %[[X]], %arg2, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
// CHECK: stablehlo.while(%[[J:[^ ]+]] = %{{.*}}, {{.*}}lamina.trip_count = 4
// CHECK: %[[AT:.*]] = stablehlo.subtract %{{.*}}, %[[J]]
// CHECK: stablehlo.dynamic_slice %[[P]], %[[AT]], %{{.*}}, sizes = [1, 32]
// CHECK: stablehlo.dynamic_update_slice
// CHECK: return %[[O]]#2, %[[O]]#3
// SMALL-LABEL: func.func @rows
// SMALL: stablehlo.dot_general {{.*}} -> tensor<16x32xf32>
func.func @rows(%h: tensor<8xf32>, %xs: tensor<16x8xf32>, %u: tensor<8x32xf32>) -> (tensor<8xf32>, tensor<16x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %xu = stablehlo.dot_general %xs, %u, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %h, %ys = %none) : tensor<i32>, tensor<8xf32>, tensor<16x8xf32> attributes {lamina.trip_count = 16 : i64}
  cond {
    %n = stablehlo.constant dense<16> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %last = stablehlo.constant dense<15> : tensor<i32>
    %b = stablehlo.subtract %last, %i : tensor<i32>
    %1 = stablehlo.dynamic_slice %xu, %b, %zero, sizes = [1, 32] : (tensor<16x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %x = stablehlo.reshape %1 : (tensor<1x32xf32>) -> tensor<4x8xf32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %f) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %d = stablehlo.add %c, %s : tensor<8xf32>
    %row = stablehlo.reshape %d : (tensor<8xf32>) -> tensor<1x8xf32>
    %stack = stablehlo.dynamic_update_slice %ys, %row, %b, %zero : (tensor<16x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<16x8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d, %stack : tensor<i32>, tensor<8xf32>, tensor<16x8xf32>
  }
  return %0#1, %0#2 : tensor<8xf32>, tensor<16x8xf32>
}

// The product is returned, too; or its factor, made for it, has as many bytes; or 17 steps do not divide.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.dot_general {{.*}} -> tensor<17x32xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<17x32xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<17x32xf32>
// CHECK: stablehlo.while{{.*}}lamina.trip_count = 17
// CHECK-NOT: stablehlo.while
func.func @others(%h: tensor<32xf32>, %xs: tensor<17x8xf32>, %zs: tensor<17x32xf32>, %u: tensor<8x32xf32>, %v: tensor<32x32xf32>) -> (tensor<32xf32>, tensor<17x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %kept = stablehlo.dot_general %xs, %u, contracting_dims = [1] x [0] : (tensor<17x8xf32>, tensor<8x32xf32>) -> tensor<17x32xf32>
  %sine = stablehlo.sine %zs : tensor<17x32xf32>
  %wide = stablehlo.dot_general %sine, %v, contracting_dims = [1] x [0] : (tensor<17x32xf32>, tensor<32x32xf32>) -> tensor<17x32xf32>
  %odd = stablehlo.dot_general %xs, %u, contracting_dims = [1] x [0] : (tensor<17x8xf32>, tensor<8x32xf32>) -> tensor<17x32xf32>
  %0:2 = stablehlo.while(%i = %zero, %c = %h) : tensor<i32>, tensor<32xf32> attributes {lamina.trip_count = 17 : i64}
  cond {
    %n = stablehlo.constant dense<17> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %kept, %i, %zero, sizes = [1, 32] : (tensor<17x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %2 = stablehlo.dynamic_slice %wide, %i, %zero, sizes = [1, 32] : (tensor<17x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %3 = stablehlo.dynamic_slice %odd, %i, %zero, sizes = [1, 32] : (tensor<17x32xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %4 = stablehlo.add %1, %2 : tensor<1x32xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<1x32xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x32xf32>) -> tensor<32xf32>
    %d = stablehlo.add %c, %6 : tensor<32xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d : tensor<i32>, tensor<32xf32>
  }
  return %0#1, %kept : tensor<32xf32>, tensor<17x32xf32>
}
