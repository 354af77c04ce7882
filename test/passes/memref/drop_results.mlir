// RUN: %lamina-opt %s --pass-pipeline=memref-drop-results | FileCheck %s

// CHECK-LABEL: func.func @in_place(%arg0: memref<4xf32>, %arg1: memref<4xf32>) {
// CHECK-NEXT: memref.copy %arg0, %arg1
// CHECK-NEXT: return
func.func @in_place(%x: memref<4xf32>, %out: memref<4xf32>) -> memref<4xf32> {
  memref.copy %x, %out : memref<4xf32> to memref<4xf32>
  return %out : memref<4xf32>
}

// CHECK-LABEL: func.func @elsewhere
// CHECK: %[[B:.*]] = memref.alloc
// CHECK: memref.copy %[[B]], %arg0
// CHECK: memref.copy %arg0, %arg1
// CHECK-NEXT: return
func.func @elsewhere(%x: memref<4xf32> {lamina.inout = 0 : i32}, %out: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %0 = memref.alloc() : memref<4xf32>
  return %0, %x : memref<4xf32>, memref<4xf32>
}

// CHECK-LABEL: func.func @empty(%arg0: memref<0xi8>) {
func.func @empty(%out: memref<2x0xf32>) -> memref<2x0xf32> {
  return %out : memref<2x0xf32>
}
