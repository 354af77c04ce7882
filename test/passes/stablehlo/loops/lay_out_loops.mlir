// RUN: %lamina-opt %s --stablehlo-lay-out-loops --split-input-file | FileCheck %s

// What is read and what is carried are turned round before the loop, what is carried again after it.
// CHECK-LABEL: func.func @recurrence
// CHECK: %[[X:.*]] = stablehlo.transpose %arg0, dims = [2, 0, 1]
// CHECK: %[[Y:.*]] = stablehlo.transpose %arg1, dims = [2, 0, 1]
// CHECK: %[[R:.*]]:2 = stablehlo.while(%[[I:.*]] = %{{.*}}, %[[C:.*]] = %[[Y]]) : tensor<i32>, tensor<40x30x20xf32>
// CHECK: %[[A:.*]] = stablehlo.dynamic_slice %[[X]], %[[I]], %{{.*}}, %{{.*}}, sizes = [1, 30, 20]
// CHECK: stablehlo.reshape %[[A]] : (tensor<1x30x20xf32>) -> tensor<30x20xf32>
// CHECK: "stablehlo.scatter"(%[[C]],
// CHECK-SAME: inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]
// CHECK: stablehlo.transpose %[[R]]#1, dims = [1, 2, 0]
func.func @recurrence(%x: tensor<30x20x40xf32>, %y: tensor<30x20x40xf32>) -> tensor<30x20x40xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<40> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %c = %y) : tensor<i32>, tensor<30x20x40xf32> attributes {lamina.trip_count = 40 : i64}
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dynamic_slice %x, %zero, %zero, %i, sizes = [30, 20, 1] : (tensor<30x20x40xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<30x20x1xf32>
      %b = stablehlo.reshape %a : (tensor<30x20x1xf32>) -> tensor<30x20xf32>
      %p = stablehlo.dynamic_slice %c, %zero, %zero, %j, sizes = [30, 20, 1] : (tensor<30x20x40xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<30x20x1xf32>
      %q = stablehlo.reshape %p : (tensor<30x20x1xf32>) -> tensor<30x20xf32>
      %s = stablehlo.add %b, %q : tensor<30x20xf32>
      %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %d = "stablehlo.scatter"(%c, %at, %s) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
      }) : (tensor<30x20x40xf32>, tensor<1xi32>, tensor<30x20xf32>) -> tensor<30x20x40xf32>
      stablehlo.return %j, %d : tensor<i32>, tensor<30x20x40xf32>
    }
  return %0#1 : tensor<30x20x40xf32>
}

// -----

// A repeated element is the same in any layout; an update by slices, a gather.
// CHECK-LABEL: func.func @columns
// CHECK: %[[X:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK: stablehlo.constant dense<0.000000e+00> : tensor<200x100xf32>
// CHECK: stablehlo.while
// CHECK: "stablehlo.gather"(%[[X]],
// CHECK-SAME: collapsed_slice_dims = [0], start_index_map = [0]
// CHECK-SAME: slice_sizes = array<i64: 1, 100>
// CHECK: stablehlo.dynamic_update_slice %{{.*}} : (tensor<200x100xf32>, tensor<1x100xf32>, tensor<i32>, tensor<i32>)
func.func @columns(%x: tensor<100x200xf32>) -> tensor<100x200xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<200> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<100x200xf32>
  %0:2 = stablehlo.while(%i = %zero, %c = %none) : tensor<i32>, tensor<100x200xf32> attributes {lamina.trip_count = 200 : i64}
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %a = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 100, 1>}> : (tensor<100x200xf32>, tensor<1xi32>) -> tensor<100xf32>
      %b = stablehlo.reshape %a : (tensor<100xf32>) -> tensor<100x1xf32>
      %d = stablehlo.dynamic_update_slice %c, %b, %zero, %i : (tensor<100x200xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x200xf32>
      stablehlo.return %j, %d : tensor<i32>, tensor<100x200xf32>
    }
  return %0#1 : tensor<100x200xf32>
}

// -----

// Left alone: rows, an array that is also read as a whole, few steps, arrays in the first-level cache.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: stablehlo.transpose
func.func @left_alone(%x: tensor<100x200xf32>, %y: tensor<100x200xf32>, %z: tensor<10x20xf32>, %w: tensor<100x200xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<100> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %c = %none) : tensor<i32>, tensor<f32> attributes {lamina.trip_count = 100 : i64}
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 200] : (tensor<100x200xf32>, tensor<i32>, tensor<i32>) -> tensor<1x200xf32>
      %b = stablehlo.dynamic_slice %y, %zero, %i, sizes = [100, 1] : (tensor<100x200xf32>, tensor<i32>, tensor<i32>) -> tensor<100x1xf32>
      %d = stablehlo.dynamic_slice %z, %zero, %i, sizes = [10, 1] : (tensor<10x20xf32>, tensor<i32>, tensor<i32>) -> tensor<10x1xf32>
      %1 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x200xf32>, tensor<f32>) -> tensor<f32>
      %2 = stablehlo.reduce(%b init: %1) applies stablehlo.add across dimensions = [0, 1] : (tensor<100x1xf32>, tensor<f32>) -> tensor<f32>
      %3 = stablehlo.reduce(%d init: %2) applies stablehlo.add across dimensions = [0, 1] : (tensor<10x1xf32>, tensor<f32>) -> tensor<f32>
      %4 = stablehlo.reduce(%y init: %3) applies stablehlo.add across dimensions = [0, 1] : (tensor<100x200xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %j, %4 : tensor<i32>, tensor<f32>
    }
  %five = stablehlo.constant dense<5> : tensor<i32>
  %5:2 = stablehlo.while(%i = %zero, %c = %0#1) : tensor<i32>, tensor<f32> attributes {lamina.trip_count = 5 : i64}
    cond {
      %l = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.dynamic_slice %w, %zero, %i, sizes = [100, 1] : (tensor<100x200xf32>, tensor<i32>, tensor<i32>) -> tensor<100x1xf32>
      %6 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<100x1xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %j, %6 : tensor<i32>, tensor<f32>
    }
  return %5#1 : tensor<f32>
}
