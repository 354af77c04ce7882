// RUN: %lamina-opt %s --stablehlo-slice-first --stablehlo-cse | FileCheck %s

// A difference of differences: each element of the first is read twice.
// CHECK-LABEL: func.func @differences
// CHECK-DAG: %[[A:.*]] = stablehlo.slice %arg0 [2:8]
// CHECK-DAG: %[[B:.*]] = stablehlo.slice %arg0 [1:7]
// CHECK-DAG: %[[C:.*]] = stablehlo.slice %arg0 [0:6]
// CHECK-DAG: %[[D:.*]] = stablehlo.subtract %[[A]], %[[B]]
// CHECK-DAG: %[[E:.*]] = stablehlo.subtract %[[B]], %[[C]]
// CHECK: %[[F:.*]] = stablehlo.subtract %[[D]], %[[E]]
// CHECK-NEXT: return %[[F]]
func.func @differences(%x: tensor<8xf32>) -> tensor<6xf32> {
  %0 = stablehlo.slice %x [1:8] : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.slice %x [0:7] : (tensor<8xf32>) -> tensor<7xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<7xf32>
  %3 = stablehlo.slice %2 [1:7] : (tensor<7xf32>) -> tensor<6xf32>
  %4 = stablehlo.slice %2 [0:6] : (tensor<7xf32>) -> tensor<6xf32>
  %5 = stablehlo.subtract %3, %4 : tensor<6xf32>
  return %5 : tensor<6xf32>
}

// A scalar stands beside what is sliced; steps are multiplied, and what is spread is spread less far.
// CHECK-LABEL: func.func @trees
// CHECK: stablehlo.slice %arg0 [1:6:4]
// CHECK: stablehlo.select %arg1, {{.*}} : tensor<i1>, tensor<2xf32>
// CHECK: stablehlo.slice %arg0 [3:8:4]
// CHECK: stablehlo.select %arg1, {{.*}} : tensor<i1>, tensor<2xf32>
// CHECK-NOT: tensor<4xf32>
func.func @trees(%x: tensor<8xf32>, %p: tensor<i1>, %s: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.slice %x [1:8:2] : (tensor<8xf32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.select %p, %2, %0 : tensor<i1>, tensor<4xf32>
  %4 = stablehlo.slice %3 [0:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %5 = stablehlo.slice %3 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %6 = stablehlo.subtract %4, %5 : tensor<2xf32>
  return %6 : tensor<2xf32>
}

// Left alone: a costly op, what something else reads, what has to be stored for others anyway.
// CHECK-LABEL: func.func @left
// CHECK: stablehlo.sine %arg0 : tensor<8xf32>
// CHECK: stablehlo.add %arg0, %arg0 : tensor<8xf32>
// CHECK: stablehlo.multiply %{{.*}}, %arg0 : tensor<8xf32>
// CHECK-COUNT-6: stablehlo.slice {{.*}} : (tensor<8xf32>)
func.func @left(%x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {
  %0 = stablehlo.sine %x : tensor<8xf32>
  %1 = stablehlo.add %x, %x : tensor<8xf32>
  %2 = stablehlo.cosine %x : tensor<8xf32>
  %3 = stablehlo.multiply %2, %x : tensor<8xf32>
  %4 = stablehlo.slice %0 [0:4] : (tensor<8xf32>) -> tensor<4xf32>
  %5 = stablehlo.slice %0 [1:5] : (tensor<8xf32>) -> tensor<4xf32>
  %6 = stablehlo.slice %1 [0:4] : (tensor<8xf32>) -> tensor<4xf32>
  %7 = stablehlo.slice %1 [1:5] : (tensor<8xf32>) -> tensor<4xf32>
  %8 = stablehlo.slice %3 [0:4] : (tensor<8xf32>) -> tensor<4xf32>
  %9 = stablehlo.slice %3 [1:5] : (tensor<8xf32>) -> tensor<4xf32>
  return %4, %5, %6, %7, %8, %9, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
}

// What a cache does not hold is computed again in more ops, those that several of them need once.
// CHECK-LABEL: func.func @limited
// CHECK-NOT: tensor<99999xf64>
// CHECK-COUNT-2: stablehlo.select {{.*}} : tensor<99998xi1>, tensor<99998xf64>
// CHECK: return
func.func @limited(%x: tensor<100000xf64>) -> tensor<99998xf64> {
  %0 = stablehlo.slice %x [1:100000] : (tensor<100000xf64>) -> tensor<99999xf64>
  %1 = stablehlo.slice %x [0:99999] : (tensor<100000xf64>) -> tensor<99999xf64>
  %2 = stablehlo.subtract %0, %1 : tensor<99999xf64>
  %3 = stablehlo.add %0, %1 : tensor<99999xf64>
  %4 = stablehlo.multiply %2, %3 : tensor<99999xf64>
  %5 = stablehlo.abs %2 : tensor<99999xf64>
  %6 = stablehlo.maximum %5, %4 : tensor<99999xf64>
  %7 = stablehlo.compare GT, %6, %3 : (tensor<99999xf64>, tensor<99999xf64>) -> tensor<99999xi1>
  %8 = stablehlo.select %7, %2, %6 : tensor<99999xi1>, tensor<99999xf64>
  %9 = stablehlo.slice %8 [1:99999] : (tensor<99999xf64>) -> tensor<99998xf64>
  %10 = stablehlo.slice %8 [0:99998] : (tensor<99999xf64>) -> tensor<99998xf64>
  %11 = stablehlo.subtract %9, %10 : tensor<99998xf64>
  return %11 : tensor<99998xf64>
}
