// RUN: %lamina-opt %s --split-input-file --verify-diagnostics --pass-pipeline=stablehlo-check-supported

func.func public @custom(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{[custom_call] calls @my_library, and this build has no function of that name}}
  %0 = stablehlo.custom_call @my_library(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func public @inside_a_loop(%x: tensor<i1>) -> tensor<i1> {
  %0 = stablehlo.while(%a = %x) : tensor<i1> cond {
    stablehlo.return %a : tensor<i1>
  } do {
    // expected-error@+1 {{[create_token] orders side effects}}
    %1 = stablehlo.create_token : !stablehlo.token
    stablehlo.return %a : tensor<i1>
  }
  return %0 : tensor<i1>
}

// -----

func.func public @token() -> !stablehlo.token {
  // expected-error@+1 {{[create_token] orders side effects, and compiled programs can't talk to the host while they run}}
  %0 = stablehlo.create_token : !stablehlo.token
  return %0 : !stablehlo.token
}

// -----

// expected-error@+1 {{[func] has a value of type tensor<?xf32>, whose size depends on values}}
func.func public @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

func.func public @foreign(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{[addf] is no StableHLO operation}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{[call] calls @f, which is recursive}}
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
