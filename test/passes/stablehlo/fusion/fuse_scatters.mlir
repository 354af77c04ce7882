// RUN: %lamina-opt %s --stablehlo-fuse --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-fuse{parts=false}' --split-input-file | FileCheck %s --check-prefix=APART

// A few cheap ops on an array that is in memory are done by a scatter of windows, where it reads an index
// or an element of a window.
// CHECK-LABEL: func.func @windows
// CHECK-NEXT: %[[R:.*]] = call @fused_scatter_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_scatter_0(%arg0: tensor<9x8xf32> {lamina.inout = 0 : i32}
// CHECK-SAME: lamina.kind = "update"
// CHECK-DAG: stablehlo.select
// CHECK-DAG: stablehlo.negate
// CHECK: "stablehlo.scatter"(%arg0
// APART-LABEL: func.func @windows
// APART-COUNT-3: call @fused
func.func @windows(%x: tensor<9x8xf32>, %i: tensor<4x1xi32>, %u: tensor<4x8xf32>) -> tensor<9x8xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<4x1xi32>
  %c9 = stablehlo.constant dense<9> : tensor<4x1xi32>
  %0 = stablehlo.compare LT, %i, %c0 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
  %1 = stablehlo.add %i, %c9 : tensor<4x1xi32>
  %2 = stablehlo.select %0, %1, %i : tensor<4x1xi1>, tensor<4x1xi32>
  %3 = stablehlo.negate %u : tensor<4x8xf32>
  %4 = "stablehlo.scatter"(%x, %2, %3) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<9x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> tensor<9x8xf32>
  return %4 : tensor<9x8xf32>
}

// -----

// Costly ops are done in vectors, and so are those of two arrays, which would both be read for one.
// CHECK-LABEL: func.func @others
// CHECK-NEXT: call @fused
// CHECK-NEXT: call @fused
// CHECK-NEXT: call @fused_scatter
func.func @others(%x: tensor<9x8xf32>, %i: tensor<4x1xi32>, %j: tensor<4x1xi32>, %u: tensor<4x8xf32>) -> tensor<9x8xf32> {
  %0 = stablehlo.add %i, %j : tensor<4x1xi32>
  %1 = stablehlo.sine %u : tensor<4x8xf32>
  %2 = "stablehlo.scatter"(%x, %0, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<9x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> tensor<9x8xf32>
  return %2 : tensor<9x8xf32>
}

// -----

// Tasks that each have a part of the operand look at all indices: single elements' are made before, but for
// few elements, of which each task has copies.
// CHECK-LABEL: func.func @elements
// CHECK-COUNT-2: call @fused
// CHECK-LABEL: func.func @histogram
// CHECK-NEXT: call @fused_scatter
// CHECK-NEXT: return
func.func @elements(%x: tensor<999999xf32>, %i: tensor<65536x1xi32>, %u: tensor<65536xf32>) -> tensor<999999xf32> {
  %0 = stablehlo.abs %i : tensor<65536x1xi32>
  %1 = "stablehlo.scatter"(%x, %0, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<999999xf32>, tensor<65536x1xi32>, tensor<65536xf32>) -> tensor<999999xf32>
  return %1 : tensor<999999xf32>
}
func.func @histogram(%x: tensor<9xf32>, %i: tensor<65536x1xi32>, %u: tensor<65536xf32>) -> tensor<9xf32> {
  %0 = stablehlo.abs %i : tensor<65536x1xi32>
  %1 = "stablehlo.scatter"(%x, %0, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<9xf32>, tensor<65536x1xi32>, tensor<65536xf32>) -> tensor<9xf32>
  return %1 : tensor<9xf32>
}
