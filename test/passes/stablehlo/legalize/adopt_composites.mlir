// RUN: %lamina-opt %s --stablehlo-adopt-composites | FileCheck %s

// CHECK-LABEL: func.func public @main
// CHECK: %[[E:.*]] = chlo.erf %arg0
// CHECK: %[[T:.*]], %[[P:.*]] = chlo.top_k(%arg0, k = 2)
// CHECK: %[[H:.*]] = stablehlo.composite "chlo.erf" %arg1
// CHECK: %[[O:.*]] = stablehlo.composite "my.other" %arg0
// CHECK: return %[[E]], %[[T]], %[[P]], %[[H]], %[[O]]
func.func public @main(%x: tensor<5xf32>, %h: tensor<5xf16>)
    -> (tensor<5xf32>, tensor<2xf32>, tensor<2xi32>, tensor<5xf16>, tensor<5xf32>) {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @erf, version = 1 : i32}
    : (tensor<5xf32>) -> tensor<5xf32>
  %1:2 = stablehlo.composite "chlo.top_k" %x {
    composite_attributes = {is_stable = true, k = 2 : i64}, decomposition = @top_k, version = 1 : i32
  } : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %2 = stablehlo.composite "chlo.erf" %h {decomposition = @erf_f16, version = 1 : i32}
    : (tensor<5xf16>) -> tensor<5xf16>
  %3 = stablehlo.composite "my.other" %x {decomposition = @erf} : (tensor<5xf32>) -> tensor<5xf32>
  return %0, %1#0, %1#1, %2, %3
    : tensor<5xf32>, tensor<2xf32>, tensor<2xi32>, tensor<5xf16>, tensor<5xf32>
}
func.func private @erf(%x: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}
func.func private @erf_f16(%x: tensor<5xf16>) -> tensor<5xf16> {
  return %x : tensor<5xf16>
}
func.func private @top_k(%x: tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0 = stablehlo.slice %x [0:2] : (tensor<5xf32>) -> tensor<2xf32>
  %1 = stablehlo.iota dim = 0 : tensor<2xi32>
  return %0, %1 : tensor<2xf32>, tensor<2xi32>
}
