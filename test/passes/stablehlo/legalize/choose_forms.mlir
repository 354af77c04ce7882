// RUN: %lamina-opt %s --stablehlo-choose-forms | FileCheck %s

// CHECK-LABEL: func.func public @main
// CHECK: %[[Y:.*]]:2 = call @in_blocks(%arg0, %arg1)
// CHECK: stablehlo.composite "my.other"
// CHECK: return %[[Y]]#0, %[[Y]]#1
func.func public @main(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0:2 = stablehlo.composite "lamina.two_forms" %x, %y {
    composite_attributes = {in_blocks = @in_blocks}, decomposition = @plain
  } : (tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
  %1 = stablehlo.composite "my.other" %x, %y {decomposition = @other}
    : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %0#0, %0#1, %1 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
func.func private @plain(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  return %x, %y : tensor<5xf32>, tensor<5xf32>
}
// In what another form calls, too.
// CHECK-LABEL: func.func private @in_blocks
// CHECK: call @inner
func.func private @in_blocks(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %0 = stablehlo.composite "lamina.two_forms" %x {
    composite_attributes = {in_blocks = @inner}, decomposition = @inner_plain
  } : (tensor<5xf32>) -> tensor<5xf32>
  return %0, %y : tensor<5xf32>, tensor<5xf32>
}
func.func private @inner(%x: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}
func.func private @inner_plain(%x: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}
func.func private @other(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}
