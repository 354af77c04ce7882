// RUN: %lamina-opt %s --stablehlo-define-quantized | FileCheck %s

// Callers hold stored integers.
// CHECK: func.func @main(%arg0: tensor<2xui8>) -> tensor<2xui8>
// CHECK: %[[C:.*]] = stablehlo.constant dense<[200, 3]> : tensor<2xui8>
// CHECK: stablehlo.convert %arg0 : (tensor<2xui8>) -> tensor<2xi32>
// CHECK: stablehlo.add {{.*}} : tensor<2xf32>
// CHECK: stablehlo.clamp
// CHECK-NEXT: stablehlo.round_nearest_even
// CHECK-NEXT: stablehlo.convert {{.*}} -> tensor<2xui8>
func.func @main(%x: tensor<2x!quant.uniform<u8:f32, 0.25:128>>) -> tensor<2x!quant.uniform<u8:f32, 0.25:128>> {
  %c = stablehlo.constant() {value = dense<[-56, 3]> : tensor<2xi8>} : () -> tensor<2x!quant.uniform<u8:f32, 0.25:128>>
  %0 = stablehlo.add %x, %c : tensor<2x!quant.uniform<u8:f32, 0.25:128>>
  return %0 : tensor<2x!quant.uniform<u8:f32, 0.25:128>>
}

// CHECK-LABEL: func.func @by_axis
// CHECK: stablehlo.constant dense<[5.000000e-01, 2.000000e+00]> : tensor<2xbf16>
// CHECK: stablehlo.transpose {{.*}} : (tensor<3x2xi4>) -> tensor<2x3xi4>
func.func @by_axis(%x: tensor<3x2xbf16>) -> tensor<2x3xbf16> {
  %0 = stablehlo.uniform_quantize %x : (tensor<3x2xbf16>) -> tensor<3x2x!quant.uniform<i4:bf16:1, {0.5:1, 2.0:2}>>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x2x!quant.uniform<i4:bf16:1, {0.5:1, 2.0:2}>>) -> tensor<2x3x!quant.uniform<i4:bf16:0, {0.5:1, 2.0:2}>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<2x3x!quant.uniform<i4:bf16:0, {0.5:1, 2.0:2}>>) -> tensor<2x3xbf16>
  return %2 : tensor<2x3xbf16>
}

// CHECK-LABEL: func.func @hybrid
// CHECK: stablehlo.dot_general %arg0, {{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
func.func @hybrid(%x: tensor<2x3xf32>, %y: tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Order is that of the stored integers.
// CHECK-LABEL: func.func @largest
// CHECK: stablehlo.reduce{{.*}} applies stablehlo.maximum {{.*}} : (tensor<2xi8>, tensor<i8>) -> tensor<i8>
func.func @largest(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %z: tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i8:f32, 0.5>> {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<!quant.uniform<i8:f32, 0.5>>
}
