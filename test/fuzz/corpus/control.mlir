func.func @main(%x: tensor<5xi32>, %n: tensor<i32>) -> (tensor<5xi32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<5xi32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %p = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %w = "stablehlo.if"(%p) ({
        %a = stablehlo.add %v, %v : tensor<5xi32>
        stablehlo.return %a : tensor<5xi32>
      }, {
        stablehlo.return %v : tensor<5xi32>
      }) : (tensor<i1>) -> tensor<5xi32>
      %u = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.dynamic_update_slice %w, %u, %i : (tensor<5xi32>, tensor<1xi32>, tensor<i32>) -> tensor<5xi32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, tensor<5xi32>
    }
  return %r#1, %r#0 : tensor<5xi32>, tensor<i32>
}
