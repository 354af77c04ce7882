// RUN: %lamina-opt %s --pass-pipeline=stablehlo-expand-lanes | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline=stablehlo-expand-lanes{form=select} | FileCheck %s --check-prefix=SELECT
// RUN: %lamina-opt %s --pass-pipeline=stablehlo-expand-lanes{form=threads} | FileCheck %s --check-prefix=THREADS

// For GPUs one lane is a thread's where it is small, and known alone.
// THREADS: call @lane(
// THREADS: stablehlo.composite "lamina.lanes" {{.*}}block = 2
// THREADS: stablehlo.while
// THREADS-SAME: lamina.lanes = 5
// THREADS: call @lane(
// THREADS: stablehlo.composite "lamina.lanes" {{.*}}lanes = @large_lane
// One lane a step; what is not batched is given whole.
// SELECT: stablehlo.composite "lamina.lanes"
// SELECT: stablehlo.composite "lamina.lanes"
// CHECK-LABEL: func.func public @main
// CHECK: %[[W:.*]]:2 = stablehlo.while(%[[I:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) : tensor<i32>, tensor<5x2xf32>
// CHECK-SAME: lamina.lanes = 5 : i64
// CHECK: stablehlo.compare LT, %[[I]]
// CHECK: %[[X:.*]] = stablehlo.dynamic_slice %arg0, %[[I]], {{.*}} sizes = [1, 2]
// CHECK: %[[R:.*]] = stablehlo.reshape %[[X]] : (tensor<1x2xf32>) -> tensor<2xf32>
// CHECK: %[[Y:.*]] = func.call @lane(%[[R]], %arg1)
// CHECK: %[[Z:.*]] = stablehlo.reshape %[[Y]] : (tensor<2xf32>) -> tensor<1x2xf32>
// CHECK: stablehlo.dynamic_update_slice %[[O]], %[[Z]], %[[I]]
// CHECK: stablehlo.while
// CHECK-SAME: lamina.lanes = 3 : i64
// CHECK: stablehlo.multiply
// CHECK: func.call @two_lanes({{.*}}) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
// CHECK: return %[[W]]#1
func.func public @main(%x: tensor<5x2xf32>, %s: tensor<f32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %0 = stablehlo.composite "lamina.lanes" %x, %s {
    composite_attributes = {lanes = @lane, size = 5 : i64, block = 1 : i64, batched = array<i64: 1, 0>},
    decomposition = @all_lanes
  } : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  %1 = stablehlo.composite "lamina.lanes" %x, %s {
    composite_attributes = {lanes = @two_lanes, size = 5 : i64, block = 2 : i64, batched = array<i64: 1, 0>},
    decomposition = @all_lanes
  } : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  return %0, %1 : tensor<5x2xf32>, tensor<5x2xf32>
}
func.func public @others(%x: tensor<5x2xf32>, %s: tensor<f32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %0 = stablehlo.composite "lamina.lanes" %x, %s {
    composite_attributes = {lanes = @two_lanes, lane = @lane, size = 5 : i64, block = 2 : i64, batched = array<i64: 1, 0>},
    decomposition = @all_lanes
  } : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  %1 = stablehlo.composite "lamina.lanes" %x, %s {
    composite_attributes = {lanes = @large_lane, size = 5 : i64, block = 1 : i64, batched = array<i64: 1, 0>},
    decomposition = @all_lanes
  } : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  return %0, %1 : tensor<5x2xf32>, tensor<5x2xf32>
}
func.func private @large_lane(%x: tensor<2xf32>, %s: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<1000x2xf32>
  %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<1000x2xf32>) -> tensor<1x2xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
func.func private @lane(%x: tensor<2xf32>, %s: tensor<f32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func private @two_lanes(%x: tensor<2x2xf32>, %s: tensor<f32>) -> tensor<2x2xf32> {
  return %x : tensor<2x2xf32>
}
func.func private @all_lanes(%x: tensor<5x2xf32>, %s: tensor<f32>) -> tensor<5x2xf32> {
  return %x : tensor<5x2xf32>
}
