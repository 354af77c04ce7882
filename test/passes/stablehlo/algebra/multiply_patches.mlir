// RUN: %lamina-opt %s --stablehlo-multiply-patches | FileCheck %s

// What each of four elements sees of an image with zeros around it; the kernel stays as it lies.
// CHECK-LABEL: func.func @small_image
func.func @small_image(%x: tensor<1x512x7x7xf32>, %k: tensor<512x512x2x2xf32>) -> tensor<1x512x4x4xf32> {
  // CHECK: %[[P:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0]
  // CHECK-NEXT: %[[A:.*]] = stablehlo.slice %[[P]] [0:1, 0:512, 0:7:2, 0:7:2]
  // CHECK: stablehlo.slice %[[P]] [0:1, 0:512, 0:7:2, 2:9:2]
  // CHECK: stablehlo.slice %[[P]] [0:1, 0:512, 2:9:2, 0:7:2]
  // CHECK: stablehlo.slice %[[P]] [0:1, 0:512, 2:9:2, 2:9:2]
  // CHECK: stablehlo.concatenate {{.*}}, dim = 2 {{.*}} -> tensor<1x512x4x4x4xf32>
  // CHECK: %[[K:.*]] = stablehlo.reshape %arg1 {{.*}} -> tensor<512x2048xf32>
  // CHECK: %[[S:.*]] = stablehlo.reshape {{.*}} -> tensor<2048x16xf32>
  // CHECK: %[[C:.*]] = stablehlo.dot_general %[[K]], %[[S]], contracting_dims = [1] x [0]
  // CHECK: stablehlo.reshape %[[C]] {{.*}} -> tensor<1x512x4x4xf32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x512x7x7xf32>, tensor<512x512x2x2xf32>) -> tensor<1x512x4x4xf32>
  return %0 : tensor<1x512x4x4xf32>
}

// One element of the kernel: several images come to lie behind each other, and their features apart after it.
// CHECK-LABEL: func.func @one_element
// CHECK: stablehlo.transpose {{.*}}, dims = [1, 2, 0, 3, 4]
// CHECK: stablehlo.dot_general {{.*}} (tensor<1024x256xf32>, tensor<256x196xf32>) -> tensor<1024x196xf32>
// CHECK: stablehlo.transpose {{.*}}, dims = [1, 0, 2, 3]
func.func @one_element(%x: tensor<4x256x7x7xf32>, %k: tensor<1024x256x1x1xf32>) -> tensor<4x1024x7x7xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x256x7x7xf32>, tensor<1024x256x1x1xf32>) -> tensor<4x1024x7x7xf32>
  return %0 : tensor<4x1024x7x7xf32>
}

// Left alone: more places, groups, a kernel that lies otherwise, little work.
// CHECK-LABEL: func.func @as_they_are
// CHECK-NOT: stablehlo.dot_general
func.func @as_they_are(%x: tensor<8x256x14x14xf32>, %k: tensor<256x256x3x3xf32>, %g: tensor<512x128x1x1xf32>,
    %y: tensor<1x256x4x4xf32>, %l: tensor<1x1x256x256xf32>, %z: tensor<1x8x4x4xf32>, %p: tensor<64x8x1x1xf32>)
    -> (tensor<8x256x14x14xf32>, tensor<1x512x4x4xf32>, tensor<1x256x4x4xf32>, tensor<1x64x4x4xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x256x14x14xf32>, tensor<256x256x3x3xf32>) -> tensor<8x256x14x14xf32>
  %1 = stablehlo.convolution(%y, %g) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x256x4x4xf32>, tensor<512x128x1x1xf32>) -> tensor<1x512x4x4xf32>
  %2 = stablehlo.convolution(%y, %l) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x256x4x4xf32>, tensor<1x1x256x256xf32>) -> tensor<1x256x4x4xf32>
  %3 = stablehlo.convolution(%z, %p) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4x4xf32>, tensor<64x8x1x1xf32>) -> tensor<1x64x4x4xf32>
  return %0, %1, %2, %3 : tensor<8x256x14x14xf32>, tensor<1x512x4x4xf32>, tensor<1x256x4x4xf32>, tensor<1x64x4x4xf32>
}
