// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @without_nan
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK: %[[INF:.*]] = stablehlo.constant dense<0x7F800000>
// CHECK: %[[NAN:.*]] = stablehlo.compare NE, %[[X]], %[[X]]
// CHECK: %[[S:.*]] = stablehlo.select %[[NAN]], %[[INF]], %[[X]]
// CHECK: %[[R:.*]] = stablehlo.reduce_precision %[[S]], format = e5m0
// CHECK: return %[[R]]
func.func @without_nan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce_precision %x, format = e5m0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @with_nan
// CHECK-NEXT: stablehlo.reduce_precision
// CHECK-NEXT: return
func.func @with_nan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce_precision %x, format = e5m2 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
