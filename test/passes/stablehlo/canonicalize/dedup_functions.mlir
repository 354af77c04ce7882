// RUN: %lamina-opt %s --stablehlo-dedup-functions | FileCheck %s

// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-NEXT: call @outer(
  // CHECK-NEXT: call @outer(
  // CHECK-NEXT: call @other(
  %0 = call @outer(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @outer_0(%x) : (tensor<f32>) -> tensor<f32>
  %2 = call @other(%x) : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
// Equal once the functions they call are one.
// CHECK: func.func private @outer(
// CHECK-NOT: @outer_0
func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @outer_0(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @inner_0(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK: func.func private @inner(
// CHECK-NOT: @inner_0
func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @inner_0(%y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %y : tensor<f32>
  return %0 : tensor<f32>
}
// CHECK: func.func private @other(
func.func private @other(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.cosine %x : tensor<f32>
  return %0 : tensor<f32>
}
// Public functions keep their names, equal or not.
// CHECK: func.func public @sine(
func.func public @sine(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
