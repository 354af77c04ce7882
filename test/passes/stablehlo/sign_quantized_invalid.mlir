// RUN: %lamina-opt %s --stablehlo-sign-quantized --split-input-file --verify-diagnostics

func.func @main(%x: tensor<2xbf16>) -> tensor<2x!quant.uniform<i8:bf16, 0.5>> {
  // expected-error @+1 {{[uniform_quantize] has quantised values that stand for bf16}}
  %0 = stablehlo.uniform_quantize %x : (tensor<2xbf16>) -> tensor<2x!quant.uniform<i8:bf16, 0.5>>
  return %0 : tensor<2x!quant.uniform<i8:bf16, 0.5>>
}

// -----

func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %z: tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i8:f32, 0.5>> {
  // expected-error @+1 {{[reduce] is not supported on quantised values}}
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<!quant.uniform<i8:f32, 0.5>>
}
