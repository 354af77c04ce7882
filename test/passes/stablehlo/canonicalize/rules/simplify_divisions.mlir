// RUN: %lamina-opt %s --stablehlo-simplify | FileCheck %s

// CHECK-LABEL: func.func @scaled
// CHECK: %[[X:.*]] = stablehlo.convert %arg0
// CHECK-DAG: %[[HIGH:.*]] = stablehlo.constant dense<0.003921628> : tensor<8xf32>
// CHECK-DAG: %[[LOW:.*]] = stablehlo.constant dense<-5.937090e-08> : tensor<8xf32>
// CHECK-DAG: %[[A:.*]] = stablehlo.multiply %[[X]], %[[HIGH]]
// CHECK-DAG: %[[B:.*]] = stablehlo.multiply %[[X]], %[[LOW]]
// CHECK: stablehlo.add %[[A]], %[[B]]
// CHECK-NOT: stablehlo.divide
func.func @scaled(%x: tensor<8xui8>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<255.0> : tensor<8xf32>
  %0 = stablehlo.convert %x : (tensor<8xui8>) -> tensor<8xf32>
  %1 = stablehlo.divide %0, %c : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// What has more bits is divided; so is what is divided by nothing.
// CHECK-LABEL: func.func @divided
// CHECK-COUNT-2: stablehlo.divide
func.func @divided(%x: tensor<8xi16>, %y: tensor<8xi8>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = stablehlo.constant dense<255.0> : tensor<8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0 = stablehlo.convert %x : (tensor<8xi16>) -> tensor<8xf32>
  %1 = stablehlo.divide %0, %c : tensor<8xf32>
  %2 = stablehlo.convert %y : (tensor<8xi8>) -> tensor<8xf32>
  %3 = stablehlo.divide %2, %z : tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
