// RUN: %lamina-opt %s --stablehlo-expand-approx-top-k | FileCheck %s

// CHECK-NOT: @greater
// CHECK-LABEL: func.func public @main
// CHECK: %[[S:.*]]:2 = "stablehlo.sort"(%arg0, %{{.*}}) <{dimension = 1 : i64, is_stable = true}>
// CHECK: ^bb0(%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>, %{{.*}}: tensor<i32>, %{{.*}}: tensor<i32>):
// CHECK: %[[G:.*]] = stablehlo.compare GT, %[[A]], %[[B]]
// CHECK: stablehlo.return %[[G]]
// CHECK: %[[V:.*]] = stablehlo.slice %[[S]]#0 [0:4, 0:2]
// CHECK: %[[P:.*]] = stablehlo.slice %[[S]]#1 [0:4, 0:2]
// CHECK: return %[[V]], %[[P]]
func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func public @main(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<4x8xi32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %least, %none) {
    called_computations = [@greater],
    mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32,
      reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}
  } : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi32>
}
