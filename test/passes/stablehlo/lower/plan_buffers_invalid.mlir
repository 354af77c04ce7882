// RUN: %lamina-opt %s --split-input-file --verify-diagnostics --pass-pipeline=stablehlo-plan-buffers

module @dynamic {
  // expected-error@+1 {{[func] has a value of type tensor<?xf32>, whose size is not known}}
  func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    return %x : tensor<?xf32>
  }
}

// -----

module @not_fused {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{[sine] is not in a kernel, so it has no place in a plan}}
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
