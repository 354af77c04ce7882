// RUN: %lamina-opt %s --pass-pipeline=llvm-fold | FileCheck %s

// CHECK-LABEL: llvm.func @pointer_of_a_buffer(%arg0: !llvm.ptr) -> f32 {
// CHECK-NEXT: llvm.load %arg0
// CHECK-NEXT: llvm.return
llvm.func @pointer_of_a_buffer(%pointer: !llvm.ptr) -> f32 {
  %zero = llvm.mlir.constant(0 : index) : i64
  %none = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
  %first = llvm.insertvalue %pointer, %none[0] : !llvm.struct<(ptr, ptr, i64)>
  %second = llvm.insertvalue %pointer, %first[1] : !llvm.struct<(ptr, ptr, i64)>
  %buffer = llvm.insertvalue %zero, %second[2] : !llvm.struct<(ptr, ptr, i64)>
  %aligned = llvm.extractvalue %buffer[1] : !llvm.struct<(ptr, ptr, i64)>
  %value = llvm.load %aligned : !llvm.ptr -> f32
  llvm.return %value : f32
}
