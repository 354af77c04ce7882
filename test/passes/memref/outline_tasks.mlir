// RUN: %lamina-opt %s --split-input-file --pass-pipeline=memref-outline-tasks | FileCheck %s
// RUN: %lamina-opt %s --split-input-file --memref-outline-tasks --timing -o %t 2>&1 | FileCheck %s --check-prefix=COUNT

// CHECK-LABEL: func.func private @k_task_0(%arg0: memref<8x4xf32>, %arg1: index, %arg2: index)
// CHECK: %[[C:.*]] = arith.constant 2.0
// CHECK: scf.for %[[T:.*]] = %arg1 to %arg2
// CHECK: %[[J:.*]] = arith.remui %[[T]]
// CHECK: %[[I:.*]] = arith.divui %[[T]]
// CHECK: memref.store %[[C]], %arg0[%[[I]], %[[J]]]
// CHECK: func.func private @k_parallel_0(memref<8x4xf32>) attributes {lamina.range = array<i64: 32, 3>, lamina.task = @k_task_0}
// CHECK-LABEL: func.func @k
// CHECK: call @k_parallel_0(%arg0)
func.func @k(%y: memref<8x4xf32>) {
  %c = arith.constant 2.0 : f32
  scf.forall (%i, %j) in (8, 4) {
    memref.store %c, %y[%i, %j] : memref<8x4xf32>
  } {lamina.grain = 3 : i64}
  return
}

// -----

// Steps count blocks; what is loaded outside is loaded again inside.
// CHECK-LABEL: func.func private @blocks_task_0
// CHECK: memref.load %arg1[]
// CHECK: scf.for
// CHECK: arith.muli
// CHECK: lamina.range = array<i64: 4, 1>
func.func @blocks(%s: memref<f32>, %y: memref<100xf32>) {
  %c = memref.load %s[] : memref<f32>
  scf.forall (%i) = (0) to (100) step (32) {
    memref.store %c, %y[%i] : memref<100xf32>
  }
  return
}

// -----

// What an intrinsic takes as an immediate is a constant inside, too.
// CHECK-LABEL: func.func private @tiles_task_0
// CHECK: %[[REGISTER:.*]] = llvm.mlir.constant
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero"(%[[REGISTER]])
// CHECK-NOT: scf.forall
func.func @tiles() {
  %register = llvm.mlir.constant(1 : i8) : i8
  scf.forall (%i) in (8) {
    llvm.call_intrinsic "llvm.x86.tilezero"(%register) : (i8) -> ()
  }
  return
}

// -----

// What has no value yet has none inside either.
// CHECK-LABEL: func.func private @nothing_task_0
// CHECK: ub.poison : vector<4xf32>
// CHECK-NOT: scf.forall
func.func @nothing(%y: memref<8x4xf32>) {
  %p = ub.poison : vector<4xf32>
  %c = arith.constant 2.0 : f32
  %0 = arith.constant 0 : index
  scf.forall (%i) in (8) {
    %v = vector.insert %c, %p[1] : f32 into vector<4xf32>
    vector.store %v, %y[%i, %0] : memref<8x4xf32>, vector<4xf32>
  }
  return
}

// -----

// A number that came from nowhere known can't be passed to a task.
// COUNT: 1 loops left serial
// CHECK-LABEL: func.func @serial
// CHECK: scf.forall
func.func @serial(%c: f32, %y: memref<100xf32>) {
  scf.forall (%i) in (100) {
    memref.store %c, %y[%i] : memref<100xf32>
  }
  return
}
