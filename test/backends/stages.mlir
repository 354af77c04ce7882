// RUN: %python -m lamina.tools.lamina_compile %s --emit optimized | FileCheck %s --check-prefix=OPTIMIZED
// RUN: %python -m lamina.tools.lamina_compile %s --emit fused | FileCheck %s --check-prefix=FUSED
// RUN: %python -m lamina.tools.lamina_compile %s --emit planned | FileCheck %s --check-prefix=PLANNED
// RUN: %python -m lamina.tools.lamina_compile %s --emit linalg | FileCheck %s --check-prefix=LINALG
// RUN: %python -m lamina.tools.lamina_compile %s --emit llvm | FileCheck %s --check-prefix=LLVM
// RUN: %python -m lamina.tools.lamina_compile %s --emit asm | FileCheck %s --check-prefix=ASM
// RUN: %python -m lamina.tools.lamina_compile %s --emit manifest | FileCheck %s --check-prefix=MANIFEST

// One layer twice: its calls are inlined, equal kernels are one kernel, and the bias and relu are
// in the kernel of the product.

// OPTIMIZED: func.func public @main
// OPTIMIZED-NOT: call
// OPTIMIZED: stablehlo.dot_general
// OPTIMIZED: stablehlo.maximum
// OPTIMIZED: stablehlo.dot_general
// OPTIMIZED-NOT: func.func private

// FUSED: func.func public @main
// FUSED: %[[H:.*]] = call @[[LAYER:.*]](%arg0, %arg1, %arg2)
// FUSED-NEXT: %[[Y:.*]] = call @[[LAYER]](%[[H]], %arg1, %arg2)
// FUSED-NEXT: return %[[Y]]
// FUSED: func.func private @[[LAYER]]({{.*}}) -> tensor<16x16xf32> attributes {lamina.kind = "output"
// FUSED: stablehlo.dot_general
// FUSED: stablehlo.add
// FUSED: stablehlo.maximum
// FUSED-NOT: func.func

// PLANNED: func.func public @main(%[[X:.*]]: memref<16x16xf32>, %[[W:.*]]: memref<16x16xf32>, %[[B:.*]]: memref<16xf32>, %[[R:.*]]: memref<16x16xf32>, %[[A:.*]]: memref<?xi8>)
// PLANNED-SAME: lamina.arena_bytes = 1024
// PLANNED: %[[H:.*]] = memref.view %[[A]]
// PLANNED: call @[[LAYER:.*]](%[[X]], %[[W]], %[[B]], %[[H]])
// PLANNED: call @[[LAYER]](%[[H]], %[[W]], %[[B]], %[[R]])

// LINALG: // kernel
// LINALG: linalg.
// LLVM: define {{.*}}void @k_
// LLVM: define void @lamina_entry(ptr %arguments, ptr %results, ptr %arena)
// LLVM-COUNT-2: call void @k_
// ASM: k_{{[0-9a-f]+}}:

// MANIFEST: "name": "jit_mlp"
// MANIFEST: "alias": 0
// MANIFEST: "calls": 2
module @jit_mlp {
  func.func public @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> {
    %0 = call @layer(%x, %w, %b) : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
    %1 = call @layer(%0, %w, %b) : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
    return %1 : tensor<16x16xf32>
  }
  func.func private @layer(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<16x16xf32>
    %2 = stablehlo.add %0, %1 : tensor<16x16xf32>
    %c = stablehlo.constant dense<0.0> : tensor<16x16xf32>
    %3 = stablehlo.maximum %2, %c : tensor<16x16xf32>
    return %3 : tensor<16x16xf32>
  }
}
