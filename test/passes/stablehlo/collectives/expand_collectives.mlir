// RUN: %lamina-opt %s --stablehlo-expand-collectives | FileCheck %s

// CHECK-LABEL: func.func @alone
// CHECK-NEXT: return %arg0
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.collective_permute"(%1) {source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @Sharding(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.custom_call @LayoutConstraint(%3) : (tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// Nobody sends: zeros.
// CHECK-LABEL: func.func @nobody
// CHECK: stablehlo.constant dense<0.0
// CHECK: stablehlo.constant dense<0> : tensor<ui32>
func.func @nobody(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<ui32>) {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<> : tensor<0x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.replica_id : tensor<ui32>
  return %0, %1 : tensor<4xf32>, tensor<ui32>
}

// CHECK-LABEL: func.func @several
// CHECK: stablehlo.all_gather
func.func @several(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
