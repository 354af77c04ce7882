// RUN: %lamina-opt %s --pass-pipeline='llvm-finish-kernel{vector-bits=512 public=k}' | FileCheck %s

// CHECK: llvm.func internal @helper(%arg0: !llvm.ptr {llvm.noalias}) attributes {{.*}}prefer_vector_width = "512"
llvm.func @helper(%a: !llvm.ptr) {
  llvm.return
}
// CHECK: llvm.func @k(%arg0: !llvm.ptr {llvm.noalias}, %arg1: i64) attributes {prefer_vector_width = "512"}
llvm.func @k(%a: !llvm.ptr, %n: i64) {
  llvm.return
}
// CHECK: llvm.func @outside(!llvm.ptr)
llvm.func @outside(!llvm.ptr)
