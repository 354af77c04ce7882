// RUN: %lamina-opt %s --pass-pipeline=memref-expand-copies | FileCheck %s

// CHECK-LABEL: func.func @strided
// CHECK-NOT: memref.copy
// CHECK: linalg.copy
func.func @strided(%x: memref<4xf32, strided<[2]>>, %y: memref<4xf32>) {
  memref.copy %x, %y : memref<4xf32, strided<[2]>> to memref<4xf32>
  return
}

// CHECK-LABEL: func.func @onto_itself
// CHECK-NEXT: return
func.func @onto_itself(%x: memref<4xf32>) {
  memref.copy %x, %x : memref<4xf32> to memref<4xf32>
  return
}
