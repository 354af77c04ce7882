// Updates of one place, of views, of slices that are put back.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-simplify{fold=true},stablehlo-cse,stablehlo-dce' | FileCheck %s

// CHECK-LABEL: func.func @by_one_index
// CHECK-NOT: scatter
// CHECK: %[[OLD:.*]] = stablehlo.dynamic_slice %arg0
// CHECK: %[[SUM:.*]] = stablehlo.add %[[OLD]]
// CHECK: %[[NEW:.*]] = stablehlo.select %{{.*}}, %[[SUM]], %[[OLD]]
// CHECK: stablehlo.dynamic_update_slice %arg0, %[[NEW]]
func.func @by_one_index(%x: tensor<8x6xf32>, %i: tensor<1xi32>, %row: tensor<6xf32>) -> tensor<8x6xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %row) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @of_a_slice
// CHECK-NOT: stablehlo.slice
// CHECK: %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1
// CHECK: return %[[NEW]]
func.func @of_a_slice(%x: tensor<8x6xf32>, %row: tensor<1x4xf32>, %i: tensor<i32>) -> tensor<8x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.slice %x [0:8, 1:5] : (tensor<8x6xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.dynamic_update_slice %0, %row, %i, %zero : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  %2 = stablehlo.dynamic_update_slice %x, %1, %zero, %one : (tensor<8x6xf32>, tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @of_the_transposed
// CHECK: %[[COLUMN:.*]] = stablehlo.{{transpose|reshape}} %arg1
// CHECK: %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0, %[[COLUMN]], %{{.*}}, %arg2
// CHECK: return %[[NEW]]
func.func @of_the_transposed(%x: tensor<8x6xf32>, %row: tensor<1x8xf32>, %i: tensor<i32>) -> tensor<8x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = stablehlo.dynamic_update_slice %0, %row, %i, %zero : (tensor<6x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @of_the_reversed
// CHECK-NOT: stablehlo.reverse %arg0
// CHECK: %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0
// CHECK: return %[[NEW]]
func.func @of_the_reversed(%x: tensor<8x6xf32>, %row: tensor<1x6xf32>, %i: tensor<i32>) -> tensor<8x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8x6xf32>
  %1 = stablehlo.dynamic_update_slice %0, %row, %i, %zero : (tensor<8x6xf32>, tensor<1x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  %2 = stablehlo.reverse %1, dims = [0] : tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// bf16 lies in f32, but not the other way: that is left alone.
// CHECK-LABEL: func.func @of_the_converted
// CHECK: %[[NARROW:.*]] = stablehlo.convert %arg1
// CHECK: %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0, %[[NARROW]]
// CHECK: return %[[NEW]]
// CHECK-LABEL: func.func @rounded
// CHECK: stablehlo.convert %arg0
func.func @of_the_converted(%x: tensor<8xbf16>, %v: tensor<1xf32>, %i: tensor<i32>) -> tensor<8xbf16> {
  %0 = stablehlo.convert %x : (tensor<8xbf16>) -> tensor<8xf32>
  %1 = stablehlo.dynamic_update_slice %0, %v, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
  %2 = stablehlo.convert %1 : (tensor<8xf32>) -> tensor<8xbf16>
  return %2 : tensor<8xbf16>
}
func.func @rounded(%x: tensor<8xf32>, %v: tensor<1xbf16>, %i: tensor<i32>) -> tensor<8xf32> {
  %0 = stablehlo.convert %x : (tensor<8xf32>) -> tensor<8xbf16>
  %1 = stablehlo.dynamic_update_slice %0, %v, %i : (tensor<8xbf16>, tensor<1xbf16>, tensor<i32>) -> tensor<8xbf16>
  %2 = stablehlo.convert %1 : (tensor<8xbf16>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
