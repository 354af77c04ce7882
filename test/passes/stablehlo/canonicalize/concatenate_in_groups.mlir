// RUN: %lamina-opt %s '--stablehlo-concatenate-in-groups=most=3' | FileCheck %s

// CHECK-LABEL: func.func public @seven
// CHECK: %[[A:.*]] = stablehlo.concatenate %arg0, %arg0, %arg1, dim = 1 : {{.*}} -> tensor<2x4xf32>
// CHECK: %[[B:.*]] = stablehlo.concatenate %arg1, %arg0, %arg1, dim = 1 : {{.*}} -> tensor<2x5xf32>
// CHECK: %[[C:.*]] = stablehlo.concatenate %[[A]], %[[B]], %arg0, dim = 1 : {{.*}} -> tensor<2x10xf32>
// CHECK: return %[[C]]
func.func public @seven(%x: tensor<2x1xf32>, %y: tensor<2x2xf32>) -> tensor<2x10xf32> {
  %0 = stablehlo.concatenate %x, %x, %y, %y, %x, %y, %x, dim = 1 : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x10xf32>
  return %0 : tensor<2x10xf32>
}

// Groups of groups, in a loop, too.
// CHECK-LABEL: func.func public @ten
// CHECK: stablehlo.while
// CHECK-COUNT-5: stablehlo.concatenate %{{.*}} -> tensor<{{[346]}}xi32>
// CHECK: stablehlo.concatenate %{{.*}} -> tensor<10xi32>
func.func public @ten(%x: tensor<1xi32>, %v: tensor<10xi32>, %p: tensor<i1>) -> tensor<10xi32> {
  %0 = stablehlo.while(%w = %v) : tensor<10xi32>
    cond {
      stablehlo.return %p : tensor<i1>
    } do {
      %1 = stablehlo.concatenate %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<10xi32>
      stablehlo.return %1 : tensor<10xi32>
    }
  return %0 : tensor<10xi32>
}

// CHECK-LABEL: func.func public @three
// CHECK-COUNT-1: stablehlo.concatenate
// CHECK-NOT: stablehlo.concatenate
func.func public @three(%x: tensor<1xi32>) -> tensor<3xi32> {
  %0 = stablehlo.concatenate %x, %x, %x, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
