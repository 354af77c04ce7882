func.func @main(%x: tensor<?x4xbf16>, %y: tensor<?x4xbf16>) -> tensor<?x4xbf16> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xbf16>) -> tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.concatenate %m, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %c = stablehlo.constant dense<1.5> : tensor<bf16>
  %b = stablehlo.dynamic_broadcast_in_dim %c, %s, dims = [] : (tensor<bf16>, tensor<2xi32>) -> tensor<?x4xbf16>
  %0 = stablehlo.add %x, %b : tensor<?x4xbf16>
  %1 = stablehlo.multiply %0, %y : tensor<?x4xbf16>
  return %1 : tensor<?x4xbf16>
}
