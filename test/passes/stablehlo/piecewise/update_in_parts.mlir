// RUN: %lamina-opt %s --stablehlo-update-in-parts --split-input-file | FileCheck %s

// A donated argument is updated in place, as is a small part, what the program made, and what begins
// anywhere.
// CHECK-LABEL: func.func public @main
// CHECK: %[[TOP:.*]] = stablehlo.slice %arg0 [0:2, 0:128]
// CHECK: %[[ROWS:.*]] = stablehlo.concatenate %[[TOP]], %arg2, dim = 0
// CHECK: %[[LEFT:.*]] = stablehlo.slice %arg0 [1:31, 0:1]
// CHECK: %[[RIGHT:.*]] = stablehlo.slice %arg0 [1:31, 127:128]
// CHECK: %[[MIDDLE:.*]] = stablehlo.concatenate %[[LEFT]], %arg3, %[[RIGHT]], dim = 1
// CHECK: %[[ABOVE:.*]] = stablehlo.slice %arg0 [0:1, 0:128]
// CHECK: %[[BELOW:.*]] = stablehlo.slice %arg0 [31:32, 0:128]
// CHECK: %[[INNER:.*]] = stablehlo.concatenate %[[ABOVE]], %[[MIDDLE]], %[[BELOW]], dim = 0
// CHECK: stablehlo.dynamic_update_slice %arg1
// CHECK: stablehlo.dynamic_update_slice %arg0, %arg4
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %arg2
// CHECK: stablehlo.dynamic_update_slice %arg0, %arg2, %arg5
// CHECK: return %[[ROWS]], %[[INNER]]
func.func public @main(%x: tensor<32x128xf32>, %d: tensor<32x128xf32> {tf.aliasing_output = 2 : i32}, %rows: tensor<30x128xf32>, %inner: tensor<30x126xf32>, %small: tensor<8x120xf32>, %i: tensor<i32>) -> (tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %far = stablehlo.constant dense<9> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %rows, %far, %zero : (tensor<32x128xf32>, tensor<30x128xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  %1 = stablehlo.dynamic_update_slice %x, %inner, %one, %one : (tensor<32x128xf32>, tensor<30x126xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  %2 = stablehlo.dynamic_update_slice %d, %rows, %one, %zero : (tensor<32x128xf32>, tensor<30x128xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  %3 = stablehlo.dynamic_update_slice %x, %small, %one, %zero : (tensor<32x128xf32>, tensor<8x120xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  %made = stablehlo.sine %x : tensor<32x128xf32>
  %4 = stablehlo.dynamic_update_slice %made, %rows, %one, %zero : (tensor<32x128xf32>, tensor<30x128xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  %5 = stablehlo.dynamic_update_slice %x, %rows, %i, %zero : (tensor<32x128xf32>, tensor<30x128xf32>, tensor<i32>, tensor<i32>) -> tensor<32x128xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>, tensor<32x128xf32>
}

// -----

// What is also used together with the update's result, or returned itself, would have to be copied first. Not
// where all other readers can come before, as those of %c.
// CHECK-LABEL: func.func public @main
// CHECK: %[[A:.*]] = stablehlo.sine
// CHECK: %[[KEPT:.*]] = stablehlo.slice %[[A]] [0:1]
// CHECK: stablehlo.concatenate %[[KEPT]], %arg1, dim = 0
// CHECK: %[[B:.*]] = stablehlo.cosine
// CHECK: %[[ALSO:.*]] = stablehlo.slice %[[B]] [0:1]
// CHECK: stablehlo.concatenate %[[ALSO]], %arg1, dim = 0
// CHECK: %[[C:.*]] = stablehlo.tan
// CHECK: stablehlo.dynamic_update_slice %[[C]]
func.func public @main(%x: tensor<4096xf32>, %u: tensor<4095xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %a = stablehlo.sine %x : tensor<4096xf32>
  %0 = stablehlo.dynamic_update_slice %a, %u, %one : (tensor<4096xf32>, tensor<4095xf32>, tensor<i32>) -> tensor<4096xf32>
  %1 = stablehlo.negate %a : tensor<4096xf32>
  %2 = stablehlo.add %0, %1 : tensor<4096xf32>
  %b = stablehlo.cosine %x : tensor<4096xf32>
  %3 = stablehlo.dynamic_update_slice %b, %u, %one : (tensor<4096xf32>, tensor<4095xf32>, tensor<i32>) -> tensor<4096xf32>
  %c = stablehlo.tan %x : tensor<4096xf32>
  %4 = stablehlo.dynamic_update_slice %c, %u, %one : (tensor<4096xf32>, tensor<4095xf32>, tensor<i32>) -> tensor<4096xf32>
  %5 = stablehlo.exponential %c : tensor<4096xf32>
  return %2, %b, %3, %4, %5 : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}

// -----

// Whole rows, however few, are one copy in three parts, and so is an argument in another shape.
// CHECK-LABEL: func.func public @main
// CHECK: %[[BEFORE:.*]] = stablehlo.slice %arg0 [0:9, 0:1024]
// CHECK: %[[AFTER:.*]] = stablehlo.slice %arg0 [11:64, 0:1024]
// CHECK: stablehlo.concatenate %[[BEFORE]], %arg1, %[[AFTER]], dim = 0
// CHECK: %[[FLAT:.*]] = stablehlo.reshape %arg0
// CHECK: stablehlo.slice %[[FLAT]] [0:9]
// CHECK-NOT: dynamic_update_slice
func.func public @main(%x: tensor<64x1024xf32>, %u: tensor<2x1024xf32>, %v: tensor<2048xf32>) -> (tensor<64x1024xf32>, tensor<65536xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %nine, %zero : (tensor<64x1024xf32>, tensor<2x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<64x1024xf32>
  %flat = stablehlo.reshape %x : (tensor<64x1024xf32>) -> tensor<65536xf32>
  %1 = stablehlo.dynamic_update_slice %flat, %v, %nine : (tensor<65536xf32>, tensor<2048xf32>, tensor<i32>) -> tensor<65536xf32>
  return %0, %1 : tensor<64x1024xf32>, tensor<65536xf32>
}

// -----

// In a step of a loop: what replaces most of the array and is computed for that alone.
// CHECK-LABEL: func.func public @main
// CHECK: stablehlo.while(%{{.*}} = %{{.*}}, %[[A:.*]] = %arg1)
// CHECK: } do {
// CHECK: %[[NEW:.*]] = stablehlo.add
// CHECK: %[[BEFORE:.*]] = stablehlo.slice %[[A]] [0:1]
// CHECK: %[[AFTER:.*]] = stablehlo.slice %[[A]] [4095:4096]
// CHECK: %[[B:.*]] = stablehlo.concatenate %[[BEFORE]], %[[NEW]], %[[AFTER]], dim = 0
// CHECK: %[[HALF:.*]] = stablehlo.sine
// CHECK: %[[C:.*]] = stablehlo.dynamic_update_slice %[[B]], %[[HALF]]
// CHECK: stablehlo.dynamic_update_slice %[[C]], %arg2
func.func public @main(%n: tensor<i32>, %x: tensor<4096xf32>, %y: tensor<4094xf32>) -> tensor<4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4096xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.slice %a [0:4094] : (tensor<4096xf32>) -> tensor<4094xf32>
    %2 = stablehlo.slice %a [2:4096] : (tensor<4096xf32>) -> tensor<4094xf32>
    %3 = stablehlo.add %1, %2 : tensor<4094xf32>
    %4 = stablehlo.dynamic_update_slice %a, %3, %one : (tensor<4096xf32>, tensor<4094xf32>, tensor<i32>) -> tensor<4096xf32>
    %5 = stablehlo.slice %4 [0:2048] : (tensor<4096xf32>) -> tensor<2048xf32>
    %6 = stablehlo.sine %5 : tensor<2048xf32>
    %7 = stablehlo.dynamic_update_slice %4, %6, %one : (tensor<4096xf32>, tensor<2048xf32>, tensor<i32>) -> tensor<4096xf32>
    %8 = stablehlo.dynamic_update_slice %7, %y, %one : (tensor<4096xf32>, tensor<4094xf32>, tensor<i32>) -> tensor<4096xf32>
    %9 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %9, %8 : tensor<i32>, tensor<4096xf32>
  }
  return %0#1 : tensor<4096xf32>
}

// -----

// Rows that are cut are put together from 40 elements on: of shorter ones too much is at the ends.
// CHECK-LABEL: func.func public @main
// CHECK-NOT: stablehlo.dynamic_update_slice %arg0
// CHECK: stablehlo.concatenate {{.*}} dim = 1 : (tensor<64x1xf32>, tensor<64x47xf32>) -> tensor<64x48xf32>
// CHECK: stablehlo.dynamic_update_slice %arg2
func.func public @main(%x: tensor<64x48xf32>, %new: tensor<64x47xf32>, %y: tensor<64x32xf32>, %other: tensor<64x31xf32>) -> (tensor<64x48xf32>, tensor<64x32xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %new, %zero, %one : (tensor<64x48xf32>, tensor<64x47xf32>, tensor<i32>, tensor<i32>) -> tensor<64x48xf32>
  %1 = stablehlo.dynamic_update_slice %y, %other, %zero, %one : (tensor<64x32xf32>, tensor<64x31xf32>, tensor<i32>, tensor<i32>) -> tensor<64x32xf32>
  return %0, %1 : tensor<64x48xf32>, tensor<64x32xf32>
}
