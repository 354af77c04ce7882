// RUN: %lamina-opt %s --stablehlo-legalize-ops=only=unsigned-operands | FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK: stablehlo.convert %arg0 : (tensor<2x3xui8>) -> tensor<2x3xi32>
// CHECK: stablehlo.convert %arg1 : (tensor<3xi8>) -> tensor<3xi32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2xi32>
func.func @product(%x: tensor<2x3xui8>, %y: tensor<3xi8>) -> tensor<2xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xui8>, tensor<3xi8>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// CHECK-LABEL: func.func @convolution
// CHECK-COUNT-2: stablehlo.convert {{.*}} -> tensor<{{.*}}xi64>
// CHECK: stablehlo.convolution
func.func @convolution(%x: tensor<1x2x1xui4>, %w: tensor<1x1x1xui4>) -> tensor<1x2x1xi64> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x1xui4>, tensor<1x1x1xui4>) -> tensor<1x2x1xi64>
  return %0 : tensor<1x2x1xi64>
}

// An operand of the result's type stays as it is.
// CHECK-LABEL: func.func @one_of_two
// CHECK: %[[WIDE:.*]] = stablehlo.convert %arg0
// CHECK-NEXT: stablehlo.dot_general %[[WIDE]], %arg1
func.func @one_of_two(%x: tensor<2x3xui8>, %y: tensor<3xui32>) -> tensor<2xui32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xui8>, tensor<3xui32>) -> tensor<2xui32>
  return %0 : tensor<2xui32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: stablehlo.convert
func.func @left_alone(%x: tensor<3xui8>, %y: tensor<3xi8>) -> (tensor<ui8>, tensor<f32>, tensor<i32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<3xui8>, tensor<3xui8>) -> tensor<ui8>
  %1 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<3xui8>, tensor<3xui8>) -> tensor<f32>
  %2 = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<3xi8>, tensor<3xi8>) -> tensor<i32>
  return %0, %1, %2 : tensor<ui8>, tensor<f32>, tensor<i32>
}
