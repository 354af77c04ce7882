// RUN: %lamina-opt %s --stablehlo-drop-tokens --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: token
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<0xi1>
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t, %t : !stablehlo.token
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %v = %u) : tensor<i32>, !stablehlo.token
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %o : tensor<i32>
    %w = stablehlo.after_all %v : !stablehlo.token
    stablehlo.return %j, %w : tensor<i32>, !stablehlo.token
  }
  return %r#0 : tensor<i32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.create_token
func.func @main() -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %r, %u = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %r : tensor<2xf32>
}
