// RUN: %lamina-opt %s --stablehlo-scatter-reductions --stablehlo-dce | FileCheck %s

module @m attributes {mhlo.num_partitions = 4 : i32} {
// CHECK-LABEL: func.func public @own_part
// CHECK: %[[PART:.*]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK-SAME: scatter_dimension = 0
// CHECK: (tensor<8x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: return %[[PART]]
func.func public @own_part(%x: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %id = stablehlo.partition_id : tensor<ui32>
  %two = stablehlo.constant dense<2> : tensor<ui32>
  %zero = stablehlo.constant dense<0> : tensor<ui32>
  %start = stablehlo.multiply %id, %two : tensor<ui32>
  %part = stablehlo.dynamic_slice %sum, %start, %zero, sizes = [2, 4] : (tensor<8x4xf32>, tensor<ui32>, tensor<ui32>) -> tensor<2x4xf32>
  return %part : tensor<2x4xf32>
}

// Starts from a table, as the partitioner writes them; a transpose and a scaling stand between.
// CHECK-LABEL: func.func public @between
// CHECK: %[[PART:.*]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
// CHECK-SAME: scatter_dimension = 1
// CHECK: stablehlo.maximum
// CHECK: (tensor<8x4xf32>) -> tensor<8x2xf32>
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %[[PART]], dims = [1, 0]
// CHECK: %[[HALF:.*]] = stablehlo.constant dense<5.000000e-01> : tensor<2x8xf32>
// CHECK: stablehlo.multiply %[[TURNED]], %[[HALF]] : tensor<2x8xf32>
func.func public @between(%x: tensor<8x4xf32>) -> tensor<2x8xf32> {
  %most = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %turned = stablehlo.transpose %most, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4x8xf32>
  %scaled = stablehlo.multiply %turned, %half : tensor<4x8xf32>
  %table = stablehlo.constant dense<[0, 0, 2, 2]> : tensor<4xi32>
  %id = stablehlo.partition_id : tensor<ui32>
  %row = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
  %start = stablehlo.reshape %row : (tensor<1xi32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %part = stablehlo.dynamic_slice %scaled, %start, %zero, sizes = [2, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
  return %part : tensor<2x8xf32>
}

// Each device takes the part that another would get.
// CHECK-LABEL: func.func public @another_part
// CHECK: stablehlo.all_reduce
// CHECK: stablehlo.dynamic_slice
func.func public @another_part(%x: tensor<8xf32>) -> tensor<2xf32> {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<8xf32>) -> tensor<8xf32>
  %table = stablehlo.constant dense<[2, 0, 4, 6]> : tensor<4xi32>
  %id = stablehlo.partition_id : tensor<ui32>
  %row = stablehlo.dynamic_slice %table, %id, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
  %start = stablehlo.reshape %row : (tensor<1xi32>) -> tensor<i32>
  %part = stablehlo.dynamic_slice %sum, %start, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  return %part : tensor<2xf32>
}

// The whole is needed, too.
// CHECK-LABEL: func.func public @whole
// CHECK: stablehlo.all_reduce
// CHECK: stablehlo.dynamic_slice
func.func public @whole(%x: tensor<4xf32>) -> (tensor<1xf32>, tensor<4xf32>) {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %id = stablehlo.partition_id : tensor<ui32>
  %part = stablehlo.dynamic_slice %sum, %id, sizes = [1] : (tensor<4xf32>, tensor<ui32>) -> tensor<1xf32>
  return %part, %sum : tensor<1xf32>, tensor<4xf32>
}
}
