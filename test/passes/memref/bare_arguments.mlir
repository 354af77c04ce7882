// RUN: %lamina-opt %s --pass-pipeline=memref-bare-arguments | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline="memref-bare-arguments,convert-to-llvm" | FileCheck %s --check-prefix=LLVM

// CHECK-LABEL: func.func private @task(memref<4xf32>, index) attributes {llvm.bareptr}
// CHECK-LABEL: func.func @kernel(%arg0: memref<4xf32>) attributes {llvm.bareptr}
// CHECK-LABEL: func.func private @exp(f32) -> f32
// CHECK-NOT: llvm.bareptr
// LLVM-LABEL: llvm.func @task(!llvm.ptr, i64)
// LLVM-LABEL: llvm.func @kernel(%arg0: !llvm.ptr)
// LLVM: llvm.call @task(%{{.*}}, %{{.*}}) : (!llvm.ptr, i64) -> ()
func.func private @task(memref<4xf32>, index)
func.func @kernel(%buffer: memref<4xf32>) {
  %low = arith.constant 0 : index
  call @task(%buffer, %low) : (memref<4xf32>, index) -> ()
  return
}
func.func private @exp(f32) -> f32
