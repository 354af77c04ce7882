// RUN: %lamina-opt %s --pass-pipeline=stablehlo-legalize-control-flow | FileCheck %s

// CHECK-LABEL: func.func public @loop
// CHECK: scf.while (%[[I:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}}) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
// CHECK: %[[P:.*]] = func.call @less(%[[I]])
// CHECK: %[[B:.*]] = tensor.extract %[[P]][]
// CHECK: scf.condition(%[[B]]) %[[I]], %[[X]]
// CHECK: do
// CHECK: scf.yield
func.func public @loop(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %p = func.call @less(%a) : (tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = func.call @next(%a) : (tensor<i32>) -> tensor<i32>
      %r = stablehlo.reshape %b : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %n, %r : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}
func.func private @less(tensor<i32>) -> tensor<i1>
func.func private @next(tensor<i32>) -> tensor<i32>

// The inner `if` of a branch is done too.
// CHECK-LABEL: func.func public @nested_if
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NOT: stablehlo.if
func.func public @nested_if(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.if"(%p) ({
      stablehlo.return %x : tensor<f32>
    }, {
      stablehlo.return %y : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Index 2 and everything out of range take the last branch.
// CHECK-LABEL: func.func public @case
// CHECK-SAME: (%[[I:.*]]: tensor<i32>, %[[X:.*]]: tensor<f32>, %[[Y:.*]]: tensor<f32>, %[[Z:.*]]: tensor<f32>)
// CHECK: scf.index_switch
// CHECK: case 0 {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK: case 1 {
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: default {
// CHECK-NEXT: scf.yield %[[Z]]
func.func public @case(%i: tensor<i32>, %x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  }, {
    stablehlo.return %z : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A reduction's region is no control flow.
// CHECK-LABEL: func.func public @untouched
// CHECK: stablehlo.reduce
// CHECK-NOT: scf
func.func public @untouched(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
