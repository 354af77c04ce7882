// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s

// CHECK-LABEL: func.func @wider
// CHECK: %[[X:.*]] = stablehlo.convert %arg0 : (tensor<4xf16>) -> tensor<4xf32>
// CHECK: %[[I:.*]] = stablehlo.convert %arg1 : (tensor<f16>) -> tensor<f32>
// CHECK: stablehlo.reduce(%[[X]] init: %[[I]])
func.func @wider(%x: tensor<4xf16>, %init: tensor<f16>) -> tensor<f32> {
  %0 = "stablehlo.reduce"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf16>, tensor<f16>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @barrier
// CHECK-NEXT: return %arg0
func.func @barrier(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @same
// CHECK-NOT: stablehlo.convert
func.func @same(%x: tensor<4xf32>, %init: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Rounded once, not at each step.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[X:.*]] = stablehlo.convert %arg0 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = stablehlo.reduce(%[[X]] init: {{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: stablehlo.convert %[[S]] : (tensor<4xf32>) -> tensor<4xbf16>
func.func @narrow(%x: tensor<4x8xbf16>, %init: tensor<bf16>) -> tensor<4xbf16> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @narrow_windows
// CHECK: "stablehlo.reduce_window"({{.*}}window_dimensions = array<i64: 2>
// CHECK: stablehlo.maximum {{.*}} : tensor<f32>
// CHECK: (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
func.func @narrow_windows(%x: tensor<8xf16>, %init: tensor<f16>) -> tensor<7xf16> {
  %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    %1 = stablehlo.maximum %a, %b : tensor<f16>
    stablehlo.return %1 : tensor<f16>
  }) : (tensor<8xf16>, tensor<f16>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
}

// Pairs that lie side by side: a sum of each part.
// CHECK-LABEL: func.func @complex_rows
// CHECK: %[[RE:.*]] = stablehlo.real %arg0
// CHECK: stablehlo.reduce(%[[RE]] init: {{.*}} across dimensions = [1] : (tensor<4x8xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1] : (tensor<4x8xf32>
// CHECK: stablehlo.complex
func.func @complex_rows(%x: tensor<4x8xcomplex<f32>>, %init: tensor<complex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x8xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// What is summed is made in parts, too.
// CHECK-LABEL: func.func @complex_products
// CHECK: %[[A:.*]] = stablehlo.multiply %{{.*}} : tensor<4x8xf32>
// CHECK: %[[B:.*]] = stablehlo.multiply %{{.*}} : tensor<4x8xf32>
// CHECK: %[[RE:.*]] = stablehlo.subtract %[[A]], %[[B]] : tensor<4x8xf32>
// CHECK: stablehlo.reduce(%[[RE]] init: {{.*}} across dimensions = [1] : (tensor<4x8xf32>
// CHECK: %[[IM:.*]] = stablehlo.add {{.*}} : tensor<4x8xf32>
// CHECK: stablehlo.reduce(%[[IM]] init: {{.*}} across dimensions = [1] : (tensor<4x8xf32>
func.func @complex_products(%x: tensor<4x8xcomplex<f32>>, %y: tensor<8xcomplex<f32>>, %init: tensor<complex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  %1 = stablehlo.multiply %x, %0 : tensor<4x8xcomplex<f32>>
  %2 = stablehlo.reduce(%1 init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x8xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  return %2 : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @complex_columns
// CHECK-NEXT: stablehlo.reduce(%arg0
func.func @complex_columns(%x: tensor<4x8xcomplex<f32>>, %init: tensor<complex<f32>>) -> tensor<8xcomplex<f32>> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<4x8xcomplex<f32>>, tensor<complex<f32>>) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// Across no dimension: each element is combined with the initial value.
// CHECK-LABEL: func.func @across_none
// CHECK: %[[ROW:.*]] = stablehlo.reshape %arg0 : (tensor<3xi32>) -> tensor<1x3xi32>
// CHECK: stablehlo.reduce(%[[ROW]] init: %arg1) applies stablehlo.add across dimensions = [0]
func.func @across_none(%x: tensor<3xi32>, %init: tensor<i32>) -> tensor<3xi32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [] : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
