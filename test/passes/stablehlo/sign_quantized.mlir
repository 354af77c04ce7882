// RUN: %lamina-opt %s --stablehlo-sign-quantized | FileCheck %s

// Callers hold unsigned integers.
// CHECK: func.func @main(%arg0: tensor<2xui8>) -> tensor<2xui8>
// CHECK: stablehlo.convert %arg0 : (tensor<2xui8>) -> tensor<2xf32>
// CHECK: stablehlo.uniform_quantize {{.*}} -> tensor<2x!quant.uniform<i16<0:255>:f32, 2.500000e-01:128>>
// CHECK: value = dense<[200, 3]> : tensor<2xi16>
// CHECK: stablehlo.add {{.*}} : tensor<2x!quant.uniform<i16<0:255>:f32, 2.500000e-01:128>>
// CHECK: stablehlo.uniform_dequantize
// CHECK: stablehlo.round_nearest_even
// CHECK: stablehlo.convert {{.*}} -> tensor<2xui8>
func.func @main(%x: tensor<2x!quant.uniform<u8:f32, 0.25:128>>) -> tensor<2x!quant.uniform<u8:f32, 0.25:128>> {
  %c = stablehlo.constant() {value = dense<[-56, 3]> : tensor<2xi8>} : () -> tensor<2x!quant.uniform<u8:f32, 0.25:128>>
  %0 = stablehlo.add %x, %c : tensor<2x!quant.uniform<u8:f32, 0.25:128>>
  return %0 : tensor<2x!quant.uniform<u8:f32, 0.25:128>>
}

// CHECK-LABEL: func.func @by_axis
// CHECK: !quant.uniform<i16<0:255>:f32:0, {5.000000e-01:1,2.000000e+00:200}>
func.func @by_axis(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<u8:f32:0, {0.5:1, 2.0:200}>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<u8:f32:0, {0.5:1, 2.0:200}>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @signed
// CHECK-SAME: %arg0: tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
func.func @signed(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
