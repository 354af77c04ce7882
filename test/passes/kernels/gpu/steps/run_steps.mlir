// RUN: %lamina-opt %s --gpu-run-steps --split-input-file | FileCheck %s

// One thread does everything; the arena's buffers are its own.
// CHECK: gpu.func @counts_0(%[[N:.*]]: memref<i32>, %[[R:.*]]: memref<i32>, %{{.*}}: memref<0xi8>) kernel
// CHECK-SAME: known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK: %[[I:.*]] = memref.alloca() {{.*}} : memref<i32>
// CHECK: scf.while
// CHECK: %[[A:.*]] = memref.load %[[I]][]
// CHECK: memref.store %{{.*}}, %[[P:.*]][] : memref<i1>
// CHECK: %[[B:.*]] = memref.load %[[P]][]
// CHECK: scf.condition(%[[B]])
// CHECK: do {
// CHECK: memref.store %{{.*}}, %[[I]][]
// CHECK: memref.load %[[I]][]
// CHECK: memref.store %{{.*}}, %[[R]][]
// CHECK-NOT: func.func
func.func @counts(%n: memref<i32>, %r: memref<i32>, %arena: memref<?xi8>)
    attributes {lamina.steps = "thread", lamina.arguments = 1 : i64, lamina.arena_bytes = 128 : i64} {
  %c0 = arith.constant 0 : index
  %p = memref.view %arena[%c0][] : memref<?xi8> to memref<i1>
  %c64 = arith.constant 64 : index
  %i = memref.view %arena[%c64][] : memref<?xi8> to memref<i32>
  memref.copy %n, %i : memref<i32> to memref<i32>
  scf.while : () -> () {
    func.call @positive(%i, %p) : (memref<i32>, memref<i1>) -> ()
    %0 = memref.load %p[] : memref<i1>
    scf.condition(%0)
  } do {
    func.call @less(%i) : (memref<i32>) -> ()
    scf.yield
  }
  memref.copy %i, %r : memref<i32> to memref<i32>
  return
}
func.func @positive(%i: memref<i32>, %p: memref<i1>) {
  %zero = arith.constant 0 : i32
  %0 = memref.load %i[] : memref<i32>
  %1 = arith.cmpi sgt, %0, %zero : i32
  memref.store %1, %p[] : memref<i1>
  return
}
func.func @less(%i: memref<i32>) {
  %one = arith.constant 1 : i32
  %0 = memref.load %i[] : memref<i32>
  %1 = arith.subi %0, %one : i32
  memref.store %1, %i[] : memref<i32>
  return
}

// -----

// A thread for each lane: its bounds are no parameters.
// CHECK: gpu.func @lanes_0(%[[X:.*]]: memref<300xf32>, %{{.*}}: memref<0xi8>) kernel
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 3, 1, 1>
// CHECK: %[[LANE:.*]] = arith.addi
// CHECK: arith.minui %{{.*}}, %c300
// CHECK: arith.index_cast %[[LANE]] : index to i32
func.func @lanes(%x: memref<300xf32>, %low: memref<i32>, %high: memref<i32>, %arena: memref<?xi8>)
    attributes {lamina.steps = "lanes", lamina.lanes = 300 : i64, lamina.arguments = 3 : i64, lamina.arena_bytes = 0 : i64} {
  func.call @one(%x, %low) : (memref<300xf32>, memref<i32>) -> ()
  return
}
func.func @one(%x: memref<300xf32>, %i: memref<i32>) {
  %0 = memref.load %i[] : memref<i32>
  %1 = arith.index_cast %0 : i32 to index
  %2 = memref.load %x[%1] : memref<300xf32>
  memref.store %2, %x[%1] : memref<300xf32>
  return
}

// -----

// One block: the arena is shared memory, what the first thread does alone needs no barrier, and what
// others see of it one. Blocks of a callee are done in turn, several at once where they are small.
// CHECK: memref.global "private" @steps_0_shared_0 : memref<4160xi8, 3>
// CHECK: gpu.func @steps_0(%[[X:.*]]: memref<1000xf32>, %{{.*}}: memref<0xi8>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK: %[[V:.*]] = memref.view {{.*}} to memref<1000xf32, 3>
// CHECK: scf.while
// CHECK: arith.cmpi eq, %thread_id_x, %c0
// CHECK: scf.if
// CHECK: memref.store {{.*}} : memref<i1, 3>
// CHECK: gpu.barrier
// CHECK-NEXT: %[[GO:.*]] = memref.load %{{.*}} : memref<i1, 3>
// CHECK-NEXT: scf.condition(%[[GO]])
// CHECK: scf.for %{{.*}} = %{{.*}} to %c30 step %c8
// CHECK: memref.store {{.*}}, %[[V]][
// CHECK: gpu.barrier
// CHECK: memref.load %[[V]][%{{.*}}] : memref<1000xf32, 3>
// CHECK: memref.store {{.*}}, %[[X]][
func.func @steps(%x: memref<1000xf32>, %arena: memref<?xi8>)
    attributes {lamina.steps = "block", lamina.arguments = 1 : i64, lamina.arena_bytes = 4160 : i64} {
  %c0 = arith.constant 0 : index
  %v = memref.view %arena[%c0][] : memref<?xi8> to memref<1000xf32>
  %c4096 = arith.constant 4096 : index
  %p = memref.view %arena[%c4096][] : memref<?xi8> to memref<i1>
  scf.while : () -> () {
    func.call @decide(%p) : (memref<i1>) -> ()
    %0 = memref.load %p[] : memref<i1>
    scf.condition(%0)
  } do {
    func.call @twice(%x, %v) : (memref<1000xf32>, memref<1000xf32>) -> ()
    memref.copy %v, %x : memref<1000xf32> to memref<1000xf32>
    scf.yield
  }
  return
}
func.func @decide(%p: memref<i1>) {
  %0 = memref.load %p[] : memref<i1>
  memref.store %0, %p[] : memref<i1>
  return
}
func.func private @twice(memref<1000xf32>, memref<1000xf32>)
gpu.module @twice_gpu attributes {lamina.scratch_bytes = 0 : i64} {
  gpu.func @twice_0(%x: memref<1000xf32>, %v: memref<1000xf32>, %scratch: memref<0xi8>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 30, 1, 1>} {
    %c32 = arith.constant 32 : index
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %s = arith.muli %b, %c32 : index
    %i = arith.addi %s, %t : index
    %0 = memref.load %x[%i] : memref<1000xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %v[%i] : memref<1000xf32>
    gpu.return
  }
}

// -----

// Leaves others alone.
// CHECK: func.func @other
func.func @other() {
  return
}
