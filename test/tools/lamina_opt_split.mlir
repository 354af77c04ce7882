// RUN: %lamina-opt %s --split-input-file --stablehlo-dce | FileCheck %s

// CHECK: func.func @first
// CHECK-NEXT: return
func.func @first(%x: tensor<4xf32>) {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return
}

// -----
// CHECK: // -----
// CHECK: func.func @first
func.func @first() {
  return
}
