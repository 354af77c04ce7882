// RUN: %lamina-opt %s --stablehlo-dequantize-contractions | FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK-COUNT-2: stablehlo.uniform_dequantize {{.*}} -> tensor<{{.*}}xf32>
// CHECK: %[[P:.*]] = stablehlo.dot_general {{.*}} -> tensor<2xf32>
// CHECK: stablehlo.uniform_quantize %[[P]]
func.func @product(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, %y: tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x!quant.uniform<i8:f32, 0.25:1>> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x!quant.uniform<i8:f32, 0.25:1>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 0.25:1>>
}

// CHECK-LABEL: func.func @hybrid
// CHECK-NOT: stablehlo.uniform_dequantize
func.func @hybrid(%x: tensor<2x3xf32>, %y: tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
