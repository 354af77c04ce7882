// RUN: %lamina-opt %s --stablehlo-lay-out-collectives | FileCheck %s

module @m attributes {mhlo.num_partitions = 2 : i32} {
// CHECK-LABEL: func.func public @gather
// CHECK: %[[ROW:.*]] = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
// CHECK: %[[ALL:.*]] = "stablehlo.all_gather"(%[[ROW]])
// CHECK-SAME: all_gather_dim = 0
// CHECK: %[[MOVED:.*]] = stablehlo.transpose %[[ALL]], dims = [1, 0, 2]
// CHECK: stablehlo.reshape %[[MOVED]] : (tensor<2x2x3xf32>) -> tensor<2x6xf32>
func.func public @gather(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: func.func public @scatter
// CHECK: stablehlo.reshape %arg0 : (tensor<3x4xf32>) -> tensor<3x2x2xf32>
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0, 2]
// CHECK: "stablehlo.reduce_scatter"
// CHECK-SAME: scatter_dimension = 0
// CHECK: stablehlo.reshape %{{.*}} : (tensor<1x3x2xf32>) -> tensor<3x2xf32>
func.func public @scatter(%x: tensor<3x4xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.reduce_scatter"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func public @exchange
// CHECK: "stablehlo.all_to_all"
// CHECK-SAME: concat_dimension = 0
// CHECK-SAME: split_dimension = 0
func.func public @exchange(%x: tensor<4x2xf32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.all_to_all"(%x) {split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// Groups that are not written out are one of all devices; the number of the replica is known.
// CHECK-LABEL: func.func public @implied
// CHECK: stablehlo.all_reduce
// CHECK-SAME{LITERAL}: dense<[[0, 1]]>
// CHECK: stablehlo.constant dense<0> : tensor<ui32>
func.func public @implied(%x: tensor<i32>) -> (tensor<i32>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.maximum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {replica_groups = dense<> : tensor<0x0xi64>} : (tensor<i32>) -> tensor<i32>
  %1 = stablehlo.replica_id : tensor<ui32>
  return %0, %1 : tensor<i32>, tensor<ui32>
}
}
