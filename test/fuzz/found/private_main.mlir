module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func private @main(%arg0: tensor<4x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3xf32>) -> (tensor<4x3xf32> {jax.result_infounit= "result[0]"}) {
    %cst = stablehlo.constant dense<[1.0, -2.5, 0x7F800000]> : tensor<3xf32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x3xf32> loc("add"("model.py":3:5))
    %2 = call @tanh(%1) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<4x3xf32>
    return %4 : tensor<4x3xf32>
  }
  func.func private @tanh(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
