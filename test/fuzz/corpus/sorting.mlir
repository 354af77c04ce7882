#loc0 = loc("model.py":1:1)
#loc1 = loc(callsite("f"(#loc0) at "g"("model.py":9:2)))
module {
  func.func @main(%x: tensor<7xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<2xui32>) {
    %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<7xf32>) -> tensor<7xf32> loc(#loc1)
    %1 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<7xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<7xf32>
    %k = stablehlo.constant dense<[1, 4294967295]> : tensor<2xui32>
    %bits = stablehlo.shift_right_logical %k, %k : tensor<2xui32>
    return %0, %1, %bits : tensor<7xf32>, tensor<7xf32>, tensor<2xui32>
  } loc(#loc1)
}
