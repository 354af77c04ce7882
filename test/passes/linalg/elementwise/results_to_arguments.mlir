// RUN: %lamina-opt %s --pass-pipeline=linalg-results-to-arguments | FileCheck %s

// CHECK-LABEL: func.func @new_argument
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32> {bufferization.writable = false}, %[[OUT:.*]]: tensor<4xf32> {bufferization.writable = true})
// CHECK: %[[SUM:.*]] = linalg.add
// CHECK: %[[DONE:.*]] = bufferization.materialize_in_destination %[[SUM]] in %[[OUT]]
// CHECK: return %[[DONE]]
func.func @new_argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @updated_argument
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32> {bufferization.writable = true, lamina.inout = 0 : i32})
// CHECK: bufferization.materialize_in_destination %{{.*}} in %[[X]]
func.func @updated_argument(%x: tensor<4xf32> {lamina.inout = 0 : i32}) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The second copy of a value is made from the first.
// CHECK-LABEL: func.func @returned_twice
// CHECK: %[[FIRST:.*]] = bufferization.materialize_in_destination %{{.*}} in %arg1
// CHECK: bufferization.materialize_in_destination %[[FIRST]] in %arg2
func.func @returned_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %1, %1 : tensor<4xf32>, tensor<4xf32>
}

// Both arguments are read before either is overwritten.
// CHECK-LABEL: func.func @swapped
// CHECK: %[[B:.*]] = bufferization.alloc_tensor() copy(%arg1)
// CHECK: %[[A:.*]] = bufferization.alloc_tensor() copy(%arg0)
// CHECK: bufferization.materialize_in_destination %[[B]] in %arg0
// CHECK: bufferization.materialize_in_destination %[[A]] in %arg1
func.func @swapped(%a: tensor<4xf32> {lamina.inout = 0 : i32}, %b: tensor<4xf32> {lamina.inout = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// What a loop builds up starts in its destination.
// CHECK-LABEL: func.func @built_in_a_loop
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true})
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[OUT]])
// CHECK: return %[[LOOP]]
func.func @built_in_a_loop(%x: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = tensor.empty() : tensor<4xf32>
  %1 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %0) -> tensor<4xf32> {
    %2 = tensor.insert %x into %t[%i] : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// Nothing is written to a result without elements.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: materialize
// CHECK: return %arg1
func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  return %x : tensor<0x3xf32>
}

// CHECK-LABEL: func.func private @declaration(tensor<4xf32>) -> tensor<4xf32>
func.func private @declaration(tensor<4xf32>) -> tensor<4xf32>

// A result made by overwriting a part of another result works on a copy.
// CHECK-LABEL: func.func @one_result_from_another
// CHECK: %[[SUM:.*]] = linalg.add
// CHECK: %[[COPY:.*]] = linalg.copy {{.*}}ins(%[[SUM]]
// CHECK: tensor.insert %arg1 into %[[COPY]]
func.func @one_result_from_another(%x: tensor<4xf32>, %e: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.insert %e into %1[%c0] : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// So does what is built part by part.
// CHECK-LABEL: func.func @built_of_parts
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true})
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %[[OUT]][0] [2] [1]
// CHECK: %[[B:.*]] = tensor.insert_slice %{{.*}} into %[[A]][2] [2] [1]
// CHECK: return %[[B]]
func.func @built_of_parts(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.insert_slice %x into %0[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %2 = tensor.insert_slice %y into %1[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %2 : tensor<4xf32>
}

// And what is built of parts that are written where they lie.
// CHECK-LABEL: func.func @built_in_place
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true})
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %[[OUT]][0] [2] [2]
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[A]][1] [2] [2]
// CHECK: %[[B:.*]] = linalg.add {{.*}}outs(%[[PLACE]]
// CHECK: tensor.insert_slice %[[B]] into %[[A]][1] [2] [2]
func.func @built_in_place(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tensor.insert_slice %x into %0[0] [2] [2] : tensor<2xf32> into tensor<4xf32>
  %2 = tensor.extract_slice %1[1] [2] [2] : tensor<4xf32> to tensor<2xf32>
  %3 = linalg.add ins(%x, %y : tensor<2xf32>, tensor<2xf32>) outs(%2 : tensor<2xf32>) -> tensor<2xf32>
  %4 = tensor.insert_slice %3 into %1[1] [2] [2] : tensor<2xf32> into tensor<4xf32>
  return %4 : tensor<4xf32>
}

// Two sums that begin with the same zeros have zeros each.
// CHECK-LABEL: func.func @begun_apart
// CHECK: %[[ZEROS:.*]] = linalg.generic
// CHECK: linalg.generic {{.*}} outs(%[[ZEROS]]
// CHECK: %[[MORE:.*]] = linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[MORE]]
func.func @begun_apart(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<4xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %4 = arith.addf %out, %in : f32
    linalg.yield %4 : f32
  } -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// Also two products of complex numbers.
// CHECK-LABEL: func.func @complex_begun_apart
// CHECK: linalg.fill ins(%{{.*}} : complex<f32>) outs(%{{.*}} : tensor<4xcomplex<f32>>)
// CHECK-NOT: linalg.fill
func.func @complex_begun_apart(%x: tensor<4x4xcomplex<f32>>, %one: complex<f32>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %0 = tensor.empty() : tensor<4xcomplex<f32>>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%one : complex<f32>) outs(%0 : tensor<4xcomplex<f32>>) {
  ^bb0(%in: complex<f32>, %out: complex<f32>):
    linalg.yield %in : complex<f32>
  } -> tensor<4xcomplex<f32>>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xcomplex<f32>>) outs(%1 : tensor<4xcomplex<f32>>) {
  ^bb0(%in: complex<f32>, %out: complex<f32>):
    %4 = complex.mul %out, %in : complex<f32>
    linalg.yield %4 : complex<f32>
  } -> tensor<4xcomplex<f32>>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xcomplex<f32>>) outs(%1 : tensor<4xcomplex<f32>>) {
  ^bb0(%in: complex<f32>, %out: complex<f32>):
    %4 = complex.mul %out, %in : complex<f32>
    linalg.yield %4 : complex<f32>
  } -> tensor<4xcomplex<f32>>
  return %2, %3 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
}

// What overwrites an argument is done after others have read it, or they would read a copy.
// CHECK-LABEL: func.func @read_by_others
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: bufferization.materialize_in_destination
#id = affine_map<(i) -> (i)>
func.func @read_by_others(%x: tensor<4xf32> {lamina.inout = 0 : i32}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %3 = arith.addf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %3 = arith.mulf %a, %a : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// A sum over groups that become one dimension at the end grows where the result is to be.
// CHECK-LABEL: func.func @groups
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %arg1 {{.*}} output_shape [3, 2, 4]
// CHECK: linalg.fill {{.*}} outs(%[[PARTS]]
// CHECK-NOT: materialize_in_destination
// CHECK: return
func.func @groups(%x: tensor<3x2x4x5xf32>) -> tensor<3x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x2x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(g, i, j, k) -> (g, i, j, k)>, affine_map<(g, i, j, k) -> (g, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<3x2x4x5xf32>) outs(%fill : tensor<3x2x4xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %0 = arith.addf %in, %sum : f32
    linalg.yield %0 : f32
  } -> tensor<3x2x4xf32>
  %result = tensor.collapse_shape %sums [[0], [1, 2]] : tensor<3x2x4xf32> into tensor<3x8xf32>
  return %result : tensor<3x8xf32>
}
