// RUN: %lamina-opt %s --pass-pipeline=linalg-inline-extracted,canonicalize | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @indices
// CHECK-SAME: (%[[X:.*]]: tensor<9xf32>, %[[I:.*]]: tensor<4x5xi32>, %[[O:.*]]: tensor<5xi32>)
// CHECK: linalg.generic
// CHECK-DAG: %[[R:.*]] = linalg.index 0
// CHECK-DAG: %[[C:.*]] = linalg.index 1
// CHECK-DAG: %[[A:.*]] = tensor.extract %[[I]][%[[R]], %[[C]]]
// CHECK-DAG: %[[B:.*]] = tensor.extract %[[O]][%[[C]]]
// CHECK: %[[S:.*]] = arith.addi %[[A]], %[[B]]
// CHECK: %[[AT:.*]] = arith.index_cast %[[S]]
// CHECK: tensor.extract %[[X]][%[[AT]]]
// CHECK-NOT: linalg.generic
func.func @indices(%x: tensor<9xf32>, %i: tensor<4x5xi32>, %o: tensor<5xi32>) -> tensor<4x5xf32> {
  %0 = tensor.empty() : tensor<4x5xi32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%i, %o : tensor<4x5xi32>, tensor<5xi32>) outs(%0 : tensor<4x5xi32>) {
  ^bb0(%a: i32, %b: i32, %out: i32):
    %5 = arith.addi %a, %b : i32
    linalg.yield %5 : i32
  } -> tensor<4x5xi32>
  %2 = tensor.empty() : tensor<4x5xf32>
  %3 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%2 : tensor<4x5xf32>) {
  ^bb0(%out: f32):
    %5 = linalg.index 0 : index
    %6 = linalg.index 1 : index
    %7 = tensor.extract %1[%5, %6] : tensor<4x5xi32>
    %8 = arith.index_cast %7 : i32 to index
    %9 = tensor.extract %x[%8] : tensor<9xf32>
    linalg.yield %9 : f32
  } -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}

// The indices are a result, too.
// CHECK-LABEL: func.func @stored
// CHECK-COUNT-2: linalg.generic
func.func @stored(%x: tensor<9xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = tensor.empty() : tensor<4xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi32>) outs(%0 : tensor<4xi32>) {
  ^bb0(%a: i32, %out: i32):
    %5 = arith.addi %a, %a : i32
    linalg.yield %5 : i32
  } -> tensor<4xi32>
  %2 = tensor.empty() : tensor<4xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%2 : tensor<4xf32>) {
  ^bb0(%out: f32):
    %5 = linalg.index 0 : index
    %6 = tensor.extract %1[%5] : tensor<4xi32>
    %7 = arith.index_cast %6 : i32 to index
    %8 = tensor.extract %x[%7] : tensor<9xf32>
    linalg.yield %8 : f32
  } -> tensor<4xf32>
  return %3, %1 : tensor<4xf32>, tensor<4xi32>
}

// What is out of bounds is told by the indices, too: they are not stored for that.
// CHECK-LABEL: func.func @or_nothing
// CHECK: linalg.generic
// CHECK: %[[A:.*]] = tensor.extract %arg1
// CHECK: %[[N:.*]] = arith.addi %[[A]]
// CHECK: tensor.extract %arg0
// CHECK: arith.cmpi slt, %[[N]]
// CHECK-NOT: linalg.generic
func.func @or_nothing(%x: tensor<9xf32>, %i: tensor<4xi32>) -> tensor<4xf32> {
  %c9 = arith.constant 9 : i32
  %z = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi32>) outs(%0 : tensor<4xi32>) {
  ^bb0(%a: i32, %out: i32):
    %5 = arith.addi %a, %c9 : i32
    linalg.yield %5 : i32
  } -> tensor<4xi32>
  %2 = tensor.empty() : tensor<4xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%1 : tensor<4xi32>) outs(%2 : tensor<4xf32>) {
  ^bb0(%n: i32, %out: f32):
    %5 = linalg.index 0 : index
    %6 = tensor.extract %1[%5] : tensor<4xi32>
    %7 = arith.index_cast %6 : i32 to index
    %8 = tensor.extract %x[%7] : tensor<9xf32>
    %9 = arith.cmpi slt, %n, %c9 : i32
    %10 = arith.select %9, %8, %z : f32
    linalg.yield %10 : f32
  } -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// The operand that nothing reads any more gives the loop its length.
// CHECK-LABEL: func.func @length
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xi32>)
func.func @length(%x: tensor<9xi32>, %i: tensor<4xi32>) -> tensor<i32> {
  %0 = tensor.empty() : tensor<4xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi32>) outs(%0 : tensor<4xi32>) {
  ^bb0(%a: i32, %out: i32):
    %5 = arith.addi %a, %a : i32
    linalg.yield %5 : i32
  } -> tensor<4xi32>
  %2 = arith.constant dense<0> : tensor<i32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%1 : tensor<4xi32>) outs(%2 : tensor<i32>) {
  ^bb0(%a: i32, %sum: i32):
    %5 = linalg.index 0 : index
    %6 = tensor.extract %1[%5] : tensor<4xi32>
    %7 = arith.index_cast %6 : i32 to index
    %8 = tensor.extract %x[%7] : tensor<9xi32>
    %9 = arith.addi %8, %a : i32
    %10 = arith.addi %sum, %9 : i32
    linalg.yield %10 : i32
  } -> tensor<i32>
  return %3 : tensor<i32>
}

// What a loop extracts is computed there.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[X:.*]]: tensor<9xf32>, %[[I:.*]]: tensor<4xi32>)
// CHECK-NOT: linalg.generic
// CHECK: scf.for %[[N:[a-z0-9]+]] =
// CHECK-NEXT: %[[A:.*]] = tensor.extract %[[I]][%[[N]]]
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[A]], %[[A]]
// CHECK-NEXT: arith.index_cast %[[S]]
func.func @loop(%x: tensor<9xf32>, %i: tensor<4xi32>) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi32>) outs(%0 : tensor<4xi32>) {
  ^bb0(%a: i32, %out: i32):
    %5 = arith.addi %a, %a : i32
    linalg.yield %5 : i32
  } -> tensor<4xi32>
  %2 = scf.for %n = %c0 to %c4 step %c1 iter_args(%now = %x) -> tensor<9xf32> {
    %3 = tensor.extract %1[%n] : tensor<4xi32>
    %at = arith.index_cast %3 : i32 to index
    %4 = tensor.insert %zero into %now[%at] : tensor<9xf32>
    scf.yield %4 : tensor<9xf32>
  }
  return %2 : tensor<9xf32>
}
