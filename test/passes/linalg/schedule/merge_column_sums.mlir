// RUN: %lamina-opt %s --pass-pipeline=linalg-merge-column-sums | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#first = affine_map<(i, j) -> (i)>

// The reduction numbers its dimensions otherwise.
// CHECK-LABEL: func.func @columns
// CHECK: %[[BOTH:.*]]:2 = linalg.generic
// CHECK-SAME: iterator_types = ["reduction", "parallel"]
// CHECK-SAME: ins(%arg0 : tensor<64x512xf32>) outs(%arg1, %arg2
// CHECK: %[[V:.*]] = math.exp
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %[[V]]
// CHECK: linalg.yield %[[V]], %[[S]]
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1
func.func @columns(%x: tensor<64x512xf32>, %e: tensor<64x512xf32>, %z: tensor<512xf32>) -> (tensor<64x512xf32>, tensor<512xf32>) {
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.exp %in : f32
    linalg.yield %2 : f32
  } -> tensor<64x512xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x512xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %out, %in : f32
    linalg.yield %2 : f32
  } -> tensor<512xf32>
  return %0, %1 : tensor<64x512xf32>, tensor<512xf32>
}

// Few columns are better summed in parts.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-2: linalg.generic
func.func @few(%x: tensor<64x32xf32>, %e: tensor<64x32xf32>, %z: tensor<32xf32>) -> (tensor<64x32xf32>, tensor<32xf32>) {
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.exp %in : f32
    linalg.yield %2 : f32
  } -> tensor<64x32xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x32xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %out, %in : f32
    linalg.yield %2 : f32
  } -> tensor<32xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<32xf32>
}

// A row is in cache when it is summed.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: linalg.generic
func.func @rows(%x: tensor<512x32xf32>, %e: tensor<512x32xf32>, %z: tensor<512xf32>) -> (tensor<512x32xf32>, tensor<512xf32>) {
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<512x32xf32>) outs(%e : tensor<512x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.exp %in : f32
    linalg.yield %2 : f32
  } -> tensor<512x32xf32>
  %1 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<512x32xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %out, %in : f32
    linalg.yield %2 : f32
  } -> tensor<512xf32>
  return %0, %1 : tensor<512x32xf32>, tensor<512xf32>
}

// Where only the rows are summed, too, both are one walk later.
// CHECK-LABEL: func.func @both_ways
// CHECK-COUNT-3: linalg.generic
func.func @both_ways(%x: tensor<64x512xf32>, %e: tensor<64x512xf32>, %z: tensor<512xf32>, %y: tensor<64xf32>) -> (tensor<512xf32>, tensor<64xf32>) {
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %3 = math.exp %in : f32
    linalg.yield %3 : f32
  } -> tensor<64x512xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x512xf32>) outs(%z : tensor<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %3 = arith.addf %out, %in : f32
    linalg.yield %3 : f32
  } -> tensor<512xf32>
  %2 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x512xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %3 = arith.addf %out, %in : f32
    linalg.yield %3 : f32
  } -> tensor<64xf32>
  return %1, %2 : tensor<512xf32>, tensor<64xf32>
}
