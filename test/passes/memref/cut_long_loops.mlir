// RUN: %lamina-opt %s --pass-pipeline='memref-cut-long-loops{vector-bits=512 most-vectors=8 most-left=3}' | FileCheck %s

// Two loops over a chunk of which none is left over; what is loaded is loaded again, the two products of one
// value are made where they are needed, and stored is at the end.
// CHECK-LABEL: func.func @chain
// CHECK: %[[T:.*]] = memref.alloc() : memref<1024xf32>
// CHECK-NOT: memref.alloc
// CHECK: scf.for %[[C:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c1024{{.*}} step %c1
// CHECK: %[[AT:.*]] = arith.addi %[[C]], %[[J]]
// CHECK: memref.load %arg0[%[[AT]]]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %[[T]][%[[J]]]
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[AT2:.*]] = arith.addi %[[C]], %[[K]]
// CHECK: memref.load %arg0[%[[AT2]]]
// CHECK: memref.load %[[T]][%[[K]]]
// CHECK: math.sqrt
// CHECK: memref.store %{{.*}}, %arg1[%[[AT2]]]
// CHECK-NOT: scf.for
func.func @chain(%x: memref<8192xf32>, %y: memref<8192xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8192 : index
  %k = arith.constant 2.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<8192xf32>
    %late = arith.mulf %v, %k : f32
    %e = math.exp %v : f32
    %a = arith.addf %e, %v : f32
    %b = arith.addf %a, %e : f32
    %c = arith.mulf %b, %late : f32
    %d = math.sqrt %c : f32
    memref.store %d, %y[%i] : memref<8192xf32>
  }
  return
}

// Where the end is not known each chunk goes as far as that; one that is not plain has shorter loops.
// CHECK-LABEL: func.func @range
// CHECK: scf.for %[[C:.*]] = %arg3 to %arg4 step %{{.*}} {
// CHECK: %[[REST:.*]] = arith.subi %arg4, %[[C]]
// CHECK: %[[LENGTH:.*]] = arith.minsi %[[REST]],
// CHECK-COUNT-2: scf.for %{{.*}} to %[[LENGTH]]
// CHECK-NOT: scf.for
func.func @range(%x: memref<8192xf32>, %at: memref<8192xindex>, %y: memref<8192xf32>, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %low to %high step %c1 {
    %from = memref.load %at[%i] : memref<8192xindex>
    %v = memref.load %x[%from] : memref<8192xf32>
    %a = math.exp %v : f32
    %b = arith.addf %a, %a : f32
    %c = math.log %b : f32
    memref.store %c, %y[%i] : memref<8192xf32>
  }
  return
}

// What lies far apart is loaded once, and handed on; a row and a number of it are loaded again.
// CHECK-LABEL: func.func @far
// CHECK-COUNT-1: memref.load %arg0[
// CHECK-NOT: memref.load %arg0[
// CHECK: return
func.func @far(%x: memref<8192x4xf32>, %row: memref<8192xf32>, %y: memref<8192xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8192 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i, %c1] : memref<8192x4xf32>
    %r = memref.load %row[%i] : memref<8192xf32>
    %one = memref.load %row[%c1] : memref<8192xf32>
    %a = math.exp %v : f32
    %b = arith.addf %a, %r : f32
    %c = arith.mulf %b, %one : f32
    %d = arith.addf %c, %r : f32
    %e = arith.mulf %d, %one : f32
    %f = arith.addf %e, %v : f32
    memref.store %f, %y[%i] : memref<8192xf32>
  }
  return
}

// Integers are divided by many ops, so that fewer are in a loop.
// CHECK-LABEL: func.func @divides
// CHECK-COUNT-3: scf.for
// CHECK: return
func.func @divides(%x: memref<100xi32>, %y: memref<100xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<100xi32>
    %a = arith.divsi %v, %v : i32
    %b = arith.divsi %a, %v : i32
    %c = arith.divsi %b, %v : i32
    memref.store %c, %y[%i] : memref<100xi32>
  }
  return
}

// CHECK-LABEL: func.func @carries
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @carries(%x: memref<8192xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8192 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
    %v = memref.load %x[%i] : memref<8192xf32>
    %a = math.exp %v : f32
    %b = arith.addf %a, %a : f32
    %c = math.log %b : f32
    %t = arith.addf %s, %c : f32
    scf.yield %t : f32
  }
  return %s : f32
}
