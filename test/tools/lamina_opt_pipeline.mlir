// One pipeline mixes our passes and MLIR's; options by the names of the fields.
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-cse,func.func(canonicalize),stablehlo-fuse{max-ops=1 max-plain=1}' | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='builtin.module(stablehlo-cse,func.func(canonicalize),stablehlo-fuse{max-ops=1 max-plain=1})' | FileCheck %s
// RUN: %lamina-opt %s --stablehlo-cse --canonicalize '--stablehlo-fuse=max-ops=1 max-plain=1' | FileCheck %s
// RUN: %lamina-opt - --stablehlo-cse --canonicalize '--stablehlo-fuse=max-ops=1 max-plain=1' -o %t < %s && FileCheck %s < %t

// CHECK: func.func @main
// CHECK-NEXT: %[[A:.*]] = call @fused_add_0(%arg0, %arg1)
// CHECK-NEXT: %[[B:.*]] = call @fused_multiply_0(%[[A]])
// CHECK-NEXT: return %[[B]]
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1 = stablehlo.add %y, %x : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
