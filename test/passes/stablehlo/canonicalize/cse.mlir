// RUN: %lamina-opt %s --stablehlo-cse | FileCheck %s

// CHECK-LABEL: func.func @commuted
func.func @commuted(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %arg0, %arg1
  // CHECK-NEXT: return %[[SUM]], %[[SUM]]
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  %1 = stablehlo.add %b, %a : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @left_alone
func.func @left_alone(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: stablehlo.subtract
  // CHECK-COUNT-2: stablehlo.custom_call
  %0 = stablehlo.subtract %a, %b : tensor<4xf32>
  %1 = stablehlo.subtract %b, %a : tensor<4xf32>
  %2 = stablehlo.custom_call @roll(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @roll(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Equal regions make equal reductions.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%a: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: %[[SUM:.*]] = stablehlo.reduce{{.*}}stablehlo.add
  // CHECK-NEXT: %[[MAX:.*]] = stablehlo.reduce{{.*}}stablehlo.maximum
  // CHECK-NEXT: return %[[SUM]], %[[SUM]], %[[MAX]]
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}

// A branch sees what its surroundings computed, not what the other branch did.
// CHECK-LABEL: func.func @branches
func.func @branches(%p: tensor<i1>, %a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: %[[OUTER:.*]] = stablehlo.sine %arg1
  %0 = stablehlo.sine %a : tensor<f32>
  // CHECK: stablehlo.if
  // CHECK-NEXT: %[[C:.*]] = stablehlo.cosine
  // CHECK-NEXT: stablehlo.add %[[OUTER]], %[[C]]
  // CHECK: stablehlo.cosine
  %1 = "stablehlo.if"(%p) ({
    %s = stablehlo.sine %a : tensor<f32>
    %c = stablehlo.cosine %a : tensor<f32>
    %t = stablehlo.add %s, %c : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }, {
    %c = stablehlo.cosine %a : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}

// The body of a reduction must stay closed: its constant is not the one outside.
// CHECK-LABEL: func.func @closed_bodies
func.func @closed_bodies(%a: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  // CHECK: reducer
  // CHECK: stablehlo.constant dense<2.000000e+00>
  %0 = stablehlo.reduce(%a init: %two) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %s = stablehlo.multiply %x, %c : tensor<f32>
    %t = stablehlo.add %s, %y : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }
  return %0, %two : tensor<f32>, tensor<f32>
}

// What is made of constants alone is computed inside again, too, and once.
// CHECK-LABEL: func.func @closed_computations
func.func @closed_computations(%a: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %root = stablehlo.sqrt %two : tensor<f32>
  // CHECK: reducer(%[[X:.*]]: tensor<f32>, %[[Y:.*]]: tensor<f32>)
  // CHECK-NEXT: %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00>
  // CHECK-NEXT: %[[ROOT:.*]] = stablehlo.sqrt %[[TWO]]
  // CHECK-NEXT: %[[S:.*]] = stablehlo.multiply %[[X]], %[[ROOT]]
  // CHECK-NEXT: %[[T:.*]] = stablehlo.add %[[S]], %[[ROOT]]
  // CHECK-NEXT: stablehlo.return %[[T]]
  %0 = stablehlo.reduce(%a init: %two) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %r = stablehlo.sqrt %c : tensor<f32>
    %q = stablehlo.sqrt %c : tensor<f32>
    %s = stablehlo.multiply %x, %r : tensor<f32>
    %t = stablehlo.add %s, %q : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }
  return %0, %root : tensor<f32>, tensor<f32>
}

// Loops may read what is around them.
// CHECK-LABEL: func.func @loops
func.func @loops(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  // CHECK: %[[ONE:.*]] = stablehlo.constant dense<1>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK: do
  // CHECK-NEXT: stablehlo.subtract %{{.*}}, %[[ONE]]
  %0 = stablehlo.while(%i = %n) : tensor<i32>
   cond {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %s = stablehlo.subtract %i, %c : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }
  return %0, %one : tensor<i32>, tensor<i32>
}
