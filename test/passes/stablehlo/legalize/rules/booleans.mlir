// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @booleans
// CHECK: stablehlo.or
// CHECK: stablehlo.and
// CHECK: stablehlo.or
// CHECK: stablehlo.and
func.func @booleans(%x: tensor<4xi1>, %y: tensor<4xi1>) -> tensor<4xi1> {
  %0 = stablehlo.add %x, %y : tensor<4xi1>
  %1 = stablehlo.multiply %0, %y : tensor<4xi1>
  %2 = stablehlo.maximum %1, %y : tensor<4xi1>
  %3 = stablehlo.minimum %2, %y : tensor<4xi1>
  return %3 : tensor<4xi1>
}

// CHECK-LABEL: func.func @in_a_body
// CHECK: applies stablehlo.or
func.func @in_a_body(%x: tensor<4xi1>, %init: tensor<i1>) -> tensor<i1> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
  return %0 : tensor<i1>
}

// CHECK-LABEL: func.func @numbers
// CHECK: stablehlo.add
func.func @numbers(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = stablehlo.add %x, %x : tensor<4xi8>
  return %0 : tensor<4xi8>
}
