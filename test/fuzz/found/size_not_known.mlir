func.func @main(%x: tensor<1xcomplex<f32>>, %q: tensor<4xf32>) -> (tensor<?xcomplex<f32>>, tensor<4xf32>, tensor<1xf32>) {
  %r = stablehlo.real %x : (tensor<1xcomplex<f32>>) -> tensor<1xf32>
  %f = stablehlo.fft %r, type = RFFT, length = [1] : (tensor<1xf32>) -> tensor<?xcomplex<f32>>
  %n = stablehlo.uniform_quantize %q : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  %d = stablehlo.uniform_dequantize %n : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4xf32>
  %c = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
  %t = stablehlo.tuple %r, %c : tuple<tensor<1xf32>, tensor<i64>>
  %g = stablehlo.get_tuple_element %t[0] : (tuple<tensor<1xf32>, tensor<i64>>) -> tensor<1xf32>
  %e = stablehlo.exponential %g {lamina.note = ["a", 1 : i64]} : tensor<1xf32>
  return %f, %d, %e : tensor<?xcomplex<f32>>, tensor<4xf32>, tensor<1xf32>
}
