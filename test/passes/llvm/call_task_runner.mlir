// RUN: %lamina-opt %s --pass-pipeline=llvm-call-task-runner | FileCheck %s

// CHECK-DAG: llvm.func @lamina_parallel_for(!llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-LABEL: llvm.func internal @k_parallel_0(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {always_inline}
// CHECK: %[[CTX:.*]] = llvm.alloca {{.*}} x !llvm.ptr
// CHECK: llvm.store %arg0
// CHECK: llvm.store %arg1
// CHECK: %[[TASK:.*]] = llvm.mlir.addressof @k_task_0_unpack
// CHECK: llvm.call @lamina_parallel_for(%[[TASK]], %[[CTX]],
// CHECK-LABEL: llvm.func internal @k_task_0_unpack(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64)
// CHECK: llvm.call @k_task_0(%{{.*}}, %{{.*}}, %arg1, %arg2)
// CHECK: llvm.func @k_task_0({{.*}}) attributes {always_inline}
llvm.func @k_task_0(%a: !llvm.ptr, %b: !llvm.ptr, %low: i64, %high: i64) {
  llvm.return
}
llvm.func @k_parallel_0(!llvm.ptr, !llvm.ptr) attributes {lamina.range = array<i64: 32, 3>, lamina.task = @k_task_0}
llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr) {
  llvm.call @k_parallel_0(%a, %b) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
