// RUN: %lamina-opt %s --pass-pipeline=stablehlo-lower-scatter | FileCheck %s

// Only the elements named are touched, each when its index lies inside (one unsigned comparison).
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: linalg.copy
// CHECK: scf.for %[[N:.*]] = {{.*}} iter_args(%[[T:.*]] = %arg0)
// CHECK: %[[I:.*]] = tensor.extract %arg1[%[[N]],
// CHECK: %[[AT:.*]] = arith.index_cast %[[I]]
// CHECK: arith.cmpi ule, %[[AT]]
// CHECK: scf.if
// CHECK: tensor.extract %[[T]][%[[AT]]]
// CHECK: tensor.extract %arg2[%[[N]]]
// CHECK: stablehlo.add
// CHECK: tensor.insert {{.*}} into %[[T]][%[[AT]]]
func.func @in_place(%x: tensor<10xf32> {lamina.inout = 0 : i32}, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<10xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<10xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// An argument that must stay is copied first; a window has loops of its own.
// CHECK-LABEL: func.func @windows
// CHECK: linalg.copy
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// CHECK: tensor.insert
func.func @windows(%x: tensor<10x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>) -> tensor<10x4xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<10x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}

// Unsigned indices are widened: their value is not their sign extension.
// CHECK-LABEL: func.func @unsigned
// CHECK: stablehlo.convert %arg1 : (tensor<3x1xui32>) -> tensor<3x1xi64>
func.func @unsigned(%x: tensor<10xf32> {lamina.inout = 0 : i32}, %i: tensor<3x1xui32>, %u: tensor<3xf32>) -> tensor<10xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<10xf32>, tensor<3x1xui32>, tensor<3xf32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}

// Many updates in two parts of the operand, each a task; those of the other part are pretended to be
// done on some element, without a branch.
// CHECK-LABEL: func.func @parts
// CHECK: scf.forall (%[[PART:.*]]) in (2) shared_outs(%[[ALL:.*]] = %arg0)
// CHECK: %[[LOW:.*]] = arith.muli %[[PART]]
// CHECK: %[[OWN:.*]] = tensor.extract_slice %[[ALL]][%[[LOW]]] [%{{.*}}] [1] : tensor<1000001xf32> to tensor<?xf32>
// CHECK: scf.for
// CHECK: %[[AT:.*]] = arith.subi %{{.*}}, %[[LOW]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]]
// CHECK-NOT: scf.if
// CHECK: arith.select %[[INSIDE]], %[[AT]]
// CHECK: stablehlo.add
// CHECK: arith.select %[[INSIDE]]
// CHECK: tensor.parallel_insert_slice
// CHECK: lamina.grain = 1
func.func @parts(%x: tensor<1000001xf32> {lamina.inout = 0 : i32}, %i: tensor<40000x1xi32>, %u: tensor<40000xf32>) -> tensor<1000001xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<1000001xf32>, tensor<40000x1xi32>, tensor<40000xf32>) -> tensor<1000001xf32>
  return %0 : tensor<1000001xf32>
}

// Windows in eight parts of the rows.
// CHECK-LABEL: func.func @rows
// CHECK: scf.forall (%{{.*}}) in (8)
// CHECK: tensor.extract_slice {{.*}} : tensor<800x512xf32> to tensor<100x512xf32>
// CHECK: scf.if
func.func @rows(%x: tensor<800x512xf32> {lamina.inout = 0 : i32}, %i: tensor<600x1xi32>, %u: tensor<600x512xf32>) -> tensor<800x512xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<800x512xf32>, tensor<600x1xi32>, tensor<600x512xf32>) -> tensor<800x512xf32>
  return %0 : tensor<800x512xf32>
}

// Short windows are written faster than each part could look at all index vectors.
// CHECK-LABEL: func.func @short_rows
// CHECK-NOT: scf.forall
// CHECK: scf.for
func.func @short_rows(%x: tensor<800x64xf32> {lamina.inout = 0 : i32}, %i: tensor<600x1xi32>, %u: tensor<600x64xf32>) -> tensor<800x64xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<800x64xf32>, tensor<600x1xi32>, tensor<600x64xf32>) -> tensor<800x64xf32>
  return %0 : tensor<800x64xf32>
}

// Many updates of few elements: each task has four copies of these, that updates take in turn, and all
// are combined in the end.
// CHECK-LABEL: func.func @copies
// CHECK: %[[NONE:.*]] = stablehlo.broadcast_in_dim {{.*}} -> tensor<8x4x100xf32>
// CHECK: scf.forall (%[[TASK:.*]]) in (8) shared_outs(%[[ALL:.*]] = %[[NONE]])
// CHECK: tensor.extract_slice %[[ALL]][%[[TASK]], 0, 0] [1, 4, 100]
// CHECK: scf.for %[[N:.*]] = {{.*}} iter_args(%[[OWN:.*]] = {{.*}})
// CHECK: %[[TURN:.*]] = arith.andi %[[N]]
// CHECK: scf.if
// CHECK: tensor.extract %[[OWN]][%[[TURN]], %
// CHECK: arith.maximumf {{.*}} fastmath<nsz>
// CHECK: %[[TOTAL:.*]] = stablehlo.reduce{{.*}} across dimensions = [0, 1]
// CHECK: stablehlo.maximum %arg0, %[[TOTAL]]
func.func @copies(%x: tensor<100xf32> {lamina.inout = 0 : i32}, %i: tensor<100000x1xi32>, %u: tensor<100000xf32>) -> tensor<100xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<100xf32>, tensor<100000x1xi32>, tensor<100000xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// What the last update decides, or more elements than copies pay for, has none.
// CHECK-LABEL: func.func @no_copies
// CHECK-NOT: scf.forall
// CHECK: return
func.func @no_copies(%x: tensor<100xf32> {lamina.inout = 0 : i32}, %y: tensor<20000xf32> {lamina.inout = 1 : i32}, %i: tensor<100000x1xi32>, %u: tensor<100000xf32>) -> (tensor<100xf32>, tensor<20000xf32>) {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<100xf32>, tensor<100000x1xi32>, tensor<100000xf32>) -> tensor<100xf32>
  %1 = "stablehlo.scatter"(%y, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<20000xf32>, tensor<100000x1xi32>, tensor<100000xf32>) -> tensor<20000xf32>
  return %0, %1 : tensor<100xf32>, tensor<20000xf32>
}
