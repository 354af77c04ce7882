func.func @main(%x: tensor<6x4xf32>, %z: tensor<f32>, %at: tensor<2x1xi32>) -> (tensor<2x4xf32>, tensor<9x4xf32>, tensor<3xf32>) {
  %0 = stablehlo.pad %x, %z, low = [1, 0], high = [2, 0], interior = [0, 0] : (tensor<6x4xf32>, tensor<f32>) -> tensor<9x4xf32>
  %1 = "stablehlo.gather"(%x, %at) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 4>} : (tensor<6x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %3 = stablehlo.reverse %2, dims = [0, 1] : tensor<4x6xf32>
  %4 = stablehlo.slice %3 [1:4:2, 0:6:3] : (tensor<4x6xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.concatenate %4, %4, dim = 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %6 = stablehlo.iota dim = 0 : tensor<3xf32>
  %7 = stablehlo.reduce(%5 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %9 = stablehlo.add %6, %8 : tensor<3xf32>
  return %1, %0, %9 : tensor<2x4xf32>, tensor<9x4xf32>, tensor<3xf32>
}
