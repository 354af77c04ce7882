// RUN: %lamina-opt %s --pass-pipeline=linalg-merge-dimensions | FileCheck %s

#all = affine_map<(a, b, c, d) -> (a, b, c, d)>
#first = affine_map<(a, b, c, d) -> (a, b)>
#turned = affine_map<(a, b, c, d) -> (b, a, c, d)>
#kept = affine_map<(a, b, c, d) -> (a)>
#two = affine_map<(a, b) -> (a, b)>
#back = affine_map<(a, b) -> (b, a)>
#row = affine_map<(a, b) -> (b)>
#spread = affine_map<(a, b) -> (a + b)>
#three = affine_map<(a, b, c) -> (a, b, c)>
#last = affine_map<(a, b, c) -> (c, a, b)>

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[MIDDLE:.*]] = affine_map<(d0, d1, d2) -> (d1, d0, d2)>

// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<512x1024xf32>, %[[Z:.*]]: tensor<512xf32>, %[[OUT:.*]]: tensor<512x1024xf32>) -> tensor<512x1024xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]] : tensor<512x1024xf32>) outs(%[[Z]] : tensor<512xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<512x1024xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: outs(%[[E]] : tensor<512x1024xf32>)
// CHECK: bufferization.materialize_in_destination {{.*}} (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<512x1024xf32>
func.func @rows(%x: tensor<8x64x32x32xf32>, %z: tensor<8x64xf32>, %out: tensor<8x64x32x32xf32>) -> tensor<8x64x32x32xf32> {
  %0 = linalg.generic {indexing_maps = [#all, #first], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<8x64x32x32xf32>) outs(%z : tensor<8x64xf32>) {
  ^bb0(%in: f32, %o: f32):
    %s = arith.addf %o, %in : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  %e = tensor.empty() : tensor<8x64x32x32xf32>
  %1 = linalg.generic {indexing_maps = [#all, #first, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %0 : tensor<8x64x32x32xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64x32x32xf32>) {
  ^bb0(%in: f32, %r: f32, %o: f32):
    %s = arith.subf %in, %r : f32
    linalg.yield %s : f32
  } -> tensor<8x64x32x32xf32>
  %2 = bufferization.materialize_in_destination %1 in %out : (tensor<8x64x32x32xf32>, tensor<8x64x32x32xf32>) -> tensor<8x64x32x32xf32>
  return %2 : tensor<8x64x32x32xf32>
}

// Only the last two are of one kind and side by side: those around the channels are not.
// CHECK-LABEL: func.func @channels
// CHECK-SAME: (%[[X:.*]]: tensor<8x64x3136xf32>, %{{.*}}: tensor<64xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[MIDDLE]], {{.*}}], iterator_types = ["parallel", "reduction", "reduction"]}
func.func @channels(%x: tensor<8x64x56x56xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %0 = linalg.generic {indexing_maps = [#turned, #kept], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%x : tensor<8x64x56x56xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%in: f32, %o: f32):
    %s = arith.addf %o, %in : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// Turning blocks of two dimensions is turning a matrix; a constant of equal numbers has any shape.
// CHECK-LABEL: func.func @turned
// CHECK-SAME: (%[[X:.*]]: tensor<5x28xf32>, %[[OUT:.*]]: tensor<28x5xf32>)
// CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<28x5xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[C]] :
func.func @turned(%x: tensor<5x4x7xf32>, %out: tensor<4x7x5xf32>) -> tensor<4x7x5xf32> {
  %c = arith.constant dense<2.0> : tensor<4x7x5xf32>
  %0 = linalg.generic {indexing_maps = [#last, #three, #three], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %c : tensor<5x4x7xf32>, tensor<4x7x5xf32>) outs(%out : tensor<4x7x5xf32>) {
  ^bb0(%in: f32, %k: f32, %o: f32):
    %s = arith.mulf %in, %k : f32
    linalg.yield %s : f32
  } -> tensor<4x7x5xf32>
  return %0 : tensor<4x7x5xf32>
}

// A row for all rows, an array that is read turned, a position, sums of dimensions, a look at the shape, and
// constants of several numbers.
// CHECK-LABEL: func.func @left_alone
// CHECK-SAME: (%{{.*}}: tensor<6x6xf32>, %{{.*}}: tensor<6xf32>, %{{.*}}: tensor<11xf32>)
// CHECK-NOT: tensor<36xf32>
// CHECK: return
func.func @left_alone(%x: tensor<6x6xf32>, %r: tensor<6xf32>, %w: tensor<11xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xi32>, tensor<6x6xf32>, tensor<3x6xf32>, tensor<2x2xf32>) {
  %e = tensor.empty() : tensor<6x6xf32>
  %0 = linalg.generic {indexing_maps = [#two, #row, #two], iterator_types = ["parallel", "parallel"]} ins(%x, %r : tensor<6x6xf32>, tensor<6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%in: f32, %k: f32, %o: f32):
    %s = arith.mulf %in, %k : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %1 = linalg.generic {indexing_maps = [#two, #back, #two], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<6x6xf32>, tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%in: f32, %k: f32, %o: f32):
    %s = arith.mulf %in, %k : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %n = tensor.empty() : tensor<6x6xi32>
  %2 = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%n : tensor<6x6xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 1 : index
    %s = arith.index_cast %at : index to i32
    linalg.yield %s : i32
  } -> tensor<6x6xi32>
  %3 = linalg.generic {indexing_maps = [#spread, #two], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<11xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<6x6xf32>
  %4 = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<6x6xf32>
  %5 = tensor.extract_slice %4[0, 0] [3, 6] [1, 1] : tensor<6x6xf32> to tensor<3x6xf32>
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %f = tensor.empty() : tensor<2x2xf32>
  %6 = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<2x2xf32>
  return %0, %1, %2, %3, %5, %6 : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xi32>, tensor<6x6xf32>, tensor<3x6xf32>, tensor<2x2xf32>
}

// Both begin with one empty array; only one of them keeps its shape.
// CHECK-LABEL: func.func @beginnings
// CHECK-SAME: -> (tensor<24xf32>, tensor<4x6xf32>)
// CHECK-DAG: tensor.empty() : tensor<24xf32>
// CHECK-DAG: tensor.empty() : tensor<4x6xf32>
func.func @beginnings(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%in: f32, %o: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x6xf32>) {
  ^bb0(%o: f32):
    %at = linalg.index 0 : index
    %n = arith.index_cast %at : index to i32
    %s = arith.sitofp %n : i32 to f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}
