// Slices of what is put together, pads that cut off, updates that are read again.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-simplify{fold=true},stablehlo-dce' | FileCheck %s

// CHECK-LABEL: func.func @of_pads
// CHECK-DAG: stablehlo.slice %arg0 [1:3]
// CHECK-DAG: %[[PART:.*]] = stablehlo.slice %arg0 [0:2]
// CHECK-DAG: stablehlo.pad %[[PART]], %{{.*}}, low = [2], high = [0]
// CHECK-DAG: stablehlo.constant dense<1.000000e+00> : tensor<3xf32>
// CHECK-NOT: stablehlo.pad
func.func @of_pads(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>, tensor<3xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %one, low = [4], high = [4], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<12xf32>
  %1 = stablehlo.pad %x, %one, low = [4], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %inside = stablehlo.slice %0 [5:7] : (tensor<12xf32>) -> tensor<2xf32>
  %across = stablehlo.slice %1 [2:6] : (tensor<8xf32>) -> tensor<4xf32>
  %outside = stablehlo.slice %0 [9:12] : (tensor<12xf32>) -> tensor<3xf32>
  return %inside, %across, %outside : tensor<2xf32>, tensor<4xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @pads_that_cut_off
// CHECK: stablehlo.slice %arg0 [1:4, 0:3]
// CHECK: %[[LEFT:.*]] = stablehlo.slice %arg0 [0:4, 2:4]
// CHECK: stablehlo.pad %[[LEFT]], %{{.*}}, low = [0, 0], high = [0, 2], interior = [0, 0]
// CHECK: stablehlo.pad %arg0, %{{.*}}, low = [-1, 0], high = [0, 0], interior = [1, 0]
func.func @pads_that_cut_off(%x: tensor<4x4xf32>) -> (tensor<3x3xf32>, tensor<4x4xf32>, tensor<6x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [-1, 0], high = [0, -1], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x3xf32>
  %1 = stablehlo.pad %x, %zero, low = [0, -2], high = [0, 2], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = stablehlo.pad %x, %zero, low = [-1, 0], high = [0, 0], interior = [1, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  return %0, %1, %2 : tensor<3x3xf32>, tensor<4x4xf32>, tensor<6x4xf32>
}

// What an unrolled loop has stacked is read where it came from; across two updates it is not.
// CHECK-LABEL: func.func @of_updates
// CHECK-DAG: %[[FIRST:.*]] = stablehlo.slice %arg1 [0:1, 1:2]
// CHECK-DAG: %[[BEFORE:.*]] = stablehlo.slice %arg0 [3:4, 0:2]
// CHECK-DAG: %[[BOTH:.*]] = stablehlo.slice %{{.*}} [0:2, 0:2]
// CHECK: return %[[FIRST]], %arg2, %[[BEFORE]], %[[BOTH]]
func.func @of_updates(%x: tensor<4x2xf32>, %a: tensor<1x2xf32>, %b: tensor<1x2xf32>)
    -> (tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c0, %c0 : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  %1 = stablehlo.dynamic_update_slice %0, %b, %c1, %c0 : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  %first = stablehlo.slice %1 [0:1, 1:2] : (tensor<4x2xf32>) -> tensor<1x1xf32>
  %second = stablehlo.slice %1 [1:2, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>
  %before = stablehlo.slice %1 [3:4, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>
  %both = stablehlo.slice %1 [0:2, 0:2] : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %first, %second, %before, %both : tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>
}

// An update at a place that is not known may be anywhere.
// CHECK-LABEL: func.func @somewhere
// CHECK: stablehlo.slice %{{[0-9]+}} [0:1, 0:2]
func.func @somewhere(%x: tensor<4x2xf32>, %a: tensor<1x2xf32>, %i: tensor<i32>) -> tensor<1x2xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %i, %c0 : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>
  return %1 : tensor<1x2xf32>
}

// A reshape that leaves out the ones of a slice of an argument stays where it is: the argument is read in
// that shape (`stablehlo-raise-views`).
// CHECK-LABEL: func.func @reshaped_slice
func.func @reshaped_slice(%x: tensor<2x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: stablehlo.slice
  // CHECK-NEXT: %[[R:.*]] = stablehlo.reshape {{.*}} -> tensor<8xf32>
  // CHECK-NEXT: %[[F:.*]] = stablehlo.floor %[[R]] : tensor<8xf32>
  // CHECK-NEXT: stablehlo.subtract %[[R]], %[[F]] : tensor<8xf32>
  %0 = stablehlo.slice %x [1:2, 0:8] : (tensor<2x8xf32>) -> tensor<1x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x8xf32>) -> tensor<8xf32>
  %2 = stablehlo.floor %1 : tensor<8xf32>
  %3 = stablehlo.subtract %1, %2 : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// What an update zeroed and a pad put back is an update, as gradients of updates are; with what is there, nothing.
// Zero is added still: it makes -0 positive.
// CHECK-LABEL: func.func @put_back
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00>
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %
// CHECK: %[[PART:.*]] = stablehlo.add %arg1, %
// CHECK: %[[UPDATED:.*]] = stablehlo.dynamic_update_slice %[[SUM]], %[[PART]]
// CHECK: %[[SAME:.*]] = stablehlo.add %arg2, %
// CHECK: %[[OTHER:.*]] = stablehlo.pad %arg1, %{{.*}}, low = [2]
// CHECK: %[[ELSEWHERE:.*]] = stablehlo.add
// CHECK: return %[[UPDATED]], %[[SAME]], %[[ELSEWHERE]]
func.func @put_back(%g: tensor<8xf32>, %u: tensor<3xf32>, %h: tensor<8xf32>, %k: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %at = stablehlo.constant dense<1> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dynamic_update_slice %g, %zeros, %at : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>
  %1 = stablehlo.pad %u, %zero, low = [1], high = [4], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  %3 = stablehlo.dynamic_update_slice %h, %zeros, %at : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>
  %4 = stablehlo.slice %h [1:4] : (tensor<8xf32>) -> tensor<3xf32>
  %5 = stablehlo.pad %4, %zero, low = [1], high = [4], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<8xf32>
  %6 = stablehlo.add %5, %3 : tensor<8xf32>
  %7 = stablehlo.dynamic_update_slice %k, %zeros, %at : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>
  %8 = stablehlo.pad %u, %zero, low = [2], high = [3], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<8xf32>
  %9 = stablehlo.add %7, %8 : tensor<8xf32>
  return %2, %6, %9 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
