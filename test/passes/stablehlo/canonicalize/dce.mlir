// RUN: %lamina-opt %s --stablehlo-dce --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @unused
func.func @unused(%a: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: stablehlo.custom_call @print
  // CHECK-NEXT: return %arg0
  %0 = stablehlo.sine %a : tensor<4xf32>
  %1 = stablehlo.cosine %0 : tensor<4xf32>
  %2 = stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @pure(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// The second carry reaches no result; the third never changes; the fourth feeds the first.
// CHECK-LABEL: func.func @carries
func.func @carries(%n: tensor<i32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK: %[[LOOP:.*]]:3 = stablehlo.while({{.*}} = %{{.*}}, {{.*}} = %arg1, {{.*}} = %arg2) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: stablehlo.compare LT, %{{.*}}, %arg0
  // CHECK-NOT: stablehlo.cosine
  // CHECK: return %[[LOOP]]#1, %arg2
  %r:5 = stablehlo.while(%i = %zero, %a = %x, %dead = %x, %same = %y, %b = %y) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %i2 = stablehlo.add %i, %one : tensor<i32>
    %a2 = stablehlo.add %a, %b : tensor<4xf32>
    %d2 = stablehlo.cosine %dead : tensor<4xf32>
    %b2 = stablehlo.multiply %b, %same : tensor<4xf32>
    stablehlo.return %i2, %a2, %d2, %same, %b2 : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#1, %r#3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @branches
func.func @branches(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK: %[[IF:.*]] = "stablehlo.if"(%arg0)
  // CHECK-NEXT: %[[S:.*]] = stablehlo.sine
  // CHECK-NEXT: stablehlo.return %[[S]] : tensor<f32>
  // CHECK: return %[[IF]]
  %0:2 = "stablehlo.if"(%p) ({
    %c = stablehlo.cosine %x : tensor<f32>
    %s = stablehlo.sine %x : tensor<f32>
    stablehlo.return %c, %s : tensor<f32>, tensor<f32>
  }, {
    stablehlo.return %x, %x : tensor<f32>, tensor<f32>
  }) : (tensor<i1>) -> (tensor<f32>, tensor<f32>)
  return %0#1 : tensor<f32>
}

// -----

// A loop with an effect stays, with what the effect reads.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<f32>) -> tensor<f32> {
  %true = stablehlo.constant dense<true> : tensor<i1>
  // CHECK: stablehlo.while
  // CHECK: stablehlo.custom_call @print
  // CHECK: stablehlo.sine
  %0 = stablehlo.while(%a = %x) : tensor<f32> cond {
    stablehlo.return %true : tensor<i1>
  } do {
    %1 = stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
    %2 = stablehlo.sine %a : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %x : tensor<f32>
}

// -----

// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[R:.*]] = call @f(%arg0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[R]]
  %0:2 = call @f(%x, %y) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#0 : tensor<f32>
}
// CHECK: func.func private @f(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: return
func.func private @f(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %y : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
// CHECK-NOT: @uncalled
func.func private @uncalled(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @also_uncalled(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @also_uncalled(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
