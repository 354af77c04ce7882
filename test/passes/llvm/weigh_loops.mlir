// RUN: %lamina-opt %s --pass-pipeline=llvm-weigh-loops | FileCheck %s

// From 2 in steps of 8 below 131: 17 times. The loop in it has a bound that nobody knows.
// CHECK-LABEL: llvm.func @nested
// CHECK: llvm.cond_br %{{.*}} weights([17, 1]), ^bb2, ^bb6
// CHECK: llvm.cond_br %{{[0-9a-z]+}}, ^bb4, ^bb5
llvm.func @nested(%n: i64) {
  %zero = llvm.mlir.constant(0 : index) : i64
  %one = llvm.mlir.constant(1 : index) : i64
  %first = llvm.mlir.constant(2 : index) : i64
  %step = llvm.mlir.constant(8 : index) : i64
  %bound = llvm.mlir.constant(131 : index) : i64
  llvm.br ^outer(%first : i64)
^outer(%i: i64):
  %more = llvm.icmp "slt" %i, %bound : i64
  llvm.cond_br %more, ^body, ^end
^body:
  llvm.br ^inner(%zero : i64)
^inner(%j: i64):
  %again = llvm.icmp "slt" %j, %n : i64
  llvm.cond_br %again, ^work, ^next
^work:
  %after = llvm.add %j, %one : i64
  llvm.br ^inner(%after : i64)
^next:
  %then = llvm.add %i, %step : i64
  llvm.br ^outer(%then : i64)
^end:
  llvm.return
}

// A loop that never runs, and a branch that is no loop's.
// CHECK-LABEL: llvm.func @never
// CHECK: llvm.cond_br %{{[0-9a-z]+}}, ^bb1, ^bb4
// CHECK: llvm.cond_br %{{.*}} weights([0, 1]), ^bb3, ^bb4
llvm.func @never(%n: i64) {
  %zero = llvm.mlir.constant(0 : index) : i64
  %one = llvm.mlir.constant(1 : index) : i64
  %few = llvm.icmp "slt" %n, %one : i64
  llvm.cond_br %few, ^start, ^end
^start:
  llvm.br ^head(%one : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %zero : i64
  llvm.cond_br %more, ^work, ^end
^work:
  %after = llvm.add %i, %one : i64
  llvm.br ^head(%after : i64)
^end:
  llvm.return
}
