// RUN: %lamina-opt %s --pass-pipeline='linalg-fuse-long-chains{least-ops=3}' | FileCheck %s

// One op, with the map of what is spread; what is also returned is a result of it.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: exp
// CHECK: %[[R:.*]]:2 = linalg.generic {indexing_maps = [#map, #map1, #map, #map]{{.*}} ins(%arg0, %arg1 :
// CHECK-NEXT: ^bb0(%[[X:[^:]*]]: f32, %[[B:[^:]*]]: f32,
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[B]], %[[B]]
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[E]], %[[S]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[A]], %[[E]]
// CHECK-NEXT: linalg.yield %[[A]], %[[M]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]#0, %[[R]]#1
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#one = affine_map<(j) -> (j)>
func.func @chain(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%b : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.mulf %in, %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.addf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %4 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%3, %0 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.mulf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>
}

// What a reduction in between reads, and what reads it, can't be one op: nothing moves.
// CHECK-LABEL: func.func @around_a_reduction
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT: linalg.generic
func.func @around_a_reduction(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["reduction", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %s : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.divf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.log %in : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// What a body looks up is made in front of the one op, with what that needs.
// CHECK-LABEL: func.func @looked_up
// CHECK: %[[I:.*]] = linalg.generic
// CHECK: arith.addi
// CHECK: linalg.generic
// CHECK: tensor.extract %[[I]]
// CHECK: math.exp
// CHECK: math.absf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @looked_up(%x: tensor<8xf32>, %at: tensor<8xi32>, %t: tensor<64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %n = tensor.empty() : tensor<8xi32>
  %i = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%at : tensor<8xi32>) outs(%n : tensor<8xi32>) {
  ^bb0(%in: i32, %out: i32):
    %v = arith.addi %in, %in : i32
    linalg.yield %v : i32
  } -> tensor<8xi32>
  %0 = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%out: f32):
    %d = linalg.index 0 : index
    %k = tensor.extract %i[%d] : tensor<8xi32>
    %p = arith.index_cast %k : i32 to index
    %v = tensor.extract %t[%p] : tensor<64xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.absf %in : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
