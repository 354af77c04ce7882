// RUN: %lamina-opt %s --stablehlo-find-extremes-first --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK: %[[I:.*]] = stablehlo.iota dim = 1 : tensor<4x64xi32>
// CHECK: %[[M:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[S:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [0]
// CHECK: %[[E:.*]] = stablehlo.compare {{ *}}EQ, %arg0, %[[S]]
// CHECK: %[[W:.*]] = stablehlo.select %[[E]], %[[I]], %{{.*}}
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[W]] init: %{{.*}}) applies stablehlo.minimum across dimensions = [1]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<4x64xi32>) -> tensor<4xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xi32>, tensor<4x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<i32>
    %8 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<i32>, tensor<i32>
  }
  return %1#1 : tensor<4xi32>
}

// -----

// The last of equal ones is another rule, as is the element itself.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.reduce({{.*}}), (
// CHECK: stablehlo.reduce({{.*}}), (
func.func @others(%x: tensor<4x64xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xi32>, tensor<4x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<i32>
    %8 = stablehlo.select %2, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<i32>, tensor<i32>
  }
  %w:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xi32>, tensor<4x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<i32>
    %8 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<i32>, tensor<i32>
  }
  return %1#1, %w#0 : tensor<4xi32>, tensor<4xi32>
}
