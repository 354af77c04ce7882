// RUN: %lamina-opt %s --pass-pipeline='memref-place-temporaries{stack-bytes=128}' | FileCheck %s

// The small buffer goes on the stack. Of the large ones the first is dead when the third begins.
// CHECK-LABEL: func.func @kernel(%arg0: memref<64xf32>, %arg1: memref<512xi8>)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK-DAG: %[[A:.*]] = memref.view %arg1[{{.*}}][] : memref<512xi8> to memref<64xf32>
// CHECK-NOT: memref.alloc()
func.func @kernel(%x: memref<64xf32>) {
  %small = memref.alloc() : memref<16xf32>
  %a = memref.alloc() : memref<64xf32>
  memref.copy %x, %a : memref<64xf32> to memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  memref.copy %a, %b : memref<64xf32> to memref<64xf32>
  %c = memref.alloc() : memref<64xf32>
  memref.copy %b, %c : memref<64xf32> to memref<64xf32>
  memref.copy %c, %x : memref<64xf32> to memref<64xf32>
  return
}

// CHECK-LABEL: func.func @nothing(%arg0: memref<0xi8>)
func.func @nothing() {
  return
}

// A task has no scratch region.
// CHECK-LABEL: func.func private @task(%arg0: index)
// CHECK: memref.alloca
func.func private @task(%i: index) {
  %small = memref.alloc() : memref<16xf32>
  return
}
