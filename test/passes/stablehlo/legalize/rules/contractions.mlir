// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @bf16
// CHECK-COUNT-2: stablehlo.convert {{.*}} -> tensor<{{.*}}xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x4xf32>
// CHECK: stablehlo.convert {{.*}} : (tensor<2x4xf32>) -> tensor<2x4xbf16>
func.func @bf16(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<2x4xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// CHECK-LABEL: func.func @wider_result
// CHECK-COUNT-2: stablehlo.convert
// CHECK: stablehlo.dot_general
// CHECK-NOT: stablehlo.convert
func.func @wider_result(%x: tensor<2x3xf16>, %y: tensor<3x4xf16>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @f32
// CHECK-NOT: stablehlo.convert
func.func @f32(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @algorithm
// CHECK-NOT: algorithm
func.func @algorithm(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @unsigned_convolution
// CHECK: stablehlo.bitcast_convert %arg0 : (tensor<1x2x2xui8>) -> tensor<1x2x2xi8>
// CHECK: stablehlo.convolution{{.*}} -> tensor<1x2x2xi8>
// CHECK: stablehlo.bitcast_convert {{.*}} -> tensor<1x2x2xui8>
func.func @unsigned_convolution(%x: tensor<1x2x2xui8>, %w: tensor<1x1x2xui8>) -> tensor<1x2x2xui8> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x2xui8>, tensor<1x1x2xui8>) -> tensor<1x2x2xui8>
  return %0 : tensor<1x2x2xui8>
}
