// RUN: %lamina-opt %s --stablehlo-legalize-ops | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: %lamina-opt %s --stablehlo-legalize-ops=only=booleans,erf | FileCheck %s --check-prefixes=CHECK,SOME
// RUN: not %lamina-opt %s --stablehlo-legalize-ops=only=sums 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: knows no rule 'sums'; there are erf, booleans,

// Several rules in one walk. (Each has its tests in rules/.)
// CHECK-LABEL: func.func @several
// CHECK: stablehlo.or
// ALL: stablehlo.dot_general {{.*}} -> tensor<f32>
// SOME: stablehlo.dot_general {{.*}} -> tensor<bf16>
// ALL-NOT: stablehlo.optimization_barrier
// SOME: stablehlo.optimization_barrier
func.func @several(%x: tensor<4xi1>, %y: tensor<4xbf16>) -> (tensor<4xi1>, tensor<bf16>) {
  %0 = stablehlo.add %x, %x : tensor<4xi1>
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<bf16>
  %2 = stablehlo.optimization_barrier %1 : tensor<bf16>
  return %0, %2 : tensor<4xi1>, tensor<bf16>
}

// An operand that one rule widens is what the next one looks at.
// CHECK-LABEL: func.func @one_after_the_other
// ALL: %[[WIDE:.*]] = stablehlo.convert %arg0 : (tensor<1x2x1xui4>) -> tensor<1x2x1xui8>
// ALL: stablehlo.bitcast_convert %[[WIDE]]
// ALL: stablehlo.convolution{{.*}} -> tensor<1x2x1xi8>
func.func @one_after_the_other(%x: tensor<1x2x1xui4>, %w: tensor<1x1x1xui4>) -> tensor<1x2x1xui8> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x1xui4>, tensor<1x1x1xui4>) -> tensor<1x2x1xui8>
  return %0 : tensor<1x2x1xui8>
}

// What no rule is for stays.
// CHECK-LABEL: func.func @others
// CHECK-NEXT: stablehlo.add
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: return
func.func @others(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}
