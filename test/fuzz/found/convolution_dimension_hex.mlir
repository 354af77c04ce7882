func.func @main(%x: tensor<1x2x8xf32>, %k: tensor<3x2x3xf32>, %w: tensor<8x5xf32>) -> (tensor<1x3x8xf32>, tensor<1x2x5xf32>, tensor<1x2x8xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0x7F800000]x[o, i, 0x7F800000]->[b, f, 0x7F800000], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1]} {batch_group_count = 1 : f8E4M3FN, feature_group_count = 1 : f8E4M3FN} : (tensor<1x2x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x8xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0x7F800000], precision = [DEFAULT, DEFAULT] : (tensor<1x2x8xf32>, tensor<8x5xf32>) -> tensor<1x2x5xf32>
  %c = stablehlo.constant dense<0x7F800000xFF800000> : tensor<f32>
  %2 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<f8E4M3FN: 1, 1, 3>, window_strides = array<f8E4M3FN: 1, 1, 1>, padding = dense<[[0x7F800000, 0x7F800000], [0x7F800000, 0x7F800000], [1, 1]]> : tensor<3x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<1x2x8xf32>, tensor<f32>) -> tensor<1x2x8xf32>
  return %0, %1, %2 : tensor<1x3x8xf32>, tensor<1x2x5xf32>, tensor<1x2x8xf32>
}
