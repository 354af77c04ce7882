// RUN: %lamina-opt %s --stablehlo-unroll-short-loops | FileCheck %s

// What is carried in turns takes its turns, and what became known is folded.
// CHECK-LABEL: func.func @turns
// CHECK-NOT: while
// CHECK: %[[A:.*]] = stablehlo.broadcast_in_dim %arg1
// CHECK-NEXT: %[[X:.*]] = stablehlo.xor %arg0, %[[A]]
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %arg2
// CHECK-NEXT: %[[Y:.*]] = stablehlo.xor %[[X]], %[[B]]
// CHECK: %[[C:.*]] = stablehlo.broadcast_in_dim %arg1
// CHECK-NEXT: %[[Z:.*]] = stablehlo.xor %[[Y]], %[[C]]
// CHECK: return %[[Z]]
func.func @turns(%x: tensor<2048xui32>, %k: tensor<ui32>, %l: tensor<ui32>) -> tensor<2048xui32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %a = %x, %b = %k, %c = %l) : tensor<i32>, tensor<2048xui32>, tensor<ui32>, tensor<ui32>
    cond {
      %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<ui32>) -> tensor<2048xui32>
      %y = stablehlo.xor %a, %s : tensor<2048xui32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y, %c, %b : tensor<i32>, tensor<2048xui32>, tensor<ui32>, tensor<ui32>
    }
  return %0#1 : tensor<2048xui32>
}

// One that counts down, and one that does no step.
// CHECK-LABEL: func.func @down
// CHECK-NOT: while
// CHECK: stablehlo.negate
// CHECK: stablehlo.negate
// CHECK-NOT: stablehlo.negate
// CHECK: return
func.func @down(%x: tensor<2048xf32>) -> (tensor<2048xf32>, tensor<2048xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0:2 = stablehlo.while(%i = %two, %a = %x) : tensor<i32>, tensor<2048xf32>
    cond {
      %p = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.add %a, %a : tensor<2048xf32>
      %z = stablehlo.negate %y : tensor<2048xf32>
      %n = stablehlo.subtract %i, %one : tensor<i32>
      stablehlo.return %n, %z : tensor<i32>, tensor<2048xf32>
    }
  %1:2 = stablehlo.while(%i = %two, %a = %x) : tensor<i32>, tensor<2048xf32>
    cond {
      %p = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.sine %a : tensor<2048xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y : tensor<i32>, tensor<2048xf32>
    }
  return %0#1, %1#1 : tensor<2048xf32>, tensor<2048xf32>
}

// Those stay that do many steps, whose number is not known, of small arrays, and of more than elements.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-4: stablehlo.while
func.func @stay(%x: tensor<2048xf32>, %s: tensor<8xf32>, %m: tensor<32x64xf32>, %w: tensor<64x64xf32>, %bound: tensor<i32>)
    -> (tensor<2048xf32>, tensor<2048xf32>, tensor<8xf32>, tensor<32x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<2048xf32>
    cond {
      %p = stablehlo.compare LT, %i, %nine : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.sine %a : tensor<2048xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y : tensor<i32>, tensor<2048xf32>
    }
  %1:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<2048xf32>
    cond {
      %p = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.sine %a : tensor<2048xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y : tensor<i32>, tensor<2048xf32>
    }
  %2:2 = stablehlo.while(%i = %zero, %a = %s) : tensor<i32>, tensor<8xf32>
    cond {
      %p = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.sine %a : tensor<8xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y : tensor<i32>, tensor<8xf32>
    }
  %3:2 = stablehlo.while(%i = %zero, %a = %m) : tensor<i32>, tensor<32x64xf32>
    cond {
      %p = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %y = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
      %n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %n, %y : tensor<i32>, tensor<32x64xf32>
    }
  return %0#1, %1#1, %2#1, %3#1 : tensor<2048xf32>, tensor<2048xf32>, tensor<8xf32>, tensor<32x64xf32>
}
